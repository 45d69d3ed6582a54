//! `agent.yml`: who the agent is, its rules and its limits.

use std::collections::BTreeMap;
use std::time::Duration;

use super::AgentConfig;
use super::report::{Field, Report};
use super::sections::{AGENT, AGENT_TOP, CHUNKING, LIFECYCLE, PROMPTS, REFERENCES, SESSION};
use super::yaml::Yaml;
use crate::providers::Chunking;
use crate::turn::Lifecycle;

/// The persona of an agent that declares none.
pub(super) const PERSONA: &str = "You are a helpful assistant.";

/// Parts of the prompt that an agent words itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prompts {
    /// The texts by their keys, such as `text_rules`: one, or several in their order.
    pub(crate) texts: BTreeMap<String, Vec<String>>,
    /// `ack_enabled`, where it is given.
    pub(crate) ack_enabled: Option<bool>,
}

/// When a conversation begins anew, and when its silence is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionConfig {
    /// How long a conversation may rest. None: it does not expire.
    pub(crate) expiration: Option<Duration>,
    /// Whether a new session starts once the old one has expired.
    pub(crate) start_after_expiry: bool,
    /// What is told of a conversation in which nobody says anything: the key `lifecycle`.
    pub(crate) lifecycle: Lifecycle,
}

impl Default for SessionConfig {
    /// 60 minutes, as Rasa's `session_config` has it; no silence is told.
    fn default() -> Self {
        Self { expiration: Some(Duration::from_hours(1)), start_after_expiry: true, lifecycle: Lifecycle::default() }
    }
}

/// Reads the file's values into `config`. No `root` stands where the file is empty.
pub(super) fn read(root: Option<&Field<'_>>, report: &mut Report, config: &mut AgentConfig) {
    let top = root.and_then(|root| report.fields(root, &AGENT_TOP));
    let field = |key: &str| top.as_ref().and_then(|top| top.get(key));
    match field("agent") {
        Some(agent) => read_agent(&agent, report, config),
        None if root.is_none() || top.is_some() => {
            no_persona(report, None);
        }
        None => {}
    }
    if let Some(rules) = field("rules") {
        config.rules = report.texts(&rules);
    }
    if let Some(prompts) = field("prompts") {
        config.prompts = read_prompts(&prompts, report);
    }
    if let Some(references) = field("references") {
        config.chunking = read_chunking(&references, report).unwrap_or_default();
    }
    if let Some(limit) = field("tool_timeout").and_then(|limit| report.time(&limit, ("seconds", 1.0), false)) {
        config.tool_timeout = limit;
    }
    if let Some(most) = field("max_iterations").and_then(|most| report.whole(&most, 1..=1000)) {
        config.max_iterations = most;
    }
    if let Some(session) = field("session_config") {
        config.session = read_session(&session, report);
    }
    if let Some(lifecycle) = field("lifecycle") {
        config.session.lifecycle = read_lifecycle(&lifecycle, report);
    }
}

fn read_agent(agent: &Field<'_>, report: &mut Report, config: &mut AgentConfig) {
    let Some(fields) = report.fields(agent, &AGENT) else { return };
    match fields.get("persona") {
        Some(persona) => {
            if let Some(persona) = report.text(&persona) {
                config.persona = persona;
            }
        }
        None => no_persona(report, Some(agent)),
    }
    config.id = fields.get("id").and_then(|id| report.text(&id));
    if let Some(language) = fields.get("language").and_then(|language| report.text(&language)) {
        config.language = language;
    }
}

fn no_persona(report: &mut Report, agent: Option<&Field<'_>>) {
    let place = agent.map(|agent| agent.node.place);
    let hint = format!("say who the agent is; until then it is \"{PERSONA}\"");
    report.warning("missing-key", place, "`agent.persona` is missing".to_owned(), hint);
}

/// Each text may be given as one, or as a list of them.
fn read_prompts(prompts: &Field<'_>, report: &mut Report) -> Prompts {
    let mut read = Prompts::default();
    let Some(fields) = report.fields(prompts, &PROMPTS) else { return read };
    for (key, field) in fields.all().filter(|(key, _)| PROMPTS.keys.contains(key)) {
        if key == "ack_enabled" {
            read.ack_enabled = report.flag(&field);
        } else {
            let texts = match field.node.value {
                Yaml::List(_) => report.texts(&field),
                _ => report.text(&field).into_iter().collect(),
            };
            read.texts.insert(key.to_owned(), texts);
        }
    }
    read
}

fn read_chunking(references: &Field<'_>, report: &mut Report) -> Option<Chunking> {
    let chunking = report.fields(references, &REFERENCES)?.get("chunking")?;
    let fields = report.fields(&chunking, &CHUNKING)?;
    let mut read = Chunking::default();
    if let Some(size) = fields.get("chunk_size").and_then(|size| report.whole(&size, 1..=1_000_000)) {
        read.size = size as usize;
    }
    if let Some(overlap) = fields.get("chunk_overlap").and_then(|overlap| report.whole(&overlap, 0..=1_000_000)) {
        read.overlap = overlap as usize;
    }
    if read.overlap >= read.size {
        let message = format!("Passages of {} characters cannot overlap by {}", read.size, read.overlap);
        let hint = "make `chunk_overlap` less than `chunk_size`".to_owned();
        report.error("invalid-value", fields.place("chunk_overlap"), message, hint);
        return None;
    }
    Some(read)
}

fn read_session(session: &Field<'_>, report: &mut Report) -> SessionConfig {
    let mut read = SessionConfig::default();
    let Some(fields) = report.fields(session, &SESSION) else { return read };
    if let Some(time) = fields.get("session_expiration_time")
        && let Some(time) = report.time(&time, ("minutes", 60.0), true)
    {
        read.expiration = Some(time).filter(|time| !time.is_zero());
    }
    if let Some(start) = fields.get("start_session_after_expiry").and_then(|start| report.flag(&start)) {
        read.start_after_expiry = start;
    }
    read
}

fn read_lifecycle(lifecycle: &Field<'_>, report: &mut Report) -> Lifecycle {
    let Some(fields) = report.fields(lifecycle, &LIFECYCLE) else { return Lifecycle::default() };
    let mut time = |key| fields.get(key).and_then(|time| report.time(&time, ("minutes", 60.0), false));
    let read = Lifecycle { nudge_after: time("nudge_after"), expire_after: time("expire_after") };
    if read.nudge_after.zip(read.expire_after).is_some_and(|(nudge, expire)| nudge >= expire) {
        let message = "A conversation that has expired cannot be nudged".to_owned();
        let hint = "make `nudge_after` less than `expire_after`, or leave it out".to_owned();
        report.error("invalid-value", fields.place("nudge_after"), message, hint);
    }
    read
}

#[cfg(test)]
mod tests {
    use super::super::testing::{config, told};
    use super::*;

    #[test]
    fn every_key_is_read() {
        let (read, found) = config(
            "agent.yml",
            "agent:\n  persona: You sell shoes.\n  id: shoes-1\n  language: de\nrules:\n  - Be brief.\n  - 'Always: smile.'\n\
             prompts:\n  text_rules: No lists.\n  ack_examples: [One moment., Let me look.]\n  ack_enabled: false\n\
             references: {chunking: {chunk_size: 500, chunk_overlap: 0}}\ntool_timeout: 2.5\nmax_iterations: 4\n\
             session_config:\n  session_expiration_time: 0\n  start_session_after_expiry: false\n\
             lifecycle: {nudge_after: 0.5, expire_after: 60}\n",
        );
        assert_eq!(found, Vec::<String>::new());
        let text = |text: &str| text.to_owned();
        let expected = AgentConfig {
            persona: text("You sell shoes."),
            id: Some(text("shoes-1")),
            language: text("de"),
            rules: vec![text("Be brief."), text("Always: smile.")],
            prompts: Prompts {
                texts: BTreeMap::from([
                    (text("ack_examples"), vec![text("One moment."), text("Let me look.")]),
                    (text("text_rules"), vec![text("No lists.")]),
                ]),
                ack_enabled: Some(false),
            },
            chunking: Chunking { size: 500, overlap: 0 },
            tool_timeout: Duration::from_millis(2500),
            max_iterations: 4,
            session: SessionConfig {
                expiration: None,
                start_after_expiry: false,
                lifecycle: Lifecycle {
                    nudge_after: Some(Duration::from_secs(30)),
                    expire_after: Some(Duration::from_hours(1)),
                },
            },
            ..AgentConfig::default()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn an_agent_without_a_persona_is_warned_of() {
        let warned = "warning[missing-key]: `agent.persona` is missing\n  hint: say who the agent is; until then it is \"You are a \
                      helpful assistant.\"";
        assert_eq!(told("agent.yml", ""), [format!("agent.yml: {warned}")]);
        assert_eq!(told("agent.yml", "agent: {id: a}"), [format!("agent.yml:1:8: {warned}")]);
    }

    #[test]
    fn a_value_of_a_wrong_type_is_told_with_what_is_expected() {
        assert_eq!(
            told(
                "agent.yml",
                "agent: {persona: x, id: 7}\ntool_timeout: \"ten\"\nmax_iterations: '5'\nrules: Be kind.\n\
                 session_config:\n  start_session_after_expiry: yes\nprompts: [a]\n"
            ),
            [
                "agent.yml:1:25: error[wrong-type]: `agent.id` is a number, expected a text\n  hint: put it in quotes",
                "agent.yml:2:15: error[wrong-type]: `tool_timeout` is a text, expected a number of seconds",
                "agent.yml:3:17: error[wrong-type]: `max_iterations` is a text, expected a whole number\n  hint: leave out the \
                 quotes",
                "agent.yml:4:8: error[wrong-type]: `rules` is a text, expected a list of texts\n  hint: begin each with `- `",
                "agent.yml:6:31: error[wrong-type]: `session_config.start_session_after_expiry` is a text, expected `true` or \
                 `false`",
                "agent.yml:7:10: error[wrong-type]: `prompts` is a list, expected a mapping",
            ]
        );
    }

    #[test]
    fn a_number_out_of_bounds_is_an_error() {
        assert_eq!(
            told(
                "agent.yml",
                "agent: {persona: x}\ntool_timeout: 0\nmax_iterations: -1\nsession_config: {session_expiration_time: .inf}\n\
                 references: {chunking: {chunk_size: 10}}\n"
            ),
            [
                "agent.yml:2:15: error[invalid-value]: `tool_timeout` is 0, not more than 0 seconds, and at most a year",
                "agent.yml:3:17: error[invalid-value]: `max_iterations` is -1, not from 1 to 1000",
                "agent.yml:4:43: error[invalid-value]: `session_config.session_expiration_time` is inf, not 0 or more minutes, \
                 and at most a year",
                "agent.yml:5:24: error[invalid-value]: Passages of 10 characters cannot overlap by 20\n  hint: make \
                 `chunk_overlap` less than `chunk_size`",
            ]
        );
    }

    #[test]
    fn the_times_of_a_lifecycle_are_more_than_none_and_a_nudge_comes_before_the_end() {
        let told = |lifecycle: &str| told("agent.yml", &format!("agent: {{persona: x}}\nlifecycle: {lifecycle}\n"));
        assert_eq!(told("{nudge_after: 10}"), Vec::<String>::new());
        assert_eq!(told("{expire_after: 10, nudge_after: null}"), Vec::<String>::new());
        assert_eq!(
            told("{nudge_after: 0, expire_after: 600000}"),
            [
                "agent.yml:2:26: error[invalid-value]: `lifecycle.nudge_after` is 0, not more than 0 minutes, and at most a year",
                "agent.yml:2:43: error[invalid-value]: `lifecycle.expire_after` is 600000, not more than 0 minutes, and at most \
                 a year",
            ]
        );
        assert_eq!(
            told("{expire_after: 10, nudge_after: 10.0}"),
            [
                "agent.yml:2:31: error[invalid-value]: A conversation that has expired cannot be nudged\n  hint: make `nudge_after` \
              less than `expire_after`, or leave it out"
            ]
        );
    }

    #[test]
    fn a_lifecycle_has_no_other_keys_and_its_keys_stand_nowhere_else() {
        assert_eq!(
            told(
                "agent.yml",
                "agent: {persona: x}\nlifecycle: {nudge_afer: 10, expire_after: '30'}\nnudge_after: 10\n"
            ),
            [
                "agent.yml:2:13: warning[unknown-key]: `lifecycle.nudge_afer` has no effect: there is no such key\n  hint: did \
                 you mean `nudge_after`?",
                "agent.yml:2:43: error[wrong-type]: `lifecycle.expire_after` is a text, expected a number of minutes\n  hint: \
                 leave out the quotes",
                "agent.yml:3:1: warning[misplaced-key]: `nudge_after` has no effect: `nudge_after` belongs elsewhere\n  hint: \
                 move it to `lifecycle` in `agent.yml`",
            ]
        );
    }

    #[test]
    fn a_rule_with_a_colon_is_no_text() {
        assert_eq!(
            told("agent.yml", "agent: {persona: x}\nrules:\n  - Always: be kind.\n"),
            [
                "agent.yml:3:5: error[wrong-type]: `rules[0]` is a mapping, expected a text\n  hint: put the text in quotes: `: ` \
              within it begins a value"
            ]
        );
    }

    #[test]
    fn keys_in_a_wrong_place_are_told_where_they_belong() {
        assert_eq!(
            told(
                "agent.yml",
                "agent:\n  persona: x\n  rules: [Be kind.]\n  tool_timeout: 3\nlanguage: de\nllm: {}\nconversation: {}\n"
            ),
            [
                "agent.yml:3:3: warning[misplaced-key]: `agent.rules` has no effect: `rules` belongs elsewhere\n  hint: move it \
                 to the top level of `agent.yml`",
                "agent.yml:4:3: warning[misplaced-key]: `agent.tool_timeout` has no effect: `tool_timeout` belongs elsewhere\n  \
                 hint: move it to the top level of `agent.yml`",
                "agent.yml:5:1: warning[misplaced-key]: `language` has no effect: `language` belongs elsewhere\n  hint: move it \
                 to `agent` in `agent.yml`",
                "agent.yml:6:1: warning[misplaced-key]: `llm` has no effect: `llm` belongs elsewhere\n  hint: move it to the \
                 top level of `integrations.yml`",
                "agent.yml:7:1: warning[unsupported-key]: `conversation` has no effect: it is not supported yet",
            ]
        );
    }

    #[test]
    fn unknown_keys_are_told_with_the_nearest_name() {
        assert_eq!(
            told("agent.yml", "agent: {persona: x, langauge: de, age: 4, <<: {}}\ntool_timout: 3\n"),
            [
                "agent.yml:1:21: warning[unknown-key]: `agent.langauge` has no effect: there is no such key\n  hint: did you \
                 mean `language`?",
                "agent.yml:1:35: warning[unknown-key]: `agent.age` has no effect: there is no such key\n  hint: the keys here \
                 are `persona`, `id`, `language`",
                "agent.yml:1:43: warning[unknown-key]: `agent.<<` has no effect: YAML 1.2 has no merge keys\n  hint: repeat the \
                 keys, or give an alias to a whole value",
                "agent.yml:2:1: warning[unknown-key]: `tool_timout` has no effect: there is no such key\n  hint: did you mean \
                 `tool_timeout`?",
            ]
        );
    }
}
