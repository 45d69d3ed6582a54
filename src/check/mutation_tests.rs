//! Real modules, broken by chance: whatever comes out, the check ends with diagnostics and never with a crash.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::source::NEWEST_MINOR;

/// How many broken modules are checked.
const MUTATIONS: u64 = 100_000;

/// What is put in by chance: words and marks that change what the rest means.
const PIECES: [&str; 24] = [
    "(",
    ")",
    "[",
    "{",
    "}",
    ":",
    ",",
    "\n",
    "    ",
    "\"\"\"",
    "'",
    "#",
    "\\",
    "@on_tool_call",
    "async def f(p):",
    "raise RetryModel",
    "return",
    "yield",
    "lambda",
    "class",
    "*",
    "f'{",
    "match x:\n case",
    "\u{feff}",
];

/// A generator of numbers (xorshift64*, Vigna 2016): the seed is all that a failure needs to be seen again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).unwrap_or(0) % limit.max(1)
    }

    fn boundary(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

fn python_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            python_files(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "py") {
            found.push(path);
        }
    }
}

fn mutated(chance: &mut Chance, sources: &[String]) -> String {
    let mut text = sources[chance.below(sources.len())].clone();
    for _ in 0..=chance.below(4) {
        let (one, other) = (chance.boundary(&text), chance.boundary(&text));
        let (start, end) = (one.min(other), one.max(other).min(one.min(other) + 200));
        let end = (start..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
        match chance.below(4) {
            0 => text.replace_range(start..end, ""),
            1 => text.insert_str(start, PIECES[chance.below(PIECES.len())]),
            2 => {
                let piece = text[start..end].to_owned();
                let at = chance.boundary(&text);
                text.insert_str(at, &piece);
            }
            _ => text.replace_range(start..end, PIECES[chance.below(PIECES.len())]),
        }
    }
    text
}

#[test]
fn a_hundred_thousand_broken_modules_are_checked_without_a_crash() {
    let seed = std::env::var("TENTERHOOK_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs()) | 1);
    println!("TENTERHOOK_SEED={seed}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    python_files(&root.join("hooks-examples"), &mut files);
    python_files(&root.join("python/tenterhook"), &mut files);
    files.sort();
    let sources: Vec<_> =
        files.iter().map(|file| fs::read_to_string(file).unwrap()).filter(|text| text.len() < 4000).collect();
    assert!(sources.len() > 10);
    // Two threads, each with its own half of the chances.
    let workers: Vec<_> = (0..2)
        .map(|worker| {
            let sources = sources.clone();
            let work = move || {
                let mut chance = Chance(seed.wrapping_mul(2 * worker + 1));
                for _ in 0..MUTATIONS / 2 {
                    let text = mutated(&mut chance, &sources);
                    let project = super::project::Project::of_text(Path::new("hooks.py"), text, NEWEST_MINOR);
                    for problem in super::check_project(&project, &super::CheckSettings::default()).0 {
                        assert!(problem.line.is_some_and(|line| line > 0));
                    }
                }
            };
            std::thread::Builder::new().stack_size(64 << 20).spawn(work).unwrap()
        })
        .collect();
    for worker in workers {
        worker.join().expect("no mutation makes the check panic; run again with the seed above");
    }
}
