//! Which files of an agent's folder are hook modules: `hooks.py` and `hooks/**/*.py`, both layouts at once.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::Error;

/// The hook modules of `root`, relative to it, `hooks.py` first and the others sorted. `__init__.py`, `__pycache__` and hidden
/// folders are left out; symlinks are followed, each folder once.
pub(super) fn hook_modules(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let kind = fs::metadata(root).map_err(|reason| match reason.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(root.to_owned()),
        _ => Error::Unreadable { path: root.to_owned(), reason },
    })?;
    if !kind.is_dir() {
        return Err(Error::NotAFolder(root.to_owned()));
    }
    let mut found = Vec::new();
    let single = Path::new("hooks.py");
    if is_file(&root.join(single))? {
        found.push(single.to_owned());
    }
    let folder = Path::new("hooks");
    if root.join(folder).is_dir() {
        let mut inside = Vec::new();
        walk(root, folder, &mut HashSet::new(), &mut inside)?;
        inside.sort();
        found.extend(inside);
    }
    if found.is_empty() { Err(Error::NoModules(root.to_owned())) } else { Ok(found) }
}

fn walk(root: &Path, folder: &Path, seen: &mut HashSet<PathBuf>, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let full = root.join(folder);
    let unreadable = |reason| Error::Unreadable { path: full.clone(), reason };
    if !seen.insert(fs::canonicalize(&full).map_err(unreadable)?) {
        return Ok(());
    }
    for entry in fs::read_dir(&full).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let (inside, path) = (folder.join(&name), full.join(&name));
        let shown = name.to_string_lossy();
        if path.is_dir() {
            if shown != "__pycache__" && !shown.starts_with('.') {
                walk(root, &inside, seen, found)?;
            }
        } else if path.extension().is_some_and(|kind| kind == "py") && shown != "__init__.py" && is_file(&path)? {
            found.push(inside);
        }
    }
    Ok(())
}

/// Whether a path leads to a file that can be opened; a link to nowhere is an error, not an absence.
fn is_file(path: &Path) -> Result<bool, Error> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(false);
    }
    let unreadable = |reason| Error::Unreadable { path: path.to_owned(), reason };
    let is_file = fs::metadata(path).map_err(unreadable)?.is_file();
    if is_file {
        fs::File::open(path).map_err(unreadable)?;
    }
    Ok(is_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_are_found_sorted_without_what_is_no_module() {
        let agent = tempfile::tempdir().unwrap();
        let root = agent.path();
        for file in [
            "hooks.py",
            "hooks/b.py",
            "hooks/a/z.py",
            "hooks/a/__init__.py",
            "hooks/my-hook.py",
            "hooks/_private.py",
            "hooks/café.py",
            "hooks/__pycache__/b.py",
            "hooks/old.pyc",
            "hooks/.cache/x.py",
            "lib/x.py",
        ] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(root.join("hooks"), root.join("hooks/loop")).unwrap();
        let expected =
            ["hooks.py", "hooks/_private.py", "hooks/a/z.py", "hooks/b.py", "hooks/café.py", "hooks/my-hook.py"];
        assert_eq!(hook_modules(root).unwrap(), expected.map(PathBuf::from));
    }

    #[test]
    fn what_is_no_agent_is_said_in_one_sentence() {
        let agent = tempfile::tempdir().unwrap();
        let root = agent.path();
        let said = |path: &Path| hook_modules(path).unwrap_err().to_string().replace(root.to_str().unwrap(), "AGENT");
        assert_eq!(said(&root.join("none")), "Agent folder `AGENT/none` does not exist");
        assert!(said(root).starts_with("Agent folder `AGENT` has no hook modules\n  hint: put `hooks.py`"));
        fs::write(root.join("hooks.py"), "").unwrap();
        assert!(said(&root.join("hooks.py")).starts_with("`AGENT/hooks.py` is a file\n  hint: give the agent's folder"));
        fs::create_dir(root.join("hooks")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("hooks/gone.py")).unwrap();
        assert!(said(root).starts_with("`AGENT/hooks/gone.py` cannot be read: No such file"));
    }
}
