//! What the sources of tools name: entries of memory that they write, skills that they activate. Only what is written out is looked up.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::AgentConfig;
use super::references::{Checking, Known, KnownTools};
use super::sections::meant;
use crate::check::{Named, NamedThing, ToolModule};
use crate::skill::{MemorySchema, Reference, References, Referent, Skill};

/// The tools that the modules of an agent have; of a place where one of them cannot be told nothing is known.
pub(super) fn known_tools(config: &AgentConfig, modules: &[ToolModule]) -> KnownTools {
    let names = |skill: Option<&str>| -> Option<BTreeSet<String>> {
        let those = modules.iter().filter(|module| module.skill.as_deref() == skill);
        let tools = those.map(|module| module.tools.clone()).collect::<Option<Vec<_>>>()?;
        Some(tools.concat().into_iter().collect())
    };
    let local = config.skills.iter().filter_map(|skill| Some((skill.id.clone(), names(Some(&skill.id))?)));
    KnownTools { shared: names(None), local: local.collect::<BTreeMap<_, _>>(), servers: Some(config.server_names()) }
}

/// What the modules name, in the form in which files of the configuration do.
pub(super) fn references(modules: &[ToolModule]) -> Vec<References> {
    let of = |module: &ToolModule| {
        let reference = |named: &Named| {
            let (shown, to) = match &named.what {
                NamedThing::Write { entry, value } => {
                    (entry.clone(), Referent::Remembered { entry: entry.clone(), value: value.clone() })
                }
                NamedThing::Activation { skill, block } => {
                    (skill.clone(), Referent::Activated { skill: skill.clone(), block: block.clone() })
                }
            };
            Reference { shown, place: named.place, to }
        };
        References {
            file: module.file.clone(),
            owner: module.skill.clone(),
            all: module.named.iter().map(reference).collect(),
        }
    };
    modules.iter().map(of).filter(|references| !references.all.is_empty()).collect()
}

impl Checking<'_> {
    /// A write to memory: of a skill's tool to its own entry or to one of the project, of a shared one to that of any skill which imports it.
    pub(super) fn remembered(&mut self, name: &str, value: Option<&Value>, reference: &Reference) {
        let bare = name.strip_prefix("session.").unwrap_or(name);
        let (schemas, entry): (Vec<&MemorySchema>, &str) = match (bare.split_once('.'), self.owner) {
            (Some((namespace, entry)), _) => (self.known.schema(namespace).into_iter().collect(), entry),
            (None, Some(owner)) => (vec![&owner.memory, self.known.project], bare),
            (None, None) => {
                (self.known.skills().map(|skill| &skill.memory).chain([self.known.project]).collect(), bare)
            }
        };
        if schemas.iter().any(|schema| schema.unread) {
            return;
        }
        let declared: Vec<_> = schemas.iter().filter_map(|schema| schema.get(entry)).collect();
        if declared.is_empty() {
            let known = schemas.iter().flat_map(|schema| &schema.entries).map(|entry| &*entry.name);
            let otherwise = match self.owner {
                Some(owner) => format!("declare it in `skills/{}/memory.yml`, or in the project's", owner.id),
                None => {
                    "declare it in the `memory.yml` of the skills that import the tool, or in the project's".to_owned()
                }
            };
            let hint = meant(entry, known, &otherwise);
            self.error("undeclared-memory-write", reference, format!("`{name}` is declared in no `memory.yml`"), hint);
            return;
        }
        let Some(value) = value else { return };
        if let Some(Err(why)) = declared.first().map(|entry| entry.accepts(value)).filter(|_| declared.len() == 1) {
            self.report.error("wrong-type", reference.place, format!("The value does not fit: `{name}` {why}"), None);
        }
    }

    /// A skill, or a block of one, that a tool begins.
    pub(super) fn activated(&mut self, id: &str, block: Option<&str>, reference: &Reference) {
        self.skill(id, reference);
        let Some(skill) = self.known.skill(id) else { return };
        let Some(block) = block.filter(|block| skill.block(block).is_none()) else { return };
        let known = skill.blocks.iter().map(|block| &*block.id);
        let hint = meant(block, known, &format!("the blocks are the `:::ordered_block` of `skills/{id}/skill.md`"));
        self.error("unknown-block", reference, format!("The skill `{id}` has no ordered block `{block}`"), hint);
    }
}

impl<'a> Known<'a> {
    fn skills(&self) -> impl Iterator<Item = &'a Skill> {
        self.skills.values().copied()
    }

    fn skill(&self, id: &str) -> Option<&'a Skill> {
        self.skills.get(id).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::agent::check_path;
    use crate::check::CheckSettings;

    const SKILL: &str = "---\nname: Card\ndescription: Lock a card.\nimport_tools: [find_customer]\n---\nCall @tool.lock, then \
                         @tool.find_customer.\n\n:::ordered_block id=confirm\nsteps:\n  - id: ask\n    instructions: Ask.\n:::\n";
    const MEMORY: &str = "schema: {public: {number: {type: text}, tries: {type: int}}}";
    const HEAD: &str = "from rasa.mantle.tools.decorator import ToolContext, tool\nfrom rasa.mantle.tools.result import \
                        ActivateSkill, ToolResult\n\n\n";

    /// What is told of an agent with one skill whose tools are these, and a shared tool that does nothing wrong.
    fn told(tools: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let shared = format!(
            "{HEAD}@tool(description='Find')\nasync def find_customer() -> ToolResult:\n    return ToolResult(llm_response=1)\n"
        );
        for (name, text) in [
            ("agent.yml", "agent: {persona: You.}\n".to_owned()),
            ("memory.yml", "customer: {type: text}\n".to_owned()),
            ("skills/card/skill.md", SKILL.to_owned()),
            ("skills/card/memory.yml", MEMORY.to_owned()),
            ("skills/card/tools.py", format!("{HEAD}{tools}")),
            ("tools/shared.py", shared),
        ] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), text).unwrap();
        }
        let found = check_path(root, &CheckSettings::default(), None).unwrap();
        found.iter().map(|problem| problem.to_string().replace(&format!("{}/", root.display()), "")).collect()
    }

    fn lock(body: &str) -> String {
        format!(
            "@tool(description='Lock')\nasync def lock(context: ToolContext = None) -> ToolResult:\n    {body}\n    return ToolResult(llm_response=1)\n"
        )
    }

    #[test]
    fn what_is_declared_is_found() {
        for body in [
            "context.memory.set('number', 'x')",
            "context.memory.set('customer', None)",
            "context.memory.set('card.tries', 3)",
            "context.memory.set('project.customer', str(3))",
            "context.memory.set(f'entry_{1}', 3)",
            "ToolResult(llm_response=1, next=[ActivateSkill(skill_id='card', ordered_block='confirm')])",
            "self.memory.set('anything', 3)",
        ] {
            assert_eq!(told(&lock(body)), Vec::<String>::new(), "{body}");
        }
    }

    #[test]
    fn a_write_to_what_is_not_declared_is_an_error_at_its_place() {
        assert_eq!(
            told(&lock("context.memory.set('nmber', 'x')")),
            [
                "skills/card/tools.py:7:5: error[undeclared-memory-write]: `nmber` is declared in no `memory.yml`\n  hint: did you mean \
                 `number`?"
            ]
        );
        assert_eq!(
            told(&lock("context.memory.set('xyz', 'x')")),
            [
                "skills/card/tools.py:7:5: error[undeclared-memory-write]: `xyz` is declared in no `memory.yml`\n  hint: declare it in \
                 `skills/card/memory.yml`, or in the project's"
            ]
        );
        assert_eq!(
            told(&lock("context.memory.set('tries', 'many')")),
            [
                "skills/card/tools.py:7:5: error[wrong-type]: The value does not fit: `tries` takes a whole number, not the text `many`"
            ]
        );
    }

    #[test]
    fn a_skill_or_a_block_that_is_not_there_is_an_error_at_its_place() {
        assert_eq!(
            told(&lock("ToolResult(llm_response=1, next=[ActivateSkill(skill_id='crd')])")),
            ["skills/card/tools.py:7:38: error[unknown-skill]: `crd` names no skill\n  hint: did you mean `card`?"]
        );
        assert_eq!(
            told(&lock("ToolResult(llm_response=1, next=[ActivateSkill(skill_id='card', ordered_block='confrm')])")),
            [
                "skills/card/tools.py:7:38: error[unknown-block]: The skill `card` has no ordered block `confrm`\n  hint: did you mean \
                 `confirm`?"
            ]
        );
    }

    #[test]
    fn a_tool_that_is_named_and_not_there_is_found_without_importing_anything() {
        assert_eq!(
            told("@tool(description='Lock')\nasync def lok() -> ToolResult:\n    return ToolResult(llm_response=1)\n"),
            [
                "skills/card/skill.md:6:6: error[unknown-tool]: `@tool.lock` names no tool that the skill `card` has\n  hint: did you mean \
                 `lok`?"
            ]
        );
    }

    #[test]
    fn where_a_tool_cannot_be_told_from_the_source_nothing_is_missing() {
        for tools in [
            "from lib.made import *\n",
            "async def find() -> ToolResult:\n    return ToolResult(llm_response=1)\n\n\nlock = tool(description='Lock')(find)\n",
            "from elsewhere import lock\n",
            "from elsewhere import traced\n\n\n@traced(description='Lock')\nasync def lock() -> ToolResult:\n    return ToolResult(llm_response=1)\n",
            "from lib import made\n\nlock = made.lock\n",
        ] {
            assert_eq!(told(tools), Vec::<String>::new(), "{tools}");
        }
    }
}
