//! What came of a run, for people and for machines.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::diff;
use super::player::Played;
use crate::cli::Status;
use crate::cli::points::bare_table;
use crate::dispatch::HandlerStatistics;
use crate::hooks::Lane;

/// Raised when the JSON form of the report changes its shape.
const REPORT_VERSION: u32 = 1;

/// Skipped lines that the report for people names one by one.
const SHOWN_SKIPS: usize = 20;

/// A line of the input that was not played.
#[derive(Debug, Serialize)]
pub(super) struct SkippedLine {
    pub(super) line: u64,
    pub(super) reason: String,
}

/// What came of a run.
#[derive(Debug)]
pub(super) struct Report {
    agent: PathBuf,
    input: PathBuf,
    conversations: usize,
    skipped: Vec<SkippedLine>,
    sum: Played,
    /// The user has interrupted the run: the report tells what had been played.
    pub(super) interrupted: bool,
    /// Observers had not ended when the run did: one of them blocks its thread.
    pub(super) stalled: bool,
    pub(super) hooks: Vec<HandlerStatistics>,
    pub(super) time: Times,
}

/// Where the time went.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// Interpreter and modules.
    pub(super) start_up: Duration,
    /// Playing, from the first line to the last answer.
    pub(super) total: Duration,
    /// Inside handlers.
    pub(super) in_handlers: Duration,
}

impl Report {
    pub(super) fn new(agent: &Path, input: &Path) -> Self {
        Self {
            agent: agent.to_owned(),
            input: input.to_owned(),
            conversations: 0,
            skipped: Vec::new(),
            sum: Played::default(),
            interrupted: false,
            stalled: false,
            hooks: Vec::new(),
            time: Times::default(),
        }
    }

    /// Adds what came of one line.
    pub(super) fn add(&mut self, played: Result<Played, SkippedLine>) {
        let played = match played {
            Ok(played) => played,
            Err(skipped) => return self.skipped.push(skipped),
        };
        let Played {
            messages,
            turns_completed,
            turns_rejected,
            turns_failed,
            skipped_messages,
            dropped_completions,
            broken_arguments,
            removed_calls,
            made_up_calls,
            unanswered_turns,
            rejected_texts,
            changes,
        } = played;
        self.conversations += 1;
        self.sum.messages += messages;
        self.sum.turns_completed += turns_completed;
        self.sum.turns_rejected += turns_rejected;
        self.sum.turns_failed += turns_failed;
        self.sum.skipped_messages += skipped_messages;
        self.sum.dropped_completions += dropped_completions;
        self.sum.broken_arguments += broken_arguments;
        self.sum.removed_calls += removed_calls;
        self.sum.made_up_calls += made_up_calls;
        self.sum.unanswered_turns += unanswered_turns;
        self.sum.rejected_texts += rejected_texts;
        self.sum.changes.extend(changes);
    }

    /// Interrupted, or problems: a handler failed, or a line was skipped.
    pub(super) fn status(&self) -> Status {
        if self.interrupted {
            return Status::Interrupted;
        }
        let failed = self.hooks.iter().any(|hook| !hook.failures.is_empty());
        if failed || self.stalled || !self.skipped.is_empty() { Status::Problems } else { Status::Clean }
    }

    pub(super) fn as_json(&self, show_changes: bool) -> Value {
        let hooks: Vec<_> = self
            .hooks
            .iter()
            .map(|hook| {
                let mut hook = json!(hook);
                if let Some(file) = hook["file"].as_str().map(|file| self.inside(file)) {
                    hook["file"] = file.into();
                }
                hook
            })
            .collect();
        let mut report = json!({
            "version": REPORT_VERSION,
            "interrupted": self.interrupted,
            "stalled": self.stalled,
            "agent": self.agent.display().to_string(),
            "input": self.input.display().to_string(),
            "conversations": {"played": self.conversations, "skipped": self.skipped},
            "messages": self.sum.messages,
            "turns": {
                "completed": self.sum.turns_completed,
                "rejected": self.sum.turns_rejected,
                "failed": self.sum.turns_failed,
            },
            "skipped_messages": self.sum.skipped_messages,
            "dropped_completions": self.sum.dropped_completions,
            "broken_arguments": self.sum.broken_arguments,
            "removed_calls": self.sum.removed_calls,
            "made_up_calls": self.sum.made_up_calls,
            "unanswered_turns": self.sum.unanswered_turns,
            "rejected_texts": self.sum.rejected_texts,
            "hooks": hooks,
            "time": {
                "start_up_ms": millis(self.time.start_up),
                "total_ms": millis(self.time.total),
                "in_handlers_ms": millis(self.time.in_handlers),
                "engine_ms": millis(self.time.total.saturating_sub(self.time.in_handlers)),
            },
        });
        if show_changes {
            report["changes"] = json!(self.sum.changes);
        }
        report
    }

    pub(super) fn as_text(&self, show_changes: bool) -> String {
        let mut text = String::new();
        if show_changes {
            text.push_str(&diff::as_text(&self.sum.changes));
        }
        text.push_str(&self.hook_table());
        text.push('\n');
        let sum = &self.sum;
        let turns = sum.turns_completed + sum.turns_rejected + sum.turns_failed;
        let (conversations, messages) = (plural(self.conversations, "conversation"), plural(sum.messages, "message"));
        writeln!(text, "{conversations}, {messages}, {}", plural(turns, "turn")).expect("a string takes all");
        let lines = [
            self.interrupted.then(|| "Interrupted: the rest of the input was not played".to_owned()),
            self.stalled
                .then(|| "Observers had not ended when the run did: a hook blocks the thread of all hooks".to_owned()),
            counted(sum.turns_rejected, "turn", "ended by a rejected message"),
            counted(sum.turns_failed, "turn", "ended by a failed hook at a closed point"),
            counted(sum.skipped_messages, "message", "not played, since their turn had ended"),
            counted(sum.dropped_completions, "completion", "discarded by a retry"),
            counted(sum.unanswered_turns, "turn", "without an answer, since no recorded completion followed the retry"),
            counted(sum.removed_calls, "recorded call", "not played, since a hook took them out"),
            counted(sum.made_up_calls, "call", "made by a hook, which no recording answers"),
            counted(sum.rejected_texts, "outgoing text", "rejected"),
            counted(sum.broken_arguments, "call", "with arguments that are no JSON object"),
            counted(self.skipped.len(), "line", "skipped:"),
        ];
        for line in lines.into_iter().flatten() {
            text.push_str(&line);
            text.push('\n');
        }
        for skipped in self.skipped.iter().take(SHOWN_SKIPS) {
            writeln!(text, "  line {}: {}", skipped.line, skipped.reason).expect("a string takes all");
        }
        if let Some(more) = self.skipped.len().checked_sub(SHOWN_SKIPS).filter(|more| *more > 0) {
            writeln!(text, "  and {more} more; `--output-format json` lists them all").expect("a string takes all");
        }
        let Times { start_up, total, in_handlers } = self.time;
        writeln!(
            text,
            "{:.0} ms start-up, {:.0} ms playing, of which {:.0} ms in handlers and {:.0} ms in the engine",
            millis(start_up),
            millis(total),
            millis(in_handlers),
            millis(total.saturating_sub(in_handlers))
        )
        .expect("a string takes all");
        text
    }

    fn hook_table(&self) -> String {
        let header = [
            "point",
            "lane",
            "hook",
            "calls",
            "changed",
            "unchanged",
            "retries",
            "rejections",
            "discarded",
            "failures",
            "dropped",
            "p50 ms",
            "p99 ms",
        ];
        let mut table = bare_table(&header);
        for hook in &self.hooks {
            // An observer cannot change anything: a number would say that it did not want to.
            let of_modify =
                |number: u64| if hook.handler.lane == Lane::Modify { number.to_string() } else { "-".to_owned() };
            let failures: Vec<_> = hook.failures.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
            table.add_row([
                hook.handler.point.name().to_owned(),
                hook.handler.lane.name().to_owned(),
                hook.handler.to_string(),
                hook.calls.to_string(),
                of_modify(hook.changed),
                of_modify(hook.unchanged),
                of_modify(hook.retries),
                of_modify(hook.rejections),
                hook.discarded_signals.to_string(),
                if failures.is_empty() { "0".to_owned() } else { failures.join(", ") },
                hook.dropped.to_string(),
                format!("{:.2}", hook.p50_ms),
                format!("{:.2}", hook.p99_ms),
            ]);
        }
        table.trim_fmt()
    }

    /// A file's path below the agent's folder; both as they are shown, since a path may be no UTF-8.
    fn inside(&self, file: &str) -> String {
        let root = std::path::absolute(&self.agent).unwrap_or_default().display().to_string();
        let below = file.strip_prefix(&root).and_then(|below| below.strip_prefix('/'));
        below.unwrap_or(file).to_owned()
    }
}

fn counted(number: usize, thing: &str, what: &str) -> Option<String> {
    (number > 0).then(|| format!("{} {what}", plural(number, thing)))
}

fn plural(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
