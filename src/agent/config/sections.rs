//! Which keys the files of an agent have, and where: the one list from which keys are read, warned of and put right.

use super::execution::{EXECUTION_FILE, EXECUTION_SECTIONS};
use super::manifest::{MANIFEST_FILE, MANIFEST_SECTIONS};
use crate::check::nearest;

/// A mapping in a file, and the keys that it may have.
#[derive(Debug, PartialEq)]
pub(super) struct Section {
    pub(super) file: &'static str,
    /// Where it is: empty for the top level.
    pub(super) path: &'static str,
    pub(super) keys: &'static [&'static str],
    /// Keys that the files of Mantle agents have and that nothing here reads yet.
    pub(super) unread: &'static [&'static str],
    /// Whether it may have any other key.
    pub(super) open: bool,
}

pub(super) const AGENT_FILE: &str = "agent.yml";
pub(super) const INTEGRATIONS_FILE: &str = "integrations.yml";
pub(super) const RESPONSES_FILE: &str = "responses.yml";
pub(super) const SKILL_FILE: &str = "skill.md";
pub(super) const MEMORY_FILE: &str = "memory.yml";

pub(super) const AGENT_TOP: Section = Section {
    file: AGENT_FILE,
    path: "",
    keys: &["agent", "rules", "prompts", "references", "tool_timeout", "max_iterations", "session_config", "lifecycle"],
    unread: &["conversation"],
    open: false,
};
pub(super) const AGENT: Section = within(AGENT_FILE, "agent", &["persona", "id", "language"]);
pub(super) const PROMPTS: Section = within(
    AGENT_FILE,
    "prompts",
    &[
        "text_rules",
        "voice_rules",
        "ack_rule",
        "ack_reminder",
        "ack_enabled",
        "ack_examples",
        "routing_no_active_skill",
    ],
);
pub(super) const REFERENCES: Section = within(AGENT_FILE, "references", &["chunking"]);
pub(super) const CHUNKING: Section = within(AGENT_FILE, "references.chunking", &["chunk_size", "chunk_overlap"]);
pub(super) const SESSION: Section =
    within(AGENT_FILE, "session_config", &["session_expiration_time", "start_session_after_expiry"]);
pub(super) const LIFECYCLE: Section = within(AGENT_FILE, "lifecycle", &["nudge_after", "expire_after"]);

pub(super) const INTEGRATIONS_TOP: Section = Section {
    file: INTEGRATIONS_FILE,
    path: "",
    keys: &["llm", "model_groups", "mcp_servers"],
    unread: &["channels", "knowledge_stores", "tracing"],
    open: false,
};
pub(super) const LLM: Section = within(INTEGRATIONS_FILE, "llm", &["model_group", "max_prompt_tokens"]);
pub(super) const GROUP: Section =
    Section { unread: &["router"], ..within(INTEGRATIONS_FILE, "model_groups[]", &["id", "models"]) };
pub(super) const MODEL: Section = Section {
    open: true,
    ..within(
        INTEGRATIONS_FILE,
        "model_groups[].models[]",
        &["provider", "model", "api_base", "api_key", "api_key_env", "script", "recording"],
    )
};

pub(super) const SERVER: Section = Section {
    unread: &["oauth", "module"],
    ..within(
        INTEGRATIONS_FILE,
        "mcp_servers[]",
        &["name", "url", "token", "api_key", "tool_timeout", "command", "args", "env", "cwd"],
    )
};

pub(super) const RESPONSES_TOP: Section = within(RESPONSES_FILE, "", &["responses"]);
pub(super) const VARIANT: Section = Section {
    unread: &["channel", "custom", "image", "attachment"],
    ..within(RESPONSES_FILE, "responses.<name>[]", &["text", "condition", "metadata", "buttons"])
};
pub(super) const METADATA: Section =
    Section { open: true, ..within(RESPONSES_FILE, "responses.<name>[].metadata", &["rephrase"]) };
pub(super) const BUTTON: Section = within(RESPONSES_FILE, "responses.<name>[].buttons[]", &["title", "payload"]);

pub(super) const SKILL_TOP: Section = within(
    SKILL_FILE,
    "",
    &[
        "name",
        "description",
        "requires",
        "complete_when",
        "import_tools",
        "tool_constraints",
        "utter",
        "disabled",
        "routing",
    ],
);
pub(super) const COMPLETE_WHEN: Section = within(SKILL_FILE, "complete_when", &["condition", "criteria"]);
pub(super) const ROUTING: Section = within(SKILL_FILE, "routing", &["engine_managed"]);
pub(super) const CONSTRAINT: Section =
    within(SKILL_FILE, "tool_constraints[].<tool>", &["requires", "requires_confirmation", "on_success", "on_failure"]);
pub(super) const CONFIRMATION: Section = within(
    SKILL_FILE,
    "tool_constraints[].<tool>.requires_confirmation",
    &["enabled", "utter_for_confirmation", "utter_on_user_denial"],
);
pub(super) const TRIGGER: Section = within(SKILL_FILE, "utter[].<response>", &["on", "when"]);
/// What stands on the line that opens a block.
pub(super) const FENCE: Section = within(SKILL_FILE, ":::ordered_block id=<id>", &["id"]);
pub(super) const BLOCK: Section = within(SKILL_FILE, ":::ordered_block", &["steps", "name", "description"]);
/// The keys of all kinds of steps.
pub(super) const STEP: Section = within(
    SKILL_FILE,
    "steps[]",
    &[
        "id",
        "next",
        "instructions",
        "complete_when",
        "collect",
        "utterance",
        "action",
        "utter",
        "execute_tool",
        "parameters",
        "set_memory",
        "call",
        "link",
        "noop",
    ],
);
pub(super) const BRANCH: Section = within(SKILL_FILE, "steps[].next[]", &["if", "then", "else"]);

pub(super) const MEMORY_TOP: Section = Section { unread: &["access"], ..within(MEMORY_FILE, "", &["schema"]) };
pub(super) const SCHEMA: Section = within(MEMORY_FILE, "schema", &["public", "private"]);
/// An entry of a skill's memory or the project's.
pub(super) const ENTRY: Section = Section {
    unread: &["anonymization"],
    ..within(
        MEMORY_FILE,
        "<entry>",
        &["type", "description", "llm_settable", "initial_value", "enum_values", "seed", "pii", "mutable"],
    )
};

/// All of an agent's files: where a key is looked for that stands in a wrong place.
const SECTIONS: [&Section; 29] = [
    &AGENT_TOP,
    &AGENT,
    &PROMPTS,
    &REFERENCES,
    &CHUNKING,
    &SESSION,
    &LIFECYCLE,
    &INTEGRATIONS_TOP,
    &LLM,
    &GROUP,
    &MODEL,
    &SERVER,
    &RESPONSES_TOP,
    &VARIANT,
    &METADATA,
    &BUTTON,
    &SKILL_TOP,
    &COMPLETE_WHEN,
    &ROUTING,
    &CONSTRAINT,
    &CONFIRMATION,
    &TRIGGER,
    &FENCE,
    &BLOCK,
    &STEP,
    &BRANCH,
    &MEMORY_TOP,
    &SCHEMA,
    &ENTRY,
];

/// All of them, those of a manifest and of an execution included.
fn sections() -> impl Iterator<Item = &'static Section> {
    SECTIONS.into_iter().chain(MANIFEST_SECTIONS).chain(EXECUTION_SECTIONS)
}

/// Keys of the field's model entries that go to the provider: a key that is meant is none that is misspelt.
const OF_PROVIDERS: [&str; 21] = [
    "api_type",
    "api_version",
    "deployment",
    "extra_headers",
    "frequency_penalty",
    "headers",
    "logit_bias",
    "max_completion_tokens",
    "max_tokens",
    "n",
    "num_retries",
    "organization",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "temperature",
    "timeout",
    "top_p",
    "use_chat_completions_endpoint",
];

/// What is to be said of a key.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// It is read.
    Known,
    /// It is known to the field, and nothing here reads it yet.
    Unread,
    /// It belongs into this other mapping.
    Misplaced(&'static Section),
    /// Nothing reads it: perhaps this one was meant.
    Unknown(Option<&'static str>),
}

impl Section {
    /// Judges a key that stands here; `compare`: with the nearest, where it is unknown.
    pub(super) fn judge(&self, key: &str, compare: bool) -> Verdict {
        let near = |known: &mut dyn Iterator<Item = &'static str>| if compare { near(key, known) } else { None };
        if self.keys.contains(&key) {
            return Verdict::Known;
        }
        if self.unread.contains(&key) {
            return Verdict::Unread;
        }
        if self.open {
            let known = self.keys.iter().chain(if *self == MODEL { &OF_PROVIDERS[..] } else { &[] });
            return match near(&mut known.copied()) {
                Some(near) if near != key && self.keys.contains(&near) => Verdict::Unknown(Some(near)),
                _ => Verdict::Known,
            };
        }
        let has = |section: &&Section| section.keys.contains(&key) || section.unread.contains(&key);
        let here = sections().filter(|section| section.file == self.file).find(has);
        // Keys within other files are too common (`id`, `text`) to say that they are meant, and so are those of a skill (`name`).
        // A manifest is no file of an agent, and an execution's is not either.
        let top = |section: &&Section| section.path.is_empty() && section.file != SKILL_FILE;
        let of_agent = self.file != MANIFEST_FILE && self.file != EXECUTION_FILE;
        let elsewhere = || SECTIONS.into_iter().filter(|_| of_agent).filter(top).find(has);
        match here.or_else(elsewhere) {
            Some(home) => Verdict::Misplaced(home),
            None if *self == RESPONSES_TOP && key.starts_with("utter_") => Verdict::Misplaced(&RESPONSES),
            None => Verdict::Unknown(near(&mut self.keys.iter().chain(self.unread).copied())),
        }
    }

    /// Where it is, in words.
    pub(super) fn shown(&self) -> String {
        // A manifest may have any name.
        if self.file == MANIFEST_FILE {
            if self.path.is_empty() { "the top level".to_owned() } else { format!("`{}`", self.path) }
        } else if self.path.is_empty() {
            format!("the top level of `{}`", self.file)
        } else {
            format!("`{}` in `{}`", self.path, self.file)
        }
    }
}

/// The known name that is nearest to `name`, if one is near.
pub(super) fn near<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    if comparable(name) { nearest(name, known.filter(|known| comparable(known))) } else { None }
}

/// The hint for a name that is unknown: the known one that is near, else what to do.
pub(super) fn meant<'k>(name: &str, known: impl Iterator<Item = &'k str>, otherwise: &str) -> String {
    near(name, known).map_or_else(|| otherwise.to_owned(), |near| format!("did you mean `{near}`?"))
}

/// Whether a name is short enough to be compared: the time that takes grows with the square of its length.
pub(super) fn comparable(name: &str) -> bool {
    name.len() <= 64
}

/// Where responses stand: its keys are their names.
static RESPONSES: Section = Section { open: true, ..within(RESPONSES_FILE, "responses", &[]) };

pub(super) const fn within(file: &'static str, path: &'static str, keys: &'static [&'static str]) -> Section {
    Section { file, path, keys, unread: &[], open: false }
}

#[cfg(test)]
mod tests {
    use super::super::testing::told;
    use super::*;

    /// A file in which `key` of `section` has a value that no key may have.
    fn wrong(section: &Section, key: &str) -> String {
        if *section == MODEL {
            let provider = match key {
                "provider" => "",
                "script" => "provider: scripted, ",
                "recording" => "provider: recorded, ",
                _ => "provider: openai, ",
            };
            return format!(
                "{{llm: {{model_group: m}}, model_groups: [{{id: m, models: [{{{provider}{key}: [[]]}}]}}]}}"
            );
        }
        if section.file == MANIFEST_FILE {
            return super::super::manifest::wrong(section, key);
        }
        let beside = match (section.path, key) {
            ("<entry>", "initial_value") => "type: text, ",
            ("steps[]", "id") => "action: x, ",
            ("steps[]", "complete_when") => "id: s, instructions: x, ",
            ("steps[]", "utterance") => "id: s, collect: x, ",
            ("steps[]", "parameters") => "id: s, execute_tool: x, ",
            ("steps[]", "next") => "id: s, action: x, ",
            ("steps[]", _) => "id: s, ",
            ("steps[].next[]", "if") => "then: END, ",
            ("mcp_servers[]", "token" | "api_key") => "url: 'http://a', ",
            ("mcp_servers[]", "args" | "env" | "cwd") => "command: x, ",
            _ => "",
        };
        let inner = format!("{{{beside}{key}: [[]]}}");
        if let Some(path) = section.path.strip_prefix("steps[]") {
            let step = if path.is_empty() { inner } else { format!("{{id: s, noop: true, next: [{inner}]}}") };
            return in_block(&format!("{{steps: [{step}]}}"));
        }
        if *section == BLOCK {
            return in_block(&inner);
        }
        let outer = section.path.split('.').filter(|part| !part.is_empty()).rev();
        let whole = outer.fold(inner, |inner, part| match part.trim_matches(['<', '>']).strip_suffix("[]") {
            Some(list) => format!("{{{list}: [{inner}]}}"),
            None => format!("{{{}: {inner}}}", part.trim_matches(['<', '>'])),
        });
        if section.file == SKILL_FILE { format!("---\n{whole}\n---\n") } else { whole }
    }

    fn in_block(yaml: &str) -> String {
        format!("---\nname: x\ndescription: x\n---\n:::ordered_block id=b\n{yaml}\n:::\n")
    }

    #[test]
    fn every_key_is_read() {
        // What stands on a fence's line is no YAML.
        for section in sections().filter(|section| **section != FENCE) {
            for key in section.keys {
                let found = told(section.file, &wrong(section, key));
                let of_key = |problem: &String| {
                    problem.contains("[wrong-type]")
                        && (problem.contains(&format!("{key}`")) || problem.contains(&format!("{key}[0]`")))
                };
                assert!(found.iter().any(of_key), "{key} of {}: {found:#?}", section.shown());
            }
        }
    }

    #[test]
    fn a_key_that_stands_elsewhere_is_shown_its_place() {
        assert_eq!(AGENT.judge("rules", true), Verdict::Misplaced(&AGENT_TOP));
        assert_eq!(AGENT_TOP.judge("persona", true), Verdict::Misplaced(&AGENT));
        assert_eq!(AGENT_TOP.judge("llm", true), Verdict::Misplaced(&INTEGRATIONS_TOP));
        assert_eq!(VARIANT.judge("rephrase", true), Verdict::Misplaced(&METADATA));
        assert_eq!(RESPONSES_TOP.judge("utter_hello", true), Verdict::Misplaced(&RESPONSES));
    }

    #[test]
    fn a_misspelt_key_is_shown_the_nearest() {
        assert_eq!(AGENT_TOP.judge("tool_timout", true), Verdict::Unknown(Some("tool_timeout")));
        assert_eq!(AGENT_TOP.judge("xyz", true), Verdict::Unknown(None));
        assert_eq!(AGENT_TOP.judge("text", true), Verdict::Unknown(None));
        assert_eq!(AGENT_TOP.judge(&"rules".repeat(200_000), true), Verdict::Unknown(None));
    }

    #[test]
    fn what_goes_to_a_provider_is_no_misspelling() {
        assert_eq!(MODEL.judge("api_bas", true), Verdict::Unknown(Some("api_base")));
        for key in OF_PROVIDERS.into_iter().chain(["safety_settings", "x"]) {
            assert_eq!(MODEL.judge(key, true), Verdict::Known, "{key}");
        }
    }
}
