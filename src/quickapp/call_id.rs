//! The id of a call that a hook has made: all that the engine keeps of it, since the conversation lies with the client.
//!
//! `th_` and 36 characters of base64url, 39 together (providers refuse more than 40). The 36 stand for 27 bytes, so that no bit is left
//! over and no two texts mean the same:
//!
//! | Bytes | What | Bits |
//! |---|---|---|
//! | 0–2 | tag: a keyed digest of tool and template; it is whole letters, so that a look at the text finds it | 24 |
//! | 3–7 | when the result expires, in seconds since 1970, big-endian; 0: it does not | 40 (to the year 36812) |
//! | 8–12 | nonce: zero where the same result has the same id, else what tells one turn's pair from another's | 40 |
//! | 13–26 | seal: HMAC-SHA256 over the 13 bytes before it and the pair's identity, truncated | 112 |
//!
//! The *identity* is the full SHA-256 digest of tool, unrendered arguments and content; it does not stand in the id but is computed from
//! what is found beside it, so that a pair whose content was changed does not verify, and no two contents are ever taken for the same.
//!
//! **Strength.** One guess at a seal holds with a probability of 2^-112, and guesses can only be made online. Of n pairs with random
//! nonces and the same result in one conversation two have the same id with a probability of n²/2^41 (a thousand: 5 in 10^7). The tag
//! proves nothing: it spares the digest of contents that belong to other hooks, so that a conversation costs about one digest of its text
//! and not one for each hook.
//!
//! **Not covered.** The arguments that a pair shows (they differ from turn to turn), and the conversation: a client can bring a genuine
//! pair from another one, or leave later ones out; it holds no longer than its own expiry.

use std::fmt;

use ring::{digest, hmac};

/// What the ids begin with.
const PREFIX: &str = "th_";

/// The alphabet of base64url (RFC 4648, section 5).
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const TAG: usize = 3;
const EXPIRY: usize = 5;
const NONCE: usize = 5;
const HEAD: usize = TAG + EXPIRY + NONCE;
const BYTES: usize = 27;

/// The latest expiry that fits.
const LATEST: u64 = (1 << (8 * EXPIRY)) - 1;

/// What a digest is made for, so that one never passes for the other.
const FOR_TAG: &[u8] = b"tenterhook quickapp tag 1";
const FOR_SEAL: &[u8] = b"tenterhook quickapp seal 1";

/// The key that ids are sealed with. Replicas that serve the same conversations need the same; apps that must not take each other's
/// pairs need different ones.
#[derive(Clone, Debug)]
pub(crate) struct Key(hmac::Key);

impl Key {
    /// The key with this secret; at least 16 random bytes, or the secret is what is guessed.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    fn digest<const N: usize>(&self, purpose: &[u8], parts: [&[u8]; 2]) -> [u8; N] {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(purpose);
        for part in parts {
            context.update(part);
        }
        let digest = context.sign();
        std::array::from_fn(|at| digest.as_ref()[at])
    }
}

/// A SHA-256 digest.
pub(super) type Digest = [u8; digest::SHA256_OUTPUT_LEN];

/// The digest of these parts; none can pass for another, since each but the last has its length before it.
pub(super) fn digest_of<const N: usize>(parts: [&[u8]; N]) -> Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    for (at, part) in parts.into_iter().enumerate() {
        if at + 1 < N {
            context.update(&(part.len() as u64).to_be_bytes());
        }
        context.update(part);
    }
    let digest = context.finish();
    std::array::from_fn(|at| digest.as_ref()[at])
}

/// Which hooks a pair can be of: those with another tag cannot have made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tag([u8; TAG]);

impl Tag {
    /// The tag of a tool and a template with this digest.
    pub(super) fn new(key: &Key, origin: &Digest) -> Self {
        Self(key.digest(FOR_TAG, [origin, &[]]))
    }

    /// What the ids with this tag begin with.
    pub(super) fn beginning(self) -> String {
        PREFIX.chars().chain(letters(&self.0)).collect()
    }
}

/// What an id says beside whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// When the result expires, in seconds since 1970 (UTC); none: it does not.
    pub(crate) expiry: Option<u64>,
    /// For a pair that is added every turn: a random number, of which 40 bits are used. Zero: the same result has the same id.
    pub(crate) nonce: u64,
}

/// An id that has the form; whether it is genuine, [`CallId::verifies`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallId([u8; BYTES]);

impl CallId {
    /// The id of a pair with this identity.
    pub(super) fn new(key: &Key, tag: Tag, identity: &Digest, stamp: Stamp) -> Self {
        let mut bytes = [0; BYTES];
        let expiry = stamp.expiry.map_or(0, |expiry| expiry.clamp(1, LATEST));
        bytes[..TAG].copy_from_slice(&tag.0);
        bytes[TAG..][..EXPIRY].copy_from_slice(&expiry.to_be_bytes()[8 - EXPIRY..]);
        bytes[TAG + EXPIRY..][..NONCE].copy_from_slice(&stamp.nonce.to_be_bytes()[8 - NONCE..]);
        let seal = seal(key, &bytes[..HEAD], identity);
        bytes[HEAD..].copy_from_slice(&seal);
        Self(bytes)
    }

    /// Reads an id; none: it has another form, so that no hook has made it.
    pub(super) fn read(text: &str) -> Option<Self> {
        let letters = text.strip_prefix(PREFIX)?.as_bytes();
        if letters.len() != BYTES / 3 * 4 {
            return None;
        }
        let mut bytes = [0; BYTES];
        for (three, four) in bytes.chunks_exact_mut(3).zip(letters.chunks_exact(4)) {
            let mut bits = 0;
            for letter in four {
                bits = bits << 6 | value_of(*letter)?;
            }
            three.copy_from_slice(&bits.to_be_bytes()[1..]);
        }
        Some(Self(bytes))
    }

    /// Whether this id was made with the key, for a pair with this identity, and is as it was.
    pub(super) fn verifies(&self, key: &Key, identity: &Digest) -> bool {
        let expected = seal(key, &self.0[..HEAD], identity);
        // All bytes are compared: how long it takes does not tell how many were right.
        self.0[HEAD..].iter().zip(expected).fold(0, |differing, (is, should)| differing | (is ^ should)) == 0
    }

    /// Which hooks it can be of.
    pub(super) fn tag(&self) -> Tag {
        Tag(std::array::from_fn(|at| self.0[at]))
    }

    /// When the result expires, in seconds since 1970; none: it does not.
    pub(super) fn expiry(&self) -> Option<u64> {
        let expiry = self.0[TAG..][..EXPIRY].iter().fold(0, |expiry, byte| expiry << 8 | u64::from(*byte));
        (expiry != 0).then_some(expiry)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        letters(&self.0).try_for_each(|letter| fmt::Write::write_char(f, letter))
    }
}

/// The bytes as letters, four for three.
fn letters(bytes: &[u8]) -> impl Iterator<Item = char> {
    bytes.chunks_exact(3).flat_map(|three| {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| ALPHABET[bits >> shift & 63].into())
    })
}

fn seal(key: &Key, head: &[u8], identity: &Digest) -> [u8; BYTES - HEAD] {
    key.digest(FOR_SEAL, [head, identity])
}

/// The six bits that a letter stands for.
const fn value_of(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(value as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(stamp: Stamp) -> CallId {
        CallId::new(&Key::new(b"secret"), Tag([7, 8, 9]), &[1; 32], stamp)
    }

    #[test]
    fn an_id_says_when_it_expires_and_whose_it_can_be() {
        let read = CallId::read(&id(Stamp { expiry: Some(1_700_000_600), nonce: 5 }).to_string()).unwrap();
        assert_eq!((read.expiry(), read.tag()), (Some(1_700_000_600), Tag([7, 8, 9])));
        assert_eq!(id(Stamp::default()).expiry(), None);
    }

    #[test]
    fn an_expiry_that_does_not_fit_is_the_nearest_that_does() {
        assert_eq!(id(Stamp { expiry: Some(u64::MAX), nonce: 0 }).expiry(), Some(LATEST));
        assert_eq!(id(Stamp { expiry: Some(0), nonce: 0 }).expiry(), Some(1));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(digest_of([b"ab", b"c"]), digest_of([b"a", b"bc"]));
    }

    proptest! {
        #[test]
        fn an_id_has_a_form_that_every_provider_takes_and_is_read_as_it_was_written(
            expiry in any::<Option<u64>>(), nonce: u64, identity: [u8; 32], tag: [u8; 3],
        ) {
            let key = Key::new(b"secret");
            let id = CallId::new(&key, Tag(tag), &identity, Stamp { expiry, nonce });
            let text = id.to_string();
            prop_assert!((1..=40).contains(&text.len()));
            prop_assert!(text.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"_-".contains(&letter)));
            prop_assert_eq!(CallId::read(&text), Some(id));
            prop_assert!(text.starts_with(&Tag(tag).beginning()));
            prop_assert!(id.verifies(&key, &identity));
        }

        #[test]
        fn an_id_with_any_bit_changed_does_not_verify(at in 0..BYTES * 8, stamp in any::<(Option<u64>, u64)>()) {
            let mut forged = id(Stamp { expiry: stamp.0, nonce: stamp.1 });
            forged.0[at / 8] ^= 1 << (at % 8);
            prop_assert!(!forged.verifies(&Key::new(b"secret"), &[1; 32]));
        }

        #[test]
        fn an_invented_id_does_not_verify(text in "th_[A-Za-z0-9_-]{36}", identity: [u8; 32]) {
            prop_assert!(!CallId::read(&text).unwrap().verifies(&Key::new(b"secret"), &identity));
        }

        #[test]
        fn what_has_another_form_is_no_id(text in prop_oneof!["\\PC*", "th_.{0,40}", "th_[A-Za-z0-9_=-]{35,37}"]) {
            if let Some(id) = CallId::read(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
