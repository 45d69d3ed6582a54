//! A comment `# tenterhook: ignore[rule]` that keeps nothing away, or names no rule.
//!
//! ## Why
//!
//! A comment that outlives its reason hides the next mistake on that line.
//!
//! ## Bad
//!
//! ```python
//! LIMIT = 3  # tenterhook: ignore[blocking-call]
//! ```
//!
//! ## Good
//!
//! ```python
//! LIMIT = 3
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::diagnostic::Severity;

pub(in crate::check) const RULE: Rule =
    Rule { name: "unused-ignore", severity: Severity::Warning, source: include_str!("unused_ignore.rs"), check };

/// Nothing: whether a comment is used is known when all other rules have run (`check/ignores.rs`).
fn check(_: &Context<'_>, _: &mut Report) {}
