//! The events of a turn, as a stream that drives it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc::UnboundedReceiver;

use super::event::TurnEvent;

/// The events of a turn. The turn goes on while the stream is polled; when the stream is dropped, it is cancelled.
#[must_use = "the turn runs while its stream is polled"]
pub struct TurnStream {
    pub(super) run: Option<BoxFuture<'static, ()>>,
    pub(super) events: UnboundedReceiver<TurnEvent>,
}

impl Stream for TurnStream {
    type Item = TurnEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        // What has happened is told before the turn goes on: a reader that is slow sees all in its order.
        if let Ok(event) = self.events.try_recv() {
            return Poll::Ready(Some(event));
        }
        if let Some(run) = &mut self.run
            && run.as_mut().poll(context).is_ready()
        {
            self.run = None;
        }
        self.events.poll_recv(context)
    }
}

impl fmt::Debug for TurnStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TurnStream").field("runs", &self.run.is_some()).finish_non_exhaustive()
    }
}
