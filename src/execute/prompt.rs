//! What the model reads first: all of it is made here.

use std::sync::Arc;

use serde_json::{Value, json};

use super::execution::{CodeForm, Plan};
use super::signature::{annotation, function};
use super::subset::{KNOWN, SANDBOX_LACKS, SANDBOX_MISSING_BUILTINS, SANDBOX_MISSING_MODULES, SANDBOX_MODULES};
use crate::conversation::{Object, message};
use crate::tools::ToolSpec;

/// The tool with which a model that knows native calls gives its code.
pub(super) const RUN: &str = "run_python";

/// That tool, as the model is told of it.
pub(super) fn run_python() -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The Python source."}},
        "required": ["code"],
        "additionalProperties": false,
    });
    let Value::Object(parameters) = parameters else { unreachable!("it is written as an object") };
    ToolSpec { parameters, ..ToolSpec::new(RUN, "Runs Python code in the sandbox and says what came of it.") }
}

/// What the model is sent: the instructions and all that it has to know, the conversation, and what has come of its answers so far.
pub(super) fn messages(plan: &Plan, transcript: &[Arc<Object>]) -> Vec<Arc<Object>> {
    let mut messages = vec![message("system", &system(plan))];
    messages.extend(plan.messages.iter().cloned());
    // There are providers that take no request without a user's message, and none that ends with an assistant's.
    if plan.messages.last().is_none_or(|last| last.get("role").is_some_and(|role| role == "assistant")) {
        messages.push(message("user", "Begin."));
    }
    messages.extend(transcript.iter().cloned());
    messages
}

fn system(plan: &Plan) -> String {
    let mut parts = Vec::new();
    if !plan.instructions.trim().is_empty() {
        parts.push(plan.instructions.trim().to_owned());
    }
    parts.push(format!("# How you work\n\n{}", how(plan)));
    if !plan.tools.is_empty() {
        let tools = plan.tools.iter().map(|tool| function(tool.tool.spec(), tool.returns.as_deref()));
        parts.push(format!(
            "# Tools\n\nYour code may call:\n\n```python\n{}\n```",
            tools.collect::<Vec<_>>().join("\n\n")
        ));
    }
    parts.push(format!("# Exits\n\n{}", exits(plan)));
    if !plan.variables.is_empty() {
        let variables = plan.variables.iter().map(|(name, value)| format!("- `{name}`: {}", kind(value)));
        parts.push(format!("# Variables\n\nThese are there already:\n\n{}", variables.collect::<Vec<_>>().join("\n")));
    }
    parts.push(format!(
        "# The Python here\n\nIt is a part of Python. It knows:\n\n{}\n\nThese modules can be imported: {}. All others cannot, {} among them.\n\n\
         It does not know:\n\n{}\n- the built-ins {}",
        list(&KNOWN),
        quoted(SANDBOX_MODULES),
        quoted(SANDBOX_MISSING_MODULES),
        list(&SANDBOX_LACKS.iter().map(|lack| lack.what).collect::<Vec<_>>()),
        // The execution has one of its own.
        quoted(&SANDBOX_MISSING_BUILTINS.iter().copied().filter(|name| *name != "exit").collect::<Vec<_>>()),
    ));
    parts.push(format!("# Rules\n\n{}", list(&rules(plan))));
    parts.join("\n\n")
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn how(plan: &Plan) -> String {
    let gives = match plan.form {
        CodeForm::Native => format!("You act by calling `{RUN}` with Python code, once in an answer."),
        CodeForm::Fenced => {
            "You act by writing one block of Python in your answer, between ```python and ```.".to_owned()
        }
    };
    let text = if plan.chat {
        "The text of your answer is sent to the user, the code is not. An answer with text alone waits for what the user says next."
    } else {
        "Nobody reads the text of your answer but you: what you find out you give to an exit."
    };
    format!(
        "{gives} The code runs at once in a sandbox, where nothing but the functions below reaches the outside. Variables and functions stay \
         for your next code. Code that ends without an exit shows you what it has printed, its variables and the value of its last \
         expression; then you go on.\n\n{text}"
    )
}

fn exits(plan: &Plan) -> String {
    let shown = plan.exits.iter().map(|exit| {
        let call = match &exit.schema {
            Some(schema) => format!("exit(\"{}\", {})", exit.name, annotation(schema, schema)),
            None if exit.name == super::plan::LISTEN => format!("exit(\"{}\")", exit.name),
            None => format!("exit(\"{}\", Any)", exit.name),
        };
        let aliases =
            if exit.aliases.is_empty() { String::new() } else { format!(" (also {})", exit.aliases.join(", ")) };
        format!("- `{call}`{aliases}: {}", exit.description.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    format!(
        "`exit(name, payload)` ends your work; nothing of the code after it runs. Names and shapes of the payloads:\n\n{}\n\n`inspect(value)` \
         ends the code as well, and shows you the value before you go on.",
        shown.collect::<Vec<_>>().join("\n")
    )
}

fn rules(plan: &Plan) -> Vec<String> {
    let mut rules = vec![
        "Call each tool with `await`; several at once with `await asyncio.gather(...)`, after `import asyncio`.".to_owned(),
        "What a tool raises can be caught; what is not caught ends the code, and you are told where.".to_owned(),
        "Do not call again what has succeeded: what a tool has done stays done, also where the code has failed after it.".to_owned(),
        "Do not exit with what you have not seen: look at results first, where what you say depends on them.".to_owned(),
        format!("All your code together may make {} tool calls.", plan.tool_calls),
    ];
    if let Some(repeats) = plan.repeats {
        rules.push(format!("The same call with the same arguments may be made {repeats} times at most."));
    }
    if plan.chat {
        rules.push("Say a thing to the user once: what you have written was sent.".to_owned());
    }
    rules
}

fn list<T: AsRef<str>>(lines: &[T]) -> String {
    lines.iter().map(|line| format!("- {}", line.as_ref())).collect::<Vec<_>>().join("\n")
}

/// The Python type of a JSON value.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "None",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}
