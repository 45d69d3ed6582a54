//! Messages over the standard input and output of a process, each a line.

use std::sync::Arc;
use std::{fmt, io};

use rmcp::model::{RequestId, ServerJsonRpcMessage};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Mutex, oneshot, watch};

use super::blame::{too_long, unreadable};
use crate::telemetry::TURN;

/// The connection to a process; the process ends with it.
#[derive(Debug)]
pub(super) struct Pipe {
    input: Arc<Mutex<Option<ChildStdin>>>,
    output: BufReader<ChildStdout>,
    line: Line,
    end: Option<oneshot::Sender<()>>,
    ended: watch::Receiver<Option<String>>,
}

impl Pipe {
    /// A connection whose messages have at most `longest` bytes. Whoever minds the process is told to end it by `end`, and tells that it
    /// has by `ended`.
    pub(super) fn new(
        input: ChildStdin,
        output: ChildStdout,
        longest: usize,
        end: oneshot::Sender<()>,
        ended: watch::Receiver<Option<String>>,
    ) -> Self {
        let input = Arc::new(Mutex::new(Some(input)));
        let output = BufReader::with_capacity(1 << 16, output);
        Self { input, output, line: Line { longest, ..Line::default() }, end: Some(end), ended }
    }
}

impl Transport<RoleClient> for Pipe {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let input = input.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            input.write_all(&line).await?;
            input.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let (line, is_whole) = self.line.read(&mut self.output).await?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let error = match serde_json::from_slice(&line) {
                _ if !is_whole => too_long(self.line.longest),
                Ok(message) => return Some(message),
                Err(error) => {
                    tracing::debug!(target: TURN, "What an MCP server wrote cannot be read: {error}");
                    unreadable()
                }
            };
            match answered(&line) {
                // Nobody else would tell who waits for it.
                Some(request) => return Some(ServerJsonRpcMessage::error(error, Some(request))),
                // Whose answer that was is not to be found out: the connection ends, and with it all calls.
                None if !is_whole => return None,
                // Some servers write their greetings there.
                None => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.input.lock().await.take();
        let _ = self.end.take().map(|end| end.send(()));
        let _ = self.ended.wait_for(Option::is_some).await;
        Ok(())
    }
}

/// A line as far as it has been read. Reading can be given up at any time and goes on where it was.
#[derive(Debug, Default)]
struct Line {
    read: Vec<u8>,
    longest: usize,
    is_too_long: bool,
}

impl Line {
    /// The next line, and whether that is all of it; `None`: there are no more.
    async fn read(&mut self, from: &mut (impl AsyncBufRead + Unpin)) -> Option<(Vec<u8>, bool)> {
        loop {
            let there = from.fill_buf().await.ok().filter(|there| !there.is_empty())?;
            let end = there.iter().position(|byte| *byte == b'\n');
            let part = &there[..end.unwrap_or(there.len())];
            let room = self.longest - self.read.len();
            self.read.extend_from_slice(&part[..part.len().min(room)]);
            self.is_too_long |= part.len() > room;
            let count = part.len() + usize::from(end.is_some());
            from.consume(count);
            if end.is_some() {
                let is_whole = !std::mem::take(&mut self.is_too_long);
                return Some((std::mem::take(&mut self.read), is_whole));
            }
        }
    }
}

/// The number of the request that a message answers which cannot be read as a whole.
pub(super) fn answered(beginning: &[u8]) -> Option<RequestId> {
    let mut head = Head::default();
    // That it breaks off is known.
    let _ = serde_json::Deserializer::from_slice(beginning).deserialize_map(&mut head);
    head.number.filter(|_| !head.asks)
}

/// What the beginning of a message tells of it.
#[derive(Default)]
struct Head {
    number: Option<RequestId>,
    /// It is a request itself.
    asks: bool,
}

impl<'de> Visitor<'de> for &mut Head {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a message")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.asks |= key == "method";
            if key == "id" {
                self.number = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found_in_the_beginning_of_a_message() {
        let beginning = |text: &str| answered(text.as_bytes());
        assert_eq!(beginning(r#"{"jsonrpc": "2.0", "id": 7, "result": {"content": [{"te"#), Some(RequestId::Number(7)));
        assert_eq!(beginning(r#"{"id":"a","result":{"x"#), Some(RequestId::String("a".into())));
        assert_eq!(beginning(r#"{"result": {"id": 7, "x"#), None);
        assert_eq!(beginning(r#"{"id": 7, "method": "ping", "params": {"x"#), None);
        assert_eq!(beginning("no message"), None);
    }

    #[test]
    fn lines_are_read_up_to_their_longest() {
        let mut from: &[u8] = b"four\n\nlonger\nok\nno end";
        let mut line = Line { longest: 4, ..Line::default() };
        let mut lines = Vec::new();
        futures_executor::block_on(async {
            while let Some((read, is_whole)) = line.read(&mut from).await {
                lines.push((String::from_utf8(read).unwrap(), is_whole));
            }
        });
        let expected = [("four", true), ("", true), ("long", false), ("ok", true)];
        assert_eq!(lines, expected.map(|(line, is_whole)| (line.to_owned(), is_whole)));
    }
}
