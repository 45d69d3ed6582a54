//! Which keys the file of an execution has, and where.

use crate::agent::config::sections::{Section, within};

/// What describes an execution.
pub(in crate::agent) const EXECUTION_FILE: &str = "execution.yml";

pub(super) const TOP: Section = within(
    EXECUTION_FILE,
    "",
    &[
        "instructions",
        "model",
        "exits",
        "chat",
        "form",
        "iterations",
        "timeout",
        "hook_timeout",
        "tool_timeout",
        "tool_calls",
        "repeats",
        "variables",
        "limits",
    ],
);
pub(super) const EXIT: Section = within(EXECUTION_FILE, "exits[]", &["name", "description", "aliases", "schema"]);
pub(super) const LIMITS: Section =
    within(EXECUTION_FILE, "limits", &["memory_mb", "recursion", "output_kb", "source_kb", "calls"]);

/// All of them.
pub(in crate::agent::config) const EXECUTION_SECTIONS: [&Section; 3] = [&TOP, &EXIT, &LIMITS];
