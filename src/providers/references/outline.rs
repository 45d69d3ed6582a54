//! The headings of a Markdown text.

/// The headings of a text, and which of them one is under on a way through it.
#[derive(Default)]
pub(super) struct Outline<'a> {
    headings: Vec<Heading<'a>>,
    passed: usize,
    path: Vec<(usize, &'a str)>,
}

impl<'a> Outline<'a> {
    /// Of a Markdown text.
    pub(super) fn of(text: &'a str) -> Self {
        Self { headings: headings(text), ..Self::default() }
    }

    /// Whether a heading begins at a place in the text.
    pub(super) fn begins_at(&self, at: usize) -> bool {
        self.headings.binary_search_by_key(&at, |heading| heading.at).is_ok()
    }

    /// The headings that `start` is under, the nearest ones first served with `room` characters. Each call's `start` is at least that of
    /// the last one.
    pub(super) fn path_to(&mut self, start: usize, room: usize) -> Vec<&'a str> {
        while let Some(heading) = self.headings.get(self.passed).filter(|heading| heading.at < start) {
            self.path.retain(|(level, _)| *level < heading.level);
            self.path.push((heading.level, heading.line));
            self.passed += 1;
        }
        // A heading that the chunk itself begins with has ended those of its level.
        let own =
            self.headings.get(self.passed).filter(|heading| heading.at == start).map_or(7, |heading| heading.level);
        let path: Vec<_> = self.path.iter().filter(|(level, _)| *level < own).map(|(_, line)| *line).collect();
        let first = (0..path.len()).find(|&first| length_of(&path[first..]) <= room).unwrap_or(path.len());
        path[first..].to_vec()
    }
}

/// How many characters headings take before a body.
pub(super) fn length_of(headings: &[&str]) -> usize {
    let lines: usize = headings.iter().map(|line| line.chars().count() + 1).sum();
    if headings.is_empty() { 0 } else { lines + 1 }
}

/// A Markdown heading.
struct Heading<'a> {
    at: usize,
    level: usize,
    line: &'a str,
}

/// The `#` headings of a Markdown text that are not in a block of code.
fn headings(text: &str) -> Vec<Heading<'_>> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    let mut next = 0;
    for line in text.split_inclusive('\n') {
        let begin = next;
        next += line.len();
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        if indent > 3 {
            continue;
        }
        let marks = run(body);
        match fence {
            Some(open) if marks.starts_with(open) && body[marks.len()..].trim().is_empty() => fence = None,
            None if marks.len() >= 3 && marks.starts_with(['`', '~']) => fence = Some(marks),
            None if (1..=6).contains(&marks.len())
                && marks.starts_with('#')
                && body[marks.len()..].starts_with([' ', '\t']) =>
            {
                found.push(Heading { at: begin + indent, level: marks.len(), line: body.trim_end() });
            }
            Some(_) | None => {}
        }
    }
    found
}

/// The characters at the beginning of a line that are the same.
fn run(line: &str) -> &str {
    let rest = line.chars().next().map_or(line, |first| line.trim_start_matches(first));
    &line[..line.len() - rest.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_heading_is_kept_where_there_is_no_room_for_all() {
        let path = ["# A very long heading of the whole document", "## Lost"];
        let mut outline = Outline::of("# A very long heading of the whole document\n## Lost\ntext");
        assert_eq!(outline.path_to(53, 60), path);
        assert_eq!(outline.path_to(53, 52), ["## Lost"]);
        assert_eq!(outline.path_to(53, 8), Vec::<&str>::new());
    }

    #[test]
    fn a_comment_in_a_block_of_code_is_no_heading() {
        let text = "# A\n```sh\n# no\n~~~\n````\n  ## B ##\n    # no\n#no\n####### no\n~~~\n# no\n";
        let found: Vec<_> = headings(text).iter().map(|heading| (heading.level, heading.line)).collect();
        assert_eq!(found, [(1, "# A"), (2, "## B ##")]);
    }
}
