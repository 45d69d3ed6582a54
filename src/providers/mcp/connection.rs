//! A server, whether it is there or not: sessions come and go.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::blame::Failure;
use super::config::McpServerConfig;
use super::content;
use super::error::McpError;
use super::listing::{Listener, Listing};
use super::session::Session;
use crate::conversation::Object;
use crate::providers::wording::excerpt;
use crate::telemetry::TURN;
use crate::tools::ToolOutput;

/// The pause after the first attempt that failed; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A server and the session with it, if there is one. It ends with whoever last holds it: the servers, or one of their tools.
pub(super) struct Connection {
    pub(super) config: Arc<McpServerConfig>,
    pub(super) listing: Arc<Listing>,
    pub(super) runtime: Handle,
    state: Mutex<State>,
}

enum State {
    Up(Arc<Session>),
    /// All calls that come wait for the same attempt.
    Connecting(Attempt, AbortHandle),
    /// No attempt is made before `next`.
    Down {
        failures: u32,
        next: Instant,
    },
    Closed,
}

/// It ends with a session, or with none where the server is not there.
type Attempt = Shared<BoxFuture<'static, Option<Arc<Session>>>>;

impl Connection {
    /// Connects to a server for the first time, and sees whether it has all that is wanted of it.
    pub(super) async fn open(config: McpServerConfig, wanted: &[&str], runtime: Handle) -> Result<Arc<Self>, McpError> {
        let listing = if config.all_tools { Listing::of_all(&config.name) } else { Listing::of(&config.name, wanted) };
        let listing = Arc::new(listing);
        let listener = Listener::new(Arc::clone(&listing), config.connect_timeout);
        let (session, names) = Session::open(&config, listener).await?;
        if let Some(missing) = wanted.iter().find(|wanted| !names.iter().any(|name| name == *wanted)) {
            return Err(McpError::missing_tool(&config.name, missing, names.iter().map(String::as_str)));
        }
        let state = Mutex::new(State::Up(Arc::new(session)));
        Ok(Arc::new(Self { config: Arc::new(config), listing, runtime, state }))
    }

    /// Calls a tool. A call is sent once, unless it is certain that the server has not begun it.
    pub(super) async fn call(self: Arc<Self>, tool: String, arguments: Object) -> ToolOutput {
        let Some(mut session) = self.session().await else { return not_there(&tool) };
        let mut failure = match self.call_once(&session, &tool, arguments.clone()).await {
            Ok(output) => return output,
            Err(failure) => failure,
        };
        if failure == Failure::Expired {
            self.lose(&session);
            let Some(another) = self.session().await else { return not_there(&tool) };
            session = another;
            failure = match self.call_once(&session, &tool, arguments).await {
                Ok(output) => return output,
                Err(failure) => failure,
            };
        }
        let reason = match failure {
            Failure::Said(message) if !message.trim().is_empty() => return ToolOutput::error(message),
            Failure::Said(_) => "it gives no reason".to_owned(),
            Failure::Broken(reason) => reason,
            Failure::Expired => {
                self.lose(&session);
                "it does not know the session that it has just opened".to_owned()
            }
            Failure::Lost(reason) => {
                self.lose(&session);
                reason
            }
        };
        let (server, reason) = (&self.config.name, excerpt(&self.config.without_secrets(&reason)));
        tracing::warn!(target: TURN, server, tool, "The call of a tool of an MCP server failed: {reason}");
        ToolOutput::error(format!("`{tool}` failed"))
    }

    async fn call_once(&self, session: &Session, tool: &str, arguments: Object) -> Result<ToolOutput, Failure> {
        if !self.listing.has(tool) {
            let server = &self.config.name;
            return Ok(ToolOutput::error(format!("The server `{server}` has no tool `{tool}` any more")));
        }
        Ok(content::output(session.call(tool, arguments).await?, tool))
    }

    /// Ends the session and waits for its end; no other is opened.
    pub(super) async fn close(&self) {
        let last = std::mem::replace(&mut *self.lock(), State::Closed);
        match last {
            State::Up(session) => session.close().await,
            State::Connecting(_, attempt) => attempt.abort(),
            State::Down { .. } | State::Closed => {}
        }
    }

    /// The session, opened anew where it is gone and an attempt is due.
    async fn session(self: &Arc<Self>) -> Option<Arc<Session>> {
        let attempt = {
            let mut state = self.lock();
            match &*state {
                State::Up(session) if session.is_open() => return Some(Arc::clone(session)),
                State::Up(_) => self.attempt(&mut state, 0),
                State::Down { failures, next } if *next <= Instant::now() => {
                    let failures = *failures;
                    self.attempt(&mut state, failures)
                }
                State::Down { .. } | State::Closed => return None,
                State::Connecting(attempt, _) => attempt.clone(),
            }
        };
        attempt.await
    }

    /// Begins an attempt, which goes on whoever waits for it.
    fn attempt(self: &Arc<Self>, state: &mut State, failures: u32) -> Attempt {
        let listener = Listener::new(Arc::clone(&self.listing), self.config.connect_timeout);
        let (config, connection) = (Arc::clone(&self.config), Arc::downgrade(self));
        let attempt = async move {
            let opened = Session::open(&config, listener).await;
            Weak::upgrade(&connection)?.settle(opened.map(|(session, _)| session), failures)
        };
        let attempt = attempt.boxed().shared();
        let abort = self.runtime.spawn(attempt.clone()).abort_handle();
        *state = State::Connecting(attempt.clone(), abort);
        attempt
    }

    /// What an attempt has come to.
    fn settle(&self, opened: Result<Session, McpError>, failures: u32) -> Option<Arc<Session>> {
        let server = &self.config.name;
        let mut state = self.lock();
        if !matches!(*state, State::Connecting(..)) {
            return None;
        }
        match opened {
            Ok(session) => {
                tracing::info!(target: TURN, server, "An MCP server is connected to again");
                let session = Arc::new(session);
                *state = State::Up(Arc::clone(&session));
                Some(session)
            }
            Err(error) => {
                let pause = pause(failures);
                tracing::warn!(target: TURN, server, ?pause, "An MCP server is not there: {error}");
                *state = State::Down { failures: failures.saturating_add(1), next: Instant::now() + pause };
                None
            }
        }
    }

    /// The session is of no use any more; the next call opens another.
    fn lose(&self, session: &Arc<Session>) {
        let mut state = self.lock();
        if matches!(&*state, State::Up(current) if Arc::ptr_eq(current, session)) {
            *state = State::Down { failures: 0, next: Instant::now() };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self.state.get_mut().unwrap_or_else(PoisonError::into_inner) {
            State::Up(session) => session.terminate(),
            State::Connecting(_, attempt) => attempt.abort(),
            State::Down { .. } | State::Closed => {}
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("config", &self.config).finish_non_exhaustive()
    }
}

fn pause(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE)
}

fn not_there(tool: &str) -> ToolOutput {
    ToolOutput::error(format!("`{tool}` failed: the server is not there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let pauses: Vec<_> = (0..11).map(|failures| pause(failures).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }
}
