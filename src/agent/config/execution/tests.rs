use super::*;
use crate::execute::Exit;

/// What is said of the file's text.
pub(in crate::agent::config) fn told(yaml: &str) -> Vec<String> {
    read(yaml).1
}

fn read(yaml: &str) -> (Option<ExecutionConfig>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(EXECUTION_FILE), yaml).unwrap();
    std::fs::write(folder.path().join("script.yml"), "").unwrap();
    let (config, found) = load_execution(folder.path(), &|_| None).unwrap();
    let shown = found.iter().map(|problem| problem.to_string().replace(&format!("{}/", folder.path().display()), ""));
    let config = config.map(|config| ExecutionConfig { model: None, ..config });
    (config, shown.collect())
}

#[test]
fn what_the_file_says_is_read() {
    let (config, found) = read(
        "instructions: Help.\nmodel: {provider: scripted, script: script.yml}\nexits:\n  - name: refund\n    description: Money goes back.\n    \
         aliases: [pay_back]\n    schema: {type: object, properties: {amount: {type: number}}}\nchat: true\nform: fenced\niterations: 3\n\
         timeout: 1.5\nhook_timeout: 2\ntool_timeout: 4\ntool_calls: 7\nrepeats: 2\nvariables: {n: 1}\n\
         limits: {memory_mb: 16, recursion: 50, output_kb: 2, source_kb: 3, calls: 9}\n",
    );
    assert_eq!(found, Vec::<String>::new());
    let schema = serde_json::json!({"type": "object", "properties": {"amount": {"type": "number"}}});
    assert_eq!(
        config.unwrap(),
        ExecutionConfig {
            instructions: "Help.".into(),
            model: None,
            exits: vec![Exit::new("refund", "Money goes back.").alias("pay_back").schema(schema)],
            chat: true,
            form: CodeForm::Fenced,
            iterations: Some(3),
            hook_timeout: Some(Duration::from_secs(2)),
            tool_timeout: Some(Duration::from_secs(4)),
            tool_calls: Some(7),
            repeats: Some(2),
            variables: serde_json::from_str(r#"{"n": 1}"#).unwrap(),
            limits: CodeLimits {
                time: Duration::from_millis(1500),
                memory: 16 << 20,
                recursion: 50,
                output: 2 << 10,
                source: 3 << 10,
                calls: 9,
            },
        }
    );
}

#[test]
fn instructions_may_be_a_file_and_not_both() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(INSTRUCTIONS_FILE), "Do it.\n").unwrap();
    std::fs::write(folder.path().join(EXECUTION_FILE), "iterations: 2\n").unwrap();
    let (config, found) = load_execution(folder.path(), &|_| None).unwrap();
    assert_eq!((config.unwrap().instructions, found), ("Do it.\n".into(), vec![]));
    std::fs::write(folder.path().join(EXECUTION_FILE), "instructions: Other.\n").unwrap();
    let (config, found) = load_execution(folder.path(), &|_| None).unwrap();
    assert_eq!(config, None);
    assert_eq!(found[0].message, "`instructions` stands beside `instructions.md`");
}

#[test]
fn every_mistake_has_its_place_and_what_to_do() {
    let (config, found) = read(
        "instruction: Help.\niterations: 101\nform: nativ\nexits:\n  - name: a\n  - description: b\n    schema: []\ntimeout: 0\nlimits: \
         {memory: 3}\n",
    );
    assert_eq!(config, None);
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn without_the_file_it_is_told_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let (config, found) = load_execution(folder.path(), &|_| None).unwrap();
    assert_eq!(config, None);
    assert_eq!(
        (found[0].message.as_str(), found[0].hint.as_deref()),
        (
            "There is no `execution.yml`",
            Some("write one with `instructions` (or a file `instructions.md` beside it) and a `model`")
        )
    );
}
