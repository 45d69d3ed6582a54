//! Which passages fit a query best.
//!
//! A word counts in a passage by how rare it is among all passages and by how often it stands in this one, as in BM25. FTS5's own
//! `bm25()` of a whole query is not taken, for two reasons. A word that stands in more than half of the passages weighs a millionth
//! there: in an agent with three passages all scores would be next to 0, and their order chance. And its sums grow with the number of
//! passages, while a hook drops passages by a fixed score (the Hooks document's own example those under 0.2). So each word is looked
//! up on its own, its part of `bm25()` is freed from FTS5's weight and given another one that is never 0 (Lucene's `BM25Similarity`),
//! and a score says how much of the query's weight a passage has.

use rusqlite::{Connection, OptionalExtension as _};
use rustc_hash::FxHashMap;

use crate::step::Passage;

/// How many passages the model gets at most: with Mantle's chunks of 1000 characters some 1,250 tokens, a page and a half. Mantle's
/// documents do not say how many it gives.
const MOST: usize = 5;

/// How many words of a query are searched for; the others are left out. A question has ten or twenty. Each costs a look-up.
const MOST_WORDS: usize = 64;

/// Up to how many passages all words are looked up. A word that stands in each of 10,000 takes 8 ms and tells little; a question to
/// 10 MB took 80 ms with such words, and takes 10 ms without.
const FEW: f64 = 1000.0;

/// The passages with a word, each with FTS5's score of it: greater than 0, the greater the better.
const SELECT_PASSAGES: &str = "SELECT rowid, -bm25(passages) FROM passages WHERE passages MATCH ?";

/// What the passages belong to: there are none of other places.
const SCOPE: &str = "project";

/// The passages that fit a query, the best first. The query is words and nothing else: whatever stands between them is left out.
pub(super) fn search(connection: &Connection, query: &str) -> rusqlite::Result<Vec<Passage>> {
    let all: f64 = connection.prepare_cached("SELECT total(passages) FROM files")?.query_row([], |row| row.get(0))?;
    let words = counted(connection, words(query), all)?;
    let mut sums = FxHashMap::default();
    let mut weights = Vec::new();
    for (word, found) in words.iter().filter(|(_, found)| *found > 0.0) {
        let weight = Weight::of(*found, all);
        let mut select = connection.prepare_cached(SELECT_PASSAGES)?;
        let mut rows = select.query([quoted(word)])?;
        while let Some(row) = rows.next()? {
            *sums.entry(row.get(0)?).or_default() += weight.part(row.get(1)?);
        }
        weights.push(weight.weight);
    }
    // A word that stands nowhere weighs as the mean of the others: by its rarity it would outweigh them all, where it may be a mere
    // `please`.
    let whole = weights.iter().sum::<f64>() / count(weights.len()) * count(words.len());
    best(sums).into_iter().filter_map(|(id, sum)| passage(connection, id, sum / whole).transpose()).collect()
}

/// What a word counts.
struct Weight {
    /// FTS5's weight of it (`fts5Bm25GetData` in `sqlite3.c`).
    in_fts5: f64,
    weight: f64,
}

impl Weight {
    /// Of a word that stands in `found` of `all` passages.
    fn of(found: f64, all: f64) -> Self {
        let odds = ((all - found).max(0.0) + 0.5) / (found + 0.5);
        Self { in_fts5: if odds > 1.0 { odds.ln() } else { 1e-6 }, weight: odds.ln_1p() }
    }

    /// What the word adds to a passage: half its weight where it stands once in a passage of middle length, and never 0.69 of it. So a
    /// passage with two words goes before one that has one of them many times.
    fn part(&self, bm25: f64) -> f64 {
        // From 0 to 2.2; 1 where it stands once in a passage of middle length.
        let often = bm25 / self.in_fts5;
        self.weight * often / (1.0 + often)
    }
}

/// The words of a query, each once.
fn words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in query.split(|letter| !is_part_of_a_word(letter)).filter(|word| word.contains(char::is_alphanumeric)) {
        let word = word.to_lowercase();
        if words.len() < MOST_WORDS && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// An accent that follows its letter belongs to the word, as in FTS5.
fn is_part_of_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&letter)
}

/// In how many passages each word stands. In a large index the words that stand in most of them are left out if there are others.
fn counted(connection: &Connection, words: Vec<String>, all: f64) -> rusqlite::Result<Vec<(String, f64)>> {
    let mut select = connection.prepare_cached("SELECT count(*) FROM passages WHERE passages MATCH ?")?;
    let mut counted = Vec::new();
    for word in words {
        let found: u32 = select.query_row([quoted(&word)], |row| row.get(0))?;
        counted.push((word, f64::from(found)));
    }
    let is_rare = |found: f64| found > 0.0 && found <= all / 2.0;
    if all > FEW && counted.iter().any(|(_, found)| is_rare(*found)) {
        counted.retain(|(_, found)| *found == 0.0 || is_rare(*found));
    }
    Ok(counted)
}

/// A word has no quotes in it: within them FTS5 sees no operators, such as `NOT` or `*`.
fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

/// The passages with the greatest sums; of equal ones the earlier one in the files goes first.
fn best(sums: FxHashMap<i64, f64>) -> Vec<(i64, f64)> {
    let mut sums: Vec<_> = sums.into_iter().collect();
    let order = |one: &(i64, f64), other: &(i64, f64)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
    if sums.len() > MOST {
        sums.select_nth_unstable_by(MOST, order);
        sums.truncate(MOST);
    }
    sums.sort_by(order);
    sums
}

fn passage(connection: &Connection, id: i64, score: f64) -> rusqlite::Result<Option<Passage>> {
    let sql =
        "SELECT text, source FROM passages JOIN files ON files.id = passages.rowid >> 32 WHERE passages.rowid = ?";
    let mut select = connection.prepare_cached(sql)?;
    let found = select.query_row([id], |row| {
        Ok(Passage { text: row.get(0)?, scope: SCOPE.to_owned(), source: row.get(1)?, score: Some(score) })
    });
    found.optional()
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}
