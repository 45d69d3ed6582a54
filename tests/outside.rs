//! A crate outside the package uses the engine by the lines of the README.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Of the environments that `make` creates, one whose libpython no system folder has: a system library can hide that a dependent
/// does not find its own.
fn environment() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let candidates = [root.join(".venv-3.13"), root.join(".venv-3.12"), root.join(".venv")];
    candidates
        .into_iter()
        .find(|folder| folder.join("bin/python").is_file())
        .expect("`make` has created an environment")
}

#[test]
fn an_outside_engine_builds_starts_and_runs_hooks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (outside, environment) = (root.join("tests/outside"), environment());
    // What `make` builds for the same interpreter is not built twice.
    let shared = environment.ends_with(".venv-3.13");
    let target = root.join(if shared { "target/python-3.13" } else { "target/outside" });
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    for (file, fence) in [("build.rs", "rust"), ("src/main.rs", "rust,no_run")] {
        let source = std::fs::read_to_string(outside.join(file)).unwrap();
        assert!(readme.contains(&format!("```{fence}\n{source}```")), "the README shows another {file}");
    }
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet"])
        .current_dir(&outside)
        .env("CARGO_TARGET_DIR", &target)
        .env("PYO3_PYTHON", environment.join("bin/python"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let done = Command::new(target.join("debug/outside-engine"))
        .arg(root.join("hooks-examples/mask-private-data"))
        .env_clear()
        .env("VIRTUAL_ENV", &environment)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!((out.as_ref(), err.as_ref()), ("changed: true, text: Your card [card ending 1111] is charged.\n", ""));
    assert!(done.status.success());
}
