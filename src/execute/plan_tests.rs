//! What was given for an execution is checked before it runs.

use serde_json::json;

use super::execution::{Execution, ExecutionBuilder};
use super::exit::Exit;
use super::testing::{Runs, object, scene};
use crate::conversation::message;
use crate::tools::ToolSpec;

fn wrong(builder: ExecutionBuilder) -> String {
    builder.build().unwrap_err().message
}

fn with_tools(names: &[&str]) -> ExecutionBuilder {
    names.iter().fold(scene(&[]), |scene, name| scene.tool(name, Runs::Echoes)).builder
}

#[test]
fn iterations_are_one_to_a_hundred() {
    for iterations in [0, -1, 101] {
        let message = format!("Invalid iterations: {iterations}. Expected a number between 1 and 100");
        assert_eq!(wrong(scene(&[]).builder.iterations(iterations)), message);
    }
    for iterations in [1, 100] {
        assert!(scene(&[]).builder.iterations(iterations).build().is_ok());
    }
}

#[test]
fn an_execution_needs_a_model_and_a_sandbox() {
    assert_eq!(wrong(Execution::builder()), "An execution has no model");
    let mut scene = scene(&[]);
    scene.builder = scene.builder.without_runner();
    assert_eq!(wrong(scene.builder), "An execution has nothing to run code with");
}

#[test]
fn names_are_identifiers_that_generated_code_does_not_need() {
    let long = "x".repeat(52);
    for name in ["", "1st", "a-b", "größe", "a b", long.as_str()] {
        assert_eq!(wrong(with_tools(&[name])), format!("`{name}` is no name for a tool"));
        assert_eq!(wrong(scene(&[]).builder.exit(Exit::new(name, "x"))), format!("`{name}` is no name for an exit"));
    }
    for name in ["exit", "inspect", "print", "while", "asyncio", "json", "gather", "run_python"] {
        assert_eq!(wrong(with_tools(&[name])), format!("`{name}` cannot be the name of a tool"));
    }
    for name in ["exit", "inspect"] {
        assert_eq!(
            wrong(scene(&[]).builder.exit(Exit::new(name, "x"))),
            format!("`{name}` cannot be the name of an exit")
        );
    }
    assert!(with_tools(&["_a1", &"x".repeat(51)]).build().is_ok());
}

#[test]
fn no_two_things_have_the_same_name() {
    assert_eq!(wrong(with_tools(&["a", "a"])), "There are two tools `a`");
    let exits = |second: Exit| scene(&[]).builder.exit(Exit::new("end", "x").alias("stop").alias("END")).exit(second);
    assert_eq!(wrong(exits(Exit::new("End", "x"))), "There are two exits `End`; upper and lower case are the same");
    assert_eq!(
        wrong(exits(Exit::new("other", "x").alias("STOP"))),
        "There are two exits `STOP`; upper and lower case are the same"
    );
    assert_eq!(wrong(with_tools(&["end"]).exit(Exit::new("End", "x"))), "`end` is both a tool and an exit");
    assert!(exits(Exit::new("other", "x")).build().is_ok());
    let chat = scene(&[]).builder.chat(true).exit(Exit::new("Listen", "x"));
    assert_eq!(wrong(chat), "There are two exits `listen`; upper and lower case are the same");
}

#[test]
fn an_exit_has_a_description_and_a_schema_that_is_one() {
    assert_eq!(wrong(scene(&[]).builder.exit(Exit::new("end", " "))), "The exit `end` has no description");
    let error = wrong(scene(&[]).builder.exit(Exit::new("end", "x").schema(json!({"type": "sometimes"}))));
    assert!(error.starts_with("The schema of the exit `end` is none: "), "{error}");
}

#[test]
fn what_is_given_has_its_limits() {
    let names: Vec<_> = (0..101).map(|number| format!("t{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(wrong(with_tools(&names)), "An execution has 101 tools, and may have 100");
    let exits = names.iter().fold(scene(&[]).builder, |builder, name| builder.exit(Exit::new(*name, "x")));
    assert_eq!(wrong(exits), "An execution has 101 exits, and may have 100");
    let messages = vec![message("user", "x"); 251];
    assert_eq!(wrong(scene(&[]).builder.messages(messages)), "An execution has 251 messages, and may have 250");
    let instructions = "ä".repeat(1_000_001);
    assert_eq!(
        wrong(scene(&[]).builder.instructions(instructions)),
        "An execution has 1000001 characters of instructions, and may have 1000000"
    );
}

/// A plan with everything in it.
fn full() -> ExecutionBuilder {
    let parameters = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for,\n  in the user's words."},
            "kind": {"enum": ["product", "article"], "default": "product"},
            "filters": {"type": "object", "properties": {"max_price": {"type": "number"}, "brand": {"$ref": "#/$defs/Brand"}},
                        "required": ["max_price"]},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
        },
        "required": ["query"],
        "$defs": {"Brand": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
    });
    let search = ToolSpec {
        parameters: object(parameters),
        ..ToolSpec::new("search_products", "Searches the catalogue.\nThe best match comes first.")
    };
    scene(&[])
        .tool_with(search, Runs::Echoes, None)
        .tool_with(ToolSpec::new("now", "The time in Ghent."), Runs::Echoes, None)
        .builder
        .instructions("You are the assistant of a shop.")
        .variables(object(json!({"user_id": 7, "cart": []})))
}

fn prompt(builder: ExecutionBuilder) -> String {
    let execution = builder.build().unwrap();
    let messages = super::prompt::messages(&execution.0, &[]);
    let shown = messages
        .iter()
        .map(|message| format!("[{}]\n{}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap()));
    shown.collect::<Vec<_>>().join("\n\n")
}

#[test]
fn the_prompt_of_a_native_execution() {
    insta::assert_snapshot!(prompt(full().repeats(3)));
}

#[test]
fn the_prompt_of_a_fenced_execution() {
    let exit = Exit::new("refund", "The order is paid back.").alias("pay_back").schema(json!({
        "type": "object", "properties": {"order": {"type": "string"}, "amount": {"type": "number"}}, "required": ["order"],
    }));
    let builder = full().form(super::CodeForm::Fenced).exit(exit).exit(Exit::new("give_up", "Nothing can be done."));
    insta::assert_snapshot!(prompt(builder));
}

#[test]
fn the_prompt_of_a_chat() {
    let messages =
        vec![message("user", "Hello"), message("assistant", "Hello! What do you look for?"), message("user", "Tea")];
    insta::assert_snapshot!(prompt(scene(&[]).builder.chat(true).messages(messages)));
}
