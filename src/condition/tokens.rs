//! A condition's text, cut into tokens.

use std::ops::Range;

use serde_json::{Number, Value};

use super::ConditionError;
use super::tree::Comparison;

/// The longest condition, in characters.
const LONGEST: usize = 10_000;

/// How much of a text a message repeats, in characters.
const SHOWN: usize = 60;

const NO_ARITHMETIC: &str = "there is no arithmetic in a condition: let a tool write the result to memory";
const NO_LISTS: &str = "there are no lists in a condition: compare with each value, and join the comparisons with `or`";
const STRAIGHT: &str = "put texts in straight quotes";

/// All signs; those that begin with another one stand before it.
const SIGNS: [(&str, Sign); 31] = [
    ("===", Sign::Foreign("write `==`")),
    ("!==", Sign::Foreign("write `!=`")),
    ("<>", Sign::Foreign("write `!=`")),
    ("=>", Sign::Foreign("write `>=`")),
    ("=<", Sign::Foreign("write `<=`")),
    ("==", Sign::Compares(Comparison::Equal)),
    ("!=", Sign::Compares(Comparison::Unequal)),
    ("<=", Sign::Compares(Comparison::AtMost)),
    ("<", Sign::Compares(Comparison::Less)),
    (">=", Sign::Compares(Comparison::AtLeast)),
    (">", Sign::Compares(Comparison::More)),
    ("=", Sign::Foreign("write `==`")),
    ("&&", Sign::Foreign("write `and`")),
    ("&", Sign::Foreign("write `and`")),
    ("||", Sign::Foreign("write `or`")),
    ("|", Sign::Foreign("write `or`")),
    ("!", Sign::Foreign("write `not`")),
    ("(", Sign::Opens),
    (")", Sign::Closes),
    ("+", Sign::Foreign(NO_ARITHMETIC)),
    ("-", Sign::Foreign(NO_ARITHMETIC)),
    ("*", Sign::Foreign(NO_ARITHMETIC)),
    ("/", Sign::Foreign(NO_ARITHMETIC)),
    ("%", Sign::Foreign(NO_ARITHMETIC)),
    ("[", Sign::Foreign(NO_LISTS)),
    ("{", Sign::Foreign(NO_LISTS)),
    (",", Sign::Foreign(NO_LISTS)),
    ("@", Sign::Foreign("write `session.<skill id | project>.<entry>`, without `@`")),
    ("“", Sign::Foreign(STRAIGHT)),
    ("‘", Sign::Foreign(STRAIGHT)),
    ("`", Sign::Foreign(STRAIGHT)),
];

/// What a sign means.
#[derive(Clone, Copy, Debug)]
enum Sign {
    Compares(Comparison),
    Opens,
    Closes,
    /// Nothing here, but elsewhere; what to write instead.
    Foreign(&'static str),
}

/// A token and where it stands.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
}

/// What a token is.
#[derive(Debug)]
pub(super) enum Kind {
    /// A keyword or a name.
    Word(String),
    /// A number or a text.
    Constant(Value),
    Compares(Comparison),
    Opens,
    Closes,
    End,
}

/// A text that is read token by token, as far as it makes sense.
#[derive(Debug)]
pub(super) struct Tokens {
    letters: Vec<char>,
    at: usize,
}

impl Tokens {
    pub(super) fn new(text: &str) -> Result<Self, ConditionError> {
        let letters: Vec<char> = text.trim_end().chars().collect();
        if letters.is_empty() {
            let hint = "leave it out, or name a memory entry such as `session.project.verified`";
            return Err(ConditionError::new(0..0, "The condition is empty").hint(hint));
        }
        if letters.len() > LONGEST {
            let message = format!("The condition has {} characters, expected at most {LONGEST}", letters.len());
            return Err(ConditionError::new(LONGEST..letters.len(), message));
        }
        Ok(Self { letters, at: 0 })
    }

    /// The next token; [`Kind::End`] from the end on.
    pub(super) fn advance(&mut self) -> Result<Token, ConditionError> {
        self.skip_blanks()?;
        let start = self.at;
        let kind = match self.peek() {
            None => Kind::End,
            Some(quote @ ('"' | '\'')) => self.text(quote)?,
            Some(letter) if letter.is_alphabetic() || letter == '_' => Kind::Word(self.run(&['-'])),
            Some(letter) if letter.is_ascii_digit() => self.number()?,
            Some('-') if self.letters.get(start + 1).is_some_and(char::is_ascii_digit) => self.number()?,
            Some(letter) => self.sign(letter)?,
        };
        Ok(Token { kind, range: start..self.at })
    }

    /// A stretch of the text, as a message may repeat it.
    pub(super) fn shown(&self, range: &Range<usize>) -> String {
        shown(self.letters[range.clone()].iter().copied())
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    fn error(&self, start: usize, message: impl Into<String>) -> ConditionError {
        ConditionError::new(start..self.at, message)
    }

    fn skip_blanks(&mut self) -> Result<(), ConditionError> {
        let start = self.at;
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        let broken = self.letters[start..self.at].iter().any(|letter| matches!(letter, '\n' | '\r'));
        if start > 0 && broken {
            let hint = "begin it with `>` in YAML, which makes one line of many";
            return Err(self.error(start, "A condition is one line").hint(hint));
        }
        Ok(())
    }

    /// A word or a number: letters, digits, `_`, full stops, and `joints` that a letter or digit follows.
    fn run(&mut self, joints: &[char]) -> String {
        let start = self.at;
        self.at += 1;
        while let Some(letter) = self.peek() {
            let follows = || self.letters.get(self.at + 1).is_some_and(|next| next.is_alphanumeric() || *next == '_');
            if !(letter.is_alphanumeric() || matches!(letter, '_' | '.') || joints.contains(&letter) && follows()) {
                break;
            }
            self.at += 1;
        }
        self.letters[start..self.at].iter().collect()
    }

    /// A number, written as in JSON.
    fn number(&mut self) -> Result<Kind, ConditionError> {
        let start = self.at;
        let written = self.run(&['-', '+']);
        // serde_json reads a float fast, but not always to its last bit.
        let exact = |number: Number| {
            if number.is_f64() { Number::from_f64(written.parse().ok()?) } else { Some(number) }
        };
        let number = serde_json::from_str(&written).ok().and_then(exact);
        number.map(|number| Kind::Constant(Value::Number(number))).ok_or_else(|| {
            let message = format!("`{}` is no number", shown(written.chars()));
            self.error(start, message).hint("put a text in quotes; there is no arithmetic in a condition")
        })
    }

    fn text(&mut self, quote: char) -> Result<Kind, ConditionError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.take() {
                Some(letter) if letter == quote => return Ok(Kind::Constant(Value::String(text))),
                Some('\\') if self.at < self.letters.len() => text.push(self.escape()?),
                None | Some('\n' | '\r' | '\\') => {
                    let hint = format!("end the text with `{quote}`");
                    return Err(ConditionError::new(start..start + 1, "A text is not closed").hint(hint));
                }
                Some(letter) => text.push(letter),
            }
        }
    }

    /// What a backslash and what follows it mean: Python's escapes, but for the names of characters and octal numbers.
    fn escape(&mut self) -> Result<char, ConditionError> {
        let start = self.at - 1;
        let digits = match self.take() {
            Some(letter @ ('"' | '\'' | '\\')) => return Ok(letter),
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        let code: String =
            self.letters[self.at..].iter().take(digits).take_while(|letter| letter.is_ascii_hexdigit()).collect();
        self.at += code.len();
        let letter = u32::from_str_radix(&code, 16).ok().filter(|_| code.len() == digits).and_then(char::from_u32);
        letter.ok_or_else(|| {
            let message = format!("`{}` is no escape", self.shown(&(start..self.at)));
            self.error(start, message).hint("write a backslash as `\\\\`")
        })
    }

    fn sign(&mut self, letter: char) -> Result<Kind, ConditionError> {
        let start = self.at;
        let rest = &self.letters[start..];
        let stands = |sign: &str| sign.chars().enumerate().all(|(index, letter)| rest.get(index) == Some(&letter));
        let Some((written, sign)) = SIGNS.into_iter().find(|(written, _)| stands(written)) else {
            self.at += 1;
            return Err(self.error(start, format!("`{}` means nothing in a condition", shown([letter]))));
        };
        self.at += written.chars().count();
        match sign {
            Sign::Compares(comparison) => Ok(Kind::Compares(comparison)),
            Sign::Opens => Ok(Kind::Opens),
            Sign::Closes => Ok(Kind::Closes),
            Sign::Foreign(hint) => {
                Err(self.error(start, format!("`{written}` means nothing in a condition")).hint(hint))
            }
        }
    }
}

/// A text as a message may repeat it: not too long, and without control characters.
pub(super) fn shown(letters: impl IntoIterator<Item = char>) -> String {
    let mut letters = letters.into_iter().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter });
    let mut text: String = letters.by_ref().take(SHOWN).collect();
    if letters.next().is_some() {
        text.push('…');
    }
    text
}
