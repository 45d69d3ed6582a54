//! The house rules: rooms import from lower floors only, and Python is named in two rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The floors, the lowest first. A room may import from rooms of lower floors and from itself.
const FLOORS: [&[&str]; 10] = [
    &["conversation", "diagnostic"],
    &["hooks"],
    &["telemetry"],
    &["dispatch", "check", "tools", "condition"],
    &["step", "skill"],
    &["turn", "quickapp", "execute"],
    &["python", "worker", "providers"],
    &["agent"],
    &["cli"],
    &["extension", "main", "lib"],
];

/// Rooms that may name the interpreter's crates.
const PYTHON_ROOMS: [&str; 2] = ["python", "extension"];

/// Names that say nothing.
const NAMELESS: [&str; 5] = ["utils", "util", "common", "helpers", "manager"];

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| (path.strip_prefix(&root).unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
        .collect()
}

fn room_of(path: &Path) -> String {
    path.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

/// The rooms that a source names: `crate::room`, also in a list.
fn rooms_named(source: &str) -> Vec<String> {
    let code: String =
        source.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut rooms = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default().split(',').collect(),
            None => vec![rest],
        };
        for name in names {
            let name: String = name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if name.chars().next().is_some_and(char::is_lowercase) {
                rooms.push(name);
            }
        }
    }
    rooms
}

#[test]
fn rooms_import_from_lower_floors_only() {
    let floors: BTreeMap<&str, usize> =
        FLOORS.iter().enumerate().flat_map(|(floor, rooms)| rooms.iter().map(move |room| (*room, floor))).collect();
    let mut wrong = Vec::new();
    for (path, source) in sources() {
        let room = room_of(&path);
        let floor =
            *floors.get(room.as_str()).unwrap_or_else(|| panic!("{} is in no room of the table", path.display()));
        for named in rooms_named(&source) {
            let below = floors
                .get(named.as_str())
                .unwrap_or_else(|| panic!("{} names the unknown room {named}", path.display()));
            if named != room && *below >= floor {
                wrong.push(format!("{} (floor {floor}) imports {named} (floor {below})", path.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn only_two_rooms_name_python() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(path, source)| {
            !PYTHON_ROOMS.contains(&room_of(path).as_str()) && (source.contains("pyo3") || source.contains("pythonize"))
        })
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn unsafe_code_stands_in_one_file() {
    let found: Vec<_> = sources()
        .into_iter()
        .filter(|(_, source)| {
            source.lines().any(|line| line.contains("unsafe {") || line.contains("expect(unsafe_code"))
        })
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert_eq!(found, ["python/raw.rs"]);
}

#[test]
fn files_have_names_that_say_something_and_stay_readable() {
    for (path, source) in sources() {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert!(!NAMELESS.contains(&stem), "{}", path.display());
        let lines = source.lines().count();
        assert!(lines <= 420, "{} has {lines} lines", path.display());
    }
}

/// The names in the last column of the tables whose last heading is `Test`.
fn tests_named(document: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document)).unwrap();
    let rows =
        text.split("| Test |").skip(1).flat_map(|table| table.lines().skip(2).take_while(|line| line.starts_with('|')));
    rows.filter(|row| row.ends_with("` |")).map(|row| row.rsplit('`').nth(1).unwrap().to_owned()).collect()
}

fn tests_in(folder: &str) -> Vec<String> {
    fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| fs::read_to_string(path).unwrap())
        .flat_map(|source| {
            let name = |line: &str| {
                line.trim_start_matches("async ").strip_prefix("fn ")?.split_once('(').map(|(name, _)| name.to_owned())
            };
            source.lines().filter_map(name).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_test_that_a_document_names_is_there() {
    let (named, tests) = (tests_named("README.md"), tests_in("engine"));
    assert!(named.len() > 20);
    let missing: Vec<_> = named.iter().filter(|name| !tests.contains(name)).collect();
    assert_eq!(missing, Vec::<&String>::new());
}

#[test]
fn every_promise_of_tools_and_skills_has_its_test_and_every_test_of_skills_its_promise() {
    let (named, tests) = (tests_named("docs/tools.md"), tests_in("engine"));
    let missing: Vec<_> = named.iter().filter(|name| !tests.contains(name)).collect();
    assert_eq!(missing, Vec::<&String>::new());
    let tests_of = |file| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine").join(file));
    let skills = ["skills.rs", "serving.rs", "sessions.rs", "unhooked.rs", "hostile_tools.rs"]
        .map(|file| tests_of(file).unwrap())
        .concat();
    let of_skills = tests.iter().filter(|name| name.len() > 24 && skills.contains(&format!("fn {name}(")));
    let unnamed: Vec<_> = of_skills.filter(|name| !named.contains(name)).collect();
    assert_eq!(unnamed, Vec::<&String>::new());
}

#[test]
fn every_promise_of_a_point_has_its_test_and_every_test_of_the_turn_its_promise() {
    let (mut named, mut tests) = (tests_named("docs/hook-points.md"), tests_in("turn"));
    // What helps them has a short name.
    tests.retain(|name| name.len() > 24);
    named.sort();
    tests.sort();
    assert_eq!(named, tests);
}

/// All names in the last column of the tables whose last heading is `Test`.
fn all_tests_named(document: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document)).unwrap();
    let rows =
        text.split("| Test |").skip(1).flat_map(|table| table.lines().skip(2).take_while(|line| line.starts_with('|')));
    let names = |row: &str| {
        let column = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        column.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    rows.flat_map(names).collect()
}

/// The functions that a file defines, in Rust or Python, with `#[test]` or the like before them or the name of a test.
fn tests_of(path: &Path) -> BTreeSet<String> {
    let source = fs::read_to_string(path).unwrap();
    let mut is_test = false;
    let mut found = BTreeSet::new();
    for line in source.lines().map(str::trim_start) {
        let line = line.trim_start_matches("async ");
        let function = line.strip_prefix("fn ").filter(|_| is_test);
        let function = function.or_else(|| line.strip_prefix("def ").filter(|name| name.starts_with("test_")));
        found.extend(function.and_then(|rest| rest.split_once('(')).map(|(name, _)| name.to_owned()));
        is_test = matches!(line, "#[test]" | "#[tokio::test]");
    }
    found
}

#[test]
fn every_promise_of_quick_apps_has_its_test_and_every_test_of_requests_its_promise() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = all_tests_named("docs/quickapps.md");
    let folders = [
        "src/quickapp",
        "src/agent/config/manifest",
        "src/providers/rest",
        "tests/engine",
        "tests/providers",
        "tests/python",
    ];
    let files = folders.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let files = files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let all: BTreeSet<_> = files.flat_map(|path| tests_of(&path)).collect();
    assert_eq!(named.difference(&all).collect::<Vec<_>>(), Vec::<&String>::new(), "there are no such tests");
    let of_requests = [
        "src/quickapp/request_tests.rs",
        "src/quickapp/failing_tests.rs",
        "src/quickapp/hidden_tests.rs",
        "src/quickapp/placing_tests.rs",
        "src/quickapp/pair_tests.rs",
        "tests/engine/quickapps.rs",
        "tests/engine/hostile_apps.rs",
        "tests/providers/hanging.rs",
    ];
    let theirs: BTreeSet<_> = of_requests.iter().flat_map(|file| tests_of(&root.join(file))).collect();
    assert!(theirs.len() > 60, "{}", theirs.len());
    assert_eq!(theirs.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new(), "these show no promise");
}

#[test]
fn every_promise_of_an_execution_has_its_test() {
    let named = tests_named("docs/execution.md");
    let tests: String = sources()
        .into_iter()
        .filter(|(path, _)| room_of(path) == "execute")
        .map(|(_, source)| source)
        .collect::<Vec<_>>()
        .concat();
    assert!(named.len() > 70);
    let missing: Vec<_> = named.iter().filter(|name| !tests.contains(&format!("fn {name}("))).collect();
    assert_eq!(missing, Vec::<&String>::new());
}

/// The texts in quotes between two words of a file.
fn quoted(file: &str, from: &str, to: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let list = text.split_once(from).unwrap().1.split_once(to).unwrap().0;
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn what_stands_in_rust_and_in_python_is_the_same() {
    let tools = quoted("src/hooks/mod.rs", "const ENGINE_TOOLS", "];");
    assert_eq!(quoted("python/tenterhook/tooling.py", "ENGINE_TOOLS = frozenset(", ")"), tools);
    let mut given = quoted("src/check/names.rs", "const GIVEN", "];");
    given.insert("rasa.mantle.hooks".to_owned());
    let ours = |from| quoted("python/tenterhook/names.py", from, "}\n");
    let mut names: BTreeSet<_> = ours("MODULES = {").union(&ours("FALLBACKS = {")).cloned().collect();
    names.retain(|name| name.starts_with("rasa."));
    assert_eq!(names, given);
}
