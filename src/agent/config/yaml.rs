//! YAML as a tree in which every key and value knows its place.
//!
//! Read from the events of `saphyr-parser`: it is maintained, follows YAML 1.2, and gives line and column of every key, value and
//! error. The tree is made here, since the ready-made ones drop a repeated key in silence and do not bound what aliases copy.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::{Number, Value};

use super::scalar::plain;
use crate::conversation::Object;
use crate::diagnostic::Place;

/// How deep values may be nested: far below what would exhaust a stack.
pub(super) const DEEPEST: usize = 64;

/// How many values a file may have, those with an anchor counted twice, and again by each alias.
pub(super) const MOST_VALUES: usize = 100_000;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Yaml,
}

/// What a value is, by the core schema of YAML 1.2: `yes` and `no` are texts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Yaml {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value. No two entries of a map have the same key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) value: Node,
}

/// What makes a text no YAML, or none that can be meant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) place: Place,
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
    /// Where a repeated key stood first.
    pub(super) first: Option<Place>,
}

impl Node {
    /// Whether nothing is given: `key:` without a value.
    pub(super) fn is_null(&self) -> bool {
        self.value == Yaml::Null
    }

    /// What it is, in words that follow "is".
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Yaml::Null => "empty",
            Yaml::Bool(_) => "a truth value",
            Yaml::Int(_) | Yaml::Float(_) => "a number",
            Yaml::Text(_) => "a text",
            Yaml::List(_) => "a list",
            Yaml::Map(_) => "a mapping",
        }
    }

    /// How many levels it has below its own.
    fn height(&self) -> usize {
        let below = match &self.value {
            Yaml::List(items) => items.iter().map(Node::height).max(),
            Yaml::Map(entries) => entries.iter().map(|entry| entry.value.height()).max(),
            _ => return 0,
        };
        below.unwrap_or(0) + 1
    }

    /// Moves it down by some lines.
    fn shift(&mut self, lines: u32) {
        self.place.shift(lines);
        match &mut self.value {
            Yaml::List(items) => items.iter_mut().for_each(|item| item.shift(lines)),
            Yaml::Map(entries) => {
                for entry in entries {
                    entry.place.shift(lines);
                    entry.value.shift(lines);
                }
            }
            _ => {}
        }
    }

    /// The value as JSON. Infinities and NaN become null.
    pub(super) fn json(&self) -> Value {
        match &self.value {
            Yaml::Null => Value::Null,
            Yaml::Bool(value) => Value::Bool(*value),
            Yaml::Int(value) => Value::from(*value),
            Yaml::Float(value) => Number::from_f64(*value).map_or(Value::Null, Value::Number),
            Yaml::Text(value) => Value::String(value.clone()),
            Yaml::List(items) => items.iter().map(Node::json).collect(),
            Yaml::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.json())).collect::<Object>())
            }
        }
    }
}

/// Reads a text. No value stands where it is empty or has comments only. Every fault is told that does not hinder reading on.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Vec<Fault>> {
    let mut builder =
        Builder { parser: Parser::new_from_str(text), anchors: HashMap::new(), left: MOST_VALUES, faults: vec![] };
    match builder.document() {
        Ok(node) if builder.faults.is_empty() => Ok(node),
        Ok(_) => Err(builder.faults),
        Err(fault) => {
            builder.faults.push(fault);
            Err(builder.faults)
        }
    }
}

/// As [`parse`], of a text that stands in a file below `lines` others: the places are the file's.
pub(super) fn parse_below(text: &str, lines: u32) -> Result<Option<Node>, Vec<Fault>> {
    let mut parsed = parse(text);
    match &mut parsed {
        Ok(node) => node.iter_mut().for_each(|node| node.shift(lines)),
        Err(faults) => {
            for fault in faults {
                fault.place.shift(lines);
                fault.first.iter_mut().for_each(|first| first.shift(lines));
            }
        }
    }
    parsed
}

/// What aliases repeat.
struct Anchored {
    node: Node,
    /// How many values it has.
    values: usize,
    /// How many levels.
    height: usize,
}

struct Builder<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Anchored>,
    /// How many values may still come.
    left: usize,
    faults: Vec<Fault>,
}

impl<'t> Builder<'t> {
    fn document(&mut self) -> Result<Option<Node>, Fault> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(fault(span, "A second document begins here", Some("keep one document in the file")));
                }
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                other => root = Some(self.node(other, span, 0)?),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), Fault> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(of_scan(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, Fault> {
        if depth > DEEPEST {
            return Err(too_deep(span));
        }
        let before = self.left;
        self.spend(1, span)?;
        let (anchor, node) = match event {
            // A fault in what is repeated belongs where it is written, so that the copy keeps its place.
            Event::Alias(id) => return self.alias(id, span, depth),
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref(), span)?;
                (anchor, Node { place: place(span), value })
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), span)?;
                (anchor, self.list(span, depth)?)
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), span)?;
                (anchor, self.map(span, depth)?)
            }
            _ => return Err(fault(span, "A value is missing here", None)),
        };
        if anchor > 0 {
            let values = before - self.left;
            self.spend(values, span)?;
            self.anchors.insert(anchor, Anchored { node: node.clone(), values, height: node.height() });
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, span: Span, depth: usize) -> Result<Node, Fault> {
        let Some(&Anchored { values, height, .. }) = self.anchors.get(&id) else {
            return Err(fault(span, "The alias stands inside what it repeats", None));
        };
        if depth + height > DEEPEST {
            return Err(too_deep(span));
        }
        self.spend(values, span)?;
        Ok(self.anchors[&id].node.clone())
    }

    fn list(&mut self, start: Span, depth: usize) -> Result<Node, Fault> {
        let mut items = vec![];
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                let last = items.last().map(|item: &Node| item.place);
                return Ok(Node { place: stretch(start, last, span), value: Yaml::List(items) });
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn map(&mut self, start: Span, depth: usize) -> Result<Node, Fault> {
        let mut entries: Vec<Entry> = vec![];
        let mut seen: HashMap<String, Place> = HashMap::new();
        loop {
            let (event, span) = self.next()?;
            let key = match event {
                Event::MappingEnd => {
                    let last = entries.last().map(|entry| entry.value.place);
                    return Ok(Node { place: stretch(start, last, span), value: Yaml::Map(entries) });
                }
                Event::Scalar(key, ..) => key.into_owned(),
                _ => {
                    return Err(fault(
                        span,
                        "A key is no plain text",
                        Some("quote a key that begins with `{`, `[` or `*`"),
                    ));
                }
            };
            let (event, value_span) = self.next()?;
            let value = self.node(event, value_span, depth + 1)?;
            let key_place = place(span);
            if let Some(first) = seen.get(&key) {
                let repeated = fault(span, format!("The key `{key}` is there twice"), Some("keep one of the two"));
                self.faults.push(Fault { first: Some(*first), ..repeated });
            } else {
                seen.insert(key.clone(), key_place);
                entries.push(Entry { key, place: key_place, value });
            }
        }
    }

    fn spend(&mut self, values: usize, span: Span) -> Result<(), Fault> {
        let too_many = || fault(span, format!("The file has more than {MOST_VALUES} values, aliases counted"), None);
        self.left = self.left.checked_sub(values).ok_or_else(too_many)?;
        Ok(())
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Yaml, Fault> {
    let as_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
    if as_text {
        return Ok(Yaml::Text(text.to_owned()));
    }
    refuse_tag(tag, span)?;
    Ok(if style == ScalarStyle::Plain { plain(text) } else { Yaml::Text(text.to_owned()) })
}

fn refuse_tag(tag: Option<&Tag>, span: Span) -> Result<(), Fault> {
    match tag {
        Some(tag) => Err(fault(span, format!("The tag `{tag}` has no meaning here"), Some("leave it out"))),
        None => Ok(()),
    }
}

fn of_scan(error: &ScanError) -> Fault {
    let info = error.info();
    let hint = if info.contains("mapping values are not allowed") {
        Some("put the text in quotes: `: ` within it begins a value")
    } else if info.contains("tab") {
        Some("indent with spaces")
    } else {
        None
    };
    let at = *error.marker();
    fault(Span::new(at, at), format!("This is no YAML: {info}"), hint)
}

fn too_deep(span: Span) -> Fault {
    fault(span, format!("Values are nested deeper than {DEEPEST} levels"), None)
}

fn fault(span: Span, message: impl Into<String>, hint: Option<&'static str>) -> Fault {
    Fault { place: place(span), message: message.into(), hint, first: None }
}

fn place(span: Span) -> Place {
    let (line, column) = position(span.start);
    let (end_line, end_column) = position(span.end).max((line, column));
    Place { line, column, end_line, end_column }
}

/// From the start of a list or mapping to its end: that of its last value where it has no closing bracket.
fn stretch(start: Span, last: Option<Place>, end: Span) -> Place {
    let start = place(start);
    let end = if end.is_empty() { last.unwrap_or(start) } else { place(end) };
    let (end_line, end_column) = (end.end_line, end.end_column).max((start.end_line, start.end_column));
    Place { end_line, end_column, ..start }
}

fn position(marker: Marker) -> (u32, u32) {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    (number(marker.line().max(1)), number(marker.col() + 1))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> Value {
        parse(text).unwrap().unwrap().json()
    }

    fn faults(text: &str) -> Vec<String> {
        let told = |fault: Fault| format!("{}:{}: {}", fault.place.line, fault.place.column, fault.message);
        parse(text).unwrap_err().into_iter().map(told).collect()
    }

    #[test]
    fn every_key_knows_its_place() {
        let root = parse("a:\n  - ümlaut: 1\n    \"q\": [2,\n     3]\n").unwrap().unwrap();
        let Yaml::Map(entries) = root.value else { panic!() };
        let Yaml::List(items) = &entries[0].value.value else { panic!() };
        let Yaml::Map(inner) = &items[0].value else { panic!() };
        let places: Vec<_> = inner.iter().map(|entry| (entry.place, entry.value.place)).collect();
        let at = |line, column, end_line, end_column| Place { line, column, end_line, end_column };
        assert_eq!(places, [(at(2, 5, 2, 11), at(2, 13, 2, 14)), (at(3, 5, 3, 8), at(3, 10, 4, 8))]);
    }

    #[test]
    fn places_are_those_of_the_file_that_the_text_stands_in() {
        let Yaml::Map(entries) = parse_below("a:\n  - b", 3).unwrap().unwrap().value else { panic!() };
        let Yaml::List(items) = &entries[0].value.value else { panic!() };
        let at = |line, column, end_column| Place { line, column, end_line: line, end_column };
        assert_eq!((entries[0].place, items[0].place), (at(4, 1, 2), at(5, 5, 6)));
        let faults = parse_below("a: 1\na: 2", 3).unwrap_err();
        assert_eq!((faults[0].place, faults[0].first), (at(5, 1, 2), Some(at(4, 1, 2))));
    }

    #[test]
    fn an_alias_repeats_what_it_names() {
        assert_eq!(json("a: &x {b: 1}\nc: *x"), serde_json::json!({"a": {"b": 1}, "c": {"b": 1}}));
    }

    #[test]
    fn faults_name_their_place() {
        assert_eq!(
            faults("a: 1\nb: 2\na: 3\nb: 4"),
            ["3:1: The key `a` is there twice", "4:1: The key `b` is there twice"]
        );
        assert_eq!(faults("a: 1\n---\nb: 2"), ["2:1: A second document begins here"]);
        assert_eq!(faults("a: !env X"), ["1:4: The tag `!env` has no meaning here"]);
        assert_eq!(faults("&a [*a]"), ["1:5: The alias stands inside what it repeats"]);
        assert_eq!(faults("[a]: 1"), ["1:1: A key is no plain text"]);
        assert_eq!(faults("a: b: c"), ["1:5: This is no YAML: mapping values are not allowed in this context"]);
    }

    #[test]
    fn aliases_cannot_multiply_without_end() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let before = format!("*a{}, ", level - 1).repeat(10);
            writeln!(text, "a{level}: &a{level} [{before}]").unwrap();
        }
        assert_eq!(faults(&text), ["5:35: The file has more than 100000 values, aliases counted"]);
    }

    #[test]
    fn nesting_is_bounded() {
        assert_eq!(faults(&"[".repeat(100_000)).len(), 1);
        assert_eq!(faults(&"- ".repeat(100_000)).len(), 1);
        let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(40), "]".repeat(40));
        let text = format!("- &a {}\n- {}\n", nested("1"), nested("*a"));
        assert_eq!(faults(&text), ["2:43: Values are nested deeper than 64 levels"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), yaml in "[-a:\\[\\]{}#&*!|>'\"%@`?, \n\t0.~]{0,60}") {
            let _ = parse(&text);
            let _ = parse(&yaml);
        }
    }
}
