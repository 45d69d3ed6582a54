//! Since when conversations rest: one row for each, kept in the transaction that adds its events, so that those that are due are found by
//! an index and no event is read.

use std::ops::RangeInclusive;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use crate::conversation::{Event, Idle, IdleStage};

/// Makes the table, from the ends of turns that are there already. A turn that did not say when it ended did so when it was stored.
pub(super) const MIGRATION: &str = r#"
    CREATE TABLE resting (
        sender_id TEXT PRIMARY KEY,
        since INTEGER NOT NULL,
        stage INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX resting_by_time ON resting (stage, since, sender_id);
    INSERT INTO resting SELECT sender_id, since, 0 FROM (
        SELECT sender_id, max(position),
            CAST(coalesce(CASE WHEN json_valid(event) THEN json_extract(event, '$.at') END, time) AS INTEGER) AS since
        FROM events WHERE event LIKE '{"event":"turn_finished"%' GROUP BY sender_id
    );
"#;

/// How a conversation rests.
pub(super) fn idle_of(connection: &Connection, sender_id: &str) -> rusqlite::Result<Option<Idle>> {
    let mut select = connection.prepare_cached("SELECT since, stage FROM resting WHERE sender_id = ?")?;
    select.query_row([sender_id], |row| idle(row, 0)).optional()
}

/// Keeps how a conversation rests after `events`.
pub(super) fn settle(transaction: &Transaction<'_>, sender_id: &str, events: &[Event]) -> rusqlite::Result<()> {
    let before = idle_of(transaction, sender_id)?;
    let after = Idle::after(before, events);
    match after {
        _ if after == before => {}
        None => {
            transaction.prepare_cached("DELETE FROM resting WHERE sender_id = ?")?.execute([sender_id])?;
        }
        Some(idle) => {
            let sql = "INSERT INTO resting (sender_id, since, stage) VALUES (?, ?, ?)
                ON CONFLICT DO UPDATE SET since = excluded.since, stage = excluded.stage";
            transaction.prepare_cached(sql)?.execute(params![sender_id, number(idle.since), rank(idle.stage)])?;
        }
    }
    Ok(())
}

pub(super) fn list(
    connection: &Connection,
    stage: IdleStage,
    since: &RangeInclusive<u64>,
    most: usize,
) -> rusqlite::Result<Vec<(String, Idle)>> {
    let sql = "SELECT sender_id, since, stage FROM resting WHERE stage = ? AND since BETWEEN ? AND ?
        ORDER BY since, sender_id LIMIT ?";
    let mut select = connection.prepare_cached(sql)?;
    let asked = params![rank(stage), number(*since.start()), number(*since.end()), super::number(most)];
    select.query_map(asked, |row| Ok((row.get(0)?, idle(row, 1)?)))?.collect()
}

pub(super) fn stir(connection: &Connection, sender_id: &str, at: u64) -> rusqlite::Result<()> {
    let sql = "UPDATE resting SET since = max(since, ?), stage = 0 WHERE sender_id = ?";
    connection.prepare_cached(sql)?.execute(params![number(at), sender_id]).map(|_| ())
}

/// What stands in a row from the column `first` on.
fn idle(row: &Row<'_>, first: usize) -> rusqlite::Result<Idle> {
    let (since, stage): (i64, i64) = (row.get(first)?, row.get(first + 1)?);
    let stage = match stage {
        0 => IdleStage::Quiet,
        1 => IdleStage::Nudged,
        _ => IdleStage::Expired,
    };
    Ok(Idle { since: u64::try_from(since).unwrap_or_default(), stage })
}

/// A stage as it stands in the file.
const fn rank(stage: IdleStage) -> i64 {
    match stage {
        IdleStage::Quiet => 0,
        IdleStage::Nudged => 1,
        IdleStage::Expired => 2,
    }
}

fn number(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}
