use std::time::Duration;

use tenterhook::{HookEngine, Outcome, OutgoingTextPayload};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), tenterhook::Error> {
    let agent = std::env::args().nth(1).expect("the agent's folder");
    let engine = HookEngine::load(agent)?;
    let text = OutgoingTextPayload::new("conversation-1", "Your card 4111 1111 1111 1111 is charged.");
    engine.observe(&text);
    match engine.modify(text).await {
        Outcome::Proceed { payload, changed, .. } => println!("changed: {changed}, text: {}", payload.text),
        Outcome::Reject { reason, .. } => println!("rejected: {reason}"),
        Outcome::Retry { feedback } => println!("retry: {feedback}"),
        Outcome::Failed(failure) => println!("failed: {failure}"),
    }
    engine.shutdown(Duration::from_secs(2)).await;
    Ok(())
}
