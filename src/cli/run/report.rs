//! What came of a run, for people and for machines.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::diff::Change;
use super::player::Played;
use crate::cli::Status;
use crate::cli::points::bare_table;
use crate::dispatch::HandlerStatistics;

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
        self.sum.rejected_texts += rejected_texts;
        self.sum.changes.extend(changes);
    }

    /// Problems: a handler failed, or a line was skipped.
    pub(super) fn status(&self) -> Status {
        let failed = self.hooks.iter().any(|hook| !hook.failures.is_empty());
        if failed || !self.skipped.is_empty() { Status::Problems } else { Status::Clean }
    }

    pub(super) fn as_json(&self, diff: bool) -> Value {
        let hooks: Vec<_> = self
            .hooks
            .iter()
            .map(|hook| {
                let mut hook = json!(hook);
                if let Some(file) = hook["file"].as_str().map(|file| self.inside(Path::new(file))) {
                    hook["file"] = file.into();
                }
                hook
            })
            .collect();
        let mut report = json!({
            "version": REPORT_VERSION,
            "agent": self.agent,
            "input": self.input,
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
            "rejected_texts": self.sum.rejected_texts,
            "hooks": hooks,
            "time": {
                "start_up_ms": millis(self.time.start_up),
                "total_ms": millis(self.time.total),
                "in_handlers_ms": millis(self.time.in_handlers),
                "engine_ms": millis(self.time.total.saturating_sub(self.time.in_handlers)),
            },
        });
        if diff {
            report["changes"] = json!(self.sum.changes);
        }
        report
    }

    pub(super) fn as_text(&self, diff: bool) -> String {
        let mut text = String::new();
        if diff {
            for change in &self.sum.changes {
                text.push_str(&change.as_text());
                text.push('\n');
            }
        }
        text.push_str(&self.hook_table());
        text.push('\n');
        let lines = [
            Some(format!(
                "{} conversations, {} messages, {} turns",
                self.conversations,
                self.sum.messages,
                self.sum.turns_completed + self.sum.turns_rejected + self.sum.turns_failed
            )),
            counted(self.sum.turns_rejected, "turns ended by a rejected message"),
            counted(self.sum.turns_failed, "turns ended by a failed hook at a closed point"),
            counted(self.sum.skipped_messages, "messages not played, since their turn had ended"),
            counted(self.sum.dropped_completions, "completions dropped by a retry"),
            counted(self.sum.removed_calls, "recorded calls not played, since a hook took them out"),
            counted(self.sum.rejected_texts, "outgoing texts rejected"),
            counted(self.sum.broken_arguments, "calls whose arguments are no JSON object"),
            counted(self.skipped.len(), "lines skipped:"),
        ];
        for line in lines.into_iter().flatten() {
            text.push_str(&line);
            text.push('\n');
        }
        for skipped in self.skipped.iter().take(SHOWN_SKIPS) {
            text.push_str(&format!("  line {}: {}\n", skipped.line, skipped.reason));
        }
        if let Some(more) = self.skipped.len().checked_sub(SHOWN_SKIPS).filter(|more| *more > 0) {
            text.push_str(&format!("  and {more} more; `--output-format json` lists them all\n"));
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
            let failures: Vec<_> = hook.failures.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
            table.add_row([
                hook.handler.point.name().to_owned(),
                hook.handler.lane.name().to_owned(),
                hook.handler.to_string(),
                hook.calls.to_string(),
                hook.changed.to_string(),
                hook.unchanged.to_string(),
                hook.retries.to_string(),
                hook.rejections.to_string(),
                hook.discarded_signals.to_string(),
                if failures.is_empty() { "0".to_owned() } else { failures.join(", ") },
                hook.dropped.to_string(),
                format!("{:.2}", hook.p50_ms),
                format!("{:.2}", hook.p99_ms),
            ]);
        }
        table.trim_fmt()
    }

    fn inside(&self, file: &Path) -> String {
        let root = std::path::absolute(&self.agent).unwrap_or_default();
        file.strip_prefix(root).unwrap_or(file).display().to_string()
    }
}

fn counted(number: usize, what: &str) -> Option<String> {
    (number > 0).then(|| format!("{number} {what}"))
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
