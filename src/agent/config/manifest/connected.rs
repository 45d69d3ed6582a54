//! What the servers of tool sets have, beside what the manifest names of it: what a check can tell once it has asked them.

use std::collections::HashSet;

use super::choices::meant;
use super::tool_sets::{Known, Made, Named, ReadSet, Tools};
use crate::agent::config::report::Report;
use crate::agent::config::servers::ServerConfig;

/// Asks servers for the names of their tools, all at once; for each, these or why there are none.
pub(crate) type Connect<'a> = &'a dyn Fn(&[ServerConfig]) -> Vec<Result<Vec<String>, String>>;

/// Asks the servers of all sets, tells of those that do not answer and of names that they do not know, and leaves the sets with the tools that
/// they have.
pub(super) fn ask(sets: &mut [ReadSet], connect: Connect<'_>, report: &mut Report) {
    let server = |set: &ReadSet| match &set.made {
        Some(Made::Server(server)) => Some(server.clone()),
        _ => None,
    };
    let servers: Vec<_> = sets.iter().filter_map(server).collect();
    let mut answers = connect(&servers).into_iter();
    for set in sets.iter_mut().filter(|set| matches!(set.made, Some(Made::Server(_)))) {
        match answers.next() {
            Some(Ok(names)) => listed(set, &names, report),
            Some(Err(why)) => {
                let (message, hint) = why.split_once("\n  hint: ").unwrap_or((&why, ""));
                let hint = (!hint.is_empty()).then(|| hint.to_owned());
                report.error("unreachable-server", set.place, message.to_owned(), hint);
                set.tools = Tools::Unread;
            }
            None => set.tools = Tools::Unread,
        }
    }
}

fn listed(set: &mut ReadSet, names: &[String], report: &mut Report) {
    let there: HashSet<&str> = names.iter().map(String::as_str).collect();
    let allowed = match &set.tools {
        Tools::Known(_, allowed) => allowed.as_slice(),
        Tools::Any | Tools::Unread => &[],
    };
    let mut told: HashSet<&str> = HashSet::new();
    for (name, place) in allowed.iter().chain(&set.hidden) {
        if !there.contains(name.as_str()) && told.insert(name) {
            let shown = set.name.as_deref().unwrap_or_default();
            let otherwise = || match names.len() {
                0 => "it has no tools at all".to_owned(),
                _ => "its server may get it later; take it out where that is not meant".to_owned(),
            };
            let hint = meant(name, names.iter().map(String::as_str), report).unwrap_or_else(otherwise);
            let message = format!("The server of the tool set `{shown}` has no tool `{name}`");
            report.warning("unknown-tool", *place, message, hint);
        }
    }
    let tools: Vec<Named> = if matches!(set.tools, Tools::Known(..)) {
        allowed.iter().filter(|(name, _)| there.contains(name.as_str())).cloned().collect()
    } else {
        names.iter().map(|name| (name.clone(), set.place)).collect()
    };
    set.tools = Tools::Known(Known::Listed, tools);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{connected, mcp};

    fn hook(set: &str, tool: &str) -> Value {
        json!({"kind": "tool_call", "event": "on_completion", "toolset_name": set, "tool_name": tool})
    }

    /// What is said of sets and hooks whose servers all answer the same.
    fn told(sets: &Value, hooks: &Value, answer: &Result<Vec<&str>, &str>) -> Vec<String> {
        let text = json!({"tool_sets": sets, "hooks": hooks}).to_string();
        let answer = answer.clone().map(|names| names.into_iter().map(str::to_owned).collect()).map_err(str::to_owned);
        let found = connected(&text, &|servers| servers.iter().map(|_| answer.clone()).collect());
        found.iter().map(|told| told.split_once(": ").unwrap().1.to_owned()).collect()
    }

    #[test]
    fn names_that_no_server_has_are_told_with_the_nearest() {
        let mut set = mcp("m");
        set["allowed_tools"] = json!(["recall", "sav", "zzz"]);
        set["hidden_from_model"] = json!(["sav"]);
        assert_eq!(
            told(&json!([set]), &json!([]), &Ok(vec!["recall", "save"])),
            [
                "warning[unknown-tool]: The server of the tool set `m` has no tool `sav`\n  hint: did you mean `save`?",
                "warning[unknown-tool]: The server of the tool set `m` has no tool `zzz`\n  hint: its server may get it later; take it \
                 out where that is not meant"
            ]
        );
    }

    #[test]
    fn a_hook_whose_tool_is_not_there_is_an_error() {
        let hooks = json!([hook("m", "save"), hook("m", "sav"), hook("m", "zzz")]);
        assert_eq!(
            told(&json!([mcp("m")]), &hooks, &Ok(vec!["recall", "save"])),
            [
                "error[unknown-tool]: tool 'm_sav' not found in initialized tools\n  hint: did you mean `save`?",
                "error[unknown-tool]: tool 'm_zzz' not found in initialized tools\n  hint: the server of `m` has no such tool, or its \
                 `allowed_tools` leave it out"
            ]
        );
    }

    #[test]
    fn a_server_that_does_not_answer_is_told_once_and_nothing_that_follows_from_it() {
        let hooks = json!([hook("m", "save")]);
        assert_eq!(
            told(&json!([mcp("m")]), &hooks, &Err("It is gone\n  hint: start it")),
            ["error[unreachable-server]: It is gone\n  hint: start it"]
        );
    }

    #[test]
    fn tools_of_one_final_name_are_told() {
        assert_eq!(
            told(&json!([mcp("a b"), mcp("a_b")]), &json!([]), &Ok(vec!["x"])),
            [
                "error[clashing-tools]: Two tools have the name `a_b_x`: one is of the tool set `a b`\n  hint: leave one of the two out, \
                 or give its tool set another `name`"
            ]
        );
    }

    #[test]
    fn nobody_is_asked_where_something_is_wrong_already() {
        let never = |_: &_| panic!("nobody is to be asked");
        let text = json!({"tool_sets": [mcp("m")], "max_iterations": 0}).to_string();
        assert_eq!(connected(&text, &|servers| never(servers)).len(), 1);
    }
}
