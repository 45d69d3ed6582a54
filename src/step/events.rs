//! Events as a stream that drives what tells them.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc::UnboundedReceiver;

/// The events of a turn or a request. It goes on while the stream is polled; when the stream is dropped, it is cancelled.
#[must_use = "it runs while its stream is polled"]
pub struct EventStream<E> {
    run: Option<BoxFuture<'static, ()>>,
    events: UnboundedReceiver<E>,
}

impl<E> EventStream<E> {
    /// What `run` tells to the other end of `events`.
    pub(crate) fn new(run: BoxFuture<'static, ()>, events: UnboundedReceiver<E>) -> Self {
        Self { run: Some(run), events }
    }
}

impl<E> Stream for EventStream<E> {
    type Item = E;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<E>> {
        // What has happened is told before it goes on: a reader that is slow sees all in its order.
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

impl<E> fmt::Debug for EventStream<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EventStream").field("runs", &self.run.is_some()).finish_non_exhaustive()
    }
}
