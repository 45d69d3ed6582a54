//! A module as the rules see it: statements and expressions with their places, and nothing of the parser's.

/// A stretch of the source, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// A file of more than four gigabytes is never read.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let short = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: short(start), end: short(end) }
    }

    pub(crate) const fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) const fn end(self) -> usize {
        self.end as usize
    }
}

/// A parsed module; of a broken one, what could be understood.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) body: Vec<Stmt>,
}

/// A statement.
#[derive(Debug)]
pub(crate) struct Stmt {
    pub(crate) span: Span,
    pub(crate) kind: StmtKind,
}

#[derive(Debug)]
pub(crate) enum StmtKind {
    Function(Box<Function>),
    Class(Class),
    /// `import a.b as c`
    Import(Vec<Alias>),
    /// `from .module import a as b`; a star is an alias named `*`.
    ImportFrom {
        module: String,
        level: u32,
        names: Vec<Alias>,
    },
    /// `a = b = value`, `a: annotation = value`
    Assign {
        targets: Vec<Expr>,
        value: Option<Expr>,
    },
    /// `a += value`
    Change {
        target: Expr,
        value: Expr,
    },
    Delete(Vec<Expr>),
    Return(Option<Expr>),
    Raise {
        exception: Option<Expr>,
        cause: Option<Expr>,
    },
    Expr(Expr),
    /// The arms of an `if`, each with its condition; the last has none where there is an `else`.
    If(Vec<(Option<Expr>, Vec<Stmt>)>),
    /// `for` and `while`; `head` is what is iterated over, or the condition.
    Loop {
        head: Expr,
        target: Option<Expr>,
        is_while: bool,
        body: Vec<Stmt>,
        orelse: Vec<Stmt>,
    },
    Try {
        body: Vec<Stmt>,
        handlers: Vec<Handler>,
        orelse: Vec<Stmt>,
        finally: Vec<Stmt>,
    },
    With {
        items: Vec<(Expr, Option<Expr>)>,
        body: Vec<Stmt>,
    },
    /// The cases, and whether one of them takes everything.
    Match {
        subject: Expr,
        cases: Vec<Vec<Stmt>>,
        exhaustive: bool,
    },
    Assert {
        test: Expr,
        message: Option<Expr>,
    },
    Break,
    Continue,
    /// `pass`, `global`, and what else no rule looks at.
    Other,
}

/// `name as other`
#[derive(Debug)]
pub(crate) struct Alias {
    pub(crate) span: Span,
    pub(crate) name: String,
    pub(crate) other: Option<String>,
}

/// One `except` clause.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) span: Span,
    /// What it catches; `None`: everything.
    pub(crate) catches: Option<Expr>,
    pub(crate) name: Option<String>,
    pub(crate) body: Vec<Stmt>,
}

/// `def` or `async def`.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) span: Span,
    pub(crate) name: String,
    pub(crate) name_span: Span,
    pub(crate) is_async: bool,
    pub(crate) decorators: Vec<Expr>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) returns: Option<Expr>,
    pub(crate) body: Vec<Stmt>,
}

/// A parameter, in the order in which they are written.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) span: Span,
    pub(crate) name: String,
    pub(crate) kind: ParameterKind,
    pub(crate) annotation: Option<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    Positional,
    /// `*args`
    Rest,
    KeywordOnly,
    /// `**kwargs`
    Keywords,
}

#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) decorators: Vec<Expr>,
    pub(crate) bases: Vec<Expr>,
    pub(crate) body: Vec<Stmt>,
}

/// An expression. There are many: it must stay small.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) span: Span,
    pub(crate) kind: ExprKind,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Name(Box<str>),
    Attribute {
        base: Box<Expr>,
        name: Box<str>,
    },
    Call(Box<Call>),
    Await(Box<Expr>),
    Yield(Option<Box<Expr>>),
    Text(Box<str>),
    Integer(Option<i64>),
    Float,
    Bool(bool),
    None,
    /// Keys (`None`: `**spread`) and values.
    Dict(Box<[(Option<Expr>, Expr)]>),
    /// A list, a tuple or a set.
    Items(Box<[Expr]>),
    Subscript {
        base: Box<Expr>,
        index: Box<Expr>,
    },
    /// `left | right`
    Union(Box<Expr>, Box<Expr>),
    /// `-operand` and other unary operators
    Unary {
        negative: bool,
        operand: Box<Expr>,
    },
    /// `(target := value)`
    Named {
        target: Box<Expr>,
        value: Box<Expr>,
    },
    Lambda(Box<Expr>),
    /// Anything else, with the expressions in it.
    Other(Box<[Expr]>),
}

/// `function(arguments, keywords)`
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: Expr,
    pub(crate) arguments: Vec<Expr>,
    pub(crate) keywords: Vec<Keyword>,
}

/// An argument by keyword; `None`: `**spread`.
#[derive(Debug)]
pub(crate) struct Keyword {
    pub(crate) name: Option<String>,
    pub(crate) value: Expr,
}

impl Handler {
    /// The classes that the clause names, each of a tuple by itself; none where it catches everything.
    pub(crate) fn caught(&self) -> &[Expr] {
        match &self.catches {
            Some(Expr { kind: ExprKind::Items(items), .. }) => items,
            Some(single) => std::slice::from_ref(single),
            None => &[],
        }
    }
}

impl Expr {
    /// Shows the expressions directly inside this one, in source order.
    pub(crate) fn each_child<'a>(&'a self, see: &mut dyn FnMut(&'a Self)) {
        match &self.kind {
            ExprKind::Attribute { base: inner, .. }
            | ExprKind::Await(inner)
            | ExprKind::Lambda(inner)
            | ExprKind::Yield(Some(inner))
            | ExprKind::Unary { operand: inner, .. } => see(inner),
            ExprKind::Call(call) => {
                see(&call.function);
                call.arguments.iter().for_each(&mut *see);
                call.keywords.iter().for_each(|keyword| see(&keyword.value));
            }
            ExprKind::Dict(items) => {
                for (key, value) in items {
                    key.iter().for_each(&mut *see);
                    see(value);
                }
            }
            ExprKind::Items(items) | ExprKind::Other(items) => items.iter().for_each(see),
            ExprKind::Subscript { base: one, index: other }
            | ExprKind::Union(one, other)
            | ExprKind::Named { target: one, value: other } => {
                see(one);
                see(other);
            }
            ExprKind::Name(_)
            | ExprKind::Yield(None)
            | ExprKind::Text(_)
            | ExprKind::Integer(_)
            | ExprKind::Float
            | ExprKind::Bool(_)
            | ExprKind::None => {}
        }
    }
}

// Zeroing fresh memory was two fifths of a check's time when an expression had 72 bytes.
const _: () = assert!(size_of::<Expr>() <= 40);
