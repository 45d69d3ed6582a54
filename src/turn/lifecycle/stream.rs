//! Lifecycle events as they fall due.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, unfold};
use futures_util::{Stream, StreamExt as _};

use super::{LONGEST_PAUSE, Look, look};
use crate::dispatch::sleep;
use crate::telemetry::TURN;
use crate::turn::engine::Inner;
use crate::turn::lifecycle::LifecycleEvent;
use crate::turn::session::now_ms;

/// What happens to conversations in which nobody says anything. It goes on while the stream is polled, on any runtime or none; it ends at
/// once where the agent has no lifecycle, and else never.
///
/// An event is marked as told when it is taken out, one at a time: what has not been taken out is told by the next stream.
#[must_use = "nothing is told unless the stream is polled"]
pub struct LifecycleStream(BoxStream<'static, LifecycleEvent>);

impl Stream for LifecycleStream {
    type Item = LifecycleEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<LifecycleEvent>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for LifecycleStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LifecycleStream").finish_non_exhaustive()
    }
}

/// What time it is, and how one waits.
pub(super) trait Clock: Send + Sync {
    /// Milliseconds since 1970 (UTC).
    fn now(&self) -> u64;

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// The system's clock.
struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> u64 {
        now_ms()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(sleep(time))
    }
}

pub(in crate::turn) fn stream(engine: Arc<Inner>) -> LifecycleStream {
    with_clock(engine, SystemClock)
}

pub(super) fn with_clock(engine: Arc<Inner>, clock: impl Clock + 'static) -> LifecycleStream {
    if engine.lifecycle.is_off() {
        return LifecycleStream(futures_util::stream::empty().boxed());
    }
    let events = unfold((engine, clock), |(engine, clock)| async move {
        loop {
            let pause = match look(&engine, clock.now()) {
                Ok(Look::Told(event)) => return Some((event, (engine, clock))),
                Ok(Look::Later(pause)) => pause,
                Err(error) => {
                    tracing::error!(target: TURN, "Idle conversations are not told of: {error}");
                    LONGEST_PAUSE
                }
            };
            clock.sleep(pause).await;
        }
    });
    LifecycleStream(events.boxed())
}
