//! Source text becomes an outline. The one file that names the parser.

use rustpython_ast::visitor::source_order::{SourceOrderVisitor, walk_expr};
use rustpython_ast::{self as ast, Number, PythonVersion};
use rustpython_parser::{Mode, ParseOptions, parse_unchecked};
use rustpython_text_size::{Ranged, TextRange};

use super::outline::{
    Alias, Call, Class, Expr, ExprKind, Function, Handler, Keyword, Module, Parameter, ParameterKind, Span, Stmt,
    StmtKind,
};

/// Something that the grammar of the target version does not take.
#[derive(Debug)]
pub(super) struct SyntaxProblem {
    pub(super) span: Span,
    pub(super) message: String,
}

/// The minor version of the oldest Python that is supported.
pub(crate) const OLDEST_MINOR: u8 = 11;

/// The minor version of the newest Python whose grammar is known.
pub(crate) const NEWEST_MINOR: u8 = 14;

/// Parses a module for Python 3.`minor`. What is broken is reported, and the rest is outlined all the same.
pub(super) fn parse(source: &str, minor: u8) -> (Module, Vec<SyntaxProblem>) {
    let version = PythonVersion { major: 3, minor };
    let parsed = parse_unchecked(source, ParseOptions::from(Mode::Module).with_target_version(version));
    let mut problems: Vec<_> = parsed
        .errors()
        .iter()
        .map(|error| SyntaxProblem { span: span(error.location), message: error.error.to_string() })
        .collect();
    problems.extend(parsed.unsupported_syntax_errors().iter().map(|error| {
        let message = error.to_string();
        // The parser says "Cannot use X on Python 3.a (syntax was added in Python 3.b)"; what was removed is said alike.
        let needed = message.rsplit("Python ").next().unwrap_or_default().trim_end_matches(')');
        let what = message.split(" on Python ").next().unwrap_or_default();
        let message = match what.strip_prefix("Cannot ") {
            Some(what) => format!("needs Python {needed} to {what}"),
            None => format!("needs Python {needed}: {what}"),
        };
        SyntaxProblem { span: span(error.range()), message }
    }));
    problems.sort_by_key(|problem| problem.span);
    let module = match parsed.into_syntax() {
        ast::Mod::Module(module) => Module { body: body(&module.body) },
        ast::Mod::Expression(_) => Module::default(),
    };
    (module, problems)
}

fn span(range: TextRange) -> Span {
    Span::new(range.start().to_usize(), range.end().to_usize())
}

fn body(statements: &[ast::Stmt]) -> Vec<Stmt> {
    statements.iter().map(|statement| Stmt { span: span(statement.range()), kind: stmt(statement) }).collect()
}

fn stmt(statement: &ast::Stmt) -> StmtKind {
    match statement {
        ast::Stmt::FunctionDef(def) => StmtKind::Function(Box::new(function(def))),
        ast::Stmt::ClassDef(def) => StmtKind::Class(Class {
            name: def.name.to_string(),
            decorators: def.decorator_list.iter().map(|decorator| expr(&decorator.expression)).collect(),
            bases: def.arguments.iter().flat_map(|arguments| arguments.args.iter().map(expr)).collect(),
            body: body(&def.body),
        }),
        ast::Stmt::Import(import) => StmtKind::Import(import.names.iter().map(alias).collect()),
        ast::Stmt::ImportFrom(import) => StmtKind::ImportFrom {
            module: import.module.as_ref().map(ToString::to_string).unwrap_or_default(),
            level: import.level,
            names: import.names.iter().map(alias).collect(),
        },
        ast::Stmt::Assign(assign) => {
            StmtKind::Assign { targets: assign.targets.iter().map(expr).collect(), value: Some(expr(&assign.value)) }
        }
        ast::Stmt::AnnAssign(assign) => {
            StmtKind::Assign { targets: vec![expr(&assign.target)], value: assign.value.as_deref().map(expr) }
        }
        ast::Stmt::AugAssign(change) => StmtKind::Change { target: expr(&change.target), value: expr(&change.value) },
        ast::Stmt::Delete(delete) => StmtKind::Delete(delete.targets.iter().map(expr).collect()),
        ast::Stmt::Return(give) => StmtKind::Return(give.value.as_deref().map(expr)),
        ast::Stmt::Raise(raise) => {
            StmtKind::Raise { exception: raise.exc.as_deref().map(expr), cause: raise.cause.as_deref().map(expr) }
        }
        ast::Stmt::Expr(inner) => StmtKind::Expr(expr(&inner.value)),
        ast::Stmt::If(branch) => {
            let first = (Some(expr(&branch.test)), body(&branch.body));
            let rest = branch.elif_else_clauses.iter().map(|arm| (arm.test.as_ref().map(expr), body(&arm.body)));
            StmtKind::If(std::iter::once(first).chain(rest).collect())
        }
        ast::Stmt::For(repeat) => StmtKind::Loop {
            head: expr(&repeat.iter),
            target: Some(expr(&repeat.target)),
            is_while: false,
            body: body(&repeat.body),
            orelse: body(&repeat.orelse),
        },
        ast::Stmt::While(repeat) => StmtKind::Loop {
            head: expr(&repeat.test),
            target: None,
            is_while: true,
            body: body(&repeat.body),
            orelse: body(&repeat.orelse),
        },
        ast::Stmt::Try(attempt) => StmtKind::Try {
            body: body(&attempt.body),
            handlers: attempt.handlers.iter().map(handler).collect(),
            orelse: body(&attempt.orelse),
            finally: body(&attempt.finalbody),
        },
        ast::Stmt::With(with) => StmtKind::With {
            items: with
                .items
                .iter()
                .map(|item| (expr(&item.context_expr), item.optional_vars.as_deref().map(expr)))
                .collect(),
            body: body(&with.body),
        },
        ast::Stmt::Match(choice) => StmtKind::Match {
            subject: expr(&choice.subject),
            cases: choice.cases.iter().map(|case| body(&case.body)).collect(),
            exhaustive: choice.cases.iter().any(|case| case.guard.is_none() && case.pattern.is_irrefutable()),
        },
        ast::Stmt::Assert(assert) => {
            StmtKind::Assert { test: expr(&assert.test), message: assert.msg.as_deref().map(expr) }
        }
        ast::Stmt::Break(_) => StmtKind::Break,
        ast::Stmt::Continue(_) => StmtKind::Continue,
        ast::Stmt::Global(_)
        | ast::Stmt::Nonlocal(_)
        | ast::Stmt::TypeAlias(_)
        | ast::Stmt::Pass(_)
        | ast::Stmt::IpyEscapeCommand(_) => StmtKind::Other,
    }
}

fn function(def: &ast::StmtFunctionDef) -> Function {
    let parameter = |parameter: &ast::Parameter, kind| Parameter {
        span: span(parameter.range()),
        name: parameter.name.to_string(),
        kind,
        annotation: parameter.annotation.as_deref().map(expr),
    };
    let plain = |each: &ast::ParameterWithDefault, kind| parameter(&each.parameter, kind);
    let all = &def.parameters;
    let mut parameters: Vec<_> =
        all.posonlyargs.iter().chain(&all.args).map(|each| plain(each, ParameterKind::Positional)).collect();
    parameters.extend(all.vararg.iter().map(|rest| parameter(rest, ParameterKind::Rest)));
    parameters.extend(all.kwonlyargs.iter().map(|each| plain(each, ParameterKind::KeywordOnly)));
    parameters.extend(all.kwarg.iter().map(|rest| parameter(rest, ParameterKind::Keywords)));
    Function {
        span: span(def.range()),
        name: def.name.to_string(),
        name_span: span(def.name.range()),
        is_async: def.is_async,
        decorators: def.decorator_list.iter().map(|decorator| expr(&decorator.expression)).collect(),
        parameters,
        returns: def.returns.as_deref().map(expr),
        body: body(&def.body),
    }
}

fn alias(alias: &ast::Alias) -> Alias {
    Alias {
        span: span(alias.range()),
        name: alias.name.to_string(),
        other: alias.asname.as_ref().map(ToString::to_string),
    }
}

fn handler(handler: &ast::ExceptHandler) -> Handler {
    let ast::ExceptHandler::ExceptHandler(handler) = handler;
    Handler {
        span: span(handler.range()),
        catches: handler.type_.as_deref().map(expr),
        name: handler.name.as_ref().map(ToString::to_string),
        body: body(&handler.body),
    }
}

fn expr(expression: &ast::Expr) -> Expr {
    let boxed = |inner: &ast::Expr| Box::new(expr(inner));
    let kind = match expression {
        ast::Expr::Name(name) => ExprKind::Name(name.id.as_str().into()),
        ast::Expr::Attribute(attribute) => {
            ExprKind::Attribute { base: boxed(&attribute.value), name: attribute.attr.as_str().into() }
        }
        ast::Expr::Call(call) => ExprKind::Call(Box::new(Call {
            function: expr(&call.func),
            arguments: call.arguments.args.iter().map(expr).collect(),
            keywords: call
                .arguments
                .keywords
                .iter()
                .map(|keyword| Keyword {
                    name: keyword.arg.as_ref().map(ToString::to_string),
                    value: expr(&keyword.value),
                })
                .collect(),
        })),
        ast::Expr::Await(inner) => ExprKind::Await(boxed(&inner.value)),
        ast::Expr::Yield(inner) => ExprKind::Yield(inner.value.as_deref().map(boxed)),
        ast::Expr::YieldFrom(inner) => ExprKind::Yield(Some(boxed(&inner.value))),
        ast::Expr::StringLiteral(text) => ExprKind::Text(text.value.to_str().into()),
        ast::Expr::NumberLiteral(number) => match &number.value {
            Number::Int(whole) => ExprKind::Integer(whole.as_i64()),
            Number::Float(_) | Number::Complex { .. } => ExprKind::Float,
        },
        ast::Expr::BooleanLiteral(flag) => ExprKind::Bool(flag.value),
        ast::Expr::NoneLiteral(_) => ExprKind::None,
        ast::Expr::Dict(dict) => {
            ExprKind::Dict(dict.items.iter().map(|item| (item.key.as_ref().map(expr), expr(&item.value))).collect())
        }
        ast::Expr::List(list) => ExprKind::Items(list.elts.iter().map(expr).collect()),
        ast::Expr::Tuple(tuple) => ExprKind::Items(tuple.elts.iter().map(expr).collect()),
        ast::Expr::Set(set) => ExprKind::Items(set.elts.iter().map(expr).collect()),
        ast::Expr::Subscript(subscript) => {
            ExprKind::Subscript { base: boxed(&subscript.value), index: boxed(&subscript.slice) }
        }
        ast::Expr::BinOp(binary) if binary.op == ast::Operator::BitOr => {
            ExprKind::Union(boxed(&binary.left), boxed(&binary.right))
        }
        ast::Expr::UnaryOp(unary) => {
            ExprKind::Unary { negative: unary.op == ast::UnaryOp::USub, operand: boxed(&unary.operand) }
        }
        ast::Expr::Named(named) => ExprKind::Named { target: boxed(&named.target), value: boxed(&named.value) },
        ast::Expr::Lambda(lambda) => ExprKind::Lambda(boxed(&lambda.body)),
        other => ExprKind::Other(children(other)),
    };
    Expr { span: span(expression.range()), kind }
}

/// The expressions directly inside one that the outline has no kind for.
fn children(expression: &ast::Expr) -> Box<[Expr]> {
    struct Gather(Vec<Expr>);
    impl<'a> SourceOrderVisitor<'a> for Gather {
        fn visit_expr(&mut self, inner: &'a ast::Expr) {
            self.0.push(expr(inner));
        }
    }
    let mut gather = Gather(Vec::new());
    walk_expr(&mut gather, expression);
    gather.0.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(source: &str, minor: u8) -> Vec<String> {
        parse(source, minor).1.into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn s1_newer_grammar_is_an_error_at_an_older_target_only() {
        let nested = "x = f'{a['b']}'\n";
        let alias = "type X = int\n";
        let template = "x = t'{a}'\n";
        let bare = "try:\n    pass\nexcept A, B:\n    pass\n";
        for source in [nested, alias, template, bare] {
            assert_eq!(problems(source, 14), Vec::<String>::new(), "{source}");
        }
        assert_eq!(problems(alias, 11), ["needs Python 3.12 to use `type` alias statement"]);
        assert_eq!(problems(template, 13), ["needs Python 3.14 to use t-strings"]);
        assert!(
            problems(nested, 11)[0].starts_with("needs Python 3.12 to reuse outer quote"),
            "{:?}",
            problems(nested, 11)
        );
        assert!(problems(bare, 13)[0].starts_with("needs Python 3.14"), "{:?}", problems(bare, 13));
        assert!(!problems("def f(:\n    pass\n", 14).is_empty());
    }
}
