//! Calling handlers within their time and by their point's policy.
//!
//! `observe` returns nothing and never waits; `modify` gives exactly one outcome, whatever the handler does. What runs a
//! handler (a Python lane, a test's thread) takes calls from the [`LaneQueue`] and settles each.

mod call;
mod clock;
mod dispatcher;
#[cfg(test)]
mod model_tests;
mod policy;
mod queue;
mod statistics;
mod waiting;

pub(crate) use call::{Answer, Call};
pub(crate) use dispatcher::Dispatcher;
pub(crate) use queue::{LaneQueue, QueueLimits};
pub use statistics::HandlerStatistics;
