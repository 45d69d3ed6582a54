//! What a condition says, and how it is written back.

use std::fmt::{self, Write as _};

use serde_json::Value;

use super::name::Name;

/// A condition or a part of it that is true or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// Two or more, of which one must hold.
    Any(Vec<Node>),
    /// Two or more, all of which must hold.
    All(Vec<Node>),
    /// One that must not hold.
    Not(Box<Node>),
    /// Values that are compared, each with the next.
    Chain(Operand, Vec<(Comparison, Operand)>),
    /// A value that must count as true.
    Truth(Operand),
}

/// Something that has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// The value of a memory entry.
    Entry(Name),
    /// `None`, a bool, a number or a text.
    Constant(Value),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    Is,
    IsNot,
}

impl Node {
    /// All names in it, in their order.
    pub(super) fn names(&self) -> Vec<&Name> {
        match self {
            Self::Any(nodes) | Self::All(nodes) => nodes.iter().flat_map(Self::names).collect(),
            Self::Not(node) => node.names(),
            Self::Chain(first, rest) => {
                let operands = std::iter::once(first).chain(rest.iter().map(|(_, operand)| operand));
                operands.filter_map(Operand::name).collect()
            }
            Self::Truth(operand) => operand.name().into_iter().collect(),
        }
    }

    /// How closely it holds together; what holds together less needs brackets within it.
    fn strength(&self) -> u8 {
        match self {
            Self::Any(_) => 0,
            Self::All(_) => 1,
            Self::Not(_) => 2,
            Self::Chain(..) | Self::Truth(_) => 3,
        }
    }

    fn write_joined(&self, nodes: &[Self], word: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, node) in nodes.iter().enumerate() {
            if index > 0 {
                write!(out, " {word} ")?;
            }
            // `(a and b) and c` has brackets that `a and b and c` has not: it is kept as it was written.
            node.write_within(node.strength() <= self.strength(), out)?;
        }
        Ok(())
    }

    fn write_within(&self, brackets: bool, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if brackets { write!(out, "({self})") } else { write!(out, "{self}") }
    }
}

impl Operand {
    fn name(&self) -> Option<&Name> {
        match self {
            Self::Entry(name) => Some(name),
            Self::Constant(_) => None,
        }
    }
}

impl Comparison {
    /// Its sign.
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Is => "is",
            Self::IsNot => "is not",
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(nodes) => self.write_joined(nodes, "or", out),
            Self::All(nodes) => self.write_joined(nodes, "and", out),
            Self::Not(node) => {
                out.write_str("not ")?;
                node.write_within(node.strength() < self.strength(), out)
            }
            Self::Chain(first, rest) => {
                write!(out, "{first}")?;
                rest.iter().try_for_each(|(comparison, operand)| write!(out, " {} {operand}", comparison.sign()))
            }
            Self::Truth(operand) => write!(out, "{operand}"),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(name) => write!(out, "{name}"),
            Self::Constant(Value::Null) => out.write_str("None"),
            Self::Constant(Value::Bool(value)) => out.write_str(if *value { "True" } else { "False" }),
            Self::Constant(Value::String(text)) => write_text(text, out),
            Self::Constant(value) => write!(out, "{value}"),
        }
    }
}

fn write_text(text: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    out.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(out, "\\{letter}")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            // None of them is beyond U+009F.
            letter if letter.is_control() => write!(out, "\\x{:02x}", u32::from(letter))?,
            letter => out.write_char(letter)?,
        }
    }
    out.write_char('"')
}
