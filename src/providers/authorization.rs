//! What an HTTP server wants to see of whoever asks it.

use std::fmt;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

/// What is sent with each request to a server.
#[derive(Clone, PartialEq, Eq)]
pub enum HttpAuthorization {
    /// `Authorization: Bearer …`. White space around the token is cut, and an empty one is none.
    Bearer(String),
    /// A header of the server's own, such as `Api-Key`. White space around the value is cut.
    Header {
        /// The header's name.
        name: String,
        /// Its value.
        value: String,
    },
    /// `Authorization: Basic …` (RFC 7617), in UTF-8.
    Basic {
        /// The user's name, which has no colon.
        username: String,
        /// The password.
        password: String,
    },
}

impl HttpAuthorization {
    /// The header that it is, if it is any.
    ///
    /// # Errors
    ///
    /// What of it no header can hold.
    pub(super) fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, &'static str> {
        let (name, value) = match self {
            Self::Bearer(token) if token.trim().is_empty() => return Ok(None),
            Self::Bearer(token) => (AUTHORIZATION, format!("Bearer {}", token.trim())),
            Self::Header { name, value } => {
                (HeaderName::from_bytes(name.as_bytes()).map_err(|_| self.what())?, value.trim().to_owned())
            }
            Self::Basic { username, .. } if username.contains(':') => return Err("user name"),
            Self::Basic { .. } => (AUTHORIZATION, format!("Basic {}", self.encoded())),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| self.what())?;
        value.set_sensitive(true);
        Ok(Some((name, value)))
    }

    /// What people call it.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Bearer(_) => "token",
            Self::Header { .. } => "key",
            Self::Basic { .. } => "password",
        }
    }

    /// What no text is to show of it.
    pub(super) fn secrets(&self) -> Vec<String> {
        match self {
            Self::Bearer(secret) | Self::Header { value: secret, .. } => vec![secret.trim().to_owned()],
            Self::Basic { password, .. } => vec![password.clone(), self.encoded()],
        }
    }

    /// Name and password as the header has them; empty for others.
    fn encoded(&self) -> String {
        match self {
            Self::Basic { username, password } => base64(format!("{username}:{password}").as_bytes()),
            Self::Bearer(_) | Self::Header { .. } => String::new(),
        }
    }
}

/// Shows of the secrets only that they are there.
impl fmt::Debug for HttpAuthorization {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer(_) => out.debug_struct("Bearer").finish_non_exhaustive(),
            Self::Header { name, .. } => out.debug_struct("Header").field("name", name).finish_non_exhaustive(),
            Self::Basic { username, .. } => {
                out.debug_struct("Basic").field("username", username).finish_non_exhaustive()
            }
        }
    }
}

/// Base64 with padding (RFC 4648, section 4): not worth a dependency of its own.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().enumerate().fold(0_u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let index = (bits >> (18 - 6 * at)) & 63;
            text.push(if at <= group.len() { char::from(ALPHABET[index as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(authorization: &HttpAuthorization) -> Result<Option<String>, &'static str> {
        let shown = |(name, value): (HeaderName, HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        Ok(authorization.header()?.map(shown))
    }

    fn basic(username: &str, password: &str) -> HttpAuthorization {
        HttpAuthorization::Basic { username: username.into(), password: password.into() }
    }

    fn own(name: &str, value: &str) -> HttpAuthorization {
        HttpAuthorization::Header { name: name.into(), value: value.into() }
    }

    #[test]
    fn each_is_its_header() {
        assert_eq!(header(&HttpAuthorization::Bearer(" k-1\n".into())), Ok(Some("authorization: Bearer k-1".into())));
        assert_eq!(header(&HttpAuthorization::Bearer(" ".into())), Ok(None));
        assert_eq!(header(&own("Api-Key", "k-1\n")), Ok(Some("api-key: k-1".into())));
        // The example of RFC 7617.
        let example = "authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned();
        assert_eq!(header(&basic("Aladdin", "open sesame")), Ok(Some(example)));
    }

    #[test]
    fn what_no_header_can_hold_is_named() {
        assert_eq!(header(&HttpAuthorization::Bearer("a\r\nb".into())), Err("token"));
        assert_eq!(header(&own("Api-Key", "a\nb")), Err("key"));
        assert_eq!(header(&own("Api Key", "a")), Err("key"));
        assert_eq!(header(&basic("a:b", "c")), Err("user name"));
    }

    #[test]
    fn nothing_shows_a_secret() {
        for authorization in [HttpAuthorization::Bearer("k-123".into()), own("Api-Key", "k-123"), basic("me", "k-123")]
        {
            let shown = format!("{authorization:?} {:?}", authorization.header());
            assert!(!shown.contains("k-123") && !shown.contains("bWU6"), "{shown}");
        }
    }

    #[test]
    fn base64_is_as_its_rfc_has_it() {
        // RFC 4648, section 10.
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }
}
