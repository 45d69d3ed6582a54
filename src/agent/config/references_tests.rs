//! What is found of references to what is not there.

use std::collections::{BTreeMap, BTreeSet};

use super::references::{Known, KnownTools};
use super::testing::{project_memory, skill, skill_memory};
use crate::skill::{MemorySchema, References, Skill};

const PROJECT_MEMORY: &str = "customer: {type: text}\nplan: {type: categorical, enum_values: [a, b]}\n";
const CARD_MEMORY: &str = "schema: {public: {reason: {type: text}}, private: {count: {type: int}}}";
const REFUND_MEMORY: &str = "schema: {public: {amount: {type: float}}, private: {secret: {type: text}}}";

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What is said of what the skill `card` names. Beside it there are `refund` and `old`, which is disabled.
fn told(text: &str) -> Vec<String> {
    let (mut card, found) = skill(text);
    assert_eq!(found, Vec::<String>::new());
    card.memory = skill_memory(CARD_MEMORY).0;
    let other = |id: &str, disabled| Skill {
        id: id.to_owned(),
        disabled,
        memory: skill_memory(REFUND_MEMORY).0,
        ..Skill::default()
    };
    let tools = KnownTools {
        shared: Some(names(&["load_profile", "send_mail"])),
        local: BTreeMap::from([("card".to_owned(), names(&["lock_card", "send_mail"]))]),
        servers: Some(names(&["bank"])),
    };
    let skills = [card, other("refund", false), other("old", true)];
    let project = project_memory(PROJECT_MEMORY).0;
    let responses = names(&["utter_sent"]);
    let known = Known::new(&skills, &project, &tools, Some(&responses));
    let found: Vec<_> = skills.iter().flat_map(|skill| known.check(&skill.references)).collect();
    found.iter().map(ToString::to_string).collect()
}

fn of_body(text: &str) -> Vec<String> {
    told(&format!("---\nname: a\ndescription: b\n---\n{text}"))
}

fn of_step(step: &str) -> Vec<String> {
    of_body(&format!(":::ordered_block id=b\nsteps:\n  - {{id: s, {step}}}\n:::\n"))
}

#[test]
fn what_is_there_is_not_told() {
    assert_eq!(
        told(
            "---\nname: a\ndescription: b\nrequires: session.card.count > 1 and session.project.customer and \
             session.refund.amount\nimport_tools: [load_profile, mcp/bank:pay]\ntool_constraints: [{pay: {on_success: \
             utter_sent}}]\nutter: [utter_sent: {on: activate}]\n---\n@skill.refund @tool.lock_card @tool.pay @tool.load_profile \
             @memory.card.count\n:::ordered_block id=b\nsteps: [{id: s, set_memory: {count: 3.0, plan: A}}, {id: t, collect: \
             count}]\n:::\n"
        ),
        Vec::<String>::new()
    );
}

#[test]
fn skills_are_looked_up() {
    assert_eq!(
        of_body("@skill.refnd @skill.old\n:::ordered_block id=b\nsteps: [{id: s, call: x}]\n:::\n"),
        [
            "skill.md:5:1: error[unknown-skill]: `@skill.refnd` names no skill\n  hint: did you mean `refund`?",
            "skill.md:5:14: warning[disabled-skill]: `@skill.old` names a skill that is disabled",
            "skill.md:7:23: error[unknown-skill]: `x` names no skill\n  hint: a skill is known by the name of its folder in `skills`",
        ]
    );
}

#[test]
fn memory_entries_are_looked_up() {
    assert_eq!(
        told(
            "---\nname: a\ndescription: b\nrequires: session.crd.x or session.card.reson or session.card.customer or \
             session.project.zz\n---\n@memory.refund.secret @memory.refund.zz @memory.project.custmer\n"
        ),
        [
            "skill.md:4:11: error[unknown-memory-entry]: `session.crd.x` names no skill: `crd`\n  hint: did you mean `card`?",
            "skill.md:4:28: error[unknown-memory-entry]: `session.card.reson` is not declared\n  hint: did you mean \
             `session.card.reason`?",
            "skill.md:4:50: error[unknown-memory-entry]: `session.card.customer` is not declared\n  hint: did you mean \
             `session.project.customer`?",
            "skill.md:4:75: error[unknown-memory-entry]: `session.project.zz` is not declared\n  hint: declare `zz` in `memory.yml`",
            "skill.md:6:1: error[private-memory-entry]: `@memory.refund.secret` is private to the skill `refund`\n  hint: move \
             `secret` to `public` in the skill's `memory.yml`",
            "skill.md:6:23: error[unknown-memory-entry]: `@memory.refund.zz` is not declared\n  hint: declare `zz` in \
             `skills/refund/memory.yml`",
            "skill.md:6:41: error[unknown-memory-entry]: `@memory.project.custmer` is not declared\n  hint: did you mean \
             `@memory.project.customer`?",
        ]
    );
}

#[test]
fn collected_entries_are_the_skills_own() {
    assert_eq!(
        of_step("collect: customer"),
        [
            "skill.md:7:22: error[project-collected]: `customer` is of the project, and a user is asked for a skill's own entries \
             only\n  hint: collect an entry of the skill, and let a tool write it to the project"
        ]
    );
    assert_eq!(
        of_step("collect: reasn"),
        ["skill.md:7:22: error[unknown-memory-entry]: `reasn` is not declared\n  hint: did you mean `reason`?"]
    );
}

#[test]
fn written_values_must_fit() {
    assert_eq!(
        of_step("set_memory: {count: many, plan: c, custmer: x, zz: ~}"),
        [
            "skill.md:7:26: error[wrong-type]: The value does not fit: `count` takes a whole number, not the text `many`",
            "skill.md:7:39: error[wrong-type]: The value does not fit: `plan` takes one of `a`, `b`, not the text `c`",
            "skill.md:7:48: error[unknown-memory-entry]: `custmer` is not declared\n  hint: did you mean `customer`?",
            "skill.md:7:60: error[unknown-memory-entry]: `zz` is not declared\n  hint: declare it in the skill's `memory.yml`, and \
             give its bare name",
        ]
    );
}

#[test]
fn tools_are_those_that_the_skill_has() {
    assert_eq!(
        told(
            "---\nname: a\ndescription: b\nimport_tools: [load_profil, send_mail, mcp/bnk:pay, mcp/bank:lock_card]\ntool_constraints: \
             [{load_profile: {on_failure: utter_snt}}]\n---\n@tool.lok_card @tool.zz\n"
        ),
        [
            "skill.md:4:16: error[unknown-tool]: `load_profil` is no tool of the folder `tools`\n  hint: did you mean `load_profile`?",
            "skill.md:4:29: warning[needless-import]: `send_mail` has no effect: the skill has a tool of that name itself\n  hint: \
             leave it out",
            "skill.md:4:40: error[unknown-server]: There is no server `bnk`\n  hint: did you mean `bank`?",
            "skill.md:4:53: error[clashing-tools]: `mcp/bank:lock_card` has the name of a tool of the skill itself\n  hint: give \
             the skill's `lock_card` another name",
            "skill.md:5:21: error[unknown-tool]: `load_profile` names no tool that the skill `card` has\n  hint: add `load_profile` \
             to `import_tools`",
            "skill.md:5:48: error[unknown-response]: There is no response `utter_snt`\n  hint: did you mean `utter_sent`?",
            "skill.md:7:1: error[unknown-tool]: `@tool.lok_card` names no tool that the skill `card` has\n  hint: did you mean \
             `lock_card`?",
            "skill.md:7:16: error[unknown-tool]: `@tool.zz` names no tool that the skill `card` has\n  hint: define it in the \
             skill's `tools.py`, or add it to `import_tools`",
        ]
    );
}

#[test]
fn what_is_not_known_is_not_found_missing() {
    let text = "---\nname: a\ndescription: b\nimport_tools: [x, mcp/y:z]\nrequires: session.card.a\nutter: [utter_x: {on: \
                activate}]\n---\n@tool.t\n:::ordered_block id=b\nsteps: [{id: s, collect: a}, {id: t, set_memory: {a: 1}}]\n:::\n";
    let (mut card, _) = skill(text);
    card.memory.unread = true;
    let (references, skills, tools) = (card.references.clone(), [card], KnownTools::default());
    let found = Known::new(&skills, &MemorySchema::default(), &tools, None).check(&references);
    assert_eq!(found, []);
}

#[test]
fn a_file_of_the_project_reads_public_entries_only() {
    let refund = Skill { id: "refund".to_owned(), memory: skill_memory(REFUND_MEMORY).0, ..Skill::default() };
    let (card, _) =
        skill("---\nname: a\ndescription: b\nrequires: session.refund.secret and session.refund.amount\n---\n");
    let references = References { owner: None, ..card.references };
    let (skills, tools) = ([refund], KnownTools::default());
    let found = Known::new(&skills, &MemorySchema::default(), &tools, None).check(&references);
    let rules: Vec<_> = found.iter().map(|problem| &*problem.rule).collect();
    assert_eq!(rules, ["private-memory-entry"]);
}
