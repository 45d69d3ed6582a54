//! The spans of an execution: names and sizes, never content.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing_subscriber::fmt::format::FmtSpan;

use super::testing::{Runs, scene};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn spans_name_the_execution_its_iterations_and_tools_and_show_no_content() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_max_level(tracing::Level::TRACE)
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let code =
        "print a secret\ncall pay {\"card\": \"a secret\"}\nexit done {\"success\": true, \"result\": \"a secret\"}";
    let done = scene(&["raise ValueError a secret", code])
        .tool("pay", Runs::Gives(json!("a secret")))
        .with(|builder| builder.instructions("a secret"))
        .run()
        .await;
    drop(guard);
    assert!(done.result.is_success());
    let told = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(!told.contains("secret"), "{told}");
    for name in [
        "otel.name=\"invoke_agent execution\"",
        "otel.name=\"iteration 2\"",
        "otel.name=\"execute_tool pay\"",
        "otel.name=\"chat model\"",
    ] {
        assert!(told.contains(name), "{name} is not in {told}");
    }
    let id = format!("execution.id=\"{}\"", done.result.id);
    assert!(told.contains(&id) && told.contains("execution.status=\"execution_error\""), "{told}");
}
