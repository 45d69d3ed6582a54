//! What a name means: imports with aliases, star imports, re-assignment, and the agent's own modules followed.

use rustc_hash::FxHashMap as HashMap;

use super::outline::{Class, Expr, ExprKind, Function, Parameter, Stmt, StmtKind};
use super::project::Project;
use crate::hooks::POINTS;

/// The module that hook modules import from.
pub(super) const HOOKS: &str = "rasa.mantle.hooks";

/// The modules that a load gives by itself (`tenterhook.names` has the same).
const GIVEN: [&str; 11] = [
    HOOKS,
    "rasa.mantle.tools.decorator",
    "rasa.mantle.tools.result",
    "rasa.mantle.orchestration.turn_context",
    "rasa.mantle.validation",
    "rasa.exceptions",
    "rasa.calm_v2.hooks",
    "rasa.calm_v2.tools.decorator",
    "rasa.calm_v2.tools.result",
    "rasa.calm_v2.orchestration.turn_context",
    "rasa.calm_v2.validation",
];

/// How far aliases are followed: a longer chain is a loop.
const DEEPEST: usize = 20;

/// What a name is bound to.
#[derive(Clone, Copy, Debug)]
enum Binding<'a> {
    /// `import a.b as x`, or the top of `import a.b`.
    Module(&'a str),
    /// `from module import name`
    Member {
        module: usize,
        from: &'a str,
        level: u32,
        name: &'a str,
    },
    Function(&'a Function),
    Class(&'a Class),
    Value(&'a Expr),
    /// A parameter, a loop's target: not known here.
    Unknown,
}

/// What an expression leads to.
#[derive(Clone, Debug)]
pub(super) enum Target<'a> {
    /// Something outside the agent, by its dotted name.
    Outside(String),
    /// A function of the agent, in that module.
    Function(usize, &'a Function),
    /// A class of the agent.
    Class(usize, &'a Class),
    /// A module of the agent.
    Module(usize),
}

/// The names of a module or a function.
#[derive(Debug, Default)]
pub(super) struct Scope<'a> {
    bound: HashMap<&'a str, Binding<'a>>,
    /// Modules whose names all came in by a star: name, level.
    stars: Vec<(&'a str, u32)>,
}

/// The names of all modules.
pub(super) struct Names<'a> {
    project: &'a Project,
    modules: Vec<Scope<'a>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(project: &'a Project) -> Self {
        let modules =
            project.modules.iter().enumerate().map(|(index, module)| Scope::of(index, &[], &module.outline.body));
        Self { project, modules: modules.collect() }
    }

    /// What an expression in `module` leads to; `inner` are the scopes of the functions around it, the innermost last.
    pub(super) fn resolve(&self, module: usize, inner: &[&Scope<'a>], expr: &Expr) -> Option<Target<'a>> {
        self.resolve_within(module, inner, expr, DEEPEST)
    }

    /// The dotted name of what an expression leads to outside the agent; builtins are `builtins.name`.
    pub(super) fn dotted(&self, module: usize, inner: &[&Scope<'a>], expr: &Expr) -> Option<String> {
        match self.resolve(module, inner, expr) {
            Some(Target::Outside(dotted)) => Some(dotted),
            Some(_) => None,
            None => match &expr.kind {
                ExprKind::Name(name) if !self.is_bound(module, inner, name) => Some(format!("builtins.{name}")),
                _ => None,
            },
        }
    }

    fn is_bound(&self, module: usize, inner: &[&Scope<'a>], name: &str) -> bool {
        inner.iter().any(|scope| scope.bound.contains_key(name)) || self.modules[module].bound.contains_key(name)
    }

    fn resolve_within(&self, module: usize, inner: &[&Scope<'a>], expr: &Expr, left: usize) -> Option<Target<'a>> {
        let left = left.checked_sub(1)?;
        match &expr.kind {
            ExprKind::Name(name) => {
                for (depth, scope) in inner.iter().enumerate().rev() {
                    if let Some(binding) = scope.bound.get(&**name) {
                        return self.follow(module, &inner[..=depth], *binding, left);
                    }
                }
                self.member(module, name, left)
            }
            ExprKind::Attribute { base, name } => match self.resolve_within(module, inner, base, left)? {
                Target::Outside(dotted) => Some(Target::Outside(published(format!("{dotted}.{name}")))),
                Target::Module(other) => self.member(other, name, left).or_else(|| self.submodule(other, name)),
                Target::Function(..) | Target::Class(..) => None,
            },
            _ => None,
        }
    }

    /// What a module-level name of an agent's module leads to.
    fn member(&self, module: usize, name: &str, left: usize) -> Option<Target<'a>> {
        let left = left.checked_sub(1)?;
        let scope = &self.modules[module];
        if let Some(binding) = scope.bound.get(name) {
            return self.follow(module, &[], *binding, left);
        }
        scope.stars.iter().rev().find_map(|(from, level)| match self.module_named(module, from, *level) {
            Ok(other) => self.member(other, name, left),
            Err(dotted) if dotted == HOOKS && is_published(name) => Some(Target::Outside(format!("{HOOKS}.{name}"))),
            Err(_) => None,
        })
    }

    fn follow(&self, module: usize, inner: &[&Scope<'a>], binding: Binding<'a>, left: usize) -> Option<Target<'a>> {
        match binding {
            Binding::Module(name) => Some(match self.project.by_name.get(name) {
                Some(other) => Target::Module(*other),
                None => Target::Outside(published(name.to_owned())),
            }),
            Binding::Member { module, from, level, name } => match self.module_named(module, from, level) {
                Ok(other) => self.member(other, name, left).or_else(|| self.submodule(other, name)),
                Err(dotted) => match self.project.by_name.get(&format!("{dotted}.{name}")) {
                    Some(other) => Some(Target::Module(*other)),
                    None => Some(Target::Outside(published(format!("{dotted}.{name}")))),
                },
            },
            Binding::Function(function) => Some(Target::Function(module, function)),
            Binding::Class(class) => Some(Target::Class(module, class)),
            // `e = e` inside a function means the outer one: the innermost scope is left out.
            Binding::Value(value) => {
                let outer = inner.split_last().map_or(&[][..], |(_, outer)| outer);
                self.resolve_within(module, inner, value, left.min(DEEPEST / 2))
                    .or_else(|| self.resolve_within(module, outer, value, left.min(DEEPEST / 2)))
            }
            Binding::Unknown => None,
        }
    }

    fn submodule(&self, module: usize, name: &str) -> Option<Target<'a>> {
        let own = &self.project.modules[module].name;
        self.project.by_name.get(&format!("{own}.{name}")).map(|index| Target::Module(*index))
    }

    /// An agent's module by the words of an import, or the dotted name of one outside.
    pub(super) fn module_named(&self, module: usize, name: &str, level: u32) -> Result<usize, String> {
        let dotted = self.dotted_module(module, name, level);
        match self.project.by_name.get(&dotted) {
            Some(index) => Ok(*index),
            None => Err(published(dotted)),
        }
    }

    /// The dotted name of a module by the words of an import.
    pub(super) fn dotted_module(&self, module: usize, name: &str, level: u32) -> String {
        if level == 0 {
            name.to_owned()
        } else {
            let mut package: Vec<_> = self.project.modules[module].package.split('.').collect();
            package.truncate(package.len().saturating_sub(level as usize - 1));
            package.extend((!name.is_empty()).then_some(name));
            package.join(".")
        }
    }
}

impl<'a> Scope<'a> {
    /// The names that a body binds in `module`, nested functions and classes left out.
    pub(super) fn of(module: usize, parameters: &'a [Parameter], body: &'a [Stmt]) -> Self {
        let mut scope = Self::default();
        for parameter in parameters {
            scope.bound.insert(&parameter.name, Binding::Unknown);
        }
        scope.gather(module, body);
        scope
    }

    fn gather(&mut self, module: usize, body: &'a [Stmt]) {
        for statement in body {
            match &statement.kind {
                StmtKind::Function(function) => self.bind(&function.name, Binding::Function(function)),
                StmtKind::Class(class) => self.bind(&class.name, Binding::Class(class)),
                StmtKind::Import(names) => {
                    for alias in names {
                        match &alias.other {
                            Some(other) => self.bind(other, Binding::Module(&alias.name)),
                            None => {
                                let top = alias.name.split('.').next().unwrap_or_default();
                                self.bind(top, Binding::Module(top));
                            }
                        }
                    }
                }
                StmtKind::ImportFrom { module: from, level, names } => {
                    for alias in names {
                        if alias.name == "*" {
                            self.stars.push((from, *level));
                        } else {
                            let name = alias.other.as_ref().unwrap_or(&alias.name);
                            self.bind(name, Binding::Member { module, from, level: *level, name: &alias.name });
                        }
                    }
                }
                StmtKind::Assign { targets, value } => {
                    for target in targets {
                        match (&target.kind, value) {
                            (ExprKind::Name(name), Some(value)) => self.bind(name, Binding::Value(value)),
                            (ExprKind::Name(_), None) => {}
                            _ => self.forget(target),
                        }
                    }
                }
                StmtKind::Change { target, .. } => self.forget(target),
                StmtKind::If(arms) => arms.iter().for_each(|(_, body)| self.gather(module, body)),
                StmtKind::Loop { target, body, orelse, .. } => {
                    if let Some(target) = target {
                        self.forget(target);
                    }
                    self.gather(module, body);
                    self.gather(module, orelse);
                }
                StmtKind::Try { body, handlers, orelse, finally } => {
                    // What is tried first is what counts; the others are fallbacks.
                    for handler in handlers {
                        handler.name.iter().for_each(|name| self.bind(name, Binding::Unknown));
                        self.gather(module, &handler.body);
                    }
                    self.gather(module, body);
                    self.gather(module, orelse);
                    self.gather(module, finally);
                }
                StmtKind::With { items, body } => {
                    items.iter().filter_map(|(_, target)| target.as_ref()).for_each(|target| self.forget(target));
                    self.gather(module, body);
                }
                StmtKind::Match { cases, .. } => cases.iter().for_each(|body| self.gather(module, body)),
                _ => {}
            }
        }
    }

    fn bind(&mut self, name: &'a str, binding: Binding<'a>) {
        self.bound.insert(name, binding);
    }

    fn forget(&mut self, target: &'a Expr) {
        match &target.kind {
            ExprKind::Name(name) => self.bind(name, Binding::Unknown),
            ExprKind::Items(items) => items.iter().for_each(|item| self.forget(item)),
            _ => {}
        }
    }

    /// The expression that a name was last given in this scope, where it is one.
    pub(super) fn value_of(&self, name: &str) -> Option<&'a Expr> {
        match self.bound.get(name)? {
            Binding::Value(value) => Some(value),
            _ => None,
        }
    }
}

/// Whether the engine gives a module of that name: what hook modules are written against, our own package, and the packages
/// on the way.
pub(super) fn is_given(dotted: &str) -> bool {
    let is_ours = |given: &str| given == dotted || given.strip_prefix(dotted).is_some_and(|rest| rest.starts_with('.'));
    GIVEN.into_iter().any(is_ours) || dotted == "tenterhook" || dotted.starts_with("tenterhook.")
}

/// The published spelling of a dotted name: the older package, and our own, are the same module.
fn published(dotted: String) -> String {
    for alias in ["rasa.calm_v2.", "tenterhook.mantle."] {
        if let Some(rest) = dotted.strip_prefix(alias) {
            return format!("rasa.mantle.{rest}");
        }
    }
    dotted
}

/// All names of `rasa.mantle.hooks`.
pub(super) fn published_names() -> impl Iterator<Item = &'static str> {
    let of_points = POINTS.iter().flat_map(|spec| [Some(spec.observe), spec.modify, Some(spec.payload)]).flatten();
    let others = [
        "on_outgoing_message",
        "modify_outgoing_message",
        "OutgoingMessagePayload",
        "HookPayload",
        "CallInfo",
        "ChannelInfo",
        "HookControlFlow",
        "HookRejection",
        "RetryModel",
    ];
    of_points.chain(others)
}

pub(super) fn is_published(name: &str) -> bool {
    published_names().any(|known| known == name)
}
