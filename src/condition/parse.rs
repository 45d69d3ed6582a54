//! A condition's tokens, put together.

use std::mem;
use std::ops::Range;

use serde_json::Value;

use super::ConditionError;
use super::name::{self, Name};
use super::tokens::{Kind, Token, Tokens};
use super::tree::{Comparison, Node, Operand};

/// How deep brackets and `not` may stand within each other. A level costs up to 7 KiB of the stack, unoptimised.
const DEEPEST: usize = 100;

/// Words that are no names.
const KEYWORDS: [&str; 5] = ["and", "or", "not", "is", "in"];

pub(super) fn parse(text: &str) -> Result<Node, ConditionError> {
    let mut tokens = Tokens::new(text)?;
    let token = tokens.advance()?;
    let mut parser = Parser { tokens, token, depth: 0 };
    let root = parser.any()?;
    match parser.token.kind {
        Kind::End => Ok(root),
        Kind::Closes => Err(ConditionError::new(parser.token.range, "`)` closes nothing")),
        _ => Err(parser.unexpected("`and`, `or`, a comparison or the end")),
    }
}

/// A recursive descent, a method for each rule of the grammar; one token is looked ahead.
#[derive(Debug)]
struct Parser {
    tokens: Tokens,
    token: Token,
    depth: usize,
}

impl Parser {
    fn any(&mut self) -> Result<Node, ConditionError> {
        self.joined("or", Self::all, Node::Any)
    }

    fn all(&mut self) -> Result<Node, ConditionError> {
        self.joined("and", Self::negation, Node::All)
    }

    fn negation(&mut self) -> Result<Node, ConditionError> {
        if !self.stands("not") {
            return self.comparison();
        }
        self.enter()?;
        let node = self.negation()?;
        self.depth -= 1;
        Ok(Node::Not(Box::new(node)))
    }

    fn comparison(&mut self) -> Result<Node, ConditionError> {
        let (node, range) = self.primary()?;
        let Some(mut comparison) = self.comparing(&node)? else { return Ok(node) };
        let first = operand(node, range)?;
        let mut rest = vec![];
        loop {
            let (node, range) = self.primary()?;
            let next = self.comparing(&node)?;
            let value = operand(node, range.clone())?;
            let identity = matches!(comparison, Comparison::Is | Comparison::IsNot);
            if identity && !matches!(value, Operand::Constant(Value::Null | Value::Bool(_))) {
                let sign = comparison.sign();
                let message = format!("`{sign}` compares with `None`, `True` and `False` only");
                let instead = if comparison == Comparison::Is { "==" } else { "!=" };
                return Err(ConditionError::new(range, message).hint(format!("write `{instead}`")));
            }
            rest.push((comparison, value));
            match next {
                Some(next) => comparison = next,
                None => return Ok(Node::Chain(first, rest)),
            }
        }
    }

    /// A value, or a condition in brackets; and where it stands.
    fn primary(&mut self) -> Result<(Node, Range<usize>), ConditionError> {
        let value = match &self.token.kind {
            Kind::Opens => return self.brackets(),
            Kind::Constant(value) => value.clone(),
            Kind::Word(word) => match &**word {
                "True" | "true" => Value::Bool(true),
                "False" | "false" => Value::Bool(false),
                "None" | "null" => Value::Null,
                word if KEYWORDS.contains(&word) => return Err(self.unexpected("a name or a value")),
                word => {
                    let word = word.to_owned();
                    return self.entry(&word);
                }
            },
            Kind::Compares(_) | Kind::Closes | Kind::End => return Err(self.unexpected("a name or a value")),
        };
        let range = self.take()?.range;
        Ok((Node::Truth(Operand::Constant(value)), range))
    }

    fn entry(&mut self, word: &str) -> Result<(Node, Range<usize>), ConditionError> {
        let range = self.take()?.range;
        if matches!(self.token.kind, Kind::Opens) {
            let message = "A condition calls no functions";
            let hint = "let a tool write the result to memory, and look at that";
            return Err(ConditionError::new(range, message).hint(hint));
        }
        let name = Name::read(word, range.clone())?;
        Ok((Node::Truth(Operand::Entry(name)), range))
    }

    fn brackets(&mut self) -> Result<(Node, Range<usize>), ConditionError> {
        let open = self.enter()?;
        let node = self.any()?;
        match self.token.kind {
            Kind::Closes => {
                let close = self.take()?.range;
                self.depth -= 1;
                Ok((node, open.start..close.end))
            }
            Kind::End => Err(ConditionError::new(open, "`(` is not closed")),
            _ => Err(self.unexpected("`and`, `or`, a comparison or `)`")),
        }
    }

    /// The sign after `left`, if it is one that compares.
    fn comparing(&mut self, left: &Node) -> Result<Option<Comparison>, ConditionError> {
        if let Kind::Compares(comparison) = self.token.kind {
            self.take()?;
            return Ok(Some(comparison));
        }
        if self.accept("is")? {
            return Ok(Some(if self.accept("not")? { Comparison::IsNot } else { Comparison::Is }));
        }
        if self.stands("in") {
            return Err(membership("in", left, self.token.range.clone()));
        }
        if self.stands("not") {
            let unexpected = self.unexpected("`and`, `or` or a comparison");
            let not = self.take()?;
            let in_set = self.stands("in");
            return Err(if in_set {
                membership("not in", left, not.range.start..self.token.range.end)
            } else {
                unexpected
            });
        }
        Ok(None)
    }

    /// Parts with a word between; the part itself where there is one only.
    fn joined(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Node, ConditionError>,
        join: fn(Vec<Node>) -> Node,
    ) -> Result<Node, ConditionError> {
        let first = part(self)?;
        if !self.stands(word) {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.accept(word)? {
            nodes.push(part(self)?);
        }
        Ok(join(nodes))
    }

    /// Takes what opens another level; where it stands.
    fn enter(&mut self) -> Result<Range<usize>, ConditionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let message = format!("The condition is nested more than {DEEPEST} levels deep");
            return Err(ConditionError::new(self.token.range.clone(), message));
        }
        Ok(self.take()?.range)
    }

    fn take(&mut self) -> Result<Token, ConditionError> {
        let next = self.tokens.advance()?;
        Ok(mem::replace(&mut self.token, next))
    }

    fn stands(&self, keyword: &str) -> bool {
        matches!(&self.token.kind, Kind::Word(word) if word == keyword)
    }

    fn accept(&mut self, keyword: &str) -> Result<bool, ConditionError> {
        let stands = self.stands(keyword);
        if stands {
            self.take()?;
        }
        Ok(stands)
    }

    fn unexpected(&self, expected: &str) -> ConditionError {
        let Token { kind, range } = &self.token;
        let found = match kind {
            Kind::End => "the end".to_owned(),
            Kind::Constant(Value::String(_)) => "a text".to_owned(),
            _ => format!("`{}`", self.tokens.shown(range)),
        };
        let hint = if let Kind::Word(word) = kind { name::keyword(word) } else { None };
        let message = format!("Expected {expected}, found {found}");
        ConditionError { message, hint, range: range.clone() }
    }
}

/// What is compared: a value that may have stood in brackets.
fn operand(node: Node, range: Range<usize>) -> Result<Operand, ConditionError> {
    let hint = match node {
        Node::Truth(operand) => return Ok(operand),
        Node::Any(_) => "compare each value by itself, and join the comparisons with `or`",
        Node::All(_) => "compare each value by itself, and join the comparisons with `and`",
        Node::Not(_) | Node::Chain(..) => "join whole comparisons with `and`, `or` and `not`",
    };
    Err(ConditionError::new(range, "Only names and values can be compared").hint(hint))
}

/// There are no sets: what to write instead of `in`.
fn membership(sign: &str, left: &Node, range: Range<usize>) -> ConditionError {
    let left = match left {
        Node::Truth(Operand::Entry(name)) => name.to_string(),
        _ => "session.project.x".to_owned(),
    };
    let hint = match sign {
        "in" => format!("write it as a disjunction: `{left} == \"a\" or {left} == \"b\"`"),
        _ => format!("write it as a conjunction: `{left} != \"a\" and {left} != \"b\"`"),
    };
    ConditionError::new(range, format!("`{sign}` is not supported in a condition")).hint(hint)
}
