//! Every example is played, and its whole report compared with the golden file of that name.

use std::fs;
use std::path::Path;

use crate::command::{report, tenterhook};

#[test]
fn every_example_gives_its_golden_report() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks-examples");
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir() && entry.path().join("conversations.jsonl").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 7, "{names:?}");
    for name in names {
        let agent = folder.join(&name);
        assert!(agent.join("README.md").is_file(), "{name} has no README.md");
        let (code, report) = report(&agent, &agent.join("conversations.jsonl"), &["--diff"]);
        assert_eq!(code, 0, "{name}: {report:#}");
        insta::assert_json_snapshot!(name.as_str(), report);
    }
}

#[test]
fn the_airline_desk_gives_its_golden_transcript() {
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks-examples/airline-desk");
    let messages = fs::read_to_string(agent.join("messages.txt")).unwrap();
    let said = messages.lines().flat_map(|text| ["--message", text]);
    let done = tenterhook().arg("chat").arg(&agent).args(said).output().unwrap();
    let (heard, told) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert_eq!((done.status.code(), told.as_str()), (Some(0), ""));
    insta::assert_snapshot!("airline-desk", heard);
    let checked = tenterhook().arg("check").arg(&agent).output().unwrap();
    assert_eq!(String::from_utf8(checked.stdout).unwrap(), "");
}

/// What an execution shows, without the times.
fn executed(project: &Path) -> String {
    let done = tenterhook().arg("execute").arg(project).output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    let logged: Vec<_> = told.lines().filter(|line| line.starts_with("WARNING shop")).collect();
    let shown = String::from_utf8(done.stdout).unwrap();
    let time = |line: &str| match line.rsplit_once(" (") {
        Some((before, time)) if time.ends_with(" ms)") => before.to_owned(),
        _ => line.to_owned(),
    };
    let mut shown: Vec<_> = shown.lines().map(time).collect();
    // Which of two gathered calls ends first is nobody's promise.
    for calls in shown.chunk_by_mut(|one, other| [one, other].iter().all(|line| line.contains(" → "))) {
        calls.sort();
    }
    format!("{}\n--- log\n{}\n--- exit code {:?}\n", shown.join("\n"), logged.join("\n"), done.status.code().unwrap())
}

#[test]
fn every_execution_gives_its_golden_tree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks-examples");
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("execution.yml").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        let project = folder.join(&name);
        assert!(project.join("README.md").is_file(), "{name} has no README.md");
        insta::assert_snapshot!(name.as_str(), executed(&project));
        let checked = tenterhook().arg("check").arg(&project).output().unwrap();
        assert_eq!(String::from_utf8(checked.stdout).unwrap(), "", "{name}");
    }
}
