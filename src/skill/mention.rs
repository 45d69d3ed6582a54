//! Mentions in instructions: `@skill.refund`, `@block.pick_card`, `@tool.lock_card`, `@memory.project.name`.

use std::ops::Range;

/// What stands between `@` and a full stop.
const KINDS: [&str; 4] = ["skill", "block", "tool", "memory"];

/// A mention and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mentioned<'t> {
    /// Where, in bytes.
    pub(crate) range: Range<usize>,
    /// What is mentioned.
    pub(crate) what: Mention<'t>,
}

/// What is mentioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mention<'t> {
    /// Another skill.
    Skill(&'t str),
    /// A block of this skill.
    Block(&'t str),
    /// A tool.
    Tool(&'t str),
    /// The value of a memory entry, which is put in its place.
    Memory {
        /// A skill's id, or `project`.
        namespace: &'t str,
        /// The entry's own name.
        entry: &'t str,
    },
    /// It begins like one of them, but has too many names or too few.
    Malformed,
}

/// All mentions of a text. An address such as `me@skill.org` is none, nor is a kind that ends a sentence: "the right @tool."
pub(crate) fn mentions(text: &str) -> Vec<Mentioned<'_>> {
    text.match_indices('@').filter_map(|(at, _)| mention(text, at)).collect()
}

/// The text with the values that `read` has in the places of `@memory.<namespace>.<entry>`. Those that it has none of stay as they
/// are written, so that it is seen what is missing.
pub(crate) fn with_memory(text: &str, read: &dyn Fn(&str, &str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut done = 0;
    for Mentioned { range, what } in mentions(text) {
        let Mention::Memory { namespace, entry } = what else { continue };
        let Some(value) = read(namespace, entry) else { continue };
        filled.push_str(&text[done..range.start]);
        filled.push_str(&value);
        done = range.end;
    }
    filled + &text[done..]
}

fn mention(text: &str, at: usize) -> Option<Mentioned<'_>> {
    let within = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if text[..at].ends_with(|letter| within(letter) || letter == '@') {
        return None;
    }
    let after = &text[at + 1..];
    let begins = |kind: &&str| after.strip_prefix(kind).is_some_and(|rest| rest.starts_with('.'));
    let kind = KINDS.into_iter().find(begins)?;
    let rest = &after[kind.len() + 1..];
    let length = rest.find(|letter| !within(letter)).unwrap_or(rest.len());
    // A sentence may end here, or a hyphen follow.
    let path = rest[..length].trim_end_matches(['.', '-']);
    if path.is_empty() {
        return None;
    }
    let names: Vec<&str> = path.split('.').collect();
    let what = match (kind, &*names) {
        _ if names.contains(&"") => Mention::Malformed,
        ("skill", [id]) => Mention::Skill(id),
        ("block", [id]) => Mention::Block(id),
        ("tool", [name]) => Mention::Tool(name),
        ("memory", [namespace, entry]) => Mention::Memory { namespace, entry },
        _ => Mention::Malformed,
    };
    Some(Mentioned { range: at..at + 1 + kind.len() + 1 + path.len(), what })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, Mention<'_>)> {
        mentions(text).into_iter().map(|found| (&text[found.range], found.what)).collect()
    }

    #[test]
    fn mentions_end_where_their_names_do() {
        assert_eq!(
            found("Call @tool.lock_card. Then `@skill.card-replace`, (@block.2nd) or @memory.project.naïve-x- é"),
            [
                ("@tool.lock_card", Mention::Tool("lock_card")),
                ("@skill.card-replace", Mention::Skill("card-replace")),
                ("@block.2nd", Mention::Block("2nd")),
                ("@memory.project.naïve-x", Mention::Memory { namespace: "project", entry: "naïve-x" }),
            ]
        );
    }

    #[test]
    fn what_has_too_few_or_too_many_names_is_malformed() {
        for text in ["@memory.project", "@memory.a.b.c", "@tool.a.b", "@skill..a"] {
            assert_eq!(found(text), [(text, Mention::Malformed)]);
        }
    }

    #[test]
    fn addresses_and_single_words_are_no_mentions() {
        assert_eq!(found("me@skill.org, the right @tool. A @tool decorator, @skills.x, @@tool.x, @memory"), []);
    }

    #[test]
    fn values_take_the_place_of_what_is_mentioned() {
        let read = |namespace: &str, entry: &str| (entry != "unset").then(|| format!("<{namespace}/{entry}>"));
        assert_eq!(
            with_memory("@memory.project.a @tool.x @memory.card.unset, @memory.card.b.", &read),
            "<project/a> @tool.x @memory.card.unset, <card/b>."
        );
    }
}
