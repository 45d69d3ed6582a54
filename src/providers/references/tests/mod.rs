mod keeping;

use std::cell::RefCell;
use std::fs;
use std::time::UNIX_EPOCH;

use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;

/// Without a pause between looks, no test has to wait.
const AT_ONCE: Duration = Duration::ZERO;

/// Whether the index is kept in a file.
const BOTH: [bool; 2] = [false, true];

struct Agent(TempDir);

impl Agent {
    fn new(files: &[(&str, &str)]) -> Self {
        let agent = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            agent.write(name, text, 0);
        }
        agent
    }

    /// Writes a file, as if it were done some seconds after 1970.
    fn write(&self, name: &str, text: &str, second: u64) {
        let path = self.0.path().join(FOLDER).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(second)).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.path().join(FOLDER).join(name)).unwrap();
    }

    fn kept_in(&self) -> PathBuf {
        self.0.path().join(KEPT_IN)
    }

    fn references(&self, is_kept: bool) -> References {
        let file = is_kept.then(|| self.kept_in());
        References::new(self.0.path(), Chunking::default(), file, AT_ONCE)
    }

    fn change(&self, sql: &str) {
        Connection::open(self.kept_in()).unwrap().execute_batch(sql).unwrap();
    }
}

fn search(references: &References, query: &str) -> Option<Vec<Passage>> {
    Runtime::new().unwrap().block_on(references.search(query)).unwrap()
}

fn found(references: &References, query: &str) -> Vec<String> {
    search(references, query).unwrap().into_iter().map(|passage| passage.text).collect()
}

fn score(references: &References, query: &str) -> f64 {
    search(references, query).unwrap()[0].score.unwrap()
}

#[test]
fn a_passage_comes_with_its_file_and_score() {
    let agent = Agent::new(&[
        ("cards/lost.md", "# Lost cards\n\nA new card costs 10 euros."),
        ("hours.txt", "We open at nine."),
    ]);
    let passages = search(&agent.references(false), "lost card fee").unwrap();
    let text = "# Lost cards\n\nA new card costs 10 euros.".to_owned();
    let score = passages[0].score;
    assert_eq!(passages, [Passage { text, scope: "project".into(), source: "cards/lost.md".into(), score }]);
    // Two words of three, one of them twice.
    assert!((0.3..0.4).contains(&score.unwrap()), "{score:?}");
}

#[test]
fn an_agent_without_references_has_no_index() {
    let agent = Agent::new(&[]);
    let references = agent.references(true);
    assert!(!references.is_there());
    assert_eq!(search(&references, "card"), None);
    assert!(!agent.kept_in().exists());
}

#[test]
fn a_query_without_words_finds_nothing() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    for query in ["", " ", "?!", "\"", "* -", "\u{301}"] {
        assert_eq!(search(&agent.references(false), query), Some(Vec::new()), "{query:?}");
    }
}

#[test]
fn a_word_that_stands_nowhere_finds_nothing() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    assert_eq!(search(&agent.references(false), "zebra"), Some(Vec::new()));
}

#[test]
fn words_are_found_in_other_forms_cases_and_without_accents() {
    let agent = Agent::new(&[("a.md", "Lost CARDS in the Cafe\u{301}, très élevé.")]);
    let references = agent.references(false);
    for query in ["card", "cards", "losts", "café", "cafe", "cafe\u{301}", "eleve", "ÉLEVÉ"] {
        assert_eq!(found(&references, query).len(), 1, "{query}");
    }
}

#[test]
fn no_operator_of_fts5_is_one_in_a_query() {
    let agent = Agent::new(&[("a.md", "A card."), ("b.md", "Not near."), ("c.md", "An order.")]);
    let references = agent.references(false);
    assert_eq!(found(&references, "card NOT near"), ["Not near.", "A card."]);
    assert_eq!(found(&references, "text:card"), ["A card."]);
    assert_eq!(found(&references, "ca*"), Vec::<String>::new());
    assert_eq!(found(&references, "\"near not"), ["Not near."]);
}

#[test]
fn more_of_the_words_go_before_one_of_them_many_times() {
    let many = "card ".repeat(50);
    let agent =
        Agent::new(&[("a.md", many.trim()), ("b.md", "A lost bag."), ("c.md", "A lost card."), ("d.md", "Nothing.")]);
    assert_eq!(found(&agent.references(false), "lost card")[0], "A lost card.");
}

#[test]
fn a_rare_word_goes_before_one_that_is_everywhere() {
    let agent = Agent::new(&[
        ("a.md", "The fee for the bag and for the boat."),
        ("b.md", "The limit of the card."),
        ("c.md", "The time for the boat."),
    ]);
    assert_eq!(found(&agent.references(false), "what is the limit for the boat?")[0], "The limit of the card.");
}

#[test]
fn in_a_large_index_a_word_that_is_almost_everywhere_is_searched_for_only_alone() {
    let lines: Vec<_> = (0..1200).map(|number| format!("the line {number:08}.\n")).collect();
    let agent = Agent::new(&[("a.txt", &(lines.concat() + "the limit 00001200."))]);
    let references = References::open(agent.0.path(), Chunking { size: 20, overlap: 0 });
    assert_eq!(found(&references, "the limit"), ["the limit 00001200."]);
    assert!((score(&references, "the limit zebra") - 0.25).abs() < 1e-6);
    assert_eq!(found(&references, "the").len(), 5);
}

#[test]
fn a_score_tells_how_much_of_the_query_is_found_however_many_passages_there_are() {
    let one = Agent::new(&[("a.md", "lost card fee")]);
    let many = Agent::new(&[("a.md", "lost card fee")]);
    for number in 0..200 {
        many.write(&format!("b{number}.md"), "some other words", 0);
    }
    for agent in [one, many] {
        let references = agent.references(false);
        let expected = [("lost card fee", 0.5), ("card", 0.5), ("card zebra", 0.25), ("card a b c d", 0.1)];
        for (query, expected) in expected {
            let score = score(&references, query);
            assert!((score - expected).abs() < 1e-6, "{query}: {score}");
        }
    }
}

#[test]
fn a_word_in_all_passages_tells_them_apart_by_how_often_it_stands_there() {
    let agent = Agent::new(&[("a.md", "card one two"), ("b.md", "card card one"), ("c.md", "card card card")]);
    let passages = search(&agent.references(false), "card").unwrap();
    let sources: Vec<_> = passages.iter().map(|passage| &*passage.source).collect();
    assert_eq!(sources, ["c.md", "b.md", "a.md"]);
    assert!(passages.iter().all(|passage| passage.score.unwrap() > 0.4), "{passages:?}");
}

#[test]
fn no_more_than_five_passages_are_found_and_equal_ones_in_order() {
    let files: Vec<_> = (0..9).map(|number| (format!("{number}.md"), format!("card {number}"))).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    assert_eq!(
        found(&Agent::new(&files).references(false), "card"),
        ["card 0", "card 1", "card 2", "card 3", "card 4"]
    );
}

#[test]
fn a_long_markdown_file_is_found_by_its_headings_in_every_passage() {
    let text = format!("# Lost cards\n\n{}", "Some words for a sentence that is long. ".repeat(70));
    let agent = Agent::new(&[("a.md", &text), ("b.md", "Other.")]);
    let found = found(&agent.references(false), "lost");
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|text| text.starts_with("# Lost cards\n\n")), "{found:?}");
}

#[test]
fn any_text_is_a_query() {
    let agent = Agent::new(&[("a.md", "A card, not near; or else and."), ("b.md", "ä\u{301} 一二三 \u{93f}\u{915}")]);
    let index = RefCell::new(Index::in_memory(Chunking::default()).unwrap());
    index.borrow_mut().refresh(|| files::list(&agent.0.path().join(FOLDER))).unwrap();
    proptest!(|(text: String, odd in "[\"'()*:^{}+\\- \0aNOTEARD.]{0,40}")| {
        for query in [text, odd] {
            for passage in index.borrow_mut().search(&query).unwrap() {
                let score = passage.score.unwrap();
                prop_assert!(0.0 < score && score < 1.0, "{query:?}: {score}");
            }
        }
    });
}
