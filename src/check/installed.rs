//! What an environment's Python can import beside the agent, found on disk: the standard library and `site-packages`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules of the standard library that have no file of their own in every build: compiled in, or an extension.
const WITHOUT_FILE: [&str; 34] = [
    "array",
    "atexit",
    "audioop",
    "binascii",
    "builtins",
    "cmath",
    "crypt",
    "errno",
    "faulthandler",
    "fcntl",
    "gc",
    "grp",
    "itertools",
    "marshal",
    "math",
    "mmap",
    "msvcrt",
    "nt",
    "posix",
    "pwd",
    "pyexpat",
    "readline",
    "resource",
    "select",
    "spwd",
    "sys",
    "syslog",
    "termios",
    "time",
    "unicodedata",
    "winreg",
    "winsound",
    "xxsubtype",
    "zlib",
];

/// The packages of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installed {
    /// The environment's folder, as it is shown.
    pub(crate) prefix: PathBuf,
    /// The folders that its Python looks for modules in.
    folders: Vec<PathBuf>,
    /// The sources of the finders of editable installs: each names the packages that it maps.
    finders: Vec<String>,
}

impl Installed {
    /// The packages of the environment that an interpreter belongs to; `None` where that is not seen from its path (a launcher
    /// script, an unknown layout).
    pub(crate) fn of(executable: &Path) -> Option<Self> {
        let prefix = executable.parent()?.parent()?;
        let (prefix, home, version, with_base) = match fs::read_to_string(prefix.join("pyvenv.cfg")) {
            Ok(text) => {
                let of = |key: &str| setting(&text, key);
                let version = of("version").or_else(|| of("version_info")).and_then(minor_version);
                let home = PathBuf::from(of("home")?);
                (
                    prefix.to_owned(),
                    home.parent()?.to_owned(),
                    version,
                    of("include-system-site-packages") == Some("true"),
                )
            }
            Err(_) => {
                let real = fs::canonicalize(executable).ok()?;
                if is_script(&real) {
                    return None;
                }
                let prefix = real.parent()?.parent()?.to_owned();
                let version = real
                    .file_name()
                    .and_then(OsStr::to_str)
                    .and_then(|name| minor_version(name.strip_prefix("python")?));
                (prefix.clone(), prefix, version, true)
            }
        };
        let version = version.or_else(|| only_version(&home))?;
        let library = |prefix: &Path| prefix.join(format!("lib/{version}"));
        let standard = library(&home);
        if !standard.join("os.py").is_file() {
            return None;
        }
        let mut folders = vec![standard.join("lib-dynload"), standard.clone(), library(&prefix).join("site-packages")];
        if with_base {
            folders.push(standard.join("site-packages"));
            folders.extend(
                [library(Path::new("/usr/local")), PathBuf::from("/usr/lib/python3")]
                    .map(|lib| lib.join("dist-packages")),
            );
            let user =
                std::env::var_os("HOME").map(|user| library(&Path::new(&user).join(".local")).join("site-packages"));
            folders.extend(user);
        }
        if let Some(more) = std::env::var_os("PYTHONPATH") {
            folders.extend(std::env::split_paths(&more));
        }
        let mut installed = Self { prefix, folders, finders: Vec::new() };
        installed.follow_path_files();
        Some(installed)
    }

    /// Adds what `.pth` files name: folders, and the finders of editable installs.
    fn follow_path_files(&mut self) {
        for site in self.folders.clone().iter().filter(|folder| folder.ends_with("site-packages")) {
            for entry in fs::read_dir(site).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let text = || fs::read_to_string(entry.path()).unwrap_or_default();
                if entry.path().extension().is_some_and(|kind| kind == "pth") {
                    let text = text();
                    let lines = text.lines().map(str::trim_end);
                    let folders =
                        lines.filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("import"));
                    self.folders.extend(folders.map(|folder| site.join(folder)));
                } else if name.starts_with("__editable__") && name.ends_with("_finder.py") {
                    self.finders.push(text());
                }
            }
        }
    }

    /// Whether a module of that name, which has no dot, is there.
    pub(super) fn has(&self, top: &str) -> bool {
        // Names with an underscore in front are the standard library's own affair.
        top.starts_with('_')
            || WITHOUT_FILE.contains(&top)
            || self.folders.iter().any(|folder| is_module(folder, top))
            || self.finders.iter().any(|finder| finder.contains(&format!("'{top}'")))
    }
}

/// Whether a folder holds a module of that name: a package, a source, or an extension.
pub(super) fn is_module(folder: &Path, name: &str) -> bool {
    folder.join(name).is_dir() || folder.join(format!("{name}.py")).is_file() || has_extension(folder, name)
}

/// Whether a folder holds `name.*.so`, `name.so` or `name.pyd`. The suffix names the build, so that the folder must be read.
fn has_extension(folder: &Path, name: &str) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        let rest = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| [".so", ".pyd"].iter().any(|end| format!(".{rest}").ends_with(end)))
    })
}

/// A value of a `pyvenv.cfg`.
fn setting<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .find(|(known, _)| known.trim() == key)
        .map(|(_, value)| value.trim())
}

/// `python3.11` of `3.11.7`.
fn minor_version(text: &str) -> Option<String> {
    let mut parts = text.split('.');
    let (major, minor) = (parts.next()?, parts.next()?);
    [major, minor].iter().all(|part| part.parse::<u8>().is_ok()).then(|| format!("python{major}.{minor}"))
}

/// The version whose library is the only one below a prefix.
fn only_version(prefix: &Path) -> Option<String> {
    let entries = fs::read_dir(prefix.join("lib")).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut versions = names.filter(|name| name.strip_prefix("python").and_then(minor_version).is_some());
    let only = versions.next()?;
    versions.next().is_none().then_some(only)
}

fn is_script(file: &Path) -> bool {
    use std::io::Read as _;
    let mut start = [0; 2];
    fs::File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok() && &start == b"#!"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interpreter's folder and a virtual environment of it, with these files in `site-packages`.
    fn environment(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let site = root.join("venv/lib/python3.12/site-packages");
        for made in
            [root.join("base/bin"), root.join("base/lib/python3.12/lib-dynload"), root.join("venv/bin"), site.clone()]
        {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(root.join("base/lib/python3.12/os.py"), "").unwrap();
        fs::write(root.join("base/lib/python3.12/lib-dynload/_json.cpython-312-x86_64-linux-gnu.so"), "").unwrap();
        let home = root.join("base/bin");
        fs::write(root.join("venv/pyvenv.cfg"), format!("home = {}\nversion = 3.12.1\n", home.display())).unwrap();
        for (file, text) in files {
            fs::create_dir_all(site.join(file).parent().unwrap()).unwrap();
            fs::write(site.join(file), text).unwrap();
        }
        let executable = root.join("venv/bin/python");
        (folder, executable)
    }

    #[test]
    fn packages_sources_extensions_and_editable_installs_are_found() {
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("linked.py"), "").unwrap();
        let path = elsewhere.path().display().to_string();
        let (_folder, executable) = environment(&[
            ("httpx/__init__.py", ""),
            ("six.py", ""),
            ("fast.cpython-312-x86_64-linux-gnu.so", ""),
            ("project.pth", &format!("# a comment\nimport site\n{path}\n")),
            ("__editable___mine_1_0_finder.py", "MAPPING: dict[str, str] = {'mine': '/somewhere'}"),
        ]);
        let installed = Installed::of(&executable).unwrap();
        let found = ["os", "sys", "_json", "httpx", "six", "fast", "linked", "mine", "absent", "fas", "cgi"]
            .map(|name| installed.has(name));
        assert_eq!(found, [true, true, true, true, true, true, true, true, false, false, false]);
    }

    #[test]
    fn a_launcher_script_tells_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let launcher = folder.path().join("bin/python3");
        fs::write(&launcher, "#!/bin/sh\n").unwrap();
        assert_eq!(Installed::of(&launcher), None);
    }
}
