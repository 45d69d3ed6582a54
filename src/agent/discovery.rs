//! Which files of an agent's folder are hook modules: `hooks.py` and `hooks/**/*.py`, both layouts at once.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::Error;
use crate::check::AgentFile;

/// The hook modules of `root`, relative to it, `hooks.py` first and the others sorted. `__init__.py`, `__pycache__` and hidden
/// folders are left out; symlinks are followed, each file is given once.
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
        found.push(Found::at(root, single.to_owned(), &canonical(root)?)?);
    }
    let folder = Path::new("hooks");
    if root.join(folder).is_dir() {
        walk(root, folder, &mut Vec::new(), &mut found)?;
    }
    // Of several names of one file that which is no link is kept.
    found.sort_by(|one, other| (one.linked, &one.path).cmp(&(other.linked, &other.path)));
    let mut seen = HashSet::new();
    found.retain(|file| seen.insert(file.real.clone()));
    let mut paths: Vec<_> = found.into_iter().map(|file| file.path).collect();
    paths.sort_by_key(|path| (path.components().count() > 1, path.clone()));
    if !paths.is_empty() {
        Ok(paths)
    } else if root.join("hooks/__init__.py").is_file() {
        Err(Error::OnlyInit(root.to_owned()))
    } else {
        Err(Error::NoModules(root.to_owned()))
    }
}

/// The files that a check of `path` reads: of an agent's folder its hook modules, `lib/`, `tools/` and the modules beside them; a
/// single file is a hook module.
pub(crate) fn agent_files(path: &Path) -> Result<Vec<AgentFile>, Error> {
    if is_file(path)? {
        let name = path.file_name().map_or_else(|| path.to_owned(), PathBuf::from);
        return Ok(vec![(path.to_owned(), name, true)]);
    }
    let mut files: Vec<AgentFile> = match hook_modules(path) {
        Ok(modules) => modules.into_iter().map(|below| (path.join(&below), below, true)).collect(),
        Err(Error::OnlyInit(_)) => Vec::new(),
        Err(other) => return Err(other),
    };
    let mut others = Vec::new();
    for folder in ["hooks", "lib", "tools"].map(Path::new) {
        if path.join(folder).is_dir() {
            python_files(path, folder, &mut Vec::new(), &mut others)?;
        }
    }
    let beside = fs::read_dir(path).map_err(|reason| Error::Unreadable { path: path.to_owned(), reason })?;
    for entry in beside.flatten() {
        let below = PathBuf::from(entry.file_name());
        if below.extension().is_some_and(|kind| kind == "py") && is_file(&path.join(&below))? {
            others.push(below);
        }
    }
    others.sort();
    let known: HashSet<PathBuf> = files.iter().map(|(_, below, _)| below.clone()).collect();
    let new = others.into_iter().filter(|below| !known.contains(below));
    files.extend(new.map(|below| (path.join(&below), below, false)));
    Ok(files)
}

/// All Python files below a folder, `__init__.py` among them.
fn python_files(root: &Path, folder: &Path, above: &mut Vec<PathBuf>, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let full = root.join(folder);
    let real = canonical(&full)?;
    if above.contains(&real) {
        return Ok(());
    }
    above.push(real);
    for entry in fs::read_dir(&full).map_err(|reason| Error::Unreadable { path: full.clone(), reason })?.flatten() {
        let (inside, path) = (folder.join(entry.file_name()), full.join(entry.file_name()));
        let hidden = entry.file_name().to_string_lossy().starts_with('.') || entry.file_name() == "__pycache__";
        if path.is_dir() && !hidden {
            python_files(root, &inside, above, found)?;
        } else if path.extension().is_some_and(|kind| kind == "py") && is_file(&path)? {
            found.push(inside);
        }
    }
    above.pop();
    Ok(())
}

/// A hook module: its path below the root, and the file that it really is.
struct Found {
    path: PathBuf,
    real: PathBuf,
    linked: bool,
}

impl Found {
    /// `above` is the real path of the folder that holds the file.
    fn at(root: &Path, path: PathBuf, above: &Path) -> Result<Self, Error> {
        let full = root.join(&path);
        let kind = fs::symlink_metadata(&full).map_err(|reason| Error::Unreadable { path: full.clone(), reason })?;
        let name = path.file_name().unwrap_or_default();
        let real = if kind.is_symlink() { canonical(&full)? } else { above.join(name) };
        let linked = kind.is_symlink() || !above.ends_with(path.parent().unwrap_or(&path));
        Ok(Self { path, real, linked })
    }
}

/// Gathers the modules of a folder; `above` holds the real paths of the folders on the way, so that a loop of links ends.
fn walk(root: &Path, folder: &Path, above: &mut Vec<PathBuf>, found: &mut Vec<Found>) -> Result<(), Error> {
    let full = root.join(folder);
    let unreadable = |reason| Error::Unreadable { path: full.clone(), reason };
    let real = canonical(&full)?;
    if above.contains(&real) {
        return Ok(());
    }
    above.push(real);
    for entry in fs::read_dir(&full).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let (inside, path) = (folder.join(&name), full.join(&name));
        let shown = name.to_string_lossy();
        if path.is_dir() {
            if shown != "__pycache__" && !shown.starts_with('.') {
                walk(root, &inside, above, found)?;
            }
        } else if path.extension().is_some_and(|kind| kind == "py") && shown != "__init__.py" && is_file(&path)? {
            let real = above.last().cloned().unwrap_or_default();
            found.push(Found::at(root, inside, &real)?);
        }
    }
    above.pop();
    Ok(())
}

fn canonical(path: &Path) -> Result<PathBuf, Error> {
    fs::canonicalize(path).map_err(|reason| Error::Unreadable { path: path.to_owned(), reason })
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
        assert!(
            said(&root.join("hooks.py")).starts_with("`AGENT/hooks.py` is a file\n  hint: give the agent's folder")
        );
        fs::create_dir(root.join("hooks")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("hooks/gone.py")).unwrap();
        assert!(said(root).starts_with("`AGENT/hooks/gone.py` cannot be read: No such file"));
    }
}
