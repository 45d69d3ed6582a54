//! Walking an outline: statements and expressions, nested functions left out unless they are asked for.

use super::outline::{Expr, Stmt, StmtKind};

/// Shows every statement of a body and of the blocks in it, in source order, but not the bodies of functions and classes.
pub(super) fn statements<'a>(body: &'a [Stmt], see: &mut dyn FnMut(&'a Stmt)) {
    for statement in body {
        see(statement);
        each_block(statement, &mut |block| statements(block, see));
    }
}

/// Shows every expression of a body, outermost first, lambdas included, bodies of functions and classes left out.
pub(super) fn expressions<'a>(body: &'a [Stmt], see: &mut dyn FnMut(&'a Expr)) {
    statements(body, &mut |statement| {
        each_expression(statement, &mut |expr| within(expr, see));
    });
}

/// Shows an expression and all in it, outermost first.
pub(super) fn within<'a>(expr: &'a Expr, see: &mut dyn FnMut(&'a Expr)) {
    see(expr);
    expr.each_child(&mut |child| within(child, see));
}

/// Shows the blocks of a statement, those of functions and classes left out.
pub(super) fn each_block<'a>(statement: &'a Stmt, see: &mut dyn FnMut(&'a [Stmt])) {
    match &statement.kind {
        StmtKind::If(arms) => arms.iter().for_each(|(_, body)| see(body)),
        StmtKind::Loop { body, orelse, .. } => [body, orelse].into_iter().for_each(|block| see(block)),
        StmtKind::Try { body, handlers, orelse, finally } => {
            see(body);
            for block in handlers.iter().map(|handler| &handler.body).chain([orelse, finally]) {
                see(block);
            }
        }
        StmtKind::With { body, .. } => see(body),
        StmtKind::Match { cases, .. } => cases.iter().for_each(|body| see(body)),
        _ => {}
    }
}

/// The blocks of a statement, those of functions and classes left out.
pub(super) fn blocks(statement: &Stmt) -> Vec<&[Stmt]> {
    let mut blocks = Vec::new();
    each_block(statement, &mut |block| blocks.push(block));
    blocks
}

/// Shows the expressions that stand directly in a statement.
pub(super) fn each_expression<'a>(statement: &'a Stmt, see: &mut dyn FnMut(&'a Expr)) {
    match &statement.kind {
        StmtKind::Function(function) => function.decorators.iter().for_each(see),
        StmtKind::Class(class) => class.decorators.iter().chain(&class.bases).for_each(see),
        StmtKind::Assign { targets, value } => targets.iter().chain(value).for_each(see),
        StmtKind::Change { target, value } => [target, value].into_iter().for_each(see),
        StmtKind::Delete(targets) => targets.iter().for_each(see),
        StmtKind::Return(value) => value.iter().for_each(see),
        StmtKind::Raise { exception, cause } => exception.iter().chain(cause).for_each(see),
        StmtKind::Expr(value) => see(value),
        StmtKind::If(arms) => arms.iter().filter_map(|(test, _)| test.as_ref()).for_each(see),
        StmtKind::Loop { head, target, .. } => std::iter::once(head).chain(target).for_each(see),
        StmtKind::Try { handlers, .. } => handlers.iter().filter_map(|handler| handler.catches.as_ref()).for_each(see),
        StmtKind::With { items, .. } => {
            items.iter().flat_map(|(item, target)| std::iter::once(item).chain(target)).for_each(see);
        }
        StmtKind::Match { subject, .. } => see(subject),
        StmtKind::Assert { test, message } => std::iter::once(test).chain(message).for_each(see),
        StmtKind::Import(_) | StmtKind::ImportFrom { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Other => {}
    }
}
