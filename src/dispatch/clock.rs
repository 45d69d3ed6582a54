//! One thread that lets deadlines fall. It never attaches to the interpreter, so no handler can make a verdict late.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// What has a deadline. What has been dropped before it is forgotten.
pub(super) trait Expire: Send + Sync {
    /// The deadline has come.
    fn expire(&self);
}

/// Lets `what` expire at `when`, unless it has been dropped by then.
pub(super) fn expire_at(when: Instant, what: Weak<dyn Expire>) {
    CLOCK.push(when, what);
}

/// Ends after `time`, on any runtime or none.
pub(crate) async fn sleep(time: Duration) {
    struct Alarm(Mutex<Option<oneshot::Sender<()>>>);
    impl Expire for Alarm {
        fn expire(&self) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }
    let (sender, dropped) = oneshot::channel();
    let alarm: Arc<dyn Expire> = Arc::new(Alarm(Mutex::new(Some(sender))));
    match Instant::now().checked_add(time) {
        Some(when) => expire_at(when, Arc::downgrade(&alarm)),
        None => std::future::pending().await,
    }
    // The sender is dropped at the deadline: that is the ring.
    let _ = dropped.await;
}

static CLOCK: LazyLock<Arc<Clock>> = LazyLock::new(|| {
    let clock = Arc::new(Clock { deadlines: Mutex::default(), earlier: Condvar::new() });
    let ticking = Arc::clone(&clock);
    thread::Builder::new()
        .name("tenterhook-clock".into())
        .spawn(move || ticking.run())
        .expect("the process can start one thread");
    clock
});

/// Dropped entries are swept out when there are more than this many, and again whenever the rest has doubled.
const SWEEP_FROM: usize = 4096;

struct Clock {
    deadlines: Mutex<Deadlines>,
    earlier: Condvar,
}

struct Deadlines {
    heap: BinaryHeap<Reverse<Entry>>,
    serial: u64,
    sweep_at: usize,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), serial: 0, sweep_at: SWEEP_FROM }
    }
}

struct Entry {
    when: Instant,
    serial: u64,
    what: Weak<dyn Expire>,
}

impl Clock {
    fn push(&self, when: Instant, what: Weak<dyn Expire>) {
        let mut deadlines = self.lock();
        let first = deadlines.heap.peek().is_none_or(|Reverse(next)| when < next.when);
        let serial = deadlines.serial;
        deadlines.serial += 1;
        deadlines.heap.push(Reverse(Entry { when, serial, what }));
        if deadlines.heap.len() > deadlines.sweep_at {
            deadlines.heap.retain(|Reverse(entry)| entry.what.strong_count() > 0);
            deadlines.sweep_at = SWEEP_FROM.max(2 * deadlines.heap.len());
        }
        drop(deadlines);
        if first {
            self.earlier.notify_one();
        }
    }

    fn run(&self) {
        let mut deadlines = self.lock();
        loop {
            let now = Instant::now();
            let mut due = Vec::new();
            while deadlines.heap.peek().is_some_and(|Reverse(next)| next.when <= now) {
                due.extend(deadlines.heap.pop().and_then(|Reverse(entry)| entry.what.upgrade()));
            }
            if !due.is_empty() {
                drop(deadlines);
                for what in due {
                    // What hears of a verdict may panic; the other deadlines still fall.
                    let _ = panic::catch_unwind(AssertUnwindSafe(|| what.expire()));
                }
                deadlines = self.lock();
                continue;
            }
            let next = deadlines.heap.peek().map(|Reverse(next)| next.when);
            deadlines = match next {
                None => self.earlier.wait(deadlines).unwrap_or_else(PoisonError::into_inner),
                Some(when) => {
                    let wait = when.saturating_duration_since(now);
                    self.earlier.wait_timeout(deadlines, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Deadlines> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.when, self.serial).cmp(&(other.when, other.serial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    struct Bell(u32, mpsc::Sender<u32>);

    impl Expire for Bell {
        fn expire(&self) {
            self.1.send(self.0).unwrap();
        }
    }

    #[test]
    fn deadlines_fall_in_their_order_and_dropped_ones_never() {
        let (told, heard) = mpsc::channel();
        let start = Instant::now();
        let bells: Vec<Arc<dyn Expire>> =
            (0..4).map(|number| Arc::new(Bell(number, told.clone())) as Arc<dyn Expire>).collect();
        for (bell, after) in bells.iter().zip([60_u64, 20, 40, 30]) {
            expire_at(start + Duration::from_millis(after), Arc::downgrade(bell));
        }
        let kept: Vec<_> = bells.into_iter().enumerate().filter(|(number, _)| *number != 3).collect();
        assert_eq!(heard.iter().take(3).collect::<Vec<_>>(), [1, 2, 0]);
        assert!(start.elapsed() >= Duration::from_millis(60));
        drop(kept);
    }
}
