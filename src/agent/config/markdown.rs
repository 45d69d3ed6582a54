//! The parts of a `skill.md`: front matter between two `---`, then prose with fences of ordered blocks in it.

use std::collections::HashMap;
use std::ops::Range;

use super::report::Report;
use super::sections::{FENCE, Verdict, meant};
use crate::diagnostic::Place;

/// What begins a block, after its colons.
const ORDERED_BLOCK: &str = "ordered_block";

/// A stretch of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region<'t> {
    pub(super) text: &'t str,
    /// How many lines stand above it.
    pub(super) above: u32,
}

/// What stands below the front matter.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'t> {
    /// Prose.
    Prose(Region<'t>),
    /// An ordered block.
    Block(Fenced<'t>),
}

impl<'t> Piece<'t> {
    /// The id of a block.
    pub(super) fn id(&self) -> Option<&'t str> {
        match self {
            Self::Prose(_) => None,
            Self::Block(fenced) => Some(fenced.id),
        }
    }
}

/// An ordered block.
#[derive(Debug, PartialEq)]
pub(super) struct Fenced<'t> {
    pub(super) id: &'t str,
    /// Where the id stands.
    pub(super) place: Place,
    /// What is between the fences.
    pub(super) yaml: Region<'t>,
}

/// The front matter and what stands below it. No front matter: what is wrong with it is told.
pub(super) fn split<'t>(text: &'t str, report: &mut Report) -> (Option<Region<'t>>, Region<'t>) {
    let whole = Region { text, above: 0 };
    let lines = Lines::of(whole);
    let first = lines.get(0);
    let delimits = |text: &str| text.trim_end() == "---";
    if !delimits(first) {
        let hint = "write `---` on the first line, `name:` and `description:` below it, and `---` again".to_owned();
        report.error("invalid-front-matter", line(1, first), "The file does not begin with `---`".to_owned(), hint);
        return (None, whole);
    }
    let Some(close) = (1..lines.count()).find(|index| delimits(lines.get(*index))) else {
        let hint = "write `---` on a line below it".to_owned();
        report.error("invalid-front-matter", line(1, first), "The front matter is not closed".to_owned(), hint);
        return (None, lines.region(lines.count()..lines.count()));
    };
    (Some(lines.region(1..close)), lines.region(close + 1..lines.count()))
}

/// The prose and the blocks of what stands below the front matter. What is wrong with a fence is told; a block without a proper one is
/// left out.
pub(super) fn pieces<'t>(body: Region<'t>, report: &mut Report) -> Vec<Piece<'t>> {
    let lines = Lines::of(body);
    let mut pieces = vec![];
    let mut ids: HashMap<&str, Place> = HashMap::new();
    let (mut prose, mut index, mut foreign) = (0, 0, false);
    while index < lines.count() {
        let (text, number) = (lines.get(index), lines.number(index));
        index += 1;
        let attributes = match fence(text) {
            Fence::Block(attributes) => attributes,
            Fence::None => continue,
            Fence::Close if foreign => {
                foreign = false;
                continue;
            }
            Fence::Close => {
                let hint = "a block is opened with `:::ordered_block id=<id>`".to_owned();
                report.error("invalid-fence", line(number, text), "`:::` closes nothing".to_owned(), hint);
                continue;
            }
            Fence::Foreign { message, hint } => {
                report.error("invalid-fence", line(number, text), message, hint);
                foreign = true;
                continue;
            }
        };
        pieces.push(Piece::Prose(lines.region(prose..index - 1)));
        let id = id(attributes, number, text, report);
        // A block that is not closed ends where the next fence begins.
        let end = (index..lines.count()).find(|index| lines.get(*index).starts_with(":::")).unwrap_or(lines.count());
        let yaml = lines.region(index..end);
        let closed = lines.get(end).trim_end() == ":::";
        if !closed {
            let hint = "write `:::` on a line below its steps".to_owned();
            report.error("invalid-fence", line(number, text), "The block is not closed".to_owned(), hint);
        }
        index = end + usize::from(closed);
        prose = index;
        let Some((id, place)) = id else { continue };
        if let Some(first) = ids.get(id) {
            let message = format!("The block `{id}` is there twice");
            report.error("duplicate-key", place, message, "give one of the two another `id`".to_owned());
            report.relate("it is here first", *first);
            continue;
        }
        ids.insert(id, place);
        pieces.push(Piece::Block(Fenced { id, place, yaml }));
    }
    pieces.push(Piece::Prose(lines.region(prose..lines.count())));
    pieces
}

/// The lines of a stretch.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    region: Region<'t>,
    /// Where each begins, in bytes, and where the last ends.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(region: Region<'t>) -> Self {
        let ends = region.text.split_inclusive('\n').scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        });
        Self { region, starts: [0].into_iter().chain(ends).collect() }
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// A line without its break; empty where there is none.
    pub(super) fn get(&self, index: usize) -> &'t str {
        self.region(index..index + 1).text.trim_end_matches(['\n', '\r'])
    }

    /// The number that a line has in the file.
    pub(super) fn number(&self, index: usize) -> u32 {
        self.region.above.saturating_add(u32::try_from(index + 1).unwrap_or(u32::MAX))
    }

    /// Some lines; fewer where there are not as many.
    pub(super) fn region(&self, lines: Range<usize>) -> Region<'t> {
        let start = |index: usize| self.starts[index.min(self.count())];
        Region { text: &self.region.text[start(lines.start)..start(lines.end)], above: self.number(lines.start) - 1 }
    }
}

/// What a line is that begins with colons.
#[derive(Debug)]
enum Fence<'t> {
    None,
    /// It opens an ordered block; what follows the word.
    Block(&'t str),
    Close,
    /// It opens something else.
    Foreign {
        message: String,
        hint: String,
    },
}

fn fence(text: &str) -> Fence<'_> {
    let from_start = text.trim_start();
    let Some(after) = from_start.strip_prefix(":::") else { return Fence::None };
    let after = after.trim_start();
    let word = after.split(char::is_whitespace).next().unwrap_or_default();
    match (word, from_start.len() == text.len()) {
        (ORDERED_BLOCK, true) => Fence::Block(&after[word.len()..]),
        (ORDERED_BLOCK, false) => Fence::Foreign {
            message: "An ordered block is opened here, but its line is indented".to_owned(),
            hint: "begin the line with `:::`".to_owned(),
        },
        // An author may write such lines for the model.
        (_, false) => Fence::None,
        ("", true) => Fence::Close,
        (word, true) => Fence::Foreign {
            message: format!("`:::{word}` opens nothing that is known"),
            hint: meant(word, [ORDERED_BLOCK].into_iter(), "there is `:::ordered_block id=<id>`, and no other"),
        },
    }
}

/// The id of a block and where it stands.
fn id<'t>(attributes: &'t str, number: u32, whole: &str, report: &mut Report) -> Option<(&'t str, Place)> {
    let mut found = None;
    let mut at = whole.len() - attributes.len();
    for part in attributes.split_whitespace() {
        let start = at + whole[at..].find(part).unwrap_or_default();
        at = start + part.len();
        let place = Place { column: column(&whole[..start]), ..line(number, &whole[..at]) };
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim_matches(['"', '\'']);
        if FENCE.judge(key, false) != Verdict::Known {
            let message = format!("`{part}` has no effect: there is no such attribute");
            report.warning("unknown-key", place, message, "a block has an `id`".to_owned());
        } else if is_id(value) {
            found = Some((value, place));
        } else {
            let hint = "write it as in `id=pick_card`: letters, digits and `_`".to_owned();
            report.error("invalid-value", place, format!("`{part}` gives the block no id"), hint);
            return None;
        }
    }
    if found.is_none() {
        let hint = "write it on this line: `:::ordered_block id=<id>`".to_owned();
        report.error("missing-key", line(number, whole), "The block has no `id`".to_owned(), hint);
    }
    found
}

/// Whether something can have that id: conditions and mentions must be able to name it.
pub(super) fn is_id(text: &str) -> bool {
    let of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    !text.is_empty() && text.split('-').all(|part| !part.is_empty() && part.chars().all(of_word))
}

/// A whole line.
pub(super) fn line(number: u32, text: &str) -> Place {
    Place { line: number, column: 1, end_line: number, end_column: column(text) }
}

/// The column after some text that begins a line.
pub(super) fn column(before: &str) -> u32 {
    u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{body, skill};

    fn told(text: &str) -> Vec<String> {
        skill(text).1
    }

    #[test]
    fn front_matter_stands_between_two_lines_of_three_hyphens() {
        let hint = "write `---` on the first line, `name:` and `description:` below it, and `---` again";
        let missing = |column| {
            format!(
                "skill.md:1:{column}: error[invalid-front-matter]: The file does not begin with `---`\n  hint: {hint}"
            )
        };
        assert_eq!(told(""), [missing(1)]);
        assert_eq!(told("\n---\nname: a\ndescription: b\n---\n"), [missing(1)]);
        assert_eq!(
            told("---\nname: a\n--- #\n@block.x\n"),
            [
                "skill.md:1:1: error[invalid-front-matter]: The front matter is not closed\n  hint: write `---` on a line below it"
            ]
        );
    }

    #[test]
    fn lines_may_end_as_on_windows() {
        let (read, found) = skill(
            "---\r\nname: a\r\ndescription: b\r\n--- \r\nOne\r\ntwo\r\n:::ordered_block id=b\r\nsteps:\r\n  - id: s\r\n    instructions: |\r\n      x\r\n      y\r\n:::\r\nThree\r\n",
        );
        assert_eq!(found, Vec::<String>::new());
        let texts: Vec<_> = read.body.iter().map(|part| &*part.text).collect();
        assert_eq!((texts, read.blocks[0].steps.len()), (vec!["One\ntwo", "Three"], 1));
    }

    #[test]
    fn what_is_wrong_in_front_matter_is_told_at_its_line_of_the_file() {
        assert_eq!(
            told("---\nname: a\ndescription: b: c\n---\n"),
            [
                "skill.md:3:15: error[invalid-yaml]: This is no YAML: mapping values are not allowed in this context\n  hint: put \
                 the text in quotes: `: ` within it begins a value"
            ]
        );
    }

    #[test]
    fn blocks_are_cut_out_of_the_prose() {
        let (read, found) = body(
            "One\n:::ordered_block id='a-1'\nsteps: [{id: s, action: utter_x}]\n:::\n\nTwo\n::: ordered_block id=b\nsteps: [{id: s, action: utter_x}]\n:::",
        );
        assert_eq!(found, Vec::<String>::new());
        let texts: Vec<_> = read.body.iter().map(|part| &*part.text).collect();
        let ids: Vec<_> = read.blocks.iter().map(|block| &*block.id).collect();
        assert_eq!((texts, ids), (vec!["One", "Two"], vec!["a-1", "b"]));
    }

    #[test]
    fn a_block_that_is_not_closed_ends_at_the_next_fence() {
        let block = |id: &str| format!(":::ordered_block id={id}\nsteps: [{{id: s, action: utter_x}}]\n");
        let (read, found) = body(&(block("a") + &block("b")));
        let hint = "hint: write `:::` on a line below its steps";
        assert_eq!(
            found,
            [
                format!("skill.md:5:1: error[invalid-fence]: The block is not closed\n  {hint}"),
                format!("skill.md:7:1: error[invalid-fence]: The block is not closed\n  {hint}"),
            ]
        );
        assert_eq!(read.blocks.len(), 2);
    }

    #[test]
    fn what_is_wrong_with_a_fence_is_told() {
        let found = body(
            ":::\n:::orderd_block id=a\n:::\n  :::ordered_block id=a\n  :::\n:::\n:::ordered_block\n:::\n:::ordered_block id=a.b\n:::\n\
             :::ordered_block id=é x=1\nsteps: [{id: s, action: utter_x}]\n:::\n:::ordered_block id=é\n:::\n",
        );
        assert_eq!(
            found.1,
            [
                "skill.md:5:1: error[invalid-fence]: `:::` closes nothing\n  hint: a block is opened with `:::ordered_block id=<id>`",
                "skill.md:6:1: error[invalid-fence]: `:::orderd_block` opens nothing that is known\n  hint: did you mean \
                 `ordered_block`?",
                "skill.md:8:1: error[invalid-fence]: An ordered block is opened here, but its line is indented\n  hint: begin the \
                 line with `:::`",
                "skill.md:11:1: error[missing-key]: The block has no `id`\n  hint: write it on this line: `:::ordered_block id=<id>`",
                "skill.md:13:18: error[invalid-value]: `id=a.b` gives the block no id\n  hint: write it as in `id=pick_card`: \
                 letters, digits and `_`",
                "skill.md:15:23: warning[unknown-key]: `x=1` has no effect: there is no such attribute\n  hint: a block has an `id`",
                "skill.md:18:18: error[duplicate-key]: The block `é` is there twice\n  hint: give one of the two another `id`",
            ]
        );
    }
}
