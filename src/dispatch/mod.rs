//! Calling handlers within their time and by their point's policy.
//!
//! `observe` returns nothing and never waits; `modify` gives exactly one outcome, whatever the handler does. What runs a
//! handler (a Python lane, a test's thread) takes calls from the [`LaneQueue`] and settles each.

mod call;
mod clock;
mod dispatcher;
mod health;
mod held;
mod lanes;
#[cfg(test)]
mod model_tests;
mod policy;
mod queue;
mod serving;
mod statistics;
mod supervision;
#[cfg(test)]
mod supervision_tests;
mod waiting;

pub(crate) use call::{Answer, Call, Withdraw};
pub(crate) use clock::sleep;
pub(crate) use dispatcher::{Dispatcher, Registered};
pub use health::{EngineHealth, StuckThread, WorkerHealth};
pub(crate) use lanes::{Crew, FIRST, LaneId, Order, Wake};
pub(crate) use queue::{LaneQueue, QueueLimits, SPIN};
pub(crate) use statistics::Elapsed;
pub use statistics::HandlerStatistics;
pub(crate) use supervision::Patience;
