//! A collector in the test: takes batches over HTTP and shows them as trees.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// What a collector does with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    /// Answers with this status.
    Answers(u16),
    /// Takes it and says nothing.
    Hangs,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: ExportTraceServiceRequest,
}

/// A collector on a port of this machine.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) address: String,
    posted: Arc<Mutex<Vec<Posted>>>,
}

impl Collector {
    pub(crate) fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let posted = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&posted);
        thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().map(Result::unwrap) {
                let request = receive(&stream);
                taken.lock().unwrap().push(request);
                match manner {
                    Manner::Answers(status) => answer(stream, status),
                    Manner::Hangs => held.push(stream),
                }
            }
        });
        Self { address, posted }
    }

    pub(crate) fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let resources = self.posted().into_iter().flat_map(|posted| posted.body.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// Who sent, of the first request.
    pub(crate) fn resource(&self) -> String {
        shown(&self.posted()[0].body.resource_spans[0].resource.as_ref().unwrap().attributes)
    }

    /// Every trace as a tree in the order in which spans began, one text each, sorted.
    pub(crate) fn trees(&self) -> Vec<String> {
        let mut spans = self.spans();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        let roots = spans.iter().filter(|span| span.parent_span_id.is_empty());
        let mut trees: Vec<_> = roots
            .map(|root| {
                let mut tree = String::new();
                draw(&mut tree, root, &spans, 0);
                tree
            })
            .collect();
        trees.sort();
        trees
    }
}

fn draw(tree: &mut String, span: &Span, spans: &[Span], depth: usize) {
    let kind = format!("{:?}", span.kind()).to_lowercase();
    let status = span.status.as_ref().map(|status| format!("{:?}", status.code()).to_lowercase()).unwrap_or_default();
    let (indent, attributes) = ("  ".repeat(depth), shown(&span.attributes));
    writeln!(tree, "{indent}{} | {kind} | {status} | {attributes}", span.name).unwrap();
    assert_eq!((span.events.len(), span.links.len(), span.dropped_attributes_count), (0, 0, 0));
    for child in spans.iter().filter(|child| child.parent_span_id == span.span_id) {
        assert_eq!(child.trace_id, span.trace_id);
        assert!(span.start_time_unix_nano <= child.start_time_unix_nano, "a child begins in its parent");
        assert!(child.end_time_unix_nano <= span.end_time_unix_nano, "and ends in it");
        draw(tree, child, spans, depth + 1);
    }
}

fn shown(attributes: &[KeyValue]) -> String {
    let shown = |value: &Value| match value {
        Value::StringValue(text) => format!("{text:?}"),
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(is) => is.to_string(),
        other => format!("{other:?}"),
    };
    let mut attributes: Vec<_> = attributes
        .iter()
        .map(|entry| format!("{}={}", entry.key, shown(entry.value.as_ref().unwrap().value.as_ref().unwrap())))
        .collect();
    attributes.sort();
    attributes.join(" ")
}

fn receive(stream: &TcpStream) -> Posted {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let first = line();
    let mut headers = BTreeMap::new();
    while let Some((name, value)) = line().split_once(": ") {
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Posted { line: first, headers, body: ExportTraceServiceRequest::decode(&*body).unwrap() }
}

fn answer(mut stream: TcpStream, status: u16) {
    let _ =
        write!(stream, "HTTP/1.1 {status} Status\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n");
}
