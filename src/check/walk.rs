//! Walking an outline: statements and expressions, nested functions left out unless they are asked for.

use super::outline::{Expr, Stmt, StmtKind};

/// Shows every statement of a body and of the blocks in it, in source order, but not the bodies of functions and classes.
pub(super) fn statements<'a>(body: &'a [Stmt], see: &mut dyn FnMut(&'a Stmt)) {
    for statement in body {
        see(statement);
        for block in blocks(statement) {
            statements(block, see);
        }
    }
}

/// Shows every expression of a body, outermost first, lambdas included, bodies of functions and classes left out.
pub(super) fn expressions<'a>(body: &'a [Stmt], see: &mut dyn FnMut(&'a Expr)) {
    statements(body, &mut |statement| {
        for expr in own_expressions(statement) {
            within(expr, see);
        }
    });
}

/// Shows an expression and all in it, outermost first.
pub(super) fn within<'a>(expr: &'a Expr, see: &mut dyn FnMut(&'a Expr)) {
    see(expr);
    for child in expr.children() {
        within(child, see);
    }
}

/// The blocks of a statement, those of functions and classes left out.
pub(super) fn blocks(statement: &Stmt) -> Vec<&[Stmt]> {
    match &statement.kind {
        StmtKind::If(arms) => arms.iter().map(|(_, body)| body.as_slice()).collect(),
        StmtKind::Loop { body, orelse, .. } => vec![body, orelse],
        StmtKind::Try { body, handlers, orelse, finally } => std::iter::once(body.as_slice())
            .chain(handlers.iter().map(|handler| handler.body.as_slice()))
            .chain([orelse.as_slice(), finally])
            .collect(),
        StmtKind::With { body, .. } => vec![body],
        StmtKind::Match { cases, .. } => cases.iter().map(Vec::as_slice).collect(),
        _ => Vec::new(),
    }
}

/// The expressions that stand directly in a statement.
pub(super) fn own_expressions(statement: &Stmt) -> Vec<&Expr> {
    match &statement.kind {
        StmtKind::Function(function) => function.decorators.iter().collect(),
        StmtKind::Class(class) => class.decorators.iter().chain(&class.bases).collect(),
        StmtKind::Assign { targets, value } => targets.iter().chain(value).collect(),
        StmtKind::Change { target, value } => vec![target, value],
        StmtKind::Delete(targets) => targets.iter().collect(),
        StmtKind::Return(value) => value.iter().collect(),
        StmtKind::Raise { exception, cause } => exception.iter().chain(cause).collect(),
        StmtKind::Expr(value) => vec![value],
        StmtKind::If(arms) => arms.iter().filter_map(|(test, _)| test.as_ref()).collect(),
        StmtKind::Loop { head, target, .. } => std::iter::once(head).chain(target).collect(),
        StmtKind::Try { handlers, .. } => handlers.iter().filter_map(|handler| handler.catches.as_ref()).collect(),
        StmtKind::With { items, .. } => {
            items.iter().flat_map(|(item, target)| std::iter::once(item).chain(target)).collect()
        }
        StmtKind::Match { subject, .. } => vec![subject],
        StmtKind::Assert { test, message } => std::iter::once(test).chain(message).collect(),
        StmtKind::Import(_) | StmtKind::ImportFrom { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Other => {
            Vec::new()
        }
    }
}
