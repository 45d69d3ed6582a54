//! What rules look at, and where they report.

use super::CheckSettings;
use super::handlers::Handler;
use super::names::{Names, Scope, Target};
use super::outline::{Expr, Function, Span};
use super::project::Project;
use super::rules::Rule;
use super::tool_functions::ToolFunction;
use crate::diagnostic::{Diagnostic, Related};

/// The agent as the rules see it.
pub(super) struct Context<'a> {
    pub(super) project: &'a Project,
    pub(super) names: Names<'a>,
    pub(super) handlers: Vec<Handler<'a>>,
    pub(super) tools: Vec<ToolFunction<'a>>,
    pub(super) settings: &'a CheckSettings,
}

impl<'a> Context<'a> {
    pub(super) fn resolve(&self, module: usize, inner: &[&Scope<'a>], expr: &Expr) -> Option<Target<'a>> {
        self.names.resolve(module, inner, expr)
    }

    pub(super) fn dotted(&self, module: usize, inner: &[&Scope<'a>], expr: &Expr) -> Option<String> {
        self.names.dotted(module, inner, expr)
    }

    /// The handlers that stand where the loader sees them.
    pub(super) fn registered(&self) -> impl Iterator<Item = &Handler<'a>> {
        self.handlers.iter().filter(|handler| handler.arguments.is_some())
    }

    /// The functions that the lane runs, hooks and tools, each with its module.
    pub(super) fn coroutines(&self) -> impl Iterator<Item = (usize, &'a Function)> {
        let hooks = self.registered().map(|handler| (handler.module, handler.function));
        hooks.chain(self.tools.iter().map(|tool| (tool.module, tool.function)))
    }
}

/// What the rules have found.
#[derive(Default)]
pub(super) struct Report {
    pub(super) found: Vec<Diagnostic>,
}

impl Report {
    /// Adds a problem of `rule` at a place of a module.
    pub(super) fn add(
        &mut self,
        context: &Context<'_>,
        rule: &Rule,
        module: usize,
        span: Span,
        message: String,
    ) -> Added<'_> {
        let source = &context.project.modules[module];
        let place = source.place(span);
        self.found.push(Diagnostic {
            rule: rule.name.to_owned(),
            severity: rule.severity,
            message,
            hint: None,
            file: source.file.clone(),
            line: Some(place.line),
            place: Some(place),
            related: Vec::new(),
        });
        Added(self.found.last_mut().expect("it has just been added"))
    }
}

/// A problem that has just been added, to be completed.
pub(super) struct Added<'r>(&'r mut Diagnostic);

impl Added<'_> {
    /// How to mend it.
    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Another place that belongs to it.
    pub(super) fn related(self, context: &Context<'_>, module: usize, span: Span, message: impl Into<String>) -> Self {
        let source = &context.project.modules[module];
        let place = source.place(span);
        self.0.related.push(Related { message: message.into(), file: source.file.clone(), line: place.line, place });
        self
    }
}
