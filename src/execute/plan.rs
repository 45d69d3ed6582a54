//! Whether what was given for an execution can be run.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;

use super::Error;
use super::execution::{MOST_ITERATIONS, Plan};
use super::exit::Exit;
use super::reserved::RESERVED;
use super::shape::Shape;
use super::subset::SANDBOX_MODULES;

/// How many tools an execution has at most.
const TOOLS: usize = 100;
/// How many exits.
const EXITS: usize = 100;
/// How long the instructions may be, in characters.
const INSTRUCTIONS: usize = 1_000_000;
/// How many messages it may be given.
const MESSAGES: usize = 250;
/// How long a name may be, in characters.
const NAME: usize = 51;

/// The exit of an execution that is given none.
pub(super) const DONE: &str = "done";
/// The exit with which a chat waits for its user.
pub(super) const LISTEN: &str = "listen";

/// The plan, complete, where it can be run.
pub(super) fn checked(mut plan: Plan) -> Result<Plan, Error> {
    if !(1..=i64::from(MOST_ITERATIONS)).contains(&plan.iterations) {
        let message =
            format!("Invalid iterations: {}. Expected a number between 1 and {MOST_ITERATIONS}", plan.iterations);
        return Err(Error::new(message, "10 is what an execution has that says nothing"));
    }
    if plan.models.is_empty() {
        return Err(Error::new("An execution has no model", "give it one with `model`"));
    }
    if plan.runner.is_none() {
        return Err(Error::new("An execution has nothing to run code with", "give it a sandbox with `runner`"));
    }
    complete(&mut plan);
    at_most("tools", plan.tools.len(), TOOLS)?;
    at_most("exits", plan.exits.len(), EXITS)?;
    at_most("messages", plan.messages.len(), MESSAGES)?;
    at_most("characters of instructions", plan.instructions.chars().count(), INSTRUCTIONS)?;
    names(&plan)?;
    plan.shapes = plan.exits.iter().map(shape).collect::<Result<_, _>>()?;
    Ok(plan)
}

/// Adds the exits that are there by themselves.
fn complete(plan: &mut Plan) {
    if plan.chat {
        plan.exits.push(Exit::new(LISTEN, "Wait for what the user says next."));
    } else if plan.exits.is_empty() {
        let exit = Exit::new(DONE, "The task is done, or cannot be done.").schema(json!({"oneOf": [
            {"type": "object", "properties": {"success": {"const": true}, "result": {}}, "required": ["success", "result"],
             "additionalProperties": false},
            {"type": "object", "properties": {"success": {"const": false}, "error": {"type": "string"}},
             "required": ["success", "error"], "additionalProperties": false},
        ]}));
        plan.exits.push(exit);
    }
}

fn at_most(what: &str, given: usize, most: usize) -> Result<(), Error> {
    if given <= most {
        return Ok(());
    }
    let message = format!("An execution has {given} {what}, and may have {most}");
    Err(Error::new(message, "leave out what this execution does not need"))
}

fn names(plan: &Plan) -> Result<(), Error> {
    let mut exits = HashSet::new();
    for exit in &plan.exits {
        if exit.description.trim().is_empty() {
            let message = format!("The exit `{}` has no description", exit.name);
            return Err(Error::new(message, "say in a sentence when the model is to take it"));
        }
        for name in std::iter::once(&exit.name).chain(&exit.aliases) {
            identifier("exit", name)?;
            if matches!(name.as_str(), "exit" | "inspect") {
                return Err(reserved("exit", name));
            }
            // An alias may repeat its exit's own name.
            let again = name.eq_ignore_ascii_case(&exit.name) && !std::ptr::eq(name, &raw const exit.name);
            if !again && !exits.insert(name.to_ascii_lowercase()) {
                let message = format!("There are two exits `{name}`; upper and lower case are the same");
                return Err(Error::new(message, "give one of them another name, or leave out the alias"));
            }
        }
    }
    let mut tools = HashSet::new();
    for tool in &plan.tools {
        let name = &tool.tool.spec().name;
        identifier("tool", name)?;
        if RESERVED.contains(&name.as_str()) || SANDBOX_MODULES.contains(&name.as_str()) {
            return Err(reserved("tool", name));
        }
        if exits.contains(&name.to_ascii_lowercase()) {
            let message = format!("`{name}` is both a tool and an exit");
            return Err(Error::new(message, "give one of them another name"));
        }
        if !tools.insert(name.clone()) {
            return Err(Error::new(format!("There are two tools `{name}`"), "give one of them another name"));
        }
    }
    Ok(())
}

fn identifier(kind: &str, name: &str) -> Result<(), Error> {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if begins && name.len() <= NAME && characters.all(|next| next.is_ascii_alphanumeric() || next == '_') {
        return Ok(());
    }
    let message = format!("`{name}` is no name for an {kind}").replace("an tool", "a tool");
    Err(Error::new(message, format!("letters, digits and `_`, no digit first, at most {NAME} characters")))
}

fn reserved(kind: &str, name: &str) -> Error {
    let message = format!("`{name}` cannot be the name of an {kind}").replace("an tool", "a tool");
    Error::new(message, "generated code needs this name for something else")
}

fn shape(exit: &Exit) -> Result<Option<Arc<Shape>>, Error> {
    let compiled = exit.schema.as_ref().map(Shape::compile).transpose();
    compiled.map(|shape| shape.map(Arc::new)).map_err(|wrong| {
        let message = format!("The schema of the exit `{}` is none: {wrong}", exit.name);
        Error::new(message, "it is to be a JSON schema (draft 2020-12) that stands alone")
    })
}
