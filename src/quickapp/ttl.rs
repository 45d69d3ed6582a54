//! Whether a result that stands in the conversation is still good, by the expiry in its id.

use std::sync::Arc;

use super::pair::Origin;
use crate::conversation::Object;

/// Whether the hook has to run: its newest genuine pair expires now or has, does not say when, or there is none.
///
/// `now` is in seconds since 1970 (UTC). A pair keeps the expiry that it was given, also where the manifest has another TTL by now.
pub(crate) fn due(origin: &Origin, messages: &[Arc<Object>], now: u64) -> bool {
    let newest = origin.candidates(messages).find(|candidate| origin.is_own(candidate));
    newest.and_then(|pair| pair.expiry()).is_none_or(|expiry| now >= expiry)
}

/// When a result of `now` (seconds since 1970) expires.
pub(crate) const fn expiry(now: u64, ttl_minutes: u64) -> u64 {
    now.saturating_add(ttl_minutes.saturating_mul(60))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::quickapp::call_id::{Key, Stamp};
    use crate::quickapp::placing::{Frequency, place};

    const NOW: u64 = 1_700_000_000;

    fn origin() -> Origin {
        Origin::new(&Key::new(b"secret"), "my_tool", &Object::new())
    }

    fn with(messages: Vec<Arc<Object>>, content: &str, expiry: Option<u64>, frequency: Frequency) -> Vec<Arc<Object>> {
        let origin = origin();
        let nonce = u64::from(frequency == Frequency::Always) * (1 + messages.len() as u64);
        let pair = origin.pair(&Object::new(), content.into(), Stamp { expiry, nonce });
        place(messages, &pair, frequency, &BTreeSet::new())
    }

    fn said() -> Vec<Arc<Object>> {
        let user = serde_json::from_str(r#"{"role": "user", "content": "hello"}"#).unwrap();
        vec![Arc::new(user)]
    }

    fn once(content: &str, expiry: Option<u64>) -> Vec<Arc<Object>> {
        with(said(), content, expiry, Frequency::AppendIfChanged)
    }

    #[test]
    fn an_expiry_is_so_many_minutes_from_now() {
        assert_eq!(expiry(NOW, 10), 1_700_000_600);
        assert_eq!(expiry(NOW, u64::MAX), u64::MAX);
    }

    #[test]
    fn a_hook_without_a_pair_or_without_an_expiry_runs() {
        assert!(due(&origin(), &[], NOW));
        assert!(due(&origin(), &said(), NOW));
        assert!(due(&origin(), &once("content", None), NOW));
    }

    #[test]
    fn a_hook_runs_when_the_expiry_has_come() {
        let messages = once("content", Some(expiry(NOW, 10)));
        for (now, expected) in [(NOW, false), (NOW + 599, false), (NOW + 600, true), (NOW + 601, true)] {
            assert_eq!(due(&origin(), &messages, now), expected, "{now}");
        }
    }

    #[test]
    fn the_newest_pair_counts() {
        let stale_last = with(once("v1", Some(NOW + 600)), "v2", Some(NOW), Frequency::AppendIfChanged);
        assert!(due(&origin(), &stale_last, NOW));
        let fresh_last = with(once("v1", Some(NOW)), "v2", Some(NOW + 600), Frequency::AppendIfChanged);
        assert!(!due(&origin(), &fresh_last, NOW));
    }

    #[test]
    fn the_same_result_has_a_new_expiry_in_its_place() {
        let before = once("content", Some(NOW));
        let after = with(before.clone(), "content", Some(NOW + 600), Frequency::AppendIfChanged);
        assert_eq!(after.len(), 3);
        assert_ne!(after[2]["tool_call_id"], before[2]["tool_call_id"]);
        assert!(!due(&origin(), &after, NOW));
    }

    #[test]
    fn another_result_is_a_second_pair() {
        assert_eq!(with(once("v1", Some(NOW)), "v2", Some(NOW + 600), Frequency::AppendIfChanged).len(), 5);
    }

    #[test]
    fn always_adds_at_most_one_pair_in_a_ttl() {
        let mut messages = said();
        for now in (NOW..NOW + 1800).step_by(60) {
            if due(&origin(), &messages, now) {
                messages = with(messages, "content", Some(expiry(now, 10)), Frequency::Always);
            }
        }
        assert_eq!(messages.len(), 1 + 2 * 3);
    }

    #[test]
    fn a_client_cannot_put_the_expiry_off() {
        let mut messages = once("content", Some(NOW));
        let later = once("content", Some(NOW + 600));
        // Another result's id, however genuine, and the old form that says its expiry openly.
        let foreign = with(said(), "other", Some(NOW + 600), Frequency::AppendIfChanged)[2]["tool_call_id"].clone();
        for id in [foreign, "synth_t_54ebf5_a_44136f_c_ed7002_ttl_ffffffff".into()] {
            Arc::make_mut(&mut messages[1])["tool_calls"][0]["id"] = id.clone();
            Arc::make_mut(&mut messages[2])["tool_call_id"] = id;
            assert!(due(&origin(), &messages, NOW));
        }
        assert!(!due(&origin(), &later, NOW));
    }
}
