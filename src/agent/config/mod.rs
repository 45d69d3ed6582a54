//! The configuration of an agent: `agent.yml`, `integrations.yml`, `responses.yml` and `memory.yml` at the root of its folder, and
//! the `skill.md` and `memory.yml` of its skills. Beside it the manifest of a Quick App.
//!
//! No key is ignored in silence. What is wrong in a file comes back as problems beside what could be read; only what cannot be read is an error.

mod agent_file;
mod answers;
mod blocks;
mod body;
mod client;
mod conditions;
pub(in crate::agent) mod execution;
mod gates;
mod integrations;
mod json;
#[cfg(test)]
mod json_tests;
mod manifest;
mod markdown;
mod memory;
#[cfg(test)]
mod memory_tests;
mod model;
mod references;
#[cfg(test)]
mod references_tests;
mod report;
mod responses;
mod scalar;
mod sections;
mod servers;
mod skill;
mod skills;
mod steps;
#[cfg(test)]
mod testing;
mod tool_sources;
mod variables;
mod yaml;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use agent_file::{Prompts, SessionConfig};
pub(crate) use answers::{recording, script};
pub(crate) use integrations::LlmConfig;
pub(crate) use manifest::{
    CheckTemplates, Connect, DeploymentConfig, Manifest, RestConfig, TemplateProblem, check_manifest, load_manifest,
    model_entry, quickapp_schema,
};
pub(crate) use model::ModelConfig;
pub(crate) use references::KnownTools;
pub(crate) use responses::Responses;
pub(crate) use servers::{Authorization, Reached, ServerConfig};
pub(crate) use variables::Variables;

use crate::check::ToolModule;
use crate::diagnostic::{Diagnostic, Place};
use crate::providers::Chunking;
use crate::skill::{MemorySchema, References, Skill};
use references::Known;
use report::{Field, Report};
use sections::{AGENT_FILE, INTEGRATIONS_FILE, RESPONSES_FILE};
use skills::{load_memory, load_skills};

/// How large a file may be, in bytes.
const LARGEST: usize = 1 << 20;

/// Names that are not read, and what they should be.
const MISNAMED: [(&str, &str); 5] = [
    ("agent.yaml", AGENT_FILE),
    ("integrations.yaml", INTEGRATIONS_FILE),
    ("integration.yml", INTEGRATIONS_FILE),
    ("responses.yaml", RESPONSES_FILE),
    ("response.yml", RESPONSES_FILE),
];

/// What the files say, with defaults for what they do not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentConfig {
    /// Who the agent is.
    pub(crate) persona: String,
    /// Its id, where it has one.
    pub(crate) id: Option<String>,
    /// The language that it speaks.
    pub(crate) language: String,
    /// Rules that hold in every turn.
    pub(crate) rules: Vec<String>,
    /// Parts of the prompt that the agent words itself.
    pub(crate) prompts: Prompts,
    /// How references are cut.
    pub(crate) chunking: Chunking,
    /// How long a tool may take.
    pub(crate) tool_timeout: Duration,
    /// How often the model is asked in a turn at most.
    pub(crate) max_iterations: u32,
    /// When a conversation begins anew.
    pub(crate) session: SessionConfig,
    /// The model, where one is configured.
    pub(crate) llm: Option<LlmConfig>,
    /// The servers whose tools skills may import.
    pub(crate) servers: Vec<ServerConfig>,
    /// The fixed texts.
    pub(crate) responses: Responses,
    /// The skills.
    pub(crate) skills: Vec<Skill>,
    /// What all skills remember.
    pub(crate) memory: MemorySchema,
}

impl AgentConfig {
    /// What is wrong in what the files name of each other, as far as `tools` are known.
    pub(crate) fn check_references(&self, tools: &KnownTools) -> Vec<Diagnostic> {
        let files = self.skills.iter().map(|skill| &skill.references).chain([&self.responses.references]);
        self.check_files(tools, files)
    }

    /// As [`AgentConfig::check_references`], of these files.
    fn check_files<'f>(&self, tools: &KnownTools, files: impl IntoIterator<Item = &'f References>) -> Vec<Diagnostic> {
        let responses = self.responses.names();
        let known = Known::new(&self.skills, &self.memory, tools, Some(&responses));
        files.into_iter().flat_map(|references| known.check(references)).collect()
    }

    /// The names of the servers.
    pub(crate) fn server_names(&self) -> BTreeSet<String> {
        self.servers.iter().map(|server| server.name.clone()).collect()
    }
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            persona: agent_file::PERSONA.to_owned(),
            id: None,
            language: "en".to_owned(),
            rules: vec![],
            prompts: Prompts::default(),
            chunking: Chunking::default(),
            tool_timeout: Duration::from_secs(10),
            max_iterations: 10,
            session: SessionConfig::default(),
            llm: None,
            servers: vec![],
            responses: Responses::default(),
            skills: vec![],
            memory: MemorySchema::default(),
        }
    }
}

/// Why a configuration could not be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no such folder.
    #[error("Agent folder `{}` does not exist", .0.display())]
    NotFound(PathBuf),
    /// A file cannot be read.
    #[error("`{}` cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said; the message has it, so it is no source.
        reason: io::Error,
    },
    /// The answers of a scripted model are not well formed.
    #[error(
        "The script `{}` is not understood: {message}\n  hint: it has the keys `in_order` and `by_text`, whose answers have `text` and `calls`",
        path.display()
    )]
    Script {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A recorded conversation is none.
    #[error(
        "The recording `{}` cannot be played: {message}\n  hint: its first line is a JSON object with `messages` in the Chat Completions form",
        path.display()
    )]
    Recording {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
}

/// Reads the configuration of the agent in the folder `root`, with the variables of this process.
pub(crate) fn load(root: &Path) -> Result<(AgentConfig, Vec<Diagnostic>), ConfigError> {
    load_with(root, &|name| std::env::var(name).ok())
}

/// What is wrong in the configuration of an agent, wherever it is to run: what the environment does not have is not told.
/// `tools` are what its modules of tools have and name.
pub(crate) fn check(root: &Path, tools: &[ToolModule]) -> Result<Vec<Diagnostic>, ConfigError> {
    let (config, mut found) = load_with(root, &variables::set_anywhere)?;
    let known = tool_sources::known_tools(&config, tools);
    let told: Vec<_> = found.iter().map(ToString::to_string).collect();
    let of_tools = tool_sources::references(tools);
    let more = config.check_references(&known).into_iter().chain(config.check_files(&known, &of_tools));
    found.extend(more.filter(|problem| !told.contains(&problem.to_string())));
    Ok(found)
}

/// As [`load`], with other `variables`.
pub(crate) fn load_with(root: &Path, variables: Variables<'_>) -> Result<(AgentConfig, Vec<Diagnostic>), ConfigError> {
    if !root.is_dir() {
        return Err(ConfigError::NotFound(root.to_owned()));
    }
    let mut config = AgentConfig::default();
    let mut found = vec![];
    for name in [AGENT_FILE, INTEGRATIONS_FILE, RESPONSES_FILE] {
        let path = root.join(name);
        match bytes(&path).map_err(|reason| ConfigError::Unreadable { path: path.clone(), reason })? {
            Some(bytes) => found.extend(read(root, name, &bytes, variables, &mut config)),
            None => found.extend(misnamed(root, name)),
        }
    }
    let (skills, wrong) = load_skills(root)?;
    found.extend(wrong);
    let (memory, wrong) = load_memory(root)?;
    found.extend(wrong);
    (config.skills, config.memory) = (skills, memory);
    found.extend(config.check_references(&KnownTools::default()));
    Ok((config, found))
}

/// Reads one of the files into `config`.
fn read(root: &Path, name: &str, bytes: &[u8], variables: Variables<'_>, config: &mut AgentConfig) -> Vec<Diagnostic> {
    let mut report = Report::new(&root.join(name));
    let Some(text) = decode(bytes, &mut report) else { return report.finish() };
    let Ok(node) = report.document(text) else { return report.finish() };
    let field = node.as_ref().map(|node| Field { name: String::new(), node });
    match (name, &field) {
        (AGENT_FILE, field) => agent_file::read(field.as_ref(), &mut report, config),
        (INTEGRATIONS_FILE, Some(field)) => integrations::read(field, &mut report, root, variables, config),
        (RESPONSES_FILE, Some(field)) => {
            config.responses = responses::read(field, &mut report);
            config.responses.references = report.references(None);
        }
        _ => {}
    }
    report.finish()
}

/// The bytes of a file, one more than allowed at most; none where it does not exist.
fn bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![];
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn decode<'b>(bytes: &'b [u8], report: &mut Report) -> Option<&'b str> {
    if bytes.len() > LARGEST {
        report.error(report.broken(), None, format!("The file is larger than {} MiB", LARGEST >> 20), None);
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let before = &bytes[..error.valid_up_to()];
            let line = u32::try_from(before.split(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX);
            let place = Place { line, column: 1, end_line: line, end_column: 1 };
            report.error(report.broken(), place, "This is no UTF-8".to_owned(), "save the file as UTF-8".to_owned());
            None
        }
    }
}

fn misnamed(root: &Path, name: &str) -> Vec<Diagnostic> {
    let there = MISNAMED.iter().filter(|(wrong, right)| *right == name && root.join(wrong).is_file());
    let found = there.flat_map(|(wrong, right)| {
        let mut report = Report::new(&root.join(wrong));
        let hint = format!("rename it to `{right}`");
        report.warning("misnamed-file", None, format!("`{wrong}` is not read"), hint);
        report.finish()
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::testing::{changed, told};
    use super::*;

    const GOOD: [(&str, &str); 3] = [
        (
            AGENT_FILE,
            "agent:\n  persona: >\n    You sell\n    shoes.\n  id: shoes\nrules:\n  - 'a: b'\nprompts: {ack_enabled: true}\n\
             tool_timeout: 30\nsession_config: {session_expiration_time: 60}\n",
        ),
        (
            INTEGRATIONS_FILE,
            "llm:\n  model_group: &id main\nmodel_groups:\n  - id: *id\n    models:\n      - provider: openai\n        model: \
             gpt\n        api_key: ${KEY}\n        temperature: 0.5\n",
        ),
        (
            RESPONSES_FILE,
            "responses:\n  utter_x:\n    - text: \"Hi {name}\"\n      metadata: {rephrase: true}\n      buttons:\n        - \
             {title: a, payload: b}\n",
        ),
    ];

    /// Letters that mean something in YAML.
    const ODD: &str = "[-\\]a:{}\\[#&*!|>'\"%, \n\t0.$<]{0,3}";

    fn shown(root: &Path) -> Vec<String> {
        let (_, found) = load_with(root, &|_| Some("k".to_owned())).unwrap();
        found.iter().map(|problem| problem.to_string().replace(&format!("{}/", root.display()), "")).collect()
    }

    #[test]
    fn files_that_are_not_there_leave_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let (config, found) = load_with(folder.path(), &|_| None).unwrap();
        assert_eq!((config, found), (AgentConfig::default(), vec![]));
    }

    #[test]
    fn good_files_have_no_problems() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in GOOD {
            fs::write(folder.path().join(name), format!("\u{feff}{text}")).unwrap();
        }
        assert_eq!(shown(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn files_of_other_names_are_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("agent.yaml"), "").unwrap();
        fs::write(folder.path().join("response.yml"), "").unwrap();
        assert_eq!(
            shown(folder.path()),
            [
                "agent.yaml: warning[misnamed-file]: `agent.yaml` is not read\n  hint: rename it to `agent.yml`",
                "response.yml: warning[misnamed-file]: `response.yml` is not read\n  hint: rename it to `responses.yml`",
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("agent");
        assert_eq!(load(&root).unwrap_err().to_string(), format!("Agent folder `{}` does not exist", root.display()));
        fs::create_dir_all(root.join("agent.yml")).unwrap();
        let path = root.join("agent.yml");
        let expected = format!("`{}` cannot be read: Is a directory (os error 21)", path.display());
        assert_eq!(load(&root).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_file_that_is_no_yaml_is_told_with_its_place() {
        assert_eq!(
            told(AGENT_FILE, "agent:\n  persona: You: sell shoes\n"),
            [
                "agent.yml:2:15: error[invalid-yaml]: This is no YAML: mapping values are not allowed in this context\n  hint: put \
              the text in quotes: `: ` within it begins a value"
            ]
        );
        assert_eq!(
            told(AGENT_FILE, "rules: []\nagent: {}\nrules: []\n"),
            ["agent.yml:3:1: error[duplicate-key]: The key `rules` is there twice\n  hint: keep one of the two"]
        );
        assert_eq!(
            told(RESPONSES_FILE, "- utter_x"),
            ["responses.yml:1:1: error[wrong-type]: `responses.yml` is a list, expected a mapping"]
        );
    }

    #[test]
    fn a_file_that_is_no_text_or_too_large_is_told() {
        let of = |bytes: &[u8]| {
            let found = read(Path::new(""), AGENT_FILE, bytes, &|_| None, &mut AgentConfig::default());
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            of(b"agent:\n  persona: \xff\n"),
            ["agent.yml:2:1: error[invalid-yaml]: This is no UTF-8\n  hint: save the file as UTF-8"]
        );
        assert_eq!(of(&vec![b' '; LARGEST + 1]), ["agent.yml: error[invalid-yaml]: The file is larger than 1 MiB"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), which in 0..3_usize) {
            told(GOOD[which].0, &text);
        }

        #[test]
        fn no_change_of_a_good_file_makes_it_panic(
            which in 0..3_usize,
            changes in prop::collection::vec((any::<Index>(), 0..6_usize, ODD), 1..6),
        ) {
            let (name, text) = GOOD[which];
            told(name, &changed(text, changes));
        }
    }
}
