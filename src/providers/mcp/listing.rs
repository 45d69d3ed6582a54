//! The tools that a server has, as far as they are wanted, and hearing that they have changed.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{ClientConfig, Implementation, PaginatedRequestParams, ProtocolVersion, Tool as Told};
use rmcp::service::{NotificationContext, Peer, RoleClient, ServiceError};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::telemetry::TURN;
use crate::tools::ToolSpec;

/// How many pages a list may have: a server that always names a next one must not be followed for ever.
const MOST_PAGES: usize = 1_000;

/// What was last heard of a server's tools.
#[derive(Debug)]
pub(super) struct Listing {
    server: String,
    /// Whether all tools are wanted, those too that the server gets later.
    all: bool,
    wanted: RwLock<Vec<Wanted>>,
    /// The number of the newest session: what an older one hears is old.
    newest: AtomicU64,
}

#[derive(Clone, Debug)]
struct Wanted {
    spec: Arc<ToolSpec>,
    is_there: bool,
}

impl Wanted {
    /// A tool of which nothing has been heard.
    fn unknown(name: &str) -> Self {
        let (name, parameters) = (name.to_owned(), crate::conversation::Object::new());
        Self { spec: Arc::new(ToolSpec { name, description: String::new(), parameters }), is_there: false }
    }
}

impl Listing {
    /// Nothing has been heard of these tools yet.
    pub(super) fn of(server: &str, wanted: &[&str]) -> Self {
        let wanted = RwLock::new(wanted.iter().map(|name| Wanted::unknown(name)).collect());
        Self { server: server.to_owned(), all: false, wanted, newest: AtomicU64::new(0) }
    }

    /// All tools are wanted.
    pub(super) fn of_all(server: &str) -> Self {
        Self { all: true, ..Self::of(server, &[]) }
    }

    /// The tools that the server has and that are wanted.
    pub(super) fn names(&self) -> Vec<String> {
        let wanted = self.wanted.read().unwrap_or_else(PoisonError::into_inner);
        wanted.iter().filter(|wanted| wanted.is_there).map(|wanted| wanted.spec.name.clone()).collect()
    }

    /// What the server last said of a tool, though it may have lost it since.
    pub(super) fn spec(&self, tool: &str) -> Option<Arc<ToolSpec>> {
        self.find(tool).map(|wanted| wanted.spec)
    }

    /// Whether the server has a tool.
    pub(super) fn has(&self, tool: &str) -> bool {
        self.find(tool).is_some_and(|wanted| wanted.is_there)
    }

    fn find(&self, tool: &str) -> Option<Wanted> {
        let wanted = self.wanted.read().unwrap_or_else(PoisonError::into_inner);
        wanted.iter().find(|wanted| wanted.spec.name == tool).cloned()
    }

    /// Keeps what a session has heard, unless there is a newer one. What did not change stays the same value.
    fn keep(&self, session: u64, told: &[Told]) {
        let mut wanted = self.wanted.write().unwrap_or_else(PoisonError::into_inner);
        if self.newest.load(Ordering::Acquire) != session {
            return;
        }
        if self.all {
            // In the server's order; what it had before keeps its value below.
            let known = std::mem::take(&mut *wanted);
            let of = |told: &Told| known.iter().find(|wanted| wanted.spec.name == told.name).cloned();
            *wanted = told.iter().map(|told| of(told).unwrap_or_else(|| Wanted::unknown(&told.name))).collect();
        }
        for wanted in &mut *wanted {
            let told = told.iter().find(|told| told.name == wanted.spec.name);
            wanted.is_there = told.is_some();
            let Some(told) = told else { continue };
            let description = told.description.as_deref().unwrap_or_default();
            if wanted.spec.description != description || wanted.spec.parameters != *told.input_schema {
                wanted.spec = Arc::new(ToolSpec {
                    name: told.name.clone().into_owned(),
                    description: description.to_owned(),
                    parameters: (*told.input_schema).clone(),
                });
            }
        }
    }
}

/// What a session hears of its server.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    listing: Arc<Listing>,
    session: u64,
    limit: Duration,
    /// Whether something has changed since the last list was asked for.
    is_stale: Arc<AtomicBool>,
    /// Held while a list is read: many changes at once are one list, and no older one is kept after a newer.
    reading: Arc<Mutex<()>>,
}

impl Listener {
    /// The listener of a new session, whose lists are read within `limit`.
    pub(super) fn new(listing: Arc<Listing>, limit: Duration) -> Self {
        let session = listing.newest.fetch_add(1, Ordering::AcqRel) + 1;
        Self { listing, session, limit, is_stale: Arc::default(), reading: Arc::default() }
    }

    /// Reads the whole list and keeps it; the names of all tools.
    pub(super) async fn read(&self, server: &Peer<RoleClient>) -> Result<Vec<String>, ServiceError> {
        let _reading = self.reading.lock().await;
        self.read_alone(server).await
    }

    async fn read_alone(&self, server: &Peer<RoleClient>) -> Result<Vec<String>, ServiceError> {
        self.is_stale.store(false, Ordering::Release);
        let mut told = Vec::new();
        let mut cursors = HashSet::new();
        let mut page = PaginatedRequestParams::default();
        loop {
            let read = server.list_tools(Some(page)).await?;
            told.extend(read.tools);
            let Some(next) = read.next_cursor else { break };
            if cursors.len() >= MOST_PAGES || !cursors.insert(next.clone()) {
                return Err(ServiceError::UnexpectedResponse);
            }
            page = PaginatedRequestParams::default().with_cursor(Some(next));
        }
        self.listing.keep(self.session, &told);
        Ok(told.into_iter().map(|tool| tool.name.into_owned()).collect())
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new("tenterhook", env!("CARGO_PKG_VERSION"));
        // The newest that begins with `initialize`, which all servers know.
        ClientConfig::new(<_>::default(), client).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, context: NotificationContext<RoleClient>) {
        self.is_stale.store(true, Ordering::Release);
        let _reading = self.reading.lock().await;
        if !self.is_stale.load(Ordering::Acquire) {
            return;
        }
        let server = &self.listing.server;
        match timeout(self.limit, self.read_alone(&context.peer)).await {
            Ok(Ok(_)) => tracing::debug!(target: TURN, server, "The tools of an MCP server were listed again"),
            Ok(Err(error)) => {
                tracing::warn!(target: TURN, server, "The changed tools of an MCP server could not be listed: {error}");
            }
            Err(_) => {
                let limit = self.limit;
                tracing::warn!(target: TURN, server, ?limit, "The changed tools of an MCP server were not listed in time");
            }
        }
    }
}
