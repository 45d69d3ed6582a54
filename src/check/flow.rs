//! What a function may do on its way: raise a signal, also in a helper, or end without giving anything back.

use super::context::Context;
use super::names::{HOOKS, Scope, Target};
use super::outline::{Expr, ExprKind, Function, Handler as Except, Span, Stmt, StmtKind};
use super::walk;

/// How many calls deep helpers are followed.
const DEEPEST: usize = 6;

/// A control signal that a function lets out.
#[derive(Clone, Debug)]
pub(super) struct Raised {
    /// `HookRejection` or `RetryModel`.
    pub(super) signal: &'static str,
    pub(super) module: usize,
    pub(super) span: Span,
    /// The calls that lead there: helper's name, and where it is called.
    pub(super) path: Vec<(String, usize, Span)>,
}

/// The signals that `function` may let out, itself or through helpers of the agent.
pub(super) fn signals<'a>(context: &Context<'a>, module: usize, function: &'a Function) -> Vec<Raised> {
    let mut search = Search { context, found: Vec::new(), seen: Vec::new() };
    search.function(module, function, &[], &mut Vec::new());
    search.found
}

struct Search<'c, 'a> {
    context: &'c Context<'a>,
    found: Vec<Raised>,
    seen: Vec<(usize, Span)>,
}

impl<'a> Search<'_, 'a> {
    fn function(
        &mut self,
        module: usize,
        function: &'a Function,
        caught: &[&'static str],
        path: &mut Vec<(String, usize, Span)>,
    ) {
        if path.len() > DEEPEST || self.seen.contains(&(module, function.span)) {
            return;
        }
        self.seen.push((module, function.span));
        let scope = Scope::of(module, &function.parameters, &function.body);
        self.body(module, &scope, &function.body, caught, path);
    }

    fn body(
        &mut self,
        module: usize,
        scope: &Scope<'a>,
        body: &'a [Stmt],
        caught: &[&'static str],
        path: &mut Vec<(String, usize, Span)>,
    ) {
        for statement in body {
            if let StmtKind::Raise { exception: Some(exception), .. } = &statement.kind
                && let Some(signal) = signal_of(self.context, module, scope, exception)
                && !caught.contains(&signal)
            {
                self.found.push(Raised { signal, module, span: statement.span, path: path.clone() });
            }
            walk::each_expression(statement, &mut |expr| self.calls(module, scope, expr, caught, path));
            match &statement.kind {
                StmtKind::Try { body, handlers, orelse, finally } => {
                    let mut inside = caught.to_vec();
                    for handler in handlers.iter().filter(|handler| !raises_again(&handler.body)) {
                        inside.extend(catches(self.context, module, scope, handler));
                    }
                    self.body(module, scope, body, &inside, path);
                    for handler in handlers {
                        self.body(module, scope, &handler.body, caught, path);
                    }
                    self.body(module, scope, orelse, caught, path);
                    self.body(module, scope, finally, caught, path);
                }
                StmtKind::If(arms) => {
                    for (test, body) in arms {
                        let skipped =
                            test.as_ref().is_some_and(|test| is_type_checking(self.context, module, scope, test));
                        if !skipped {
                            self.body(module, scope, body, caught, path);
                        }
                    }
                }
                _ => {
                    for block in walk::blocks(statement) {
                        self.body(module, scope, block, caught, path);
                    }
                }
            }
        }
    }

    fn calls(
        &mut self,
        module: usize,
        scope: &Scope<'a>,
        expr: &'a Expr,
        caught: &[&'static str],
        path: &mut Vec<(String, usize, Span)>,
    ) {
        let mut called = Vec::new();
        walk::within(expr, &mut |expr| {
            if let ExprKind::Call(call) = &expr.kind {
                called.push((&call.function, expr.span));
            }
        });
        for (function, span) in called {
            if let Some(Target::Function(other, helper)) = self.context.resolve(module, &[scope], function) {
                path.push((helper.name.clone(), module, span));
                self.function(other, helper, caught, path);
                path.pop();
            }
        }
    }
}

/// The signal that an expression is: the class, a call of it, a subclass, or a name that was given one.
pub(super) fn signal_of<'a>(
    context: &Context<'a>,
    module: usize,
    scope: &Scope<'a>,
    expr: &Expr,
) -> Option<&'static str> {
    match &expr.kind {
        ExprKind::Call(call) => signal_of(context, module, scope, &call.function),
        ExprKind::Name(name) => {
            if let Some(value) = scope.value_of(name)
                && !std::ptr::eq(value, expr)
                && !matches!(&value.kind, ExprKind::Name(other) if other == name)
            {
                return signal_of(context, module, scope, value);
            }
            signal_class(context, module, scope, expr)
        }
        ExprKind::Attribute { .. } => signal_class(context, module, scope, expr),
        _ => None,
    }
}

fn signal_class<'a>(context: &Context<'a>, module: usize, scope: &Scope<'a>, expr: &Expr) -> Option<&'static str> {
    match context.resolve(module, &[scope], expr)? {
        Target::Outside(dotted) => match dotted.strip_prefix(HOOKS)? {
            ".HookRejection" => Some("HookRejection"),
            ".RetryModel" => Some("RetryModel"),
            _ => None,
        },
        Target::Class(other, class) => {
            let empty = Scope::default();
            class.bases.iter().find_map(|base| signal_of(context, other, &empty, base))
        }
        _ => None,
    }
}

/// The signals that an `except` clause keeps from going on.
pub(super) fn catches<'a>(
    context: &Context<'a>,
    module: usize,
    scope: &Scope<'a>,
    handler: &Except,
) -> Vec<&'static str> {
    let both = || vec!["HookRejection", "RetryModel"];
    if handler.catches.is_none() {
        return both();
    }
    let mut signals = Vec::new();
    for expr in handler.caught() {
        match context.dotted(module, &[scope], expr).as_deref() {
            Some("builtins.Exception" | "builtins.BaseException" | "rasa.mantle.hooks.HookControlFlow") => {
                return both();
            }
            _ => signals.extend(signal_class(context, module, scope, expr)),
        }
    }
    signals
}

/// Whether a handler's body passes on what it has caught.
pub(super) fn raises_again(body: &[Stmt]) -> bool {
    let mut again = false;
    walk::statements(body, &mut |statement| again |= matches!(statement.kind, StmtKind::Raise { .. }));
    again
}

/// Whether a condition is true for type checkers only.
pub(super) fn is_type_checking<'a>(context: &Context<'a>, module: usize, scope: &Scope<'a>, test: &Expr) -> bool {
    context.dotted(module, &[scope], test).as_deref() == Some("typing.TYPE_CHECKING")
}

/// Whether every way through a body ends in a `return` with a value, a `raise`, or never.
pub(super) fn always_ends(body: &[Stmt]) -> bool {
    body.iter().any(ends)
}

fn ends(statement: &Stmt) -> bool {
    match &statement.kind {
        StmtKind::Return(_) | StmtKind::Raise { .. } => true,
        StmtKind::If(arms) => {
            arms.last().is_some_and(|(test, _)| test.is_none()) && arms.iter().all(|(_, body)| always_ends(body))
        }
        StmtKind::Loop { head, is_while: true, body, .. } => {
            matches!(head.kind, ExprKind::Bool(true) | ExprKind::Integer(Some(1))) && !leaves_loop(body)
        }
        StmtKind::Try { body, handlers, orelse, finally } => {
            always_ends(finally)
                || (always_ends(body) || always_ends(orelse))
                    && handlers.iter().all(|handler| always_ends(&handler.body))
        }
        StmtKind::With { body, .. } => always_ends(body),
        StmtKind::Match { cases, exhaustive, .. } => *exhaustive && cases.iter().all(|body| always_ends(body)),
        _ => false,
    }
}

/// Whether a `break` of this loop stands in its body.
fn leaves_loop(body: &[Stmt]) -> bool {
    body.iter().any(|statement| match &statement.kind {
        StmtKind::Break => true,
        StmtKind::Loop { orelse, .. } => leaves_loop(orelse),
        _ => walk::blocks(statement).into_iter().any(leaves_loop),
    })
}
