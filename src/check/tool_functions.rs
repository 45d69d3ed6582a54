//! The tools in an agent's modules, and what their sources name of its skills and memory.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::names::{Names, Target};
use super::outline::{Call, Expr, ExprKind, Function, Keyword, StmtKind};
use super::project::{ModuleSource, Project};
use super::rules::each_body;
use super::walk;
use crate::diagnostic::Place;

/// The decorator that makes a tool.
const TOOL: &str = "rasa.mantle.tools.decorator.tool";

/// What names a skill that is to begin.
const ACTIVATE: &str = "rasa.mantle.tools.result.ActivateSkill";

/// A function under `@tool`.
#[derive(Debug)]
pub(super) struct ToolFunction<'a> {
    pub(super) module: usize,
    pub(super) function: &'a Function,
    pub(super) decorator: &'a Expr,
    /// Whether the decorator is called, as it must be.
    pub(super) is_called: bool,
}

/// What a module of tools has and names, as far as its source tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolModule {
    /// The file.
    pub(crate) file: PathBuf,
    /// The skill that it belongs to; none: it lies at the agent's root.
    pub(crate) skill: Option<String>,
    /// The names of its tools; none where they cannot be told from the source.
    pub(crate) tools: Option<Vec<String>>,
    /// What it names.
    pub(crate) named: Vec<Named>,
}

/// Something that a module names in so many words, and where.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    pub(crate) place: Place,
    pub(crate) what: NamedThing,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NamedThing {
    /// `memory.set("entry", value)`; the value where it is written out.
    Write { entry: String, value: Option<Value> },
    /// `ActivateSkill(skill_id="...", ordered_block="...")`
    Activation { skill: String, block: Option<String> },
}

/// The functions that are tools, wherever they stand at the top of a module.
pub(super) fn find<'a>(project: &'a Project, names: &Names<'a>) -> Vec<ToolFunction<'a>> {
    let mut found = Vec::new();
    for (index, module) in project.modules.iter().enumerate() {
        walk::statements(&module.outline.body, &mut |statement| {
            let StmtKind::Function(function) = &statement.kind else { return };
            for decorator in &function.decorators {
                let (maker, is_called) = maker_of(decorator);
                if names.dotted(index, &[], maker).as_deref() == Some(TOOL) {
                    found.push(ToolFunction { module: index, function, decorator, is_called });
                }
            }
        });
    }
    found
}

/// What the modules of tools have and name, `lib/` included: what is written there is written for tools.
pub(super) fn modules(project: &Project, names: &Names<'_>, tools: &[ToolFunction<'_>]) -> Vec<ToolModule> {
    let of = |(index, module): (usize, &ModuleSource)| {
        let place = Lies::of(&module.below)?;
        let has_tools = !matches!(place, Lies::InLib);
        let skill = match place {
            Lies::InSkill(skill) => Some(skill),
            Lies::AtRoot | Lies::InLib => None,
        };
        let tools = if has_tools { tools_of(project, names, tools, index) } else { Some(Vec::new()) };
        Some(ToolModule { file: module.file.clone(), skill, tools, named: named(names, module, index) })
    };
    project.modules.iter().enumerate().filter_map(of).collect()
}

/// Where a module of tools lies.
enum Lies {
    AtRoot,
    InSkill(String),
    InLib,
}

impl Lies {
    /// By its path below the agent's folder; `None`: it has no tools.
    fn of(below: &Path) -> Option<Self> {
        // A load leaves it out.
        if below.file_name().is_some_and(|name| name == "__init__.py") {
            return None;
        }
        let mut parts = below.components().filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
        match (parts.next()?, parts.next(), parts.next()) {
            ("tools", Some(_), _) | ("tools.py", None, None) => Some(Self::AtRoot),
            ("lib", ..) => Some(Self::InLib),
            ("skills", Some(skill), Some("tools" | "tools.py")) => Some(Self::InSkill(skill.to_owned())),
            _ => None,
        }
    }
}

/// The names of a module's tools: those that are defined in it, those that it imports from modules of the agent whose tools are nobody's, and
/// what it imports from packages. `None`: something in it may be a tool as well.
fn tools_of(project: &Project, names: &Names<'_>, tools: &[ToolFunction<'_>], index: usize) -> Option<Vec<String>> {
    let (module, mut known) = (&project.modules[index], Vec::new());
    let mut told = true;
    walk::statements(&module.outline.body, &mut |statement| match &statement.kind {
        StmtKind::Function(function) => {
            if tools.iter().any(|tool| tool.module == index && std::ptr::eq(tool.function, function.as_ref())) {
                known.push(function.name.clone());
            } else {
                // Any other decorator may make a tool, the standard library's aside.
                told &= function.decorators.iter().all(|decorator| makes_none(names, index, maker_of(decorator).0));
            }
        }
        StmtKind::ImportFrom { names: imported, .. } => {
            for alias in imported {
                told &= alias.name != "*";
                let name = alias.other.as_ref().unwrap_or(&alias.name);
                let expr = Expr { span: alias.span, kind: ExprKind::Name(name.as_str().into()) };
                match names.resolve(index, &[], &expr) {
                    Some(Target::Function(other, function))
                        if tools.iter().any(|tool| tool.module == other && std::ptr::eq(tool.function, function))
                            && matches!(Lies::of(&project.modules[other].below), None | Some(Lies::InLib)) =>
                    {
                        known.push(function.name.clone());
                    }
                    // A package may have tools as well.
                    Some(Target::Outside(dotted)) if !dotted.starts_with("rasa.") => known.push(name.clone()),
                    _ => {}
                }
            }
        }
        // `lookup = tool(description="...")(find)`
        StmtKind::Assign { value: Some(value), .. } => {
            walk::within(value, &mut |expr| {
                if let ExprKind::Call(call) = &expr.kind {
                    told &= is_outside(names, index, &call.function) && !is(names, index, &call.function, TOOL);
                }
            });
            // `lookup = made.lookup`
            told &= !matches!(value.kind, ExprKind::Name(_) | ExprKind::Attribute { .. });
        }
        _ => {}
    });
    told.then_some(known)
}

fn is_outside(names: &Names<'_>, module: usize, maker: &Expr) -> bool {
    names.dotted(module, &[], maker).is_some()
}

/// Whether a decorator makes no tool.
fn makes_none(names: &Names<'_>, module: usize, maker: &Expr) -> bool {
    let known = ["functools.", "contextlib.", "typing.", "builtins.", "rasa.mantle.hooks."];
    names.dotted(module, &[], maker).is_some_and(|dotted| known.iter().any(|known| dotted.starts_with(known)))
}

fn is(names: &Names<'_>, module: usize, expr: &Expr, dotted: &str) -> bool {
    names.dotted(module, &[], expr).as_deref() == Some(dotted)
}

/// What a decorator is, and whether it is called.
fn maker_of(decorator: &Expr) -> (&Expr, bool) {
    match &decorator.kind {
        ExprKind::Call(call) => (&call.function, true),
        _ => (decorator, false),
    }
}

fn named(names: &Names<'_>, module: &ModuleSource, index: usize) -> Vec<Named> {
    let mut found = Vec::new();
    each_body(&module.outline.body, &mut |body| {
        walk::expressions(body, &mut |expr| {
            let ExprKind::Call(call) = &expr.kind else { return };
            let what = written(call).or_else(|| activated(names, index, call));
            found.extend(what.map(|what| Named { place: module.place(expr.span), what }));
        });
    });
    found
}

/// `context.memory.set("entry", value)`: what else has a memory may be anything.
fn written(call: &Call) -> Option<NamedThing> {
    let ExprKind::Attribute { base, name } = &call.function.kind else { return None };
    let is_memory = matches!(&base.kind, ExprKind::Attribute { base, name } if &**name == "memory" && is_context(base));
    if &**name != "set" || !is_memory {
        return None;
    }
    let entry = text(call.arguments.first()?)?;
    Some(NamedThing::Write { entry, value: call.arguments.get(1).and_then(literal) })
}

fn activated(names: &Names<'_>, module: usize, call: &Call) -> Option<NamedThing> {
    if !is(names, module, &call.function, ACTIVATE) {
        return None;
    }
    let given =
        |name: &str| -> Option<&Keyword> { call.keywords.iter().find(|keyword| keyword.name.as_deref() == Some(name)) };
    let skill = given("skill_id").map(|keyword| &keyword.value)?;
    Some(NamedThing::Activation {
        skill: text(skill)?,
        block: given("ordered_block").and_then(|keyword| text(&keyword.value)),
    })
}

fn is_context(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Name(name) if &**name == "context")
}

fn text(expr: &Expr) -> Option<String> {
    if let ExprKind::Text(text) = &expr.kind { Some(text.to_string()) } else { None }
}

/// The value of an expression that is written out; of the rest nothing is known.
fn literal(expr: &Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Text(text) => Some(Value::String(text.to_string())),
        ExprKind::Integer(Some(number)) => Some((*number).into()),
        ExprKind::Bool(flag) => Some((*flag).into()),
        ExprKind::None => Some(Value::Null),
        _ => None,
    }
}
