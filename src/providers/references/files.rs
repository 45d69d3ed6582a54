//! The files of a folder of references.

use std::fs::{self, DirEntry, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustc_hash::FxHashSet;

/// The largest file that is read, in bytes. No text that people write is as long; a dump or a log would push all others out of sight.
pub(super) const LARGEST: u64 = 16 * 1024 * 1024;

/// A file of references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    /// Its path in the folder, with `/` between the names.
    pub(super) source: String,
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// What tells that a file has been changed without reading it: a change that leaves both as they were is not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// In bytes.
    pub(super) size: i64,
    /// In nanoseconds since 1970, UTC.
    pub(super) modified: i64,
}

/// What was found, and what is to be told to who wrote the references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// In the order of their sources.
    pub(super) files: Vec<File>,
    pub(super) problems: Vec<String>,
}

/// All `.md` and `.txt` files of a folder and the folders in it, but for hidden ones. Links are followed; a folder that can be reached
/// by several ways, or from within itself, is entered once. There may be no such folder.
pub(super) fn list(folder: &Path) -> Listing {
    let mut listing = Listing::default();
    walk(folder, "", &mut FxHashSet::default(), &mut listing);
    listing.files.sort_by(|one, other| one.source.cmp(&other.source));
    listing
}

/// A file's text, and what is to be told of it. A byte order mark is left out; UTF-16 is read where there is one.
pub(super) fn read(file: &File) -> io::Result<(String, Option<String>)> {
    let bytes = fs::read(&file.path)?;
    let (text, _, has_errors) = encoding_rs::UTF_8.decode(&bytes);
    let problem = has_errors.then(|| {
        let path = file.path.display();
        format!("`{path}` is not UTF-8: some of its characters are lost\n  hint: save it as UTF-8")
    });
    Ok((text.into_owned(), problem))
}

/// That a file or folder is not read.
pub(super) fn unreadable(path: &Path, reason: &io::Error) -> String {
    format!("`{}` is left out: {reason}\n  hint: make it readable, or remove it", path.display())
}

impl File {
    pub(super) fn is_markdown(&self) -> bool {
        has_suffix(&self.source, "md")
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok().map(|time| match time.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |before| -before),
        });
        Self { size: i64::try_from(metadata.len()).unwrap_or(i64::MAX), modified: modified.unwrap_or_default() }
    }
}

fn walk(folder: &Path, prefix: &str, entered: &mut FxHashSet<PathBuf>, listing: &mut Listing) {
    match entries(folder, entered) {
        Ok(entries) => {
            for entry in entries {
                visit(&entry, prefix, entered, listing);
            }
        }
        Err(reason) if reason.kind() == ErrorKind::NotFound && prefix.is_empty() => {}
        Err(reason) => listing.problems.push(unreadable(folder, &reason)),
    }
}

/// What is in a folder, by name: with links, the order decides by which of its ways a folder is entered. Nothing, if it has been.
fn entries(folder: &Path, entered: &mut FxHashSet<PathBuf>) -> io::Result<Vec<DirEntry>> {
    if !entered.insert(fs::canonicalize(folder)?) {
        return Ok(Vec::new());
    }
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

fn visit(entry: &DirEntry, prefix: &str, entered: &mut FxHashSet<PathBuf>, listing: &mut Listing) {
    let path = entry.path();
    let name = entry.file_name();
    if name.as_encoded_bytes().starts_with(b".") {
        return;
    }
    let is_text = has_suffix(&name.to_string_lossy(), "md") || has_suffix(&name.to_string_lossy(), "txt");
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(reason) => {
            // A broken link of another kind is none of our business.
            if is_text {
                listing.problems.push(unreadable(&path, &reason));
            }
            return;
        }
    };
    // What is neither of the two, such as a pipe, might never end.
    let (is_folder, is_file) = (metadata.is_dir(), metadata.is_file() && is_text);
    if !is_folder && !is_file {
        return;
    }
    let Some(name) = name.to_str() else {
        let problem = format!("`{}` is left out: its name is not UTF-8\n  hint: rename it", path.display());
        listing.problems.push(problem);
        return;
    };
    if is_folder {
        walk(&path, &format!("{prefix}{name}/"), entered, listing);
    } else if metadata.len() > LARGEST {
        let most = LARGEST / 1024 / 1024;
        listing
            .problems
            .push(format!("`{}` is left out: it has more than {most} MiB\n  hint: split it", path.display()));
    } else {
        listing.files.push(File { source: format!("{prefix}{name}"), path, stamp: Stamp::of(&metadata) });
    }
}

fn has_suffix(name: &str, suffix: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found.eq_ignore_ascii_case(suffix))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    fn sources(folder: &Path) -> Vec<String> {
        let listing = list(folder);
        assert_eq!(listing.problems, Vec::<String>::new());
        listing.files.into_iter().map(|file| file.source).collect()
    }

    fn read_first(folder: &Path) -> (String, Option<String>) {
        read(&list(folder).files[0]).unwrap()
    }

    #[test]
    fn texts_and_markdown_are_listed_in_order_from_all_folders() {
        let folder = folder(&[
            ("b.md", b""),
            ("a.TXT", b""),
            ("b/a.Md", b""),
            ("b/c/d.txt", b""),
            ("b/page.html", b""),
            ("md", b""),
            (".hidden.md", b""),
            (".git/a.md", b""),
        ]);
        assert_eq!(sources(folder.path()), ["a.TXT", "b.md", "b/a.Md", "b/c/d.txt"]);
    }

    #[test]
    fn there_may_be_no_folder() {
        let folder = folder(&[]);
        assert_eq!(list(&folder.path().join("references")), Listing::default());
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_told() {
        let folder = folder(&[("references", b"")]);
        let listing = list(&folder.path().join("references"));
        assert_eq!((listing.files.len(), listing.problems.len()), (0, 1));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_loops_are_not() {
        let folder = folder(&[("a/a.md", b""), ("elsewhere/b.md", b"")]);
        let root = folder.path().join("a");
        std::os::unix::fs::symlink(&root, root.join("loop")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), root.join("there")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), root.join("there_too")).unwrap();
        assert_eq!(sources(&root), ["a.md", "there/b.md"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nothing_is_told_and_the_others_are_listed() {
        let folder = folder(&[("b.md", b"")]);
        let link = folder.path().join("a.md");
        std::os::unix::fs::symlink("a.md", &link).unwrap();
        let listing = list(folder.path());
        assert_eq!(listing.files.len(), 1);
        assert!(listing.problems[0].starts_with(&format!("`{}` is left out: ", link.display())), "{listing:?}");
    }

    #[test]
    fn a_file_that_is_too_large_is_told() {
        let folder = folder(&[("b.md", b"")]);
        let path = folder.path().join("a.txt");
        fs::File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
        let listing = list(folder.path());
        assert_eq!(listing.files.len(), 1);
        let expected = format!("`{}` is left out: it has more than 16 MiB\n  hint: split it", path.display());
        assert_eq!(listing.problems, [expected]);
    }

    #[test]
    fn a_stamp_has_the_time_to_the_nanosecond_also_before_1970() {
        let folder = folder(&[("a.md", b"text")]);
        let file = fs::File::options().write(true).open(folder.path().join("a.md")).unwrap();
        let ago = std::time::Duration::new(1, 5);
        for (time, modified) in [(UNIX_EPOCH + ago, 1_000_000_005), (UNIX_EPOCH - ago, -1_000_000_005)] {
            file.set_modified(time).unwrap();
            assert_eq!(list(folder.path()).files[0].stamp, Stamp { size: 4, modified });
        }
    }

    #[test]
    fn a_byte_order_mark_is_left_out() {
        assert_eq!(read_first(folder(&[("a.md", "\u{feff}# Größe".as_bytes())]).path()), ("# Größe".into(), None));
        assert_eq!(read_first(folder(&[("a.md", b"\xff\xfea\0\xe4\0")]).path()), ("aä".into(), None));
    }

    #[test]
    fn what_is_not_utf_8_is_read_with_a_warning() {
        let folder = folder(&[("a.md", b"Gr\xf6\xdfe")]);
        let path = folder.path().join("a.md");
        let told =
            format!("`{}` is not UTF-8: some of its characters are lost\n  hint: save it as UTF-8", path.display());
        assert_eq!(read_first(folder.path()), ("Gr\u{fffd}\u{fffd}e".into(), Some(told)));
    }
}
