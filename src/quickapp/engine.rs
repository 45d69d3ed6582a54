//! The app, ready for requests.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tokio::sync::mpsc::unbounded_channel;

use super::app::{App, AppHook};
use super::call_id::Key;
use super::context::Named;
use super::event::RequestEvent;
use super::hook::Templates;
use super::pair::Origin;
use super::request;
use super::statistics::{AppHookStatistics, Counts};
use super::tools::ToolSource;
use crate::conversation::Object;
use crate::step::{EventStream, Hooks, Model};
use crate::tools::ToolSpec;

/// The events of a request.
pub type RequestStream = EventStream<RequestEvent>;

/// An app that a manifest describes: a model, tools, and hooks that call tools at fixed points of every request. Cheap to clone.
///
/// It keeps no conversations: the client sends all of one with each request, and gets it back.
#[derive(Clone)]
pub struct QuickApp(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) app: App,
    /// In the order of the manifest.
    pub(super) app_hooks: Vec<Ready>,
    pub(super) model: Arc<dyn Model>,
    pub(super) source: Box<dyn ToolSource>,
    pub(super) templates: Box<dyn Templates>,
    pub(super) hooks: Arc<dyn Hooks>,
    ids: AtomicU64,
    hasher: RandomState,
}

/// A hook of the manifest, and what is made of it once.
pub(super) struct Ready {
    pub(super) hook: AppHook,
    /// The name of its tool among all tools.
    pub(super) function: String,
    /// Whose its pairs are.
    pub(super) origin: Origin,
    /// Its arguments as JSON, and what they name, where there is something to be rendered in them.
    pub(super) template: Option<(String, Named)>,
    pub(super) counts: Counts,
}

impl Ready {
    fn new(hook: AppHook, key: &Key) -> Self {
        let function = hook.function_name();
        let origin = Origin::new(key, &function, &hook.arguments);
        let template = hook.is_template.then(|| Value::Object(hook.arguments.clone()).to_string());
        let template = template.map(|template| {
            let named = Named::in_template(&template);
            (template, named)
        });
        Self { hook, function, origin, template, counts: Counts::default() }
    }
}

/// What an app is made of.
pub(crate) struct Parts {
    pub(crate) app: App,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) source: Box<dyn ToolSource>,
    pub(crate) templates: Box<dyn Templates>,
    pub(crate) hooks: Arc<dyn Hooks>,
    /// What the ids of pairs are sealed with. A conversation that comes to another process needs the same.
    pub(crate) secret: Vec<u8>,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestInput {
    /// Whose conversation it is; for hook modules and spans.
    pub sender_id: String,
    /// The conversation so far, in the form of Chat Completions.
    pub messages: Vec<Arc<Object>>,
    /// Tools that the client calls itself.
    pub client_tools: Vec<Arc<ToolSpec>>,
}

impl QuickApp {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { mut app, model, source, templates, hooks, secret } = parts;
        let key = Key::new(&secret);
        let app_hooks = std::mem::take(&mut app.hooks).into_iter().map(|hook| Ready::new(hook, &key)).collect();
        Self(Arc::new(Inner {
            app,
            app_hooks,
            model,
            source,
            templates,
            hooks,
            ids: AtomicU64::new(1),
            hasher: RandomState::new(),
        }))
    }

    /// Answers a request. It goes on while the stream is polled; dropped, it is cancelled.
    pub fn request(&self, input: RequestInput) -> RequestStream {
        let (out, events) = unbounded_channel();
        RequestStream::new(Box::pin(request::run(Arc::clone(&self.0), input, out)), events)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.app.name
    }

    /// What has come of the runs of each hook of the manifest, in its order. Those of hook modules are the hook engine's.
    pub fn statistics(&self) -> Vec<AppHookStatistics> {
        self.0.app_hooks.iter().map(|ready| ready.counts.read(&ready.hook)).collect()
    }

    /// What the model would be offered now.
    pub fn tools(&self) -> Vec<Arc<ToolSpec>> {
        self.0.source.tools().visible.into_iter().map(|tool| tool.spec).collect()
    }
}

impl Inner {
    /// A number that no other pair has.
    pub(super) fn nonce(&self) -> u64 {
        self.hasher.hash_one(self.ids.fetch_add(1, Ordering::Relaxed)).max(1)
    }

    /// An id of a call.
    pub(super) fn new_id(&self) -> String {
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        format!("call_{:016x}{number:08x}", self.hasher.hash_one(number))
    }
}

impl fmt::Debug for QuickApp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("QuickApp").field("name", &self.0.app.name).finish_non_exhaustive()
    }
}
