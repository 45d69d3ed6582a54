//! A server that says exactly what it is told to, and remembers what it was asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// What the server does with a connection whose request it has read.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// It writes.
    Say(Vec<u8>),
    /// It writes the same until the other side has enough.
    Repeat(Vec<u8>),
    /// It waits.
    Pause(Duration),
    /// It keeps the connection open and says no more.
    Hold,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The first line and the headers, names in lower case, sorted.
    pub(crate) head: Vec<String>,
    pub(crate) body: String,
}

/// A server of scripts, one a connection. After the last it is gone.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (scripts, requests) = (scripts.into_iter().collect::<Vec<_>>(), Arc::clone(&asked));
        tokio::spawn(async move {
            for script in scripts {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read(&mut stream).await;
                requests.lock().unwrap().push(request);
                tokio::spawn(play(stream, script));
            }
        });
        Self { address, asked }
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// An answer in one piece.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n");
    vec![Step::Say(head.into()), Step::Say(body.into())]
}

/// A JSON document with status 200.
pub(crate) fn document(body: &str) -> Vec<Step> {
    answer("200 OK", "content-type: application/json\r\n", body)
}

/// The head of a stream of events that ends with the connection, then `steps`.
pub(crate) fn stream(steps: impl IntoIterator<Item = Step>) -> Vec<Step> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";
    std::iter::once(Step::Say(head.into())).chain(steps).collect()
}

/// An event.
pub(crate) fn event(data: &str) -> Step {
    Step::Say(format!("data: {data}\n\n").into())
}

async fn read(stream: &mut TcpStream) -> Asked {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the request has no end");
    };
    let mut lines = std::str::from_utf8(&bytes[..end]).unwrap().trim_end().lines();
    let mut head = vec![lines.next().unwrap().to_owned()];
    head.extend(lines.map(str::to_owned));
    head[1..].sort();
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = bytes.split_off(end);
    let wanted = length.map_or(0, |length| length.parse().unwrap());
    while body.len() < wanted {
        assert!(stream.read_buf(&mut body).await.unwrap() > 0, "the request has no whole body");
    }
    Asked { head, body: String::from_utf8(body).unwrap() }
}

async fn play(mut stream: TcpStream, script: Vec<Step>) {
    for step in script {
        match step {
            Step::Say(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                // Each piece is a packet of its own.
                stream.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
            Step::Repeat(bytes) => while stream.write_all(&bytes).await.is_ok() {},
            Step::Pause(pause) => sleep(pause).await,
            Step::Hold => std::future::pending().await,
        }
    }
}
