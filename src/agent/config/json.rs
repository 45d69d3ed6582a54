//! JSON as a tree in which every key and value knows its place, as [`super::yaml`] makes of YAML.
//!
//! YAML's reader would not do: it takes `{"a": 1 "b": 2}` for one text and `tru` for another, and refuses the pairs of escapes by which
//! JSON writes an emoji.

use std::collections::HashMap;

use super::yaml::{DEEPEST, Entry, Fault, MOST_VALUES, Node, Yaml};
use crate::diagnostic::Place;

/// Reads a text. No value stands where it is empty. A fault ends the reading, repeated keys aside.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Vec<Fault>> {
    let mut reader = Reader { rest: text, line: 1, column: 1, left: MOST_VALUES, faults: vec![] };
    match reader.document() {
        Ok(node) if reader.faults.is_empty() => Ok(node),
        Ok(_) => Err(reader.faults),
        Err(fault) => {
            reader.faults.push(fault);
            Err(reader.faults)
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
    line: u32,
    column: u32,
    /// How many values may still come.
    left: usize,
    faults: Vec<Fault>,
}

/// A place between two characters: line and column.
type At = (u32, u32);

impl Reader<'_> {
    fn document(&mut self) -> Result<Option<Node>, Fault> {
        self.blanks()?;
        if self.rest.is_empty() {
            return Ok(None);
        }
        let root = self.value(0)?;
        self.blanks()?;
        if self.rest.is_empty() { Ok(Some(root)) } else { Err(self.wrong("the end of the file", None)) }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        let start = self.at();
        if depth > DEEPEST {
            return Err(fault(start, format!("Values are nested deeper than {DEEPEST} levels"), None));
        }
        if self.left == 0 {
            return Err(fault(start, format!("The file has more than {MOST_VALUES} values"), None));
        }
        self.left -= 1;
        let value = match self.peek() {
            Some('{') => self.map(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Yaml::Text(self.text()?),
            Some('-' | '0'..='9') => self.number()?,
            Some(letter) if letter.is_alphabetic() => self.word()?,
            Some('\'') => return Err(self.wrong("a value", Some("texts stand in double quotes"))),
            _ => return Err(self.wrong("a value", None)),
        };
        Ok(Node { place: self.since(start), value })
    }

    fn map(&mut self, depth: usize) -> Result<Yaml, Fault> {
        let open = self.at();
        self.next();
        let mut entries: Vec<Entry> = vec![];
        let mut seen: HashMap<String, Place> = HashMap::new();
        while !self.ends('}', "{", open, entries.is_empty())? {
            if self.peek() != Some('"') {
                return Err(self.wrong("a key", Some("keys stand in double quotes")));
            }
            let start = self.at();
            let key = self.text()?;
            let place = self.since(start);
            self.blanks()?;
            if self.peek() != Some(':') {
                return Err(self.wrong("`:`", Some("a value follows each key: `\"key\": value`")));
            }
            self.next();
            self.blanks()?;
            let value = self.value(depth + 1)?;
            if let Some(first) = seen.get(&key) {
                let message = format!("The key `{key}` is there twice");
                self.faults.push(Fault { place, message, hint: Some("keep one of the two"), first: Some(*first) });
            } else {
                seen.insert(key.clone(), place);
                entries.push(Entry { key, place, value });
            }
        }
        Ok(Yaml::Map(entries))
    }

    fn list(&mut self, depth: usize) -> Result<Yaml, Fault> {
        let open = self.at();
        self.next();
        let mut items = vec![];
        while !self.ends(']', "[", open, items.is_empty())? {
            items.push(self.value(depth + 1)?);
        }
        Ok(Yaml::List(items))
    }

    /// Whether a list or mapping ends here; where it does not, the next one of its items does not have a comma before it any more.
    fn ends(&mut self, close: char, opened: &str, open: At, is_first: bool) -> Result<bool, Fault> {
        self.blanks()?;
        match self.peek() {
            Some(letter) if letter == close => {
                self.next();
                return Ok(true);
            }
            None => {
                let message = format!("This is no JSON: the file ends, and the `{opened}` of line {} is open", open.0);
                return Err(fault(self.at(), message, Some("close it")));
            }
            Some(',') if !is_first => {}
            _ if is_first => return Ok(false),
            _ => return Err(self.wrong(&format!("`,` or `{close}`"), None)),
        }
        let comma = self.at();
        self.next();
        self.blanks()?;
        if self.peek() == Some(close) {
            let message = "This is no JSON: no value follows the last `,`".to_owned();
            return Err(fault(comma, message, Some("take the comma out")));
        }
        // What the file's end lacks is told once, with its bracket.
        if self.rest.is_empty() { self.ends(close, opened, open, true) } else { Ok(false) }
    }

    fn text(&mut self) -> Result<String, Fault> {
        let open = self.at();
        self.next();
        let mut text = String::new();
        loop {
            let at = self.at();
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escaped(at)?),
                Some(letter) if letter < ' ' => {
                    let message = format!("This is no JSON: U+{:04X} stands in a text as it is", u32::from(letter));
                    let hint = if letter == '\n' {
                        "end the text, or write the line's end as `\\n`"
                    } else {
                        "write it as an escape, such as `\\t`"
                    };
                    return Err(fault(at, message, Some(hint)));
                }
                Some(letter) => text.push(letter),
                None => {
                    return Err(fault(
                        open,
                        "This is no JSON: the text does not end".to_owned(),
                        Some("put a `\"` at its end"),
                    ));
                }
            }
        }
    }

    /// What stands for the escape whose backslash has been read.
    fn escaped(&mut self, at: At) -> Result<char, Fault> {
        Ok(match self.next() {
            Some(letter @ ('"' | '\\' | '/')) => letter,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let first = self.code_unit(at)?;
                let half = |unit: u32| (0xdc00..0xe000).contains(&unit);
                let code = match first {
                    0xd800..0xdc00 if self.rest.starts_with("\\u") => {
                        self.next();
                        self.next();
                        let second = self.code_unit(at)?;
                        if half(second) { 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00) } else { first }
                    }
                    _ => first,
                };
                let message = || format!("This is no JSON: `\\u{first:04x}` is half a character");
                char::from_u32(code).ok_or_else(|| {
                    fault(at, message(), Some("write both halves of the pair, or the character itself"))
                })?
            }
            _ => {
                let message = "This is no JSON: there is no such escape".to_owned();
                return Err(fault(at, message, Some("write a backslash as `\\\\`")));
            }
        })
    }

    fn code_unit(&mut self, at: At) -> Result<u32, Fault> {
        let digits = self.rest.get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let message = || "This is no JSON: four hexadecimal digits follow `\\u`".to_owned();
        let unit = unit.ok_or_else(|| fault(at, message(), None))?;
        (0..4).for_each(|_| {
            self.next();
        });
        Ok(unit)
    }

    /// A number: whole ones are kept exactly, and refused where that cannot be.
    fn number(&mut self) -> Result<Yaml, Fault> {
        let start = self.at();
        let word = self.run(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
        if !is_number(&word) {
            return Err(fault(start, format!("This is no JSON: `{}` is no number", cut(&word)), None));
        }
        let whole = word.strip_prefix('-').unwrap_or(&word).bytes().all(|digit| digit.is_ascii_digit());
        let read = if whole { word.parse().ok().map(Yaml::Int) } else { word.parse().ok().map(Yaml::Float) };
        match read {
            Some(Yaml::Float(number)) if !number.is_finite() => {}
            Some(read) => return Ok(read),
            None => {}
        }
        let message = format!("The number `{}` is too large to be kept as it is", cut(&word));
        Err(fault(start, message, Some("put it in quotes")))
    }

    fn word(&mut self) -> Result<Yaml, Fault> {
        let start = self.at();
        let word = self.run(|letter| letter.is_alphanumeric() || letter == '_');
        Ok(match &*word {
            "true" => Yaml::Bool(true),
            "false" => Yaml::Bool(false),
            "null" => Yaml::Null,
            _ => {
                let hint = match &*word {
                    "True" | "False" | "None" | "NaN" | "Infinity" | "undefined" => {
                        "JSON has `true`, `false` and `null`"
                    }
                    _ => "put a text in double quotes",
                };
                let message = format!("This is no JSON: `{}` is no value", cut(&word));
                return Err(fault(start, message, Some(hint)));
            }
        })
    }

    /// Passes blanks by.
    fn blanks(&mut self) -> Result<(), Fault> {
        while let Some(' ' | '\t' | '\n' | '\r') = self.peek() {
            self.next();
        }
        if self.rest.starts_with("//") || self.rest.starts_with("/*") || self.rest.starts_with('#') {
            let message = "This is no JSON: it has no comments".to_owned();
            return Err(fault(self.at(), message, Some("take it out, or keep the file as YAML, where `#` begins one")));
        }
        Ok(())
    }

    fn run(&mut self, takes: fn(char) -> bool) -> String {
        let mut run = String::new();
        while let Some(letter) = self.peek().filter(|letter| takes(*letter)) {
            run.push(letter);
            self.next();
        }
        run
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next()?;
        self.rest = letters.as_str();
        if letter == '\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += 1;
        }
        Some(letter)
    }

    fn at(&self) -> At {
        (self.line, self.column)
    }

    fn since(&self, (line, column): At) -> Place {
        Place { line, column, end_line: self.line, end_column: self.column }
    }

    /// Something else than was expected.
    fn wrong(&self, expected: &str, hint: Option<&'static str>) -> Fault {
        let found = match self.peek() {
            Some(letter) if letter.is_control() => format!("`{}`", letter.escape_default()),
            Some(letter) => format!("`{letter}`"),
            None => "the file's end".to_owned(),
        };
        fault(self.at(), format!("This is no JSON: {found} stands where {expected} is expected"), hint)
    }
}

fn fault((line, column): At, message: String, hint: Option<&'static str>) -> Fault {
    let place = Place { line, column, end_line: line, end_column: column + 1 };
    Fault { place, message, hint, first: None }
}

/// Whether a text is a number in JSON's grammar.
fn is_number(text: &str) -> bool {
    fn digits(text: &str) -> Option<&str> {
        let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
        (rest.len() < text.len()).then_some(rest)
    }
    fn number(text: &str) -> Option<&str> {
        let text = text.strip_prefix('-').unwrap_or(text);
        let mut rest = digits(text)?;
        if text.starts_with('0') && text.len() > rest.len() + 1 {
            return None;
        }
        if let Some(fraction) = rest.strip_prefix('.') {
            rest = digits(fraction)?;
        }
        match rest.strip_prefix(['e', 'E']) {
            Some(exponent) => digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
            None => Some(rest),
        }
    }
    number(text).is_some_and(str::is_empty)
}

/// The beginning of a word that may be long.
fn cut(word: &str) -> &str {
    word.char_indices().nth(40).map_or(word, |(at, _)| &word[..at])
}
