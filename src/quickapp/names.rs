//! What a tool is called where models and providers see it.

/// The most characters that a function's name may have (providers refuse more).
const MOST: usize = 64;

/// The final name of a tool: what the model calls, what a pair shows, and what hooks are looked up by.
///
/// With a tool set both names make one, which is sanitized; without, the name is taken as it is, since deployments and internal tools
/// are named exactly. Several tools may come to the same name (`a b` and `a_b`, or two that differ behind the cut): whoever lists them
/// has to look.
pub(crate) fn function_name(toolset: Option<&str>, tool: &str) -> String {
    toolset.map_or_else(|| tool.to_owned(), |toolset| sanitize(&format!("{toolset}_{tool}")))
}

/// The name as `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$` allows it: each other character becomes `_`, and a digit or `-` at the start gets one
/// before it.
pub(crate) fn sanitize(name: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let before = name.chars().next().is_none_or(|first| first.is_ascii_digit() || first == '-').then_some('_');
    let rest = name.chars().map(|letter| if allowed(letter) { letter } else { '_' });
    before.into_iter().chain(rest).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tool_of_a_set_has_the_sets_name_before_its_own() {
        assert_eq!(function_name(Some("AppMemory"), "search_memories"), "AppMemory_search_memories");
        assert_eq!(function_name(Some("my server"), "get data"), "my_server_get_data");
        assert_eq!(function_name(Some("memory_server"), "get_memories"), "memory_server_get_memories");
    }

    #[test]
    fn a_tool_without_a_set_keeps_its_name() {
        assert_eq!(function_name(None, "my tool!"), "my tool!");
        assert_eq!(function_name(None, "1st"), "1st");
    }

    #[test]
    fn what_no_name_may_have_becomes_an_underscore() {
        for (name, expected) in [
            ("get.data/v2", "get_data_v2"),
            ("größe", "gr__e"),
            ("a-b_c", "a-b_c"),
            ("1password", "_1password"),
            ("-flag", "_-flag"),
            (".env", "_env"),
            ("١٢", "__"),
            ("", "_"),
        ] {
            assert_eq!(sanitize(name), expected, "{name:?}");
        }
    }

    #[test]
    fn a_name_is_cut_after_what_was_put_before_it() {
        assert_eq!(sanitize(&"a".repeat(65)), "a".repeat(64));
        assert_eq!(sanitize(&"1".repeat(64)), format!("_{}", "1".repeat(63)));
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_providers_take_and_stays_as_it_is(name in any::<String>()) {
            let clean = sanitize(&name);
            let mut letters = clean.chars();
            prop_assert!(letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_'));
            prop_assert!(letters.all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter)));
            prop_assert!(clean.len() <= MOST);
            prop_assert_eq!(sanitize(&clean), clean);
        }
    }
}
