//! An execution that runs: what its iterations, and the tools that they call, share.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::{BoxFuture, Either, select};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::budget::Budget;
use super::controller::Controller;
use super::event::ExecutionEvent;
use super::execution::Plan;
use super::hooks::{ExecutionHook, ExecutionHooks, HookFailure};
use super::shape::Shape;
use crate::dispatch::sleep;
use crate::step::{Hooked, Ran, Witness};
use crate::telemetry::EXECUTE;
use crate::tools::ToolSpec;

/// What an execution shares with all that happens in it.
pub(super) struct Running {
    pub(super) plan: Arc<Plan>,
    /// The execution's id.
    pub(super) id: String,
    /// Its own controller: joined to the caller's.
    pub(super) controller: Controller,
    pub(super) budget: Budget,
    /// Something has been said to the user.
    pub(super) said: AtomicBool,
    out: UnboundedSender<ExecutionEvent>,
    ids: AtomicU64,
    shapes: Mutex<HashMap<String, Option<Arc<Shape>>>>,
    hasher: RandomState,
}

impl Running {
    pub(super) fn new(plan: Arc<Plan>, out: UnboundedSender<ExecutionEvent>) -> Self {
        let hasher = RandomState::new();
        Self {
            id: format!("execution_{:016x}", hasher.hash_one("execution")),
            controller: plan.controller.joined(),
            budget: Budget::new(plan.tool_calls, plan.repeats),
            said: AtomicBool::new(false),
            plan,
            out,
            ids: AtomicU64::new(1),
            shapes: Mutex::default(),
            hasher,
        }
    }

    /// An id that no other thing of this process has.
    pub(super) fn new_id(&self, kind: &str) -> String {
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        format!("{kind}_{:016x}{number:08x}", self.hasher.hash_one(number))
    }

    pub(super) fn tell(&self, event: ExecutionEvent) {
        let _ = self.out.send(event);
    }

    pub(super) fn hooks(&self) -> &dyn ExecutionHooks {
        &*self.plan.hooks
    }

    /// The compiled schema of a tool's arguments. One that is no schema is left to the tool itself.
    pub(super) fn shape_of(&self, spec: &ToolSpec) -> Option<Arc<Shape>> {
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = || match Shape::compile(&Value::Object(spec.parameters.clone())) {
            Ok(shape) => Some(Arc::new(shape)),
            Err(wrong) => {
                tracing::warn!(target: EXECUTE, tool = spec.name, "The schema of the tool's arguments is none: {wrong}");
                None
            }
        };
        shapes.entry(spec.name.clone()).or_insert_with(compiled).clone()
    }

    /// The agent's own hooks, around the steps of the execution.
    pub(super) fn hooked(&self) -> Hooked<'_> {
        Hooked { hooks: &*self.plan.agent_hooks, identity: &self.plan.identity, witness: self }
    }

    /// Calls a hook within its time; one that is not there gives nothing.
    pub(super) async fn hook<'a, T: Default>(
        &'a self,
        hook: ExecutionHook,
        call: impl FnOnce(&'a dyn ExecutionHooks) -> BoxFuture<'a, Result<T, HookFailure>>,
    ) -> Result<T, HookFailure> {
        let hooks = self.hooks();
        if !hooks.has(hook) {
            return Ok(T::default());
        }
        let called = call(hooks);
        if hooks.keeps_time() {
            return called.await;
        }
        let limit = self.plan.hook_timeout;
        match select(called, pin!(sleep(limit))).await {
            Either::Left((given, _)) => given,
            Either::Right(_) => {
                let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                Err(HookFailure::TimedOut { limit_ms })
            }
        }
    }
}

impl Witness for Running {
    fn hook_ran(&self, ran: Ran) {
        self.tell(ExecutionEvent::HookRan { point: ran.point, outcome: ran.outcome });
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Running").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Milliseconds since 1970 (UTC).
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
