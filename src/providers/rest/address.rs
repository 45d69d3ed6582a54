//! The address of a tool: arguments may stand in its path, and change nothing else of it.

use std::fmt::{self, Write as _};

use reqwest::Url;
use serde_json::Value;

use super::template::{Piece, Template, given};
use crate::conversation::Object;

/// An address whose path has arguments.
#[derive(Clone, PartialEq)]
pub(crate) struct Address {
    /// Without its path.
    base: Url,
    segments: Vec<Template>,
}

impl Address {
    /// Reads an address. In its path `{name}` is an argument.
    ///
    /// # Errors
    ///
    /// What is wrong, in words that follow the name of the text; never a part of it, which may be secret.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let no_address = "is no HTTP address";
        let text = text.trim();
        let scheme = ["https://", "http://"].into_iter().find(|scheme| text.starts_with(scheme)).ok_or(no_address)?;
        let after = &text[scheme.len()..];
        let (host, rest) = after.split_at(after.find(['/', '?', '#']).unwrap_or(after.len()));
        let (path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        if host.contains(['{', '}']) {
            return Err("has an argument in its host");
        }
        if host.contains('@') {
            return Err("has a user's name in it");
        }
        // A brace that is written twice is a brace.
        if query.replace("{{", "").replace("}}", "").contains(['{', '}']) {
            return Err("has an argument behind its path");
        }
        let query = query.replace("{{", "{").replace("}}", "}");
        let base = Url::parse(&format!("{scheme}{host}/{query}")).map_err(|_| no_address)?;
        let segments = path.strip_prefix('/').unwrap_or(path).split('/');
        let segments: Vec<_> = segments.map(Template::parse).collect::<Result<_, _>>()?;
        let is_step = |segment: &Template| matches!(segment.pieces(), [Piece::Text(text)] if steps(text));
        if segments.iter().any(is_step) {
            return Err("has a `.` or `..` as a part of its path");
        }
        Ok(Self { base, segments })
    }

    /// The names of its arguments.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(Template::arguments)
    }

    /// Scheme, host and port.
    pub(super) fn origin(&self) -> String {
        self.base.origin().ascii_serialization()
    }

    /// The address without its path.
    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    /// The address with its arguments in place.
    ///
    /// # Errors
    ///
    /// An argument that is not given, or that would be another path.
    pub(super) fn url(&self, arguments: &Object) -> Result<Url, String> {
        let segments: Vec<_> =
            self.segments.iter().map(|segment| part(segment, arguments)).collect::<Result<_, _>>()?;
        let mut url = self.base.clone();
        url.set_path(&segments.join("/"));
        // Whatever came through would be another address than the one that is written.
        if url.origin() != self.base.origin() || url.path().split('/').count() != segments.len() + 1 {
            return Err("its arguments make another path of its address".to_owned());
        }
        Ok(url)
    }
}

/// One part of a path. None of its arguments may end it, leave it, or make it vanish: `/users/` is another address than `/users/7`.
fn part(segment: &Template, arguments: &Object) -> Result<String, String> {
    let mut part = String::new();
    let mut last = None;
    for piece in segment.pieces() {
        match piece {
            Piece::Text(text) => part.push_str(text),
            Piece::Argument(name) => {
                last = Some(name);
                let text = match given(arguments, name) {
                    Some(Value::String(text)) => text.clone(),
                    Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
                    Some(_) => return Err(format!("the argument `{name}` stands in a path, and is no text or number")),
                    None => return Err(format!("the argument `{name}` is missing")),
                };
                encode(&text, &mut part);
            }
        }
    }
    match last {
        Some(name) if part.is_empty() => Err(format!("the argument `{name}` is empty")),
        Some(name) if steps(&part) => Err(format!("the argument `{name}` would lead to another path")),
        _ => Ok(part),
    }
}

/// Whether a part of a path means this folder or the one above, as browsers and servers read it.
fn steps(part: &str) -> bool {
    matches!(&*part.to_ascii_lowercase().replace("%2e", "."), "." | "..")
}

/// Adds a text of which only letters, digits, `-`, `.`, `_` and `~` stay as they are (RFC 3986, section 2.3).
pub(crate) fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            into.push(char::from(byte));
        } else {
            // A text takes whatever is written to it.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

/// Shows the host and the arguments: a path may hold a key.
impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Address")
            .field("origin", &self.origin())
            .field("segments", &self.segments)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn url(template: &str, arguments: Value) -> Result<String, String> {
        let Value::Object(arguments) = arguments else { panic!("{arguments} is no object") };
        Address::parse(template).unwrap().url(&arguments).map(|url| url.to_string())
    }

    #[test]
    fn arguments_are_put_into_the_path() {
        let whole = "https://api.test:81/v1/{city}/days/{n}.json?units=metric";
        assert_eq!(
            url(whole, json!({"city": "Kraków / Nowa", "n": 3})),
            Ok("https://api.test:81/v1/Krak%C3%B3w%20%2F%20Nowa/days/3.json?units=metric".into())
        );
        assert_eq!(url("http://a", json!({})), Ok("http://a/".into()));
        assert_eq!(url("http://a/b/", json!({})), Ok("http://a/b/".into()));
        assert_eq!(url("http://a/{{x}}?q={{y}}", json!({})), Ok("http://a/%7Bx%7D?q={y}".into()));
    }

    #[test]
    fn an_argument_changes_no_more_than_its_part() {
        for (value, expected) in [
            ("../admin", "http://a/b/..%2Fadmin/c"),
            ("x?y#z", "http://a/b/x%3Fy%23z/c"),
            ("//evil.test", "http://a/b/%2F%2Fevil.test/c"),
            ("\\..\\x", "http://a/b/%5C..%5Cx/c"),
            ("a\r\nb\t", "http://a/b/a%0D%0Ab%09/c"),
            ("%2e%2e", "http://a/b/%252e%252e/c"),
            ("...", "http://a/b/.../c"),
        ] {
            assert_eq!(url("http://a/b/{x}/c", json!({"x": value})), Ok(expected.into()));
        }
    }

    #[test]
    fn an_argument_that_would_be_another_path_is_refused() {
        let of = |template: &str, value: Value| url(template, json!({"x": value})).unwrap_err();
        for (template, value) in
            [("http://a/{x}/c", ".."), ("http://a/{x}", "."), ("http://a/.{x}", "."), ("http://a/%2e{x}/b", ".")]
        {
            assert_eq!(of(template, json!(value)), "the argument `x` would lead to another path", "{template}");
        }
        assert_eq!(of("http://a/{x}", json!("")), "the argument `x` is empty");
        assert_eq!(of("http://a/{x}", Value::Null), "the argument `x` is missing");
        assert_eq!(of("http://a/{x}", json!([1])), "the argument `x` stands in a path, and is no text or number");
    }

    #[test]
    fn what_is_no_address_is_told() {
        for (text, expected) in [
            ("a/b", "is no HTTP address"),
            ("ftp://a", "is no HTTP address"),
            ("http://", "is no HTTP address"),
            ("http://a b/", "is no HTTP address"),
            ("http://{x}/", "has an argument in its host"),
            ("http://a{x}", "has an argument in its host"),
            ("http://me:key@a/", "has a user's name in it"),
            ("http://a/b?c={x}", "has an argument behind its path"),
            ("http://a#{x}", "has an argument behind its path"),
            ("http://a/{x", "has a `{` that begins no argument"),
            ("http://a/../b", "has a `.` or `..` as a part of its path"),
        ] {
            assert_eq!(Address::parse(text), Err(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_argument_leaves_its_part(value in any::<String>()) {
            let address = Address::parse("http://a.test/b/{x}/c?d").unwrap();
            let arguments = [("x".to_owned(), Value::String(value))].into_iter().collect();
            if let Ok(url) = address.url(&arguments) {
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!((segments.len(), segments[0], segments[2]), (3, "b", "c"));
                prop_assert_eq!((url.host_str(), url.query(), url.fragment()), (Some("a.test"), Some("d"), None));
            }
        }
    }
}
