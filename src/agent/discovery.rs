//! Which files of an agent's folder are hook modules: `hooks.py` and `hooks/**/*.py`, both layouts at once.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

use super::config::execution::EXECUTION_FILE;
use super::error::Error;
use crate::check::AgentFile;

/// What tells that a folder is an agent's, though it has no hooks.
const CONFIGURATION: [&str; 6] =
    ["agent.yml", "integrations.yml", "responses.yml", "memory.yml", "skills", EXECUTION_FILE];

/// The hook modules of `root`, relative to it, `hooks.py` first and the others sorted. `__init__.py`, `__pycache__` and hidden
/// folders are left out; symlinks are followed, each file is given once.
pub(super) fn hook_modules(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let found = below(root, Path::new("hooks"), is_agent(root)?)?;
    only_hooks(root, &found)
}

/// Whether `root` has hook or tool modules.
pub(super) fn has_modules(root: &Path) -> Result<bool, Error> {
    let hooks = below(root, Path::new("hooks"), is_agent(root)?)?;
    Ok(!hooks.is_empty() || !tool_modules(root)?.is_empty())
}

/// The tool modules of `root`, relative to it, those of the root and then those of each skill: `tools.py`, then those in `tools/`, sorted:
/// of two tools with one name in one place the later is kept.
pub(super) fn tool_modules(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut modules = tool_modules_in(root, Path::new(""))?;
    let skills = root.join("skills");
    if !skills.is_dir() {
        return Ok(modules);
    }
    let mut names: Vec<_> = entries(&skills)?.iter().map(DirEntry::file_name).collect();
    names.sort();
    for name in names.into_iter().filter(|name| !name.to_string_lossy().starts_with(['.', '_'])) {
        modules.extend(tool_modules_in(root, &Path::new("skills").join(name))?);
    }
    Ok(modules)
}

fn tool_modules_in(root: &Path, place: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = place.join("tools");
    let found = below(root, &folder, is_file(&root.join(place).join("tools.py"))?)?;
    let mut paths: Vec<_> =
        found.into_iter().map(|file| file.path).filter(|path| !path.ends_with("__init__.py")).collect();
    paths.sort_by_key(|path| (path.starts_with(&folder), path.clone()));
    Ok(paths)
}

/// The files that a check of `path` reads: of an agent's folder its hook modules, `lib/`, `tools/`, `skills/` and the modules beside them; a
/// single file is a hook module.
pub(crate) fn agent_files(path: &Path) -> Result<Vec<AgentFile>, Error> {
    if is_file(path)? {
        let name = path.file_name().map_or_else(|| path.to_owned(), PathBuf::from);
        return Ok(vec![(path.to_owned(), name, true)]);
    }
    let mut others = below(path, Path::new("hooks"), is_agent(path)?)?;
    let modules = match only_hooks(path, &others) {
        Ok(modules) => modules,
        Err(Error::OnlyInit(_)) => Vec::new(),
        // An agent need not have hooks.
        Err(Error::NoModules(_)) if CONFIGURATION.iter().any(|name| path.join(name).exists()) => Vec::new(),
        Err(other) => return Err(other),
    };
    others.extend(below(path, Path::new("lib"), false)?);
    others.extend(below(path, Path::new("tools"), false)?);
    others.extend(below(path, Path::new("skills"), false)?);
    for entry in entries(path)? {
        if let Kind::Module { .. } = Kind::of(&entry)? {
            others.push(Found::new(PathBuf::from(entry.file_name()), PathBuf::new(), false));
        }
    }
    let known: HashSet<PathBuf> = modules.iter().cloned().collect();
    let mut others: Vec<_> = others.into_iter().map(|file| file.path).filter(|below| !known.contains(below)).collect();
    others.sort();
    others.dedup();
    let of_hooks = modules.into_iter().map(|below| (path.join(&below), below, true));
    Ok(of_hooks.chain(others.into_iter().map(|below| (path.join(&below), below, false))).collect())
}

/// Whether `root`, which must be a folder, has a module `hooks.py`.
fn is_agent(root: &Path) -> Result<bool, Error> {
    let kind = fs::metadata(root).map_err(|reason| match reason.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(root.to_owned()),
        _ => Error::Unreadable { path: root.to_owned(), reason },
    })?;
    if !kind.is_dir() {
        return Err(Error::NotAFolder(root.to_owned()));
    }
    is_file(&root.join("hooks.py"))
}

/// Of what was found in `hooks.py` and `hooks/` the modules whose hooks are registered.
fn only_hooks(root: &Path, found: &[Found]) -> Result<Vec<PathBuf>, Error> {
    let mut modules: Vec<_> = found.iter().filter(|file| !file.path.ends_with("__init__.py")).collect();
    // Of several names of one file that which is no link is kept.
    modules.sort_by(|one, other| (one.linked, &one.path).cmp(&(other.linked, &other.path)));
    let mut seen = HashSet::new();
    modules.retain(|file| seen.insert(&file.real));
    let mut paths: Vec<_> = modules.into_iter().map(|file| file.path.clone()).collect();
    paths.sort_by(|one, other| {
        (one.components().nth(1).is_some(), one).cmp(&(other.components().nth(1).is_some(), other))
    });
    if !paths.is_empty() {
        Ok(paths)
    } else if root.join("hooks/__init__.py").is_file() {
        Err(Error::OnlyInit(root.to_owned()))
    } else {
        Err(Error::NoModules(root.to_owned()))
    }
}

/// A Python file: its path below the root, and the file that it really is.
struct Found {
    path: PathBuf,
    real: PathBuf,
    linked: bool,
}

impl Found {
    fn new(path: PathBuf, real: PathBuf, linked: bool) -> Self {
        Self { path, real, linked }
    }
}

/// All Python files of a folder of `root`, and the module of the folder's name beside it where there is one.
fn below(root: &Path, folder: &Path, single: bool) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    if single {
        let path = folder.with_extension("py");
        let full = root.join(&path);
        let linked = full.is_symlink();
        let real = if linked { canonical(&full)? } else { canonical(root)?.join(&path) };
        found.push(Found::new(path, real, linked));
    }
    if root.join(folder).is_dir() {
        walk(root, folder, &mut Vec::new(), &mut found)?;
    }
    Ok(found)
}

/// Gathers the Python files of a folder; `above` holds the real paths of the folders on the way, so that a loop of links ends.
fn walk(root: &Path, folder: &Path, above: &mut Vec<PathBuf>, found: &mut Vec<Found>) -> Result<(), Error> {
    let full = root.join(folder);
    let real = canonical(&full)?;
    if above.contains(&real) {
        return Ok(());
    }
    let linked = !real.ends_with(folder);
    above.push(real.clone());
    for entry in entries(&full)? {
        let name = entry.file_name();
        match Kind::of(&entry)? {
            Kind::Folder if name != "__pycache__" && !name.to_string_lossy().starts_with('.') => {
                walk(root, &folder.join(&name), above, found)?;
            }
            Kind::Module { linked: true } => {
                found.push(Found::new(folder.join(&name), canonical(&entry.path())?, true));
            }
            Kind::Module { linked: false } => found.push(Found::new(folder.join(&name), real.join(&name), linked)),
            Kind::Folder | Kind::Other => {}
        }
    }
    above.pop();
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let unreadable = |reason| Error::Unreadable { path: folder.to_owned(), reason };
    fs::read_dir(folder).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)
}

/// What an entry of a folder is, links followed. The folder itself tells what is no link: the system is not asked again.
enum Kind {
    Folder,
    Module { linked: bool },
    Other,
}

impl Kind {
    fn of(entry: &DirEntry) -> Result<Self, Error> {
        let unreadable = |reason| Error::Unreadable { path: entry.path(), reason };
        let kind = entry.file_type().map_err(unreadable)?;
        let is_module = Path::new(&entry.file_name()).extension().is_some_and(|kind| kind == "py");
        if kind.is_symlink() {
            return match fs::metadata(entry.path()) {
                Ok(kind) if kind.is_dir() => Ok(Self::Folder),
                Ok(kind) if kind.is_file() && is_module => Ok(Self::Module { linked: true }),
                // A link to nowhere is an error, not an absence, where it should be a module.
                Err(reason) if is_module => Err(unreadable(reason)),
                _ => Ok(Self::Other),
            };
        }
        Ok(match (kind.is_dir(), kind.is_file() && is_module) {
            (true, _) => Self::Folder,
            (_, true) => Self::Module { linked: false },
            _ => Self::Other,
        })
    }
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
