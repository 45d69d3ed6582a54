//! How a text is cut into passages.

use super::outline::{Outline, length_of};

/// What a sentence ends with where white space follows, maybe after a [`CLOSING`] character.
const SENTENCE_ENDS: [char; 4] = ['.', '!', '?', '…'];

/// What may stand between a sentence's end and the white space.
const CLOSING: [char; 8] = ['"', '\'', ')', ']', '”', '’', '»', '*'];

/// What a sentence ends with in scripts that put no space after it.
const FULL_STOPS: [char; 3] = ['。', '！', '？'];

/// How references are cut for the search, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunking {
    /// The most that a passage has.
    pub size: usize,
    /// How much of a passage's end stands in the next one as well, to about a word: less than the size. Each passage goes further by
    /// the difference of the two, so an overlap that is near the size makes a very large index.
    pub overlap: usize,
}

impl Default for Chunking {
    /// As Mantle's `references.chunking` has it.
    fn default() -> Self {
        Self { size: 1000, overlap: 20 }
    }
}

impl Chunking {
    /// The nearest that can be done: a passage has at least one character, and goes on by at least one.
    pub(super) fn checked(self) -> Self {
        let size = self.size.max(1);
        Self { size, overlap: self.overlap.min(size - 1) }
    }
}

/// A part of a text that is searched and found as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    /// The headings that the body stands under and does not begin with, as far as there is room for them. The nearest ones come first
    /// when room is short; they stand in the order of the file.
    headings: Vec<&'a str>,
    body: &'a str,
}

impl Chunk<'_> {
    /// What is searched, and what the model reads.
    pub(super) fn text(&self) -> String {
        let mut text = self.headings.join("\n");
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text + self.body
    }
}

/// Cuts a text. All of it stands in some chunk, but for white space at their ends.
///
/// A chunk ends in its second half, at the best place that is there: before a heading, at the end of a paragraph, line, sentence or
/// word, or else wherever its size is reached.
pub(super) fn cut(text: &str, markdown: bool, chunking: Chunking) -> Vec<Chunk<'_>> {
    let Chunking { size, overlap } = chunking.checked();
    let text = text.trim_end();
    let mut outline = if markdown { Outline::of(text) } else { Outline::default() };
    let mut chunks = Vec::new();
    // What is before this stands in some chunk.
    let mut reached = 0;
    let mut start = after_blank(text, 0);
    while start < text.len() {
        // What remains for the body is more than the overlap, so that each chunk comes further than the last one.
        let headings = outline.path_to(start, (size - overlap) / 4);
        let room = size - length_of(&headings);
        let end = end(text, start, reached, room, &outline);
        if end <= reached {
            // Nothing but white space follows the overlap for as long as the chunk could be.
            start = after_blank(text, reached);
            continue;
        }
        chunks.push(Chunk { headings, body: &text[start..end] });
        reached = end;
        let next = after_blank(text, end);
        // A section begins with its heading, and not with the end of another one.
        start = if overlap == 0 || next == text.len() || outline.begins_at(next) {
            next
        } else {
            overlap_start(text, start, end, overlap)
        };
    }
    chunks
}

/// Where a chunk may end; the better ones are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Border {
    Anywhere,
    Word,
    Sentence,
    Line,
    Paragraph,
    Section,
}

/// Where a chunk that begins at `start` ends.
fn end(text: &str, start: usize, reached: usize, room: usize, outline: &Outline<'_>) -> usize {
    let Some(limit) = nth(text, start, room) else { return text.len() };
    let mut best = (Border::Anywhere, limit);
    let first = nth(text, start, room / 2).unwrap_or(limit).max(reached + 1);
    for at in (first..=limit).filter(|&at| text.is_char_boundary(at)) {
        if let Some(border) = border(text, at, outline) {
            best = best.max((border, at));
        }
    }
    // Only a long run of white space leaves some at the end.
    start + text[start..best.1].trim_end().len()
}

/// What ends at `at`, if anything does.
fn border(text: &str, at: usize, outline: &Outline<'_>) -> Option<Border> {
    let (before, after) = text.split_at(at);
    if before.ends_with(char::is_whitespace) {
        return None;
    }
    if !after.starts_with(char::is_whitespace) {
        return before.ends_with(FULL_STOPS).then_some(Border::Sentence);
    }
    let next = after_blank(text, at);
    Some(match text[at..next].matches('\n').count() {
        1.. if outline.begins_at(next) => Border::Section,
        2.. => Border::Paragraph,
        1 => Border::Line,
        _ if before.trim_end_matches(CLOSING).ends_with(SENTENCE_ENDS) => Border::Sentence,
        _ => Border::Word,
    })
}

/// Where the chunk after one from `start` to `end` begins: at a word if there is one within the overlap.
fn overlap_start(text: &str, start: usize, end: usize, overlap: usize) -> usize {
    let from = text[..end].char_indices().rev().nth(overlap - 1).map_or(0, |(at, _)| at).max(start);
    if from == start || text[..from].ends_with(char::is_whitespace) {
        return after_blank(text, from);
    }
    let word = text[from..end].find(char::is_whitespace).map(|at| after_blank(text, from + at));
    word.unwrap_or(from)
}

/// The first place from `at` on that is no white space.
fn after_blank(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start().len()
}

/// The place of the `count`-th character after `start`; `None` where the text has no more than that.
fn nth(text: &str, start: usize, count: usize) -> Option<usize> {
    text[start..].char_indices().nth(count).map(|(at, _)| start + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str, size: usize, overlap: usize) -> Vec<String> {
        cut(text, true, Chunking { size, overlap }).iter().map(Chunk::text).collect()
    }

    fn without_blanks(text: &str) -> String {
        text.chars().filter(|letter| !letter.is_whitespace()).collect()
    }

    #[test]
    fn a_short_text_is_one_chunk() {
        assert_eq!(texts("\n  # Fees\n\nA card is free.\n\n", 100, 20), ["# Fees\n\nA card is free."]);
    }

    #[test]
    fn blank_texts_have_no_chunks() {
        assert_eq!(texts(" \n\t\u{a0}\n", 1, 0), Vec::<String>::new());
        assert_eq!(texts("", 1, 0), Vec::<String>::new());
    }

    #[test]
    fn a_paragraph_is_a_better_end_than_a_later_line() {
        assert_eq!(texts("one two\nthree\n\nfour\nfive six", 24, 0), ["one two\nthree", "four\nfive six"]);
    }

    #[test]
    fn a_line_is_a_better_end_than_a_later_sentence() {
        assert_eq!(texts("one two three\nfour. five six", 22, 0), ["one two three", "four. five six"]);
    }

    #[test]
    fn a_sentence_is_a_better_end_than_a_later_word() {
        assert_eq!(texts("one (two three.) four five", 22, 0), ["one (two three.)", "four five"]);
        assert_eq!(texts("一二三四五。六七八九", 9, 0), ["一二三四五。", "六七八九"]);
    }

    #[test]
    fn a_word_is_the_better_end() {
        assert_eq!(texts("one two three", 12, 0), ["one two", "three"]);
        assert_eq!(texts("one two three", 7, 0), ["one two", "three"]);
    }

    #[test]
    fn a_text_without_spaces_is_cut_between_characters() {
        assert_eq!(texts("äöü🙂äöü🙂ß", 4, 0), ["äöü🙂", "äöü🙂", "ß"]);
    }

    #[test]
    fn a_chunk_begins_with_the_last_words_of_the_one_before() {
        assert_eq!(texts("one two three four five", 14, 6), ["one two three", "three four", "four five"]);
    }

    #[test]
    fn an_overlap_in_a_text_without_spaces_is_exact() {
        assert_eq!(texts("abcdefgh", 4, 2), ["abcd", "cdef", "efgh"]);
    }

    #[test]
    fn a_chunk_repeats_the_headings_that_it_is_under() {
        let text = "# Fees\n\n## Lost\n\nOne two three four five six seven. Eight nine ten eleven twelve.";
        let expected = [
            "# Fees\n\n## Lost\n\nOne two three four five six seven.",
            "# Fees\n## Lost\n\nEight nine ten eleven twelve.",
        ];
        assert_eq!(texts(text, 64, 0), expected);
    }

    #[test]
    fn a_section_begins_its_own_chunk_without_an_overlap() {
        let text = "# Cards\n\nOne two three four five.\n\n## Lost\n\nSix seven eight nine ten eleven twelve.";
        let expected =
            ["# Cards\n\nOne two three four five.", "# Cards\n\n## Lost\n\nSix seven eight nine ten eleven twelve."];
        assert_eq!(texts(text, 60, 10), expected);
    }

    #[test]
    fn plain_text_has_no_headings() {
        let chunks = cut("# one two three four", false, Chunking { size: 12, overlap: 0 });
        assert_eq!(chunks.iter().map(Chunk::text).collect::<Vec<_>>(), ["# one two", "three four"]);
    }

    #[test]
    fn a_size_and_an_overlap_that_cannot_be_are_made_to_fit() {
        assert_eq!(texts("abc", 0, 5), ["a", "b", "c"]);
        assert_eq!(texts("abc", 2, 9), ["ab", "bc"]);
    }

    /// Texts with all that a cut looks for.
    const PARTS: &str = "(a|b|ä|。|🙂|\\.|# |## |\n|\n\n| |\r\n|```|~~~|\u{301}){0,80}";

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_doubled_without_an_overlap(text in PARTS, size in 1..40_usize, markdown: bool) {
            let chunks = cut(&text, markdown, Chunking { size, overlap: 0 });
            let together: String = chunks.iter().map(|chunk| chunk.body).collect();
            prop_assert_eq!(without_blanks(&together), without_blanks(&text));
        }

        #[test]
        fn every_chunk_fits_its_size_and_is_not_blank(
            text in PARTS, size in 1..40_usize, overlap in 0..40_usize, markdown: bool,
        ) {
            for chunk in cut(&text, markdown, Chunking { size, overlap }) {
                prop_assert!(chunk.text().chars().count() <= size, "{chunk:?}");
                prop_assert_eq!(chunk.body.trim(), chunk.body);
                prop_assert!(!chunk.body.is_empty());
            }
        }

        #[test]
        fn chunks_overlap_by_no_more_than_is_asked_for_and_leave_nothing_out(
            text in PARTS, size in 1..40_usize, overlap in 0..40_usize, markdown: bool,
        ) {
            let mut reached = 0;
            let begin = text.as_ptr() as usize;
            for chunk in cut(&text, markdown, Chunking { size, overlap }) {
                let start = chunk.body.as_ptr() as usize - begin;
                if start < reached {
                    prop_assert!(text[start..reached].chars().count() <= overlap);
                } else {
                    prop_assert_eq!(text[reached..start].trim(), "");
                }
                prop_assert!(start + chunk.body.len() > reached);
                reached = start + chunk.body.len();
            }
            prop_assert_eq!(text[reached..].trim(), "");
        }

        #[test]
        fn any_text_can_be_cut(text: String, size in 1..20_usize, overlap in 0..20_usize) {
            cut(&text, true, Chunking { size, overlap });
        }
    }
}
