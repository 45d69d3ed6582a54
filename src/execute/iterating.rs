//! One iteration, in its order.

use std::sync::Arc;

use serde_json::Value;

use super::answering::{Answer, answer};
use super::coding::exit;
use super::event::ExecutionEvent;
use super::exiting::Reached;
use super::feedback::{Notes, replayed};
use super::hooks::{ExecutionHook, HookFailure};
use super::iteration::{Iteration, IterationChange};
use super::journal::{Ended, Journal};
use super::plan::LISTEN;
use super::prompt::messages;
use super::run::Course;
use super::running::now_ms;
use super::status::Status;
use super::trace::Traced;
use crate::step::Model;
use crate::telemetry::EXECUTE;

impl Course {
    /// Runs an iteration; with it, why the execution ends whatever its status, where it does.
    pub(super) async fn iterate(&mut self, number: u32, left: u32) -> (Iteration, Option<String>) {
        let running = Arc::clone(&self.running);
        let plan = &running.plan;
        let iteration = Iteration {
            id: format!("{}_{number}", running.id),
            number,
            model: plan.models.first().map(|model| model.name().to_owned()).unwrap_or_default(),
            messages: messages(plan, &self.transcript),
            variables: self.variables.clone(),
            started_ts: now_ms(),
            ..Iteration::default()
        };
        running.tell(ExecutionEvent::IterationStarted { iteration: number });
        let journal = Arc::new(Journal::new(Arc::clone(&running), iteration));
        let mut notes = Notes { left, ..Notes::default() };
        let had_session = self.session.is_some();
        let ended = self.steps(&journal, &mut notes).await;
        let Ended { status, mut fatal } = ended.unwrap_or_else(|ended| ended);
        notes.lost = had_session && self.session.is_none();
        journal.change(|iteration| {
            iteration.error = status.error();
            iteration.errors.extend(iteration.error.clone());
            iteration.status = *status;
            iteration.ended_ts = Some(now_ms());
        });
        running.hooks().traces_heard().await;
        let finished = journal.now();
        let end =
            running.hook(ExecutionHook::OnIterationEnd, |hooks| hooks.on_iteration_end(&finished, &running.controller));
        match end.await {
            Ok(()) => {}
            Err(HookFailure::Critical { message }) => {
                fatal.get_or_insert_with(|| format!("Error in on_iteration_end hook: {message}"));
            }
            // The iteration is over; nothing of it is to change any more.
            Err(failure) => {
                tracing::warn!(target: EXECUTE, iteration = number, "`on_iteration_end` has failed: {}", failure.message());
            }
        }
        self.variables.clone_from(&finished.variables);
        self.transcript.extend(replayed(&finished, &notes));
        running.tell(ExecutionEvent::IterationEnded { iteration: Box::new((*finished).clone()) });
        (Arc::unwrap_or_clone(finished), fatal)
    }

    async fn steps(&mut self, journal: &Arc<Journal>, notes: &mut Notes) -> Result<Ended, Ended> {
        let (model, given) = self.start(journal).await?;
        let answered = answer(journal, &*model).await?;
        let answered = notes.answer.insert(answered);
        let code = before_execution(journal, answered, given).await?;
        if let Some(text) = answered.text.as_deref().filter(|_| self.running.plan.chat) {
            let before = journal.now().traces.len();
            journal.say(text).await;
            notes.said = journal.now().traces.len() > before;
            journal.unless_aborted()?;
        }
        match code {
            Some(code) => {
                let native_call_id = answered.native_call_id().map(str::to_owned);
                self.run_code(journal, &code, native_call_id).await
            }
            None => without_code(journal, answered, notes.said).await,
        }
    }

    /// Before the model is asked: which one it is, and code that is to be run in the place of what it writes.
    async fn start(&mut self, journal: &Journal) -> Result<(Arc<dyn Model>, Option<String>), Ended> {
        let (running, iteration) = (&self.running, journal.now());
        let plan = &running.plan;
        let given = running.hook(ExecutionHook::OnIterationStart, |hooks| {
            hooks.on_iteration_start(&iteration, &running.controller, &plan.context)
        });
        let given = given.await;
        journal.unless_aborted()?;
        let change = given.map_err(|failure| journal.refused(ExecutionHook::OnIterationStart, failure))?;
        let IterationChange { model, messages, variables, code } = change.unwrap_or_default();
        let Some(mut chosen) = plan.models.first().cloned() else {
            unreachable!("a plan without a model is not let through")
        };
        if let Some(name) = model {
            let Some(known) = plan.models.iter().find(|known| known.name() == name) else {
                let known: Vec<_> = plan.models.iter().map(|model| format!("`{}`", model.name())).collect();
                let message = format!("there is no model `{name}`; those of the execution are {}", known.join(", "));
                return Err(journal.refused(ExecutionHook::OnIterationStart, HookFailure::failed(message)));
            };
            chosen = Arc::clone(known);
        }
        self.rebind |= variables.is_some();
        journal.change(|iteration| {
            chosen.name().clone_into(&mut iteration.model);
            if let Some(messages) = messages {
                iteration.messages = messages;
            }
            if let Some(variables) = variables {
                iteration.variables = variables;
            }
        });
        Ok((chosen, not_blank(ExecutionHook::OnIterationStart, code)))
    }
}

/// After the model has answered: the code that is to be run.
async fn before_execution(
    journal: &Journal,
    answered: &mut Answer,
    given: Option<String>,
) -> Result<Option<String>, Ended> {
    let running = &journal.running;
    let written = given.or_else(|| answered.code.clone());
    journal.change(|iteration| {
        iteration.code.clone_from(&written);
        iteration.text.clone_from(&answered.text);
    });
    let iteration = journal.now();
    let replaced = running
        .hook(ExecutionHook::OnBeforeExecution, |hooks| hooks.on_before_execution(&iteration, &running.controller));
    let replaced = replaced.await;
    journal.unless_aborted()?;
    let replaced = replaced.map_err(|failure| journal.refused(ExecutionHook::OnBeforeExecution, failure))?;
    let Some(code) = not_blank(ExecutionHook::OnBeforeExecution, replaced) else { return Ok(written) };
    journal.change(|iteration| iteration.code = Some(code.clone()));
    Ok(Some(code))
}

/// An answer without code: in a chat a text waits for the user.
async fn without_code(journal: &Journal, answered: &Answer, said: bool) -> Result<Ended, Ended> {
    if let Some(wrong) = &answered.wrong {
        let (message, code) = (wrong.clone(), answered.raw.clone().unwrap_or_default());
        journal.trace(Traced::InvalidCodeException { message: message.clone(), code });
        return Ok(Ended::so(Status::InvalidCodeError { message }));
    }
    let plan = &journal.running.plan;
    let listens = plan.exits.iter().position(|exit| exit.name == LISTEN).filter(|_| plan.chat);
    match listens {
        Some(listen) if said || answered.text.is_some() => {
            exit(journal, Reached { exit: listen, result: Value::Null }).await
        }
        _ => {
            let message =
                "There is no code in the answer: write code that does the next step, or reaches an exit".to_owned();
            let code = answered.raw.clone().unwrap_or_default();
            journal.trace(Traced::InvalidCodeException { message: message.clone(), code });
            Ok(Ended::so(Status::InvalidCodeError { message }))
        }
    }
}

/// Code that a hook gives; blank code is none.
fn not_blank(hook: ExecutionHook, code: Option<String>) -> Option<String> {
    if code.as_ref().is_some_and(|code| code.trim().is_empty()) {
        tracing::warn!(target: EXECUTE, "`{}` gives blank code in the place of the model's: it is ignored", hook.name());
        return None;
    }
    code
}
