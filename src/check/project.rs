//! The modules of an agent, read and parsed: hook modules, and what they may import from the agent.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use super::AgentFile;
use super::limits;
use super::outline::{Module, Span};
use super::source::{self, SyntaxProblem};
use crate::diagnostic::{Diagnostic, Place, Severity};

/// The modules of an agent.
pub(super) struct Project {
    pub(super) modules: Vec<ModuleSource>,
    pub(super) by_name: HashMap<String, usize>,
    /// The folders that the agent's own modules are found in.
    pub(super) roots: Vec<PathBuf>,
}

/// One module.
pub(super) struct ModuleSource {
    pub(super) file: PathBuf,
    /// Its dotted name from the agent's root, such as `hooks.redact_pii`.
    pub(super) name: String,
    /// Its path below the agent's root.
    pub(super) below: PathBuf,
    /// The package that relative imports start from.
    pub(super) package: String,
    pub(super) outline: Module,
    pub(super) problems: Vec<SyntaxProblem>,
    /// Whether hooks in it are registered.
    pub(super) is_hook_module: bool,
    text: String,
    line_starts: Vec<usize>,
}

impl Project {
    /// Reads modules: each a file, its path below the agent's root, and whether it is a hook module. What cannot be read or decoded
    /// comes back as a diagnostic.
    pub(super) fn read(files: &[AgentFile], minor: u8) -> (Self, Vec<Diagnostic>) {
        let (mut modules, mut unreadable) = (Vec::new(), Vec::new());
        for read in in_parts(files, |part| part.iter().map(|file| ModuleSource::read(file, minor)).collect()) {
            match read {
                Ok(module) => modules.push(module),
                Err(problem) => unreadable.push(*problem),
            }
        }
        let by_name = modules.iter().enumerate().map(|(index, module)| (module.name.clone(), index)).collect();
        (Self { modules, by_name, roots: roots_of(files) }, unreadable)
    }

    /// A project of one module, given as text.
    pub(super) fn of_text(file: &Path, text: String, minor: u8) -> Self {
        let module = ModuleSource::new(file, Path::new("hooks.py"), text, true, minor);
        let roots = vec![PathBuf::from(".")];
        Self { by_name: HashMap::from([(module.name.clone(), 0)]), modules: vec![module], roots }
    }
}

/// The agent's folder; of a file that is checked alone, the folders that may be it.
fn roots_of(files: &[AgentFile]) -> Vec<PathBuf> {
    let Some((file, below, _)) = files.first() else { return Vec::new() };
    let depth = below.components().count();
    let root = file.ancestors().nth(depth).map(Path::to_owned).unwrap_or_default();
    let alone = files.len() == 1 && depth == 1;
    let above = root.ancestors().skip(1).take(2).map(Path::to_owned).collect::<Vec<_>>();
    std::iter::once(root).chain(above.into_iter().filter(|_| alone)).collect()
}

/// Works on parts of the files at once, as many as there are cores; the answers keep the order.
fn in_parts<T: Send>(files: &[AgentFile], work: impl Fn(&[AgentFile]) -> Vec<T> + Sync) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(8);
    if files.len() < limits::MANY || cores == 1 {
        return work(files);
    }
    thread::scope(|scope| {
        let parts: Vec<_> = files
            .chunks(files.len().div_ceil(cores))
            .map(|part| limits::deep_thread().spawn_scoped(scope, || work(part)))
            .collect();
        let joined = parts.into_iter().map(|part| part.expect("the process can start threads").join());
        joined.flat_map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

impl ModuleSource {
    fn read((file, below, is_hook_module): &AgentFile, minor: u8) -> Result<Self, Box<Diagnostic>> {
        let text = fs::read(file).map_err(|error| format!("The file cannot be read: {error}")).and_then(decode);
        text.map(|text| Self::new(file, below, text, *is_hook_module, minor)).map_err(|message| {
            Box::new(Diagnostic {
                rule: "syntax-error".into(),
                severity: Severity::Error,
                message,
                hint: None,
                file: file.clone(),
                line: None,
                place: None,
                related: Vec::new(),
            })
        })
    }

    fn new(file: &Path, below: &Path, text: String, is_hook_module: bool, minor: u8) -> Self {
        let (outline, problems) = match limits::refusal(&text) {
            Some(refusal) => (Module::default(), vec![refusal]),
            None => source::parse(&text, minor),
        };
        let mut parts: Vec<_> =
            below.with_extension("").components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        let is_package = parts.last().is_some_and(|last| last == "__init__");
        if is_package {
            parts.pop();
        }
        let name = parts.join(".");
        if !is_package {
            parts.pop();
        }
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self {
            file: file.to_owned(),
            name,
            below: below.to_owned(),
            package: parts.join("."),
            outline,
            problems,
            is_hook_module,
            text,
            line_starts,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where a stretch of the source is; lines and columns from 1, columns in characters.
    pub(super) fn place(&self, span: Span) -> Place {
        let (line, column) = self.position(span.start());
        let (end_line, end_column) = self.position(span.end().max(span.start()));
        Place { line, column, end_line, end_column }
    }

    fn position(&self, at: usize) -> (u32, u32) {
        let at = at.min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= at) - 1;
        let before = self.text.get(self.line_starts[line]..at).unwrap_or_default();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        (count(line + 1), count(before.chars().count() + 1))
    }
}

/// Decodes source as Python does: UTF-8, with or without a byte order mark, or the encoding that a cookie in the first two lines names.
fn decode(bytes: Vec<u8>) -> Result<String, String> {
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        let line = bytes[..at].split(|byte| *byte == b'\n').count();
        return Err(format!("The source has a NUL byte on line {line}"));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(bytes);
    match cookie(&bytes).as_deref() {
        None | Some("utf-8" | "utf8" | "utf-8-sig" | "ascii" | "us-ascii") => String::from_utf8(bytes)
            .map_err(|error| format!("The source is not UTF-8 (byte {})", error.utf8_error().valid_up_to())),
        Some("latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1") => {
            Ok(bytes.iter().map(|byte| char::from(*byte)).collect())
        }
        Some(other) => match encoding_rs::Encoding::for_label(other.as_bytes()) {
            Some(encoding) => Ok(encoding.decode_without_bom_handling(&bytes).0.into_owned()),
            None => Err(format!("The source is encoded in `{other}`, which is not known: save it as UTF-8")),
        },
    }
}

/// The encoding that a comment in the first two lines names (PEP 263).
fn cookie(bytes: &[u8]) -> Option<String> {
    for line in bytes.split(|byte| *byte == b'\n').take(2) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_start();
        if !line.is_empty() && !line.starts_with('#') {
            return None;
        }
        let named = line.find("coding").map(|at| &line[at + "coding".len()..]);
        if let Some(rest) = named.and_then(|rest| rest.strip_prefix([':', '='])) {
            let name: String =
                rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || "-_.".contains(*c)).collect();
            return Some(name.to_lowercase().replace('_', "-"));
        }
    }
    None
}
