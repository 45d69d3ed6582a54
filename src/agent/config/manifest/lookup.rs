//! Whether the tools that hooks name are there, as far as a manifest alone can tell.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::choices::meant;
use super::hooks::ReadHook;
use super::tool_sets::{Known, ReadSet, Tools};
use crate::agent::config::report::Report;
use crate::quickapp::{function_name, sanitize};

/// The tools of a manifest, by the names that the model and hooks have for them.
pub(super) struct Lookup<'s> {
    sets: Vec<Set<'s>>,
    by_name: HashMap<&'s str, usize>,
    /// Whether all sets have a name.
    all_named: bool,
}

struct Set<'s> {
    read: &'s ReadSet,
    /// The final names of its tools, and what it calls them itself.
    tools: BTreeMap<String, &'s str>,
    /// What the names of its tools begin with.
    prefix: String,
}

impl<'s> Lookup<'s> {
    /// Takes the tools together, and tells of two with one name.
    pub(super) fn new(sets: &'s [ReadSet], report: &mut Report) -> Self {
        let by_name = sets.iter().enumerate().filter_map(|(index, set)| Some((set.name.as_deref()?, index)));
        let lookup = Self {
            by_name: by_name.collect(),
            all_named: sets.iter().all(|set| set.name.is_some()),
            sets: sets.iter().map(Set::new).collect(),
        };
        lookup.clashes(report);
        lookup
    }

    /// Tells of tools with one name: which of them is called could not be said.
    fn clashes(&self, report: &mut Report) {
        let mut taken: HashMap<String, &str> = HashMap::new();
        for set in &self.sets {
            let shown = set.read.name.as_deref().unwrap_or_default();
            let Tools::Known(known, named) = &set.read.tools else { continue };
            let with_set = (!known.is_exact()).then_some(shown);
            let mut own = BTreeSet::new();
            // A tool that a list names twice is one.
            for (tool, place) in named.iter().filter(|(tool, _)| own.insert(tool)) {
                let name = function_name(with_set, tool);
                if let Some(other) = taken.get(&name) {
                    let message = format!("Two tools have the name `{name}`: one is of the tool set `{other}`");
                    let hint = "leave one of the two out, or give its tool set another `name`".to_owned();
                    report.error("clashing-tools", *place, message, hint);
                } else {
                    taken.insert(name, shown);
                }
            }
        }
    }

    /// Tells what a hook names that is not there.
    pub(super) fn check(&self, hook: &ReadHook, report: &mut Report) {
        match &hook.hook.toolset_name {
            Some(set) => self.in_set(set, hook, report),
            None => self.anywhere(hook, report),
        }
    }

    fn in_set(&self, name: &str, hook: &ReadHook, report: &mut Report) {
        // Another spelling that comes to the same names is no mistake.
        let same = || self.sets.iter().position(|set| set.prefix == sanitize(&format!("{name}_")));
        let Some(index) = self.by_name.get(name).copied().or_else(same) else {
            if self.all_named {
                let hint = meant(name, self.names(), report).unwrap_or_else(|| "add it to `tool_sets`".to_owned());
                report.error("unknown-tool-set", hook.toolset, format!("There is no tool set `{name}`"), hint);
            }
            return;
        };
        let set = &self.sets[index];
        let (wanted, tool) = (hook.hook.function_name(), &hook.hook.tool_name);
        let hint = match &set.read.tools {
            Tools::Any | Tools::Unread => return,
            Tools::Known(Known::Internal, _) => {
                "take `toolset_name` out: internal tools are known by their own names".to_owned()
            }
            Tools::Known(Known::Deployments, _) => {
                "take `toolset_name` out: deployments are known by their own names".to_owned()
            }
            Tools::Known(..) if set.tools.contains_key(&wanted) => return,
            Tools::Known(known, _) => {
                let otherwise = || match known {
                    Known::Rest => format!("add `{tool}` to the `tools` of `{name}`"),
                    Known::Listed => {
                        format!("the server of `{name}` has no such tool, or its `allowed_tools` leave it out")
                    }
                    _ => format!("add `{tool}` to the `allowed_tools` of `{name}`"),
                };
                meant(tool, set.tools.values().copied(), report).unwrap_or_else(otherwise)
            }
        };
        not_found(&wanted, hook, hint, report);
    }

    fn anywhere(&self, hook: &ReadHook, report: &mut Report) {
        let tool = &hook.hook.tool_name;
        let is_there = |set: &Set<'_>| match &set.read.tools {
            Tools::Known(..) => set.tools.contains_key(tool),
            Tools::Any => tool.starts_with(&set.prefix),
            Tools::Unread => true,
        };
        if !self.all_named || self.sets.iter().any(is_there) {
            return;
        }
        let has = |set: &&Set<'_>| {
            let is_exact = matches!(set.read.tools, Tools::Known(known, _) if known.is_exact());
            !is_exact && set.tools.values().any(|known| known == tool)
        };
        let of_set = self.sets.iter().find(has);
        let known = self.sets.iter().flat_map(|set| set.tools.keys());
        let hint = match of_set.and_then(|set| set.read.name.as_ref()) {
            Some(set) => format!("the tool set `{set}` has it: name that in `toolset_name`"),
            None => meant(tool, known.map(String::as_str), report).unwrap_or_else(|| {
                "name its tool set in `toolset_name`, or an internal tool in the `tools` of its tool set".to_owned()
            }),
        };
        not_found(tool, hook, hint, report);
    }

    fn names(&self) -> impl Iterator<Item = &'s str> {
        self.sets.iter().filter_map(|set| set.read.name.as_deref())
    }
}

impl<'s> Set<'s> {
    fn new(read: &'s ReadSet) -> Self {
        let name = read.name.as_deref().unwrap_or_default();
        let (named, with_set) = match &read.tools {
            Tools::Known(known, tools) => (&tools[..], (!known.is_exact()).then_some(name)),
            Tools::Any | Tools::Unread => (&[][..], None),
        };
        let tools = named.iter().map(|(tool, _)| (function_name(with_set, tool), tool.as_str()));
        Self { read, tools: tools.collect(), prefix: sanitize(&format!("{name}_")) }
    }
}

fn not_found(name: &str, hook: &ReadHook, hint: String, report: &mut Report) {
    report.error("unknown-tool", hook.tool, format!("tool '{name}' not found in initialized tools"), hint);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{mcp, told};

    /// The tool sets: a server with three tools, one that has whatever it has, and Python tools.
    fn sets() -> Value {
        let mut memory = mcp("AppMemory");
        memory["allowed_tools"] = json!(["prime", "save_memory", "search memories"]);
        memory["hidden_from_model"] = json!(["prime"]);
        json!([memory, mcp("my server"), {"type": "internal", "name": "own", "tools": ["clock"]}])
    }

    /// What is said of a hook beside them.
    fn of(set: Option<&str>, tool: &str) -> Vec<String> {
        among(&sets(), set, tool)
    }

    fn among(sets: &Value, set: Option<&str>, tool: &str) -> Vec<String> {
        let hook = json!({"kind": "tool_call", "event": "on_completion", "toolset_name": set, "tool_name": tool});
        let found = told(&json!({"tool_sets": sets, "hooks": [hook]}).to_string());
        found.iter().map(|told| told.split_once(": ").unwrap().1.to_owned()).collect()
    }

    #[test]
    fn what_is_there_is_found() {
        for (set, tool) in [
            (Some("AppMemory"), "save_memory"),
            (Some("AppMemory"), "prime"),
            (Some("AppMemory"), "search memories"),
            (Some("AppMemory"), "search_memories"),
            (None, "AppMemory_save_memory"),
            (None, "AppMemory_search_memories"),
            (Some("my server"), "anything"),
            (Some("my_server"), "anything"),
            (None, "my_server_anything"),
            (None, "clock"),
        ] {
            assert_eq!(of(set, tool), Vec::<String>::new(), "{set:?} {tool}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is_near() {
        for (set, tool, expected) in [
            (
                Some("AppMemry"),
                "prime",
                "error[unknown-tool-set]: There is no tool set `AppMemry`\n  hint: did you mean `AppMemory`?",
            ),
            (Some("zz"), "x", "error[unknown-tool-set]: There is no tool set `zz`\n  hint: add it to `tool_sets`"),
            (
                Some("AppMemory"),
                "save_memry",
                "error[unknown-tool]: tool 'AppMemory_save_memry' not found in initialized tools\n  hint: did you mean `save_memory`?",
            ),
            (
                Some("AppMemory"),
                "drop",
                "error[unknown-tool]: tool 'AppMemory_drop' not found in initialized tools\n  hint: add `drop` to the `allowed_tools` of \
                 `AppMemory`",
            ),
            (
                Some("own"),
                "clock",
                "error[unknown-tool]: tool 'own_clock' not found in initialized tools\n  hint: take `toolset_name` out: internal tools are \
                 known by their own names",
            ),
            (
                None,
                "clok",
                "error[unknown-tool]: tool 'clok' not found in initialized tools\n  hint: did you mean `clock`?",
            ),
            (
                None,
                "prime",
                "error[unknown-tool]: tool 'prime' not found in initialized tools\n  hint: the tool set `AppMemory` has it: name that in \
                 `toolset_name`",
            ),
            (
                None,
                "zz",
                "error[unknown-tool]: tool 'zz' not found in initialized tools\n  hint: name its tool set in `toolset_name`, or an \
                 internal tool in the `tools` of its tool set",
            ),
        ] {
            assert_eq!(of(set, tool), [expected]);
        }
    }

    #[test]
    fn the_place_is_that_of_the_name() {
        let hooks = "{\"hooks\": [{\"kind\": \"tool_call\", \"event\": \"on_completion\",\n  \"toolset_name\": \"x\", \"tool_name\": \"y\"},\n \
                     {\"kind\": \"tool_call\", \"event\": \"on_completion\", \"tool_name\":\n \"y\"}]}";
        let places: Vec<_> = told(hooks).iter().map(|told| told.split_once(": ").unwrap().0.to_owned()).collect();
        assert_eq!(places, ["app.json:2:19", "app.json:4:2"]);
    }

    #[test]
    fn of_what_could_not_be_read_nothing_is_missing() {
        let mut unread = mcp("m");
        unread["allowed_tools"] = json!([1]);
        for (set, hook) in [
            (json!({"type": "predefined", "name": "m"}), Some("m")),
            (json!({"type": "rest-api", "name": "m"}), Some("m")),
            (json!({"type": "internal", "name": "m"}), None),
            (json!({"type": "mcp", "mcp_server_info": {"command": "x"}}), Some("zz")),
            (unread, Some("m")),
        ] {
            let found = among(&json!([set]), hook, "tool");
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(!found[0].contains("not found") && !found[0].contains("no tool set"), "{found:?}");
        }
    }

    #[test]
    fn two_tools_with_one_name_are_told() {
        let with = |name: &str, tools: &[&str]| {
            let mut set = mcp(name);
            set["allowed_tools"] = json!(tools);
            set
        };
        let clash = |sets: Value| among(&sets, None, "own");
        let own = json!({"type": "internal", "name": "i", "tools": ["own", "a_b_c"]});
        assert_eq!(clash(json!([own, with("a b", &["x", "x"]), with("a_b", &["y"])])), Vec::<String>::new());
        assert_eq!(
            clash(json!([own, with("a b", &["x"]), with("a_b", &["y", "x"])])),
            [
                "error[clashing-tools]: Two tools have the name `a_b_x`: one is of the tool set `a b`\n  hint: leave one of the two out, \
                 or give its tool set another `name`"
            ]
        );
        assert_eq!(clash(json!([own, with("a b", &["c"])])).len(), 1);
        assert_eq!(clash(json!([own, with("a", &["x y", "x.y"])])).len(), 1);
    }
}
