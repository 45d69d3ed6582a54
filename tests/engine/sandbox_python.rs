//! What the prompt says of the sandbox's Python is so: each word of it is tried.

use serde_json::Value;
use tenterhook::{SANDBOX_LACKS, SANDBOX_MISSING_BUILTINS, SANDBOX_MISSING_MODULES, SANDBOX_MODULES};

use crate::sandbox::run;

/// The name of the error, where there is one.
async fn failure(source: &str) -> Option<String> {
    run(&source.replace("tool(", "echo(").replace("tool,", "echo,")).await.error.map(|error| error.name)
}

#[tokio::test]
async fn the_modules_that_are_told_import_and_those_that_are_told_to_be_missing_do_not() {
    for module in SANDBOX_MODULES {
        assert_eq!(failure(&format!("import {module}")).await, None, "{module}");
    }
    for module in SANDBOX_MISSING_MODULES {
        assert_eq!(failure(&format!("import {module}")).await.as_deref(), Some("ModuleNotFoundError"), "{module}");
    }
}

#[tokio::test]
async fn the_builtins_that_are_told_to_be_missing_are() {
    for name in SANDBOX_MISSING_BUILTINS {
        assert_eq!(failure(name).await.as_deref(), Some("NameError"), "{name}");
    }
}

#[tokio::test]
async fn what_else_is_told_to_be_missing_is() {
    for lack in SANDBOX_LACKS {
        assert!(failure(lack.example).await.is_some(), "{}", lack.what);
    }
}

#[tokio::test]
async fn every_module_that_the_sandbox_names_itself_is_told_but_those_of_the_machine() {
    let Value::Array(own) = run("import sys\nlist(sys.builtin_module_names)").await.value else { panic!("no list") };
    let untold: Vec<_> = own.iter().filter_map(Value::as_str).filter(|name| !SANDBOX_MODULES.contains(name)).collect();
    assert_eq!(untold, ["os", "pathlib", "sys"]);
}
