//! The handlers of an agent, found by what their decorators lead to.

use super::names::{HOOKS, Names, Scope, Target};
use super::outline::{Expr, ExprKind, Function, Keyword, Stmt, StmtKind};
use super::project::Project;
use super::walk;
use crate::hooks::{Lane, POINTS, PointSpec};

/// One decorator of a hook on one function.
pub(super) struct Handler<'a> {
    pub(super) module: usize,
    pub(super) function: &'a Function,
    pub(super) spec: &'static PointSpec,
    pub(super) lane: Lane,
    /// The decorator as it is written.
    pub(super) decorator: &'a Expr,
    /// Its arguments; `None`: it is not called.
    pub(super) arguments: Option<(&'a [Expr], &'a [Keyword])>,
    pub(super) placement: Placement<'a>,
}

/// Where the function stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement<'a> {
    Module,
    /// In the class of that name.
    Class(&'a str),
    /// In a function; whether that gives it back.
    Function {
        returned: bool,
    },
}

impl Handler<'_> {
    /// The decorator's name, such as `modify_model_request`.
    pub(super) fn decorator_name(&self) -> &'static str {
        self.spec.decorator(self.lane).unwrap_or_default()
    }
}

/// All handlers, in the order of the modules and of their source.
pub(super) fn find<'a>(project: &'a Project, names: &Names<'a>) -> Vec<Handler<'a>> {
    let mut found = Vec::new();
    for (module, source) in project.modules.iter().enumerate() {
        let mut finder = Finder { names, module, found: &mut found };
        finder.body(&source.outline.body, Placement::Module, &[]);
    }
    found
}

struct Finder<'a, 'n> {
    names: &'n Names<'a>,
    module: usize,
    found: &'n mut Vec<Handler<'a>>,
}

impl<'a> Finder<'a, '_> {
    fn body(&mut self, body: &'a [Stmt], placement: Placement<'a>, inner: &[&Scope<'a>]) {
        for statement in body {
            match &statement.kind {
                StmtKind::Function(function) => {
                    for decorator in &function.decorators {
                        self.decorator(function, decorator, placement, inner);
                    }
                    let scope = Scope::of(self.module, &function.parameters, &function.body);
                    let mut scopes = inner.to_vec();
                    scopes.push(&scope);
                    self.nested(function, &scopes);
                }
                StmtKind::Class(class) => self.body(&class.body, Placement::Class(&class.name), inner),
                StmtKind::Expr(value) | StmtKind::Assign { value: Some(value), .. }
                    if placement == Placement::Module =>
                {
                    self.applied(value, placement, inner);
                }
                _ => {
                    for block in walk::blocks(statement) {
                        self.body(block, placement, inner);
                    }
                }
            }
        }
    }

    /// `on_tool_call()(watch)`: a decorator that is called on a function of the module.
    fn applied(&mut self, value: &'a Expr, placement: Placement<'a>, inner: &[&Scope<'a>]) {
        let ExprKind::Call(call) = &value.kind else { return };
        let (decorator, [decorated]) = (&call.function, call.arguments.as_slice()) else { return };
        let ExprKind::Call(_) = &decorator.kind else { return };
        match self.names.resolve(self.module, inner, decorated) {
            Some(Target::Function(module, function)) if module == self.module => {
                self.decorator(function, decorator, placement, inner);
            }
            // `on_tool_call()(on_tool_result()(watch))`
            _ => self.applied(decorated, placement, inner),
        }
    }

    fn nested(&mut self, outer: &'a Function, inner: &[&Scope<'a>]) {
        let mut returned = Vec::new();
        walk::statements(&outer.body, &mut |statement| {
            if let StmtKind::Return(Some(Expr { kind: ExprKind::Name(name), .. })) = &statement.kind {
                returned.push(&**name);
            }
        });
        let mut functions = Vec::new();
        walk::statements(&outer.body, &mut |statement| {
            if let StmtKind::Function(function) = &statement.kind {
                functions.push(function);
            }
        });
        for function in functions {
            let placement = Placement::Function { returned: returned.contains(&function.name.as_str()) };
            for decorator in &function.decorators {
                self.decorator(function, decorator, placement, inner);
            }
        }
    }

    fn decorator(
        &mut self,
        function: &'a Function,
        decorator: &'a Expr,
        placement: Placement<'a>,
        inner: &[&Scope<'a>],
    ) {
        let (called, arguments) = match &decorator.kind {
            ExprKind::Call(call) => (&call.function, Some((call.arguments.as_slice(), call.keywords.as_slice()))),
            _ => (decorator, None),
        };
        let Some((spec, lane, direct)) = self.hook(called, inner) else { return };
        // The arguments of a function that makes the decorator are its own affair.
        let arguments = if direct { arguments } else { arguments.map(|_| (&[][..], &[][..])) };
        let handler = Handler { module: self.module, function, spec, lane, decorator, arguments, placement };
        self.found.push(handler);
    }

    /// The point and lane of a decorator, also of one that a function of the agent makes; whether it is ours itself.
    fn hook(&self, called: &Expr, inner: &[&Scope<'a>]) -> Option<(&'static PointSpec, Lane, bool)> {
        match self.names.resolve(self.module, inner, called)? {
            Target::Outside(dotted) => {
                let (spec, lane) = by_name(dotted.strip_prefix(HOOKS)?.strip_prefix('.')?)?;
                Some((spec, lane, true))
            }
            Target::Function(module, maker) => {
                let scope = Scope::of(module, &maker.parameters, &maker.body);
                let mut made = None;
                walk::statements(&maker.body, &mut |statement| {
                    if let StmtKind::Return(Some(Expr { kind: ExprKind::Call(call), .. })) = &statement.kind
                        && let Some(Target::Outside(dotted)) = self.names.resolve(module, &[&scope], &call.function)
                    {
                        made = dotted.strip_prefix(HOOKS).and_then(|rest| by_name(rest.strip_prefix('.')?));
                    }
                });
                made.map(|(spec, lane)| (spec, lane, false))
            }
            _ => None,
        }
    }
}

/// The point and lane of a decorator's name, the aliases included.
pub(super) fn by_name(name: &str) -> Option<(&'static PointSpec, Lane)> {
    let name = match name {
        "on_outgoing_message" => "on_outgoing_text",
        "modify_outgoing_message" => "modify_outgoing_text",
        name => name,
    };
    POINTS.iter().find_map(|spec| {
        let lane = [Lane::Observe, Lane::Modify].into_iter().find(|lane| spec.decorator(*lane) == Some(name))?;
        Some((spec, lane))
    })
}
