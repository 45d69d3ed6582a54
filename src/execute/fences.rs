//! Python between fences in a model's text.

/// A text, and the code that stands in it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Fenced {
    /// The text without its code.
    pub(super) text: Option<String>,
    /// The first block.
    pub(super) code: Option<String>,
    /// How many blocks there are beside it.
    pub(super) others: usize,
    /// The last block has no end: the answer was cut.
    pub(super) open: bool,
}

/// Takes the blocks of Python out of a text.
pub(super) fn fenced(text: &str) -> Fenced {
    let mut found = Fenced::default();
    let mut outside: Vec<&str> = Vec::new();
    let mut block: Option<(usize, Vec<&str>)> = None;
    // A block of another language: whatever stands in it is text.
    let mut foreign: Option<usize> = None;
    for line in text.lines() {
        let (ticks, info) = fence(line);
        if let Some((width, lines)) = &mut block {
            if ticks >= *width && info.is_empty() {
                let code = lines.join("\n");
                if found.code.is_none() {
                    found.code = Some(code);
                } else {
                    found.others += 1;
                }
                block = None;
            } else {
                lines.push(line);
            }
            continue;
        }
        match foreign {
            Some(width) if ticks >= width && info.is_empty() => foreign = None,
            None if ticks >= 3 && is_python(info) => {
                block = Some((ticks, Vec::new()));
                continue;
            }
            None if ticks >= 3 => foreign = Some(ticks),
            _ => {}
        }
        outside.push(line);
    }
    found.open = block.is_some();
    let text = outside.join("\n");
    found.text = (!text.trim().is_empty()).then(|| text.trim().to_owned());
    found
}

/// How many backticks a line begins with, and what stands behind them.
fn fence(line: &str) -> (usize, &str) {
    let line = line.trim();
    let info = line.trim_start_matches('`');
    (line.len() - info.len(), info.trim())
}

fn is_python(info: &str) -> bool {
    let language = info.split_whitespace().next().unwrap_or_default();
    ["python", "py", "python3"].iter().any(|name| language.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn the_first_block_of_python_is_the_code_and_what_is_around_it_the_text() {
        let found = fenced("Let me look.\n\n```python\nx = 1\nawait f(x)\n```\n\nOne moment.");
        let text = Some(owned("Let me look.\n\n\nOne moment."));
        assert_eq!(found, Fenced { text, code: Some(owned("x = 1\nawait f(x)")), others: 0, open: false });
    }

    #[test]
    fn further_blocks_are_counted_and_a_cut_one_is_told() {
        let found = fenced("```py\n1\n```\n```Python title\n2\n```\n```python\n3");
        assert_eq!(found, Fenced { text: None, code: Some(owned("1")), others: 1, open: true });
    }

    #[test]
    fn blocks_of_other_languages_are_text() {
        let text = "```json\n{}\n```\n```\nplain\n```";
        assert_eq!(fenced(text), Fenced { text: Some(owned(text)), ..Fenced::default() });
    }

    #[test]
    fn a_wider_fence_holds_narrower_ones() {
        let found = fenced("````python\ns = '''\n```\n'''\n````");
        assert_eq!(found.code, Some(owned("s = '''\n```\n'''")));
    }
}
