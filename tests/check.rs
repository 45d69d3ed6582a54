//! The checker's specifications: Markdown files with Python in them. Each code block is an agent (`file=` names a module, else
//! `hooks.py`; blocks that follow each other without text between them are one agent), and each problem stands as a comment on its
//! line: `# error: [rule]` or `# warning: [rule] part of the message`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

struct Block {
    file: String,
    code: String,
}

/// The agents of a specification: heading, and its files.
fn agents(spec: &str) -> Vec<(String, Vec<Block>)> {
    let (mut agents, mut heading, mut open) = (Vec::<(String, Vec<Block>)>::new(), String::new(), None::<Block>);
    let mut together = false;
    for line in spec.lines() {
        match (&mut open, line) {
            (Some(_), "```") => {
                let block = open.take().unwrap();
                match agents.last_mut() {
                    Some((_, blocks)) if together => blocks.push(block),
                    _ => agents.push((heading.clone(), vec![block])),
                }
                together = true;
            }
            (Some(block), line) => {
                block.code.push_str(line);
                block.code.push('\n');
            }
            (None, line) if line.starts_with("```python") => {
                let file = line.split_once("file=").map_or("hooks.py", |(_, file)| file.trim());
                open = Some(Block { file: file.to_owned(), code: String::new() });
            }
            (None, line) => {
                together &= line.is_empty();
                if let Some(text) = line.strip_prefix('#') {
                    text.trim_start_matches('#').trim().clone_into(&mut heading);
                }
            }
        }
    }
    agents
}

/// What the comments of a block expect: file, line, severity, rule, part of the message.
fn expected(block: &Block) -> Vec<(String, u64, String, String, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(block.code.lines()) {
        for severity in ["error", "warning"] {
            for part in line.split(&format!("# {severity}: [")).skip(1) {
                let (rule, rest) = part.split_once(']').unwrap();
                let message = rest.split(" # ").next().unwrap().trim().to_owned();
                found.push((block.file.clone(), number, severity.to_owned(), rule.to_owned(), message));
            }
        }
    }
    found
}

/// A virtual environment of the files that a check looks at, with a few packages and modules of the standard library.
fn environment() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let library = root.join("lib/python3.11");
    let packages =
        ["httpx", "mine", "pydantic", "requests", "structlog"].map(|name| library.join("site-packages").join(name));
    let modules = ["os", "json", "xml", "asyncio", "typing", "subprocess", "functools", "contextlib", "urllib"];
    for made in packages.into_iter().chain([root.join("bin")]) {
        fs::create_dir_all(made).unwrap();
    }
    for name in modules {
        fs::write(library.join(format!("{name}.py")), "").unwrap();
    }
    fs::write(root.join("bin/python"), "").unwrap();
    let home = root.join("bin");
    fs::write(root.join("pyvenv.cfg"), format!("home = {}\nversion = 3.11.7\n", home.display())).unwrap();
    folder
}

fn check(folder: &Path, options: &[&str]) -> Vec<Value> {
    let done = Command::new(env!("CARGO_BIN_EXE_tenterhook"))
        .args(["check", "--output-format", "json"])
        .args(options)
        .arg(folder)
        .output()
        .unwrap();
    let answer: Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stderr)));
    answer["diagnostics"].as_array().unwrap().clone()
}

#[test]
fn every_specification_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/specs");
    let mut specs: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    specs.sort();
    let packages = environment();
    let python = ["--python", packages.path().to_str().unwrap(), "--target-version", "3.14"];
    let mut rules = std::collections::BTreeSet::new();
    let mut wrong = Vec::new();
    for spec in &specs {
        for (heading, blocks) in agents(&fs::read_to_string(spec).unwrap()) {
            let agent = tempfile::tempdir().unwrap();
            for block in &blocks {
                let file = agent.path().join(&block.file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, &block.code).unwrap();
            }
            let mut expected: Vec<_> = blocks.iter().flat_map(expected).collect();
            rules.extend(expected.iter().map(|(.., rule, _)| rule.clone()));
            for found in check(agent.path(), &python) {
                let file = found["file"].as_str().unwrap().strip_prefix(agent.path().to_str().unwrap()).unwrap()[1..]
                    .to_owned();
                let (line, rule) = (found["line"].as_u64().unwrap(), found["rule"].as_str().unwrap());
                let message = found["message"].as_str().unwrap();
                let matching = expected.iter().position(|(in_file, at, severity, of, part)| {
                    *in_file == file
                        && *at == line
                        && found["severity"] == **severity
                        && of == rule
                        && message.contains(part.as_str())
                });
                match matching {
                    Some(index) => drop(expected.remove(index)),
                    None => wrong
                        .push(format!("{} ({heading}): unexpected {file}:{line} [{rule}] {message}", spec.display())),
                }
            }
            wrong.extend(expected.iter().map(|missing| format!("{} ({heading}): missing {missing:?}", spec.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let listed = Command::new(env!("CARGO_BIN_EXE_tenterhook")).arg("rules").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let untested: Vec<_> = listed
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .filter(|rule| !rules.contains(*rule))
        .collect();
    assert_eq!(untested, Vec::<&str>::new(), "rules without a specification");
}

#[test]
fn no_example_and_no_shared_module_has_an_error() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for example in fs::read_dir(root.join("hooks-examples")).unwrap() {
        let example = example.unwrap().path();
        // A program that only calls the package has nothing to check.
        let parts = ["hooks.py", "hooks", "agent.yml", "app.json"];
        if parts.iter().any(|part| example.join(part).exists()) {
            // An app is its manifest.
            let app = example.join("app.json");
            let example = if app.is_file() { app } else { example };
            assert_eq!(check(&example, &["--strict"]), Vec::<Value>::new(), "{}", example.display());
        }
    }
    let Some(shared) = std::env::var_os("TENTERHOOK_SHARED") else {
        eprintln!("TENTERHOOK_SHARED is not set: the shared modules are not checked");
        return;
    };
    for module in fs::read_dir(Path::new(&shared).join("cases/seed-modules")).unwrap() {
        let module = module.unwrap().path();
        if module.extension().is_some_and(|kind| kind == "py") {
            let errors: Vec<_> = check(&module, &[]).into_iter().filter(|found| found["severity"] == "error").collect();
            assert_eq!(errors, Vec::<Value>::new(), "{}", module.display());
        }
    }
}

/// Runs the check over one file; the exit code and the problems.
fn check_bytes(bytes: &[u8]) -> (Option<i32>, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hooks.py");
    fs::write(&file, bytes).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_tenterhook"))
        .args(["check", "--output-format", "json"])
        .arg(&file)
        .output()
        .unwrap();
    let answer: Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stderr)));
    (done.status.code(), answer["diagnostics"].as_array().unwrap().clone())
}

#[test]
fn hostile_files_are_a_diagnostic_and_never_a_crash() {
    let deep = |open: &str, close: &str, times: usize| {
        format!("x = {}1{}\n", open.repeat(times), close.repeat(times)).into_bytes()
    };
    let files: [(&str, Vec<u8>, &str); 12] = [
        ("parentheses", deep("(", ")", 1000), "too many nested parentheses"),
        ("brackets", deep("[", "]", 100_000), "too many nested parentheses"),
        ("minus", deep("-", "", 100_000), "too many operators in a row"),
        ("not", deep("not ", "", 50_000), "too deep a chain of operators"),
        ("lambda", deep("lambda:", "", 50_000), "too deep a chain of operators"),
        ("powers", deep("1**", "", 50_000), "too deep a chain of operators"),
        ("large", vec![b'#'; 10 << 20], "The file has 10485760 bytes"),
        ("nul", b"x = 1\n\0".to_vec(), "The source has a NUL byte on line 2"),
        ("not utf-8", b"x = '\xff'\n".to_vec(), "The source is not UTF-8 (byte 5)"),
        ("cookie", b"# coding: mine\nx = 1\n".to_vec(), "encoded in `mine`"),
        ("sum", format!("x = 1{}\n", "+1".repeat(200_000)).into_bytes(), ""),
        ("attributes", format!("x = a{}\n", ".b".repeat(200_000)).into_bytes(), ""),
    ];
    for (name, bytes, said) in files {
        let (code, problems) = check_bytes(&bytes);
        if said.is_empty() {
            assert_eq!(code, Some(0), "{name}: {problems:?}");
        } else {
            assert_eq!(code, Some(1), "{name}");
            assert!(problems[0]["message"].as_str().unwrap().contains(said), "{name}: {problems:?}");
        }
    }
    let latin = b"# -*- coding: latin-1 -*-\nx = '\xe9'\n";
    assert_eq!(check_bytes(latin).1.len(), 1, "the encoding that a cookie names is read; the module has no hook");
}

#[test]
fn a_path_that_cannot_be_checked_exits_with_2() {
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tenterhook")).arg("check").args(arguments).output().unwrap()
    };
    let said = |arguments: &[&str]| {
        let done = run(arguments);
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8(done.stderr).unwrap()
    };
    assert_eq!(said(&["/nowhere"]), "error: Agent folder `/nowhere` does not exist\n");
    assert!(
        said(&[".", "--select", "bloking-call"])
            .contains("There is no rule `bloking-call`\n  hint: did you mean `blocking-call`?")
    );
    assert!(said(&[".", "--target-version", "2.7"]).contains("expected 3.11 to 3.14"));
}

#[test]
fn a_watched_agent_is_checked_again_when_a_module_changes() {
    use std::io::{BufRead as _, BufReader};
    let agent = tempfile::tempdir().unwrap();
    let hooks = agent.path().join("hooks.py");
    let good = "from rasa.mantle.hooks import *\n@on_tool_call()\nasync def f(p: ToolCallPayload) -> None: ...\n";
    fs::write(&hooks, good.replace("async ", "")).unwrap();
    let mut watching = Command::new(env!("CARGO_BIN_EXE_tenterhook"))
        .args(["check", "--watch", "--output-format", "concise"])
        .arg(agent.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut round = || (lines.next().unwrap(), lines.next().unwrap());
    let waits = "Watching for changes, Ctrl-C ends".to_owned();
    assert_eq!(round(), ("1 error, 0 warnings".to_owned(), waits.clone()));
    fs::write(&hooks, good).unwrap();
    assert_eq!(round(), ("No problems found".to_owned(), waits.clone()));
    fs::remove_file(&hooks).unwrap();
    let (said, _) = round();
    assert!(said.starts_with("error: Agent folder"), "{said}");
    fs::create_dir(agent.path().join("hooks")).unwrap();
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    for of in ["check", "quickapp"] {
        let printed = Command::new(env!("CARGO_BIN_EXE_tenterhook")).args(["schema", of]).output().unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/{of}.json"));
        if std::env::var_os("INSTA_UPDATE").is_some_and(|mode| mode == "always") {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &printed.stdout).unwrap();
        }
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), fs::read_to_string(file).unwrap(), "{of}");
    }
}

#[test]
fn a_manifest_is_checked_without_what_stands_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hooks.py"), "this is no Python").unwrap();
    let path = folder.path().join("app.json");
    let set = r#"{"type": "mcp", "name": "notes", "mcp_server_info": {"url": "${NOTES}"}, "allowed_tools": ["find"]}"#;
    let hook = r#"{"kind": "tool_call", "event": "on_completion", "toolset_name": "notes", "tool_name": "keep"}"#;
    fs::write(&path, format!("{{\n\"tool_sets\": [{set}],\n\"hooks\": [{hook}]\n}}\n")).unwrap();
    let found = check(&path, &[]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["message"], "tool 'notes_keep' not found in initialized tools");
    assert_eq!((&found[0]["line"], &found[0]["column"]), (&Value::from(3), &Value::from(97)));
}

#[test]
fn with_import_the_load_tells_what_the_source_does_not_show() {
    let agent = tempfile::tempdir().unwrap();
    let hooks =
        "from rasa.mantle.hooks import *\n@on_tool_call()\nasync def f(p: ToolCallPayload) -> None: ...\n1 / 0\n";
    fs::write(agent.path().join("hooks.py"), hooks).unwrap();
    assert_eq!(check(agent.path(), &[]), Vec::<Value>::new());
    let found = check(agent.path(), &["--import"]);
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0]["rule"], &found[0]["line"]), (&Value::from("import-failed"), &Value::from(4)));
}
