//! What a turn remembers: read by conditions, prompts, responses and tools; written by tools, by the model and by steps.

use serde_json::Value;

use super::SkillSet;
use super::state::State;
use crate::conversation::{Event, Object};
use crate::skill::{MemoryEntry, PROJECT, Trigger, Visibility};

/// What comes of a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written {
    /// What happens; nothing where the entry has that value already.
    pub(crate) event: Option<Event>,
    /// The responses that the skill says because of it.
    pub(crate) utters: Vec<String>,
}

impl SkillSet {
    /// The value of an entry: what was set, else what it has at first.
    pub(crate) fn read(&self, state: &State, namespace: &str, entry: &str) -> Option<Value> {
        match state.value(namespace, entry) {
            Some(Value::Null) => None,
            Some(value) => Some(value.clone()),
            None => self.initial(namespace, entry),
        }
    }

    /// The value of an entry as a tool names it: bare, the active skill's before the project's, or with its namespace before it.
    pub(crate) fn recall(&self, state: &State, name: &str) -> Option<Value> {
        let (namespace, entry) = self.resolve(state, name).ok()?;
        self.read(state, &namespace, &entry.name)
    }

    /// What a write of a tool's comes to.
    ///
    /// # Errors
    ///
    /// Why it is refused, for the tool's author.
    pub(crate) fn write(&self, state: &State, name: &str, value: &Value) -> Result<Written, String> {
        let (namespace, entry) = self.resolve(state, name)?;
        let value = entry.accepts(value).map_err(|why| format!("`{name}` {why}"))?;
        if self.read(state, &namespace, &entry.name).unwrap_or(Value::Null) == value {
            return Ok(Written { event: None, utters: Vec::new() });
        }
        if namespace == PROJECT && !entry.mutable && state.was_set(&entry.name) {
            return Err(format!("`{name}` is the project's, and has been set in this session: it is written once"));
        }
        let (namespace, entry) = (namespace, entry.name.clone());
        let event = match value {
            Value::Null => Event::MemoryCleared { namespace, entry },
            value => Event::MemorySet { namespace, entry, value },
        };
        let utters = self.utters(state, &event);
        Ok(Written { event: Some(event), utters })
    }

    /// The responses of the active skill whose condition an event makes true.
    fn utters(&self, state: &State, event: &Event) -> Vec<String> {
        let Some(skill) = state.top().and_then(|frame| self.skill(&frame.skill)) else { return Vec::new() };
        let mut after = state.clone();
        after.apply(event);
        let holds = |state: &State, trigger: &Trigger| match trigger {
            Trigger::When(condition) => condition.holds(&|namespace, entry| self.read(state, namespace, entry)),
            Trigger::Activation => false,
        };
        let begins = |trigger| !holds(state, trigger) && holds(&after, trigger);
        skill.utter.iter().filter(|utter| begins(&utter.trigger)).map(|utter| utter.response.clone()).collect()
    }

    /// All that is set, as responses name it: `session.<namespace>.<entry>`, and `<entry>` for what the active skill or the project has.
    pub(crate) fn values(&self, state: &State) -> Object {
        let active = state.top().map(|frame| frame.skill.as_str());
        let mut values = Object::new();
        // The active skill's own entries come last: they hide the project's of the same name.
        let others = self.skills.iter().filter(|skill| Some(skill.id.as_str()) != active);
        let own = self.skills.iter().filter(|skill| Some(skill.id.as_str()) == active);
        let schemas = others.map(|skill| (skill.id.as_str(), &skill.memory)).chain([(PROJECT, &self.project)]);
        for (namespace, schema) in schemas.chain(own.map(|skill| (skill.id.as_str(), &skill.memory))) {
            for entry in &schema.entries {
                let Some(value) = self.read(state, namespace, &entry.name) else { continue };
                if namespace == PROJECT || Some(namespace) == active {
                    values.insert(entry.name.clone(), value.clone());
                }
                values.insert(format!("session.{namespace}.{}", entry.name), value);
            }
        }
        values
    }

    /// The entry that a tool means.
    fn resolve(&self, state: &State, name: &str) -> Result<(String, &MemoryEntry), String> {
        let active = state.top().map(|frame| frame.skill.as_str());
        let qualified = name.strip_prefix("session.").unwrap_or(name);
        let found = match qualified.split_once('.') {
            Some((namespace, entry)) => {
                let found = self.schema(namespace).and_then(|schema| schema.get(entry));
                let may = |entry: &&MemoryEntry| entry.visibility == Visibility::Public || Some(namespace) == active;
                found.filter(may).map(|entry| (namespace.to_owned(), entry))
            }
            None => active
                .into_iter()
                .chain([PROJECT])
                .find_map(|namespace| Some((namespace.to_owned(), self.schema(namespace)?.get(qualified)?))),
        };
        found.ok_or_else(|| {
            let place = active.map_or_else(String::new, |skill| format!(" of `skills/{skill}` or of the project"));
            format!("`{name}` is declared in no `memory.yml`{place}")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::condition::Condition;
    use crate::skill::{MemoryKind, MemorySchema, Skill, Utter};

    fn entry(name: &str, kind: MemoryKind) -> MemoryEntry {
        MemoryEntry { mutable: false, ..MemoryEntry::of(name, kind) }
    }

    fn skills() -> SkillSet {
        let schema = |entries| MemorySchema { entries, unread: false };
        let card = Skill {
            id: "card".into(),
            memory: schema(vec![
                entry("number", MemoryKind::Int),
                MemoryEntry { initial_value: Some(json!("new")), ..entry("state", MemoryKind::Text) },
                MemoryEntry { visibility: Visibility::Private, ..entry("secret", MemoryKind::Text) },
            ]),
            utter: vec![Utter {
                response: "utter_many".into(),
                trigger: Trigger::When(Condition::parse("session.card.number > 3").unwrap()),
            }],
            ..Skill::default()
        };
        let other = Skill { id: "other".into(), ..Skill::default() };
        SkillSet {
            skills: vec![card, other],
            project: schema(vec![entry("name", MemoryKind::Text), entry("state", MemoryKind::Text)]),
        }
    }

    fn active(skill: &str) -> State {
        State::of([&Event::SkillActivated { skill_id: skill.into() }])
    }

    fn set(state: &mut State, name: &str, value: impl Into<Value>) -> Result<Vec<String>, String> {
        let written = skills().write(state, name, &value.into())?;
        if let Some(event) = written.event {
            state.apply(&event);
        }
        Ok(written.utters)
    }

    #[test]
    fn a_bare_name_is_the_active_skills_before_the_projects() {
        let mut state = active("card");
        assert_eq!(skills().recall(&state, "state"), Some(json!("new")));
        assert_eq!(skills().recall(&state, "project.state"), None);
        set(&mut state, "state", json!("old")).unwrap();
        set(&mut state, "project.state", json!("all")).unwrap();
        let expected = json!({"session.project.state": "all", "state": "old", "session.card.state": "old"});
        assert_eq!(Value::Object(skills().values(&state)), expected);
        assert_eq!(skills().recall(&active("other"), "state"), None);
    }

    #[test]
    fn what_is_not_declared_does_not_fit_or_is_not_ones_own_is_refused() {
        let mut state = active("card");
        for (name, value, why) in [
            ("nothing", json!(1), "`nothing` is declared in no `memory.yml` of `skills/card` or of the project"),
            ("number", json!("3"), "`number` takes a whole number, not the text `3`"),
        ] {
            assert_eq!(set(&mut state, name, value), Err(why.to_owned()));
        }
        assert!(set(&mut state, "secret", json!("x")).is_ok());
        assert_eq!(skills().recall(&state, "card.secret"), Some(json!("x")));
        state.apply(&Event::SkillActivated { skill_id: "other".into() });
        assert_eq!(skills().recall(&state, "card.secret"), None, "it is private");
    }

    #[test]
    fn what_the_project_remembers_is_written_once_a_session() {
        let mut state = active("card");
        set(&mut state, "name", json!("Ada")).unwrap();
        assert!(set(&mut state, "name", json!("Ada")).is_ok(), "nothing changes");
        let why = "`name` is the project's, and has been set in this session: it is written once";
        assert_eq!(set(&mut state, "name", json!("Bob")), Err(why.to_owned()));
        state.apply(&Event::SessionStarted);
        assert!(set(&mut state, "name", json!("Bob")).is_ok());
    }

    #[test]
    fn null_clears_and_a_write_that_makes_a_trigger_true_says_its_response() {
        let mut state = active("card");
        assert_eq!(set(&mut state, "number", json!(2)), Ok(vec![]));
        assert_eq!(set(&mut state, "number", json!(5)), Ok(vec!["utter_many".to_owned()]));
        assert_eq!(set(&mut state, "number", json!(6)), Ok(vec![]), "it was true before");
        set(&mut state, "number", Value::Null).unwrap();
        assert_eq!(skills().recall(&state, "number"), None);
    }
}
