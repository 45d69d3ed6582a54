//! What came of the calls of a phase.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::time::Duration;

use tenterhook::{FailureCause, Outcome};

/// Counts of one phase, or of one turn of it.
#[derive(Debug, Default)]
pub(crate) struct Phase {
    pub(crate) calls: u64,
    pub(crate) outcomes: u64,
    pub(crate) good: u64,
    pub(crate) good_failed: u64,
    pub(crate) awaited: u64,
    pub(crate) loop_lost: u64,
    /// Good calls that were lost with a process.
    pub(crate) restarted: u64,
    pub(crate) withdrawn: u64,
    pub(crate) reloads: u64,
    pub(crate) wrong: Vec<String>,
    failures: BTreeMap<String, u64>,
    bad: BTreeMap<&'static str, BTreeMap<String, u64>>,
    overruns: Vec<Duration>,
}

impl Phase {
    pub(crate) fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.outcomes += other.outcomes;
        self.good += other.good;
        self.good_failed += other.good_failed;
        self.awaited += other.awaited;
        self.loop_lost += other.loop_lost;
        self.restarted += other.restarted;
        self.withdrawn += other.withdrawn;
        self.reloads += other.reloads;
        self.wrong.extend(other.wrong);
        self.overruns.extend(other.overruns);
        for (word, count) in other.failures {
            *self.failures.entry(word).or_default() += count;
        }
        for (kind, ends) in other.bad {
            for (word, count) in ends {
                *self.bad.entry(kind).or_default().entry(word).or_default() += count;
            }
        }
    }

    /// A verdict fell so long after the deadline, as its caller saw it.
    pub(crate) fn overrun(&mut self, time: Duration) {
        self.overruns.push(time);
    }

    pub(crate) fn count_bad<P>(&mut self, kind: &'static str, outcome: &Outcome<P>) {
        let word = crate::cause(outcome).map_or("went well", FailureCause::word);
        *self.bad.entry(kind).or_default().entry(word.to_owned()).or_default() += 1;
    }

    pub(crate) fn good_failure(&mut self, cause: &FailureCause) {
        if *cause == FailureCause::WorkerRestarted {
            self.restarted += 1;
            return;
        }
        self.good_failed += 1;
        *self.failures.entry(format!("good: {cause}")).or_default() += 1;
    }

    /// A handler that awaits on a loop that another one blocks may end in more ways than one; each is counted.
    pub(crate) fn awaiting_failure(&mut self, cause: &FailureCause) {
        if *cause == FailureCause::WorkerRestarted {
            self.restarted += 1;
            return;
        }
        *self.failures.entry(format!("awaiting: {cause}")).or_default() += 1;
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut overruns = self.overruns.clone();
        overruns.sort();
        let at = |share: usize| overruns.get(overruns.len() * share / 1000).copied().unwrap_or_default();
        writeln!(out, "  {} calls; good {}, failed {}", self.calls, self.good, self.good_failed)?;
        writeln!(out, "  awaiting {}, lost with their loop {}", self.awaited, self.loop_lost)?;
        writeln!(out, "  lost with their process {}", self.restarted)?;
        writeln!(
            out,
            "  callers that went away {}, reloads {}; other failures of good hooks: {:?}",
            self.withdrawn, self.reloads, self.failures
        )?;
        for (kind, ends) in &self.bad {
            writeln!(out, "  {kind}: {ends:?}")?;
        }
        let max = overruns.last().copied().unwrap_or_default();
        write!(
            out,
            "  {} verdicts fell after their deadline by p50 {:?}, p99 {:?}, at most {max:?}",
            overruns.len(),
            at(500),
            at(990)
        )
    }
}

/// Resident memory of this process.
pub(crate) fn memory_kb() -> u64 {
    status("VmRSS:")
}

/// Threads of this process.
pub(crate) fn threads() -> usize {
    usize::try_from(status("Threads:")).unwrap()
}

fn status(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
