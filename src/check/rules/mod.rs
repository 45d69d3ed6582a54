//! The rules, each a file whose doc comment is its page. The table is what `tenterhook rules`, `explain` and the tests are made from.

use super::context::{Context, Report};
use super::handlers::{Handler, Placement};
use super::names::Target;
use super::outline::{Expr, ExprKind, Handler as Except, Parameter, ParameterKind, Span, Stmt, StmtKind};
use crate::diagnostic::Severity;

/// A rule.
pub(crate) struct Rule {
    /// Its name, in kebab case.
    pub(crate) name: &'static str,
    pub(crate) severity: Severity,
    /// The source of its file: the doc comment at its top is its page.
    source: &'static str,
    pub(super) check: fn(&Context<'_>, &mut Report),
}

impl Rule {
    /// The rule's page, in Markdown.
    pub(crate) fn page(&self) -> String {
        let lines = self.source.lines().take_while(|line| line.starts_with("//!"));
        lines
            .map(|line| line.trim_start_matches("//!").strip_prefix(' ').unwrap_or_default())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// What the rule finds, in one line.
    pub(crate) fn summary(&self) -> String {
        self.page().lines().next().unwrap_or_default().to_owned()
    }
}

pub(in crate::check) use unused_ignore::RULE as UNUSED_IGNORE;

/// The rule of that name.
pub(crate) fn by_name(name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.name == name)
}

/// Says that there is no rule of that name, with the nearest.
pub(crate) fn unknown_rule(name: &str) -> String {
    let near = nearest(name, RULES.iter().map(|rule| rule.name));
    let hint =
        near.map_or_else(|| "`tenterhook rules` lists them".to_owned(), |near| format!("did you mean `{near}`?"));
    format!("There is no rule `{name}`\n  hint: {hint}")
}

/// Declares the rules' files and the table of them.
macro_rules! rules {
    ($($file:ident),* $(,)?) => {
        $( mod $file; )*

        /// All rules: errors first, then warnings.
        pub(crate) const RULES: &[&Rule] = &[$( &$file::RULE, )*];
    };
}

rules![
    syntax_error,
    unknown_point,
    sync_tool,
    reserved_name,
    missing_parentheses,
    invalid_timeout,
    duplicate_modify,
    sync_handler,
    generator_handler,
    method_handler,
    unregistered_decorator,
    missing_annotation,
    wrong_payload,
    wrong_return,
    extra_parameter,
    unsupported_signal,
    returned_signal,
    unsupported_signal_in_helper,
    signal_in_observer,
    missing_return,
    changed_readonly_field,
    ignored_model_setting,
    blocking_call,
    unawaited_coroutine,
    swallowed_cancellation,
    broad_except_swallows_signal,
    unused_hook_module,
    import_not_found,
    unused_ignore,
    timeout_budget,
];

/// The parameter that takes the payload; a method's `self` is none.
fn payload_parameter<'a>(handler: &Handler<'a>) -> Option<&'a Parameter> {
    let method = matches!(handler.placement, Placement::Class(_));
    let first = handler.function.parameters.get(usize::from(method))?;
    (first.kind == ParameterKind::Positional).then_some(first)
}

fn payload_name<'a>(handler: &Handler<'a>) -> &'a str {
    payload_parameter(handler).map_or("payload", |parameter| parameter.name.as_str())
}

/// Whether a handler's point takes a signal.
fn takes(handler: &Handler<'_>, signal: &str) -> bool {
    handler.spec.signals.iter().any(|kind| kind.name() == signal)
}

/// What may be raised at a handler's point, as advice.
fn signals_of(handler: &Handler<'_>) -> String {
    let point = handler.spec.point.name().replace('_', " ");
    match handler.spec.signals {
        [] => format!("{point} takes no control signal: change the payload instead"),
        [signal, ..] => format!("{point} takes `{}` only", signal.name()),
    }
}

/// The classes that an annotation names: `None`, a class, or the members of a union; `None` where that is not known.
fn annotated(context: &Context<'_>, module: usize, annotation: &Expr) -> Option<Vec<String>> {
    match &annotation.kind {
        ExprKind::None => Some(vec!["None".to_owned()]),
        ExprKind::Text(text) => {
            let (parsed, problems) = super::source::parse(text, super::source::NEWEST_MINOR);
            match parsed.body.first().map(|statement| &statement.kind) {
                Some(StmtKind::Expr(inner)) if problems.is_empty() && !matches!(inner.kind, ExprKind::Text(_)) => {
                    annotated(context, module, inner)
                }
                _ => None,
            }
        }
        ExprKind::Union(left, right) => {
            let mut classes = annotated(context, module, left)?;
            classes.extend(annotated(context, module, right)?);
            Some(classes)
        }
        ExprKind::Subscript { base, index } => match context.dotted(module, &[], base)?.as_str() {
            "typing.Optional" => {
                let mut classes = annotated(context, module, index)?;
                classes.push("None".to_owned());
                Some(classes)
            }
            "typing.Union" => {
                let ExprKind::Items(items) = &index.kind else { return annotated(context, module, index) };
                items
                    .iter()
                    .map(|item| annotated(context, module, item))
                    .collect::<Option<Vec<_>>>()
                    .map(|all| all.concat())
            }
            "typing.Annotated" | "typing_extensions.Annotated" => match &index.kind {
                ExprKind::Items(items) => annotated(context, module, items.first()?),
                _ => None,
            },
            other => Some(vec![other.rsplit('.').next().unwrap_or(other).to_owned()]),
        },
        _ => match context.resolve(module, &[], annotation) {
            Some(Target::Outside(dotted)) => {
                let name = dotted.rsplit('.').next().unwrap_or(&dotted);
                Some(vec![if name == "OutgoingMessagePayload" { "OutgoingTextPayload" } else { name }.to_owned()])
            }
            Some(Target::Class(_, class)) => Some(vec![class.name.clone()]),
            Some(_) => None,
            None => {
                let dotted = context.dotted(module, &[], annotation)?;
                Some(vec![dotted.trim_start_matches("builtins.").to_owned()])
            }
        },
    }
}

/// The items of `payload.model_copy(update={...})`.
fn model_copy_update<'e>(expr: &'e Expr, payload: &str) -> Option<&'e [(Option<Expr>, Expr)]> {
    let ExprKind::Call(call) = &expr.kind else { return None };
    let ExprKind::Attribute { base, name } = &call.function.kind else { return None };
    let on_payload = matches!(&base.kind, ExprKind::Name(base) if **base == *payload);
    let update = call.keywords.iter().find(|keyword| keyword.name.as_deref() == Some("update"))?;
    match &update.value.kind {
        ExprKind::Dict(items) if on_payload && &**name == "model_copy" => Some(items),
        _ => None,
    }
}

/// A body that stands for one that is not written: `...`, `pass`, a docstring.
fn is_stub(body: &[Stmt]) -> bool {
    body.iter().all(|statement| match &statement.kind {
        StmtKind::Other => true,
        StmtKind::Expr(expr) => match &expr.kind {
            ExprKind::Text(_) => true,
            ExprKind::Other(inner) => inner.is_empty(),
            _ => false,
        },
        _ => false,
    })
}

/// The line of an `except` clause without its body.
fn head_of(clause: &Except) -> Span {
    let end = clause.catches.as_ref().map_or(clause.span.start() + "except".len(), |caught| caught.span.end());
    Span::new(clause.span.start(), end)
}

/// Shows the body of a module and those of all functions and classes in it.
pub(in crate::check) fn each_body<'a>(body: &'a [Stmt], see: &mut dyn FnMut(&'a [Stmt])) {
    see(body);
    let mut inner = Vec::new();
    super::walk::statements(body, &mut |statement| match &statement.kind {
        StmtKind::Function(function) => inner.push(function.body.as_slice()),
        StmtKind::Class(class) => inner.push(class.body.as_slice()),
        _ => {}
    });
    for body in inner {
        each_body(body, see);
    }
}

/// The known name that is nearest to `name`, if one is near.
pub(crate) fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let distance = |known: &&str| similar::TextDiff::from_chars(name, *known).ratio();
    let near = known.map(|known| (distance(&known), known)).max_by(|one, other| one.0.total_cmp(&other.0))?;
    (near.0 >= 0.6).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_page_with_a_bad_and_a_good_example() {
        for rule in RULES {
            let page = rule.page();
            for heading in ["## Why", "## Bad", "## Good"] {
                assert!(page.contains(heading), "{} has no {heading}", rule.name);
            }
            assert!(rule.summary().ends_with('.'), "{}", rule.name);
            let file = rule.name.replace('-', "_");
            assert!(rule.source.contains(&format!("name: \"{}\"", rule.name)), "{file}.rs");
        }
    }

    /// The code of a page's example under `heading`, ready to be checked.
    fn example(rule: &Rule, heading: &str) -> String {
        let page = rule.page();
        let after = page.split_once(heading).unwrap().1;
        let code = after.split_once("```python\n").unwrap().1.split_once("\n```").unwrap().0;
        format!("import asyncio\nimport time\nfrom rasa.mantle.hooks import *\n{code}\n")
    }

    #[test]
    fn the_bad_example_of_a_page_is_found_and_the_good_one_is_not() {
        for rule in RULES.iter().filter(|rule| rule.name != "unused-hook-module") {
            let packages = crate::check::Installed::of(std::path::Path::new(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/.venv/bin/python"
            )));
            assert!(packages.is_some());
            let settings =
                crate::check::CheckSettings { turn_budget_ms: Some(30_000), installed: packages, ..Default::default() };
            let rules_of = |heading| -> Vec<_> {
                let found =
                    crate::check::check_text(std::path::Path::new("hooks.py"), example(rule, heading), &settings);
                found.into_iter().map(|problem| problem.rule).filter(|found| found != "unused-hook-module").collect()
            };
            assert!(rules_of("## Bad").contains(&rule.name.to_owned()), "{}: {:?}", rule.name, rules_of("## Bad"));
            assert_eq!(rules_of("## Good"), Vec::<String>::new(), "{}", rule.name);
        }
    }
}
