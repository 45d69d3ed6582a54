//! Who may stop an execution, and how it hears of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::Notify;

/// The reason of an abort that names none.
pub const ABORTED: &str = "The operation was aborted";

static LAST: AtomicU64 = AtomicU64::new(1);
static OPEN: LazyLock<Mutex<HashMap<u64, Weak<Inner>>>> = LazyLock::new(Mutex::default);

/// Requests that an execution be cancelled, and tells whether that has been requested. Cheap to clone: all clones are the same.
///
/// An abort undoes nothing. It is looked at after every hook and before every tool, and it ends a model call and code that runs.
#[derive(Clone)]
pub struct Controller(Arc<Inner>);

struct Inner {
    number: u64,
    reason: OnceLock<String>,
    told: Notify,
    /// Whose aborts are its own as well; its own are not theirs.
    outer: Option<Controller>,
}

impl Controller {
    /// One that nobody has aborted.
    pub fn new() -> Self {
        Self::made(None)
    }

    /// One that is aborted, with the same reason, when this one is; to abort it does not abort this one.
    #[must_use]
    pub fn joined(&self) -> Self {
        Self::made(Some(self.clone()))
    }

    fn made(outer: Option<Self>) -> Self {
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let inner = Arc::new(Inner { number, reason: OnceLock::new(), told: Notify::new(), outer });
        lock().insert(number, Arc::downgrade(&inner));
        Self(inner)
    }

    /// Requests cancellation; only the first reason counts.
    pub fn abort(&self, reason: impl Into<String>) {
        if self.0.reason.set(reason.into()).is_ok() {
            self.0.told.notify_waiters();
        }
    }

    /// The reason, where cancellation has been requested.
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.get().map(String::as_str).or_else(|| self.0.outer.as_ref().and_then(Self::reason))
    }

    /// Whether cancellation has been requested.
    pub fn is_aborted(&self) -> bool {
        self.reason().is_some()
    }

    /// Ends when cancellation is requested.
    pub async fn aborted(&self) {
        let mut heard = Vec::new();
        let mut next = Some(self);
        while let Some(controller) = next {
            let mut notified = Box::pin(controller.0.told.notified());
            // From here on it misses nothing.
            notified.as_mut().enable();
            heard.push(notified);
            next = controller.0.outer.as_ref();
        }
        if !self.is_aborted() {
            futures_util::future::select_all(heard).await;
        }
    }

    /// Its number, by which whoever cannot hold it finds it.
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }
}

/// The controller of that number, as long as anybody holds it.
pub(crate) fn controller_of(number: u64) -> Option<Controller> {
    lock().get(&number).and_then(Weak::upgrade).map(Controller)
}

fn lock() -> MutexGuard<'static, HashMap<u64, Weak<Inner>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Inner {
    fn drop(&mut self) {
        lock().remove(&self.number);
    }
}

impl Default for Controller {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Controller").field("reason", &self.reason()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn an_outer_abort_is_the_inner_ones_and_not_the_other_way_round() {
        let outer = Controller::new();
        let (first, second) = (outer.joined(), outer.joined());
        first.abort("one");
        assert_eq!((first.reason(), second.reason(), outer.reason()), (Some("one"), None, None));
        outer.abort("all");
        assert_eq!((first.reason(), second.reason(), outer.reason()), (Some("one"), Some("all"), Some("all")));
    }

    #[test]
    fn only_the_first_reason_counts() {
        let controller = Controller::new();
        controller.abort("first");
        controller.abort("second");
        assert_eq!(controller.reason(), Some("first"));
    }

    #[tokio::test]
    async fn whoever_waits_hears_of_an_abort_of_its_own_or_an_outer_one() {
        let outer = Controller::new();
        let inner = outer.joined();
        let waiting = tokio::spawn({
            let inner = inner.clone();
            async move { inner.aborted().await }
        });
        tokio::task::yield_now().await;
        outer.abort("x");
        waiting.await.unwrap();
        assert!(inner.aborted().now_or_never().is_some());
    }

    #[test]
    fn a_number_finds_its_controller_while_it_is_held() {
        let controller = Controller::new();
        let number = controller.number();
        controller_of(number).unwrap().abort("by number");
        assert_eq!(controller.reason(), Some("by number"));
        drop(controller);
        assert!(controller_of(number).is_none());
    }
}
