//! Whether what files name is there: skills, tools, responses and memory entries of each other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::report::Report;
use super::sections::{meant, near};
use crate::diagnostic::Diagnostic;
use crate::skill::{Import, MemorySchema, PROJECT, Reference, References, Referent, Skill, Visibility};

/// The tools of an agent, as far as they are known without running anything. What is not known is not found missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownTools {
    /// Those of the folder `tools`.
    pub(crate) shared: Option<BTreeSet<String>>,
    /// Those in the folders of skills, by the skill's id.
    pub(crate) local: BTreeMap<String, BTreeSet<String>>,
    /// The names of the servers in `integrations.yml`.
    pub(crate) servers: Option<BTreeSet<String>>,
}

/// All that can be named.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    pub(super) skills: BTreeMap<&'a str, &'a Skill>,
    pub(super) project: &'a MemorySchema,
    tools: &'a KnownTools,
    responses: Option<&'a BTreeSet<String>>,
}

impl<'a> Known<'a> {
    /// `project` is the project's memory; `responses` are the names of all responses, built-in ones too, where they are known.
    pub(crate) fn new(
        skills: &'a [Skill],
        project: &'a MemorySchema,
        tools: &'a KnownTools,
        responses: Option<&'a BTreeSet<String>>,
    ) -> Self {
        let skills = skills.iter().map(|skill| (&*skill.id, skill)).collect();
        Self { skills, project, tools, responses }
    }

    /// Checks what one file names.
    pub(crate) fn check(&self, references: &References) -> Vec<Diagnostic> {
        let mut checking = Checking {
            known: self,
            owner: references.owner.as_ref().and_then(|owner| self.skills.get(&**owner)).copied(),
            report: Report::new(&references.file),
        };
        for reference in &references.all {
            checking.reference(reference);
        }
        checking.report.finish()
    }

    pub(super) fn schema(&self, namespace: &str) -> Option<&'a MemorySchema> {
        if namespace == PROJECT { Some(self.project) } else { self.skills.get(namespace).map(|skill| &skill.memory) }
    }
}

/// One file that is being checked.
pub(super) struct Checking<'a> {
    pub(super) known: &'a Known<'a>,
    /// The skill that it belongs to.
    pub(super) owner: Option<&'a Skill>,
    pub(super) report: Report,
}

impl Checking<'_> {
    fn reference(&mut self, reference: &Reference) {
        match &reference.to {
            Referent::Skill(id) => self.skill(id, reference),
            Referent::Tool(name) => self.tool(name, reference),
            Referent::Import(Import::Shared(tool)) => self.shared(tool, reference),
            Referent::Import(Import::Mcp { server, tool }) => self.mcp(server, tool, reference),
            Referent::Response(name) => self.response(name, reference),
            Referent::Entry { namespace, entry } => self.entry(namespace, entry, reference),
            Referent::Collected(entry) => self.collected(entry, reference),
            Referent::Written { entry, value } => self.written(entry, value, reference),
            Referent::Remembered { entry, value } => self.remembered(entry, value.as_ref(), reference),
            Referent::Activated { skill, block } => self.activated(skill, block.as_deref(), reference),
        }
    }

    pub(super) fn error(&mut self, rule: &str, reference: &Reference, message: String, hint: String) {
        self.report.error(rule, reference.place, message, hint);
    }

    pub(super) fn skill(&mut self, id: &str, reference: &Reference) {
        let shown = &reference.shown;
        match self.known.skills.get(id) {
            Some(skill) if skill.disabled => {
                let message = format!("`{shown}` names a skill that is disabled");
                self.report.warning("disabled-skill", reference.place, message, None);
            }
            Some(_) => {}
            None => {
                let ids = self.known.skills.keys().copied();
                let hint = meant(id, ids, "a skill is known by the name of its folder in `skills`");
                self.error("unknown-skill", reference, format!("`{shown}` names no skill"), hint);
            }
        }
    }

    fn tool(&mut self, name: &str, reference: &Reference) {
        let Some(owner) = self.owner else { return };
        let imported: Vec<&str> = owner.import_tools.iter().map(Import::tool).collect();
        let Some(local) = self.known.tools.local.get(&owner.id) else { return };
        if imported.contains(&name) || local.contains(name) {
            return;
        }
        let shared = self.known.tools.shared.as_ref().is_some_and(|shared| shared.contains(name));
        let callable = local.iter().map(String::as_str).chain(imported);
        let hint = if shared {
            format!("add `{name}` to `import_tools`")
        } else {
            meant(name, callable, "define it in the skill's `tools.py`, or add it to `import_tools`")
        };
        let message = format!("`{}` names no tool that the skill `{}` has", reference.shown, owner.id);
        self.error("unknown-tool", reference, message, hint);
    }

    fn shared(&mut self, tool: &str, reference: &Reference) {
        let local = self.owner.and_then(|owner| self.known.tools.local.get(&owner.id));
        let own = local.is_some_and(|local| local.contains(tool));
        let Some(shared) = &self.known.tools.shared else { return };
        match (own, shared.contains(tool)) {
            (false, true) => {}
            (false, false) => {
                let hint =
                    meant(tool, shared.iter().map(String::as_str), "shared tools are those of the folder `tools`");
                self.error("unknown-tool", reference, format!("`{tool}` is no tool of the folder `tools`"), hint);
            }
            (true, _) => {
                let message = format!("`{tool}` has no effect: the skill has a tool of that name itself");
                self.report.warning("needless-import", reference.place, message, "leave it out".to_owned());
            }
        }
    }

    fn mcp(&mut self, server: &str, tool: &str, reference: &Reference) {
        let local = self.owner.and_then(|owner| self.known.tools.local.get(&owner.id));
        if local.is_some_and(|local| local.contains(tool)) {
            let message = format!("`{}` has the name of a tool of the skill itself", reference.shown);
            self.error("clashing-tools", reference, message, format!("give the skill's `{tool}` another name"));
        }
        if let Some(servers) = self.known.tools.servers.as_ref().filter(|servers| !servers.contains(server)) {
            let known = servers.iter().map(String::as_str);
            let hint = meant(server, known, "declare it in `mcp_servers` in `integrations.yml`");
            self.error("unknown-server", reference, format!("There is no server `{server}`"), hint);
        }
    }

    fn response(&mut self, name: &str, reference: &Reference) {
        if let Some(responses) = self.known.responses.filter(|responses| !responses.contains(name)) {
            let known = responses.iter().map(String::as_str);
            let hint = meant(name, known, "add it to `responses.yml`");
            self.error("unknown-response", reference, format!("There is no response `{name}`"), hint);
        }
    }

    fn entry(&mut self, namespace: &str, entry: &str, reference: &Reference) {
        let shown = &reference.shown;
        let Some(schema) = self.known.schema(namespace) else {
            let known = self.known.skills.keys().copied().chain([PROJECT]);
            let hint = meant(namespace, known, "it is a skill's id, or `project`");
            let message = format!("`{shown}` names no skill: `{namespace}`");
            self.error("unknown-memory-entry", reference, message, hint);
            return;
        };
        let own = self.owner.is_some_and(|owner| owner.id == namespace);
        match schema.get(entry) {
            Some(found) if own || found.visibility == Visibility::Public => {}
            Some(_) => {
                let message = format!("`{shown}` is private to the skill `{namespace}`");
                let hint = format!("move `{entry}` to `public` in the skill's `memory.yml`");
                self.error("private-memory-entry", reference, message, hint);
            }
            None if schema.unread => {}
            None => {
                let hint = self.other_entry(namespace, schema, entry, own, shown);
                self.error("unknown-memory-entry", reference, format!("`{shown}` is not declared"), hint);
            }
        }
    }

    /// The hint for an entry that is not there: one that is near, or of that name in another namespace.
    fn other_entry(&self, namespace: &str, schema: &MemorySchema, entry: &str, own: bool, shown: &str) -> String {
        let form = shown.split('.').next().unwrap_or_default();
        let visible = schema.entries.iter().filter(|found| own || found.visibility == Visibility::Public);
        if let Some(near) = near(entry, visible.map(|found| &*found.name)) {
            return format!("did you mean `{form}.{namespace}.{near}`?");
        }
        let others = self.owner.map(|owner| &*owner.id).into_iter().chain([PROJECT]);
        let mut others = others.filter(|other| *other != namespace);
        match others.find(|other| self.known.schema(other).is_some_and(|schema| schema.get(entry).is_some())) {
            Some(other) => format!("did you mean `{form}.{other}.{entry}`?"),
            None if namespace == PROJECT => format!("declare `{entry}` in `memory.yml`"),
            None => format!("declare `{entry}` in `skills/{namespace}/memory.yml`"),
        }
    }

    fn collected(&mut self, entry: &str, reference: &Reference) {
        let Some(owner) = self.owner else { return };
        if owner.memory.unread || owner.memory.get(entry).is_some() {
            return;
        }
        let (rule, message, hint) = if self.known.project.get(entry).is_some() {
            let message = format!("`{entry}` is of the project, and a user is asked for a skill's own entries only");
            (
                "project-collected",
                message,
                "collect an entry of the skill, and let a tool write it to the project".to_owned(),
            )
        } else {
            let known = owner.memory.entries.iter().map(|entry| &*entry.name);
            let hint = meant(entry, known, &format!("declare it in `skills/{}/memory.yml`", owner.id));
            ("unknown-memory-entry", format!("`{entry}` is not declared"), hint)
        };
        self.error(rule, reference, message, hint);
    }

    fn written(&mut self, entry: &str, value: &Value, reference: &Reference) {
        let schemas = [self.owner.map(|owner| &owner.memory), Some(self.known.project)];
        let mut schemas = schemas.into_iter().flatten();
        let unread = schemas.clone().any(|schema| schema.unread);
        let (message, hint) = match schemas.clone().find_map(|schema| schema.get(entry)) {
            Some(found) => match found.accepts(value) {
                Ok(_) => return,
                Err(why) => (format!("The value does not fit: `{entry}` {why}"), None),
            },
            None if unread => return,
            None => {
                let known: Vec<&str> =
                    schemas.by_ref().flat_map(|schema| &schema.entries).map(|entry| &*entry.name).collect();
                let hint =
                    meant(entry, known.into_iter(), "declare it in the skill's `memory.yml`, and give its bare name");
                (format!("`{entry}` is not declared"), Some(hint))
            }
        };
        let rule = if hint.is_some() { "unknown-memory-entry" } else { "wrong-type" };
        self.report.error(rule, reference.place, message, hint);
    }
}
