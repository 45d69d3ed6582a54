//! What others have said, as errors tell it: short, on one line, without what is secret.

use std::error::Error;

/// How much of what a server wrote is told, in characters.
const LONGEST_EXCERPT: usize = 200;

/// The fewest bytes of a secret that is looked for in texts: a shorter one would be found in many words.
const SHORTEST_SECRET: usize = 4;

/// A text without what is secret. A secret that holds another goes first.
pub(super) fn without<'s>(text: &str, secrets: impl IntoIterator<Item = &'s str>) -> String {
    let mut secrets: Vec<_> = secrets.into_iter().filter(|secret| secret.len() >= SHORTEST_SECRET).collect();
    secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.into_iter().fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
}

/// The beginning of a text, on one line.
pub(super) fn excerpt(written: &str) -> String {
    let mut words = written.split_whitespace();
    let mut line = words.next().unwrap_or_default().to_owned();
    // What comes behind the excerpt is not looked at: a text may have megabytes.
    for word in words {
        if line.len() > 4 * LONGEST_EXCERPT {
            break;
        }
        line.extend([" ", word]);
    }
    let mut characters = line.chars();
    let mut excerpt: String = characters.by_ref().take(LONGEST_EXCERPT).collect();
    if characters.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

/// What lies at the bottom of an error: what is above it says only who met it.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map_or_else(String::new, ToString::to_string)
}

/// An error, and what is below it.
pub(super) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_the_longest_first() {
        assert_eq!(without("key-12 and key-1", ["key-1", "key-12"]), "[secret] and [secret]");
        assert_eq!(without("a key", ["key", "key"]), "a key", "it is too short to be looked for");
    }

    #[test]
    fn an_excerpt_is_the_beginning_on_one_line() {
        assert_eq!(excerpt(" one\n\ttwo "), "one two");
        assert_eq!(excerpt(&"ż".repeat(201)), "ż".repeat(200) + "…");
        assert_eq!(excerpt(&"a ".repeat(10_000)), "a ".repeat(100) + "…");
    }
}
