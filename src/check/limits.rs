//! What is too large or too deep to be read: the parser and the rules recurse, and a hostile file must not end the process.

use std::thread;

use super::outline::Span;
use super::source::SyntaxProblem;

/// The largest source that is read, in bytes. Hook modules have a few kilobytes.
const LARGEST: usize = 1 << 20;

/// The deepest nesting of brackets that Python itself reads (`MAXLEVEL` of its tokenizer).
const DEEPEST_BRACKETS: usize = 200;

/// Prefix operators in a row, and right-hand branches on a line, that are read: each is a level of recursion.
const DEEPEST_CHAIN: usize = 500;

/// The stack of the thread that checks: room for the longest chain of operators that a file of [`LARGEST`] can hold.
const STACK: usize = 1 << 30;

/// From so many modules on the work is shared among threads.
pub(super) const MANY: usize = 8;

/// Runs `work` where deep source does no harm.
pub(super) fn with_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        match deep_thread().spawn_scoped(scope, work).expect("the process can start one thread").join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// A thread on which deep source does no harm.
pub(super) fn deep_thread() -> thread::Builder {
    thread::Builder::new().name("tenterhook-check".into()).stack_size(STACK)
}

/// Why a source is not read, where it is too large or too deep.
pub(super) fn refusal(source: &str) -> Option<SyntaxProblem> {
    if source.len() > LARGEST {
        let message = format!("The file has {} bytes; at most {LARGEST} are checked", source.len());
        return Some(SyntaxProblem { span: Span::default(), message });
    }
    let at = |at: usize, message: &str| Some(SyntaxProblem { span: Span::new(at, at), message: message.into() });
    let (mut depth, mut prefixes) = (0_usize, 0_usize);
    for (index, byte) in source.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match byte {
            b'-' | b'+' | b'~' => prefixes += 1,
            b' ' | b'\t' | b'\n' | b'\r' | b'\\' | b'\x0c' => {}
            _ => prefixes = 0,
        }
        // Strings and comments count as well: two hundred open brackets in one are not code that anybody wrote.
        if depth > DEEPEST_BRACKETS {
            return at(index, "too many nested parentheses");
        }
        if prefixes > DEEPEST_CHAIN {
            return at(index, "too many operators in a row");
        }
    }
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let chains = ["not ", "lambda", " else ", "**", "await ", ":=", "yield "];
        if line.len() > DEEPEST_CHAIN && chains.iter().any(|word| line.matches(word).count() > DEEPEST_CHAIN) {
            return at(start, "too deep a chain of operators");
        }
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if indent > 10_000 {
            return at(start, "too many levels of indentation");
        }
        start += line.len();
    }
    None
}
