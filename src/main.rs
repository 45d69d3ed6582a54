//! try
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let engine = match tenterhook::HookEngine::load(dir) { Ok(e) => e, Err(e) => { eprintln!("error: {e}"); std::process::exit(2) } };
    println!("{engine:?}");
    let rt = tokio::runtime::Runtime::new().unwrap();
    rt.block_on(async {
        for _ in 0..3 {
        let out = engine.modify(tenterhook::OutgoingTextPayload::new("s", "  hi ")).await;
        println!("{out:?}");
        let out = engine.modify(tenterhook::ModelRequestPayload::new("s", vec![])).await;
        println!("{out:?}");
        }
        println!("{}", engine.shutdown(std::time::Duration::from_secs(1)).await);
    });
}
