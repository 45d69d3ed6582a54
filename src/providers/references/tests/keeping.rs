//! How the index follows the files, and what becomes of one that is kept.

use std::thread;
use std::time::SystemTime;

use futures_util::FutureExt as _;

use super::*;

#[test]
fn files_that_come_later_are_seen() {
    let agent = Agent::new(&[]);
    let references = agent.references(false);
    assert!(!references.is_there());
    agent.write("a.md", "A card.", 0);
    assert!(references.is_there());
    assert_eq!(found(&references, "card"), ["A card."]);
}

#[test]
fn changed_files_are_read_again() {
    for is_kept in BOTH {
        let agent = Agent::new(&[("a.md", "A card."), ("b.md", "A bag.")]);
        let references = agent.references(is_kept);
        assert_eq!(found(&references, "card bag boat"), ["A card.", "A bag."]);
        agent.write("b.md", "A boat", 1);
        agent.write("c.md", "A cart.", 1);
        assert_eq!(found(&references, "card bag boat"), ["A card.", "A boat"]);
        assert_eq!(found(&references, "cart"), ["A cart."]);
    }
}

#[test]
fn files_that_are_gone_are_forgotten() {
    for is_kept in BOTH {
        let agent = Agent::new(&[("a.md", "A card."), ("b.md", "Two cards.")]);
        let references = agent.references(is_kept);
        assert_eq!(found(&references, "card").len(), 2);
        agent.remove("a.md");
        assert_eq!(found(&references, "card"), ["Two cards."]);
        agent.remove("b.md");
        assert_eq!(search(&references, "card"), None);
        assert!(!references.is_there());
    }
}

#[test]
fn files_that_come_back_replace_those_that_were_there_before() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    let references = References::new(agent.0.path(), Chunking::default(), None, Duration::from_millis(1));
    assert_eq!(found(&references, "card"), ["A card."]);
    agent.remove("a.md");
    while search(&references, "card").is_some() {}
    agent.write("b.md", "Two cards.", 0);
    while !references.is_there() {}
    assert_eq!(found(&references, "card"), ["Two cards."]);
}

#[test]
fn a_file_with_the_same_size_and_time_is_not_read_again() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    let references = agent.references(false);
    assert_eq!(found(&references, "card"), ["A card."]);
    agent.write("a.md", "A boat.", 0);
    assert_eq!(found(&references, "card"), ["A card."]);
}

#[test]
fn the_files_are_not_looked_at_before_their_time() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    let references = References::open(agent.0.path(), Chunking::default());
    let hour = Duration::from_hours(1);
    let references =
        References { shared: Arc::new(Shared { look_every: hour, ..Arc::into_inner(references.shared).unwrap() }) };
    assert_eq!(found(&references, "card"), ["A card."]);
    agent.write("b.md", "Two cards.", 0);
    assert_eq!(found(&references, "card"), ["A card."]);
    references.refresh().unwrap();
    assert_eq!(found(&references, "card").len(), 2);
}

#[test]
fn a_kept_index_is_not_made_again() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    assert_eq!(found(&agent.references(true), "card"), ["A card."]);
    agent.write("a.md", "A boat.", 0);
    assert_eq!(found(&agent.references(true), "card"), ["A card."]);
}

#[test]
fn another_chunking_makes_a_kept_index_anew() {
    let agent = Agent::new(&[("a.md", "A card. Two cards.")]);
    assert_eq!(found(&agent.references(true), "card"), ["A card. Two cards."]);
    let chunking = Chunking { size: 12, overlap: 0 };
    let references = References::open_kept(agent.0.path(), chunking);
    assert_eq!(found(&references, "card"), ["A card.", "Two cards."]);
}

#[test]
fn an_index_of_another_version_program_or_shape_is_made_anew() {
    for sql in [
        "PRAGMA user_version = 2",
        "PRAGMA application_id = 1",
        "DROP TABLE chunking",
        "DROP TABLE passages",
        "DELETE FROM chunking",
        "DROP TABLE files; CREATE TABLE files (id INTEGER PRIMARY KEY)",
    ] {
        let agent = Agent::new(&[("a.md", "A card.")]);
        assert_eq!(found(&agent.references(true), "card"), ["A card."]);
        agent.change(sql);
        agent.write("a.md", "A boat.", 0);
        assert_eq!(found(&agent.references(true), "boat"), ["A boat."], "{sql}");
        agent.write("a.md", "A cart.", 0);
        assert_eq!(found(&agent.references(true), "boat"), ["A boat."], "kept after {sql}");
    }
}

#[test]
fn what_is_no_database_is_replaced() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    for content in ["", "no database", &"no database ".repeat(10_000)] {
        fs::create_dir_all(agent.kept_in().parent().unwrap()).unwrap();
        fs::write(agent.kept_in(), content).unwrap();
        assert_eq!(found(&agent.references(true), "card"), ["A card."]);
        assert_eq!(agent.references(true).refresh(), Ok(()));
    }
}

#[test]
fn a_damaged_index_is_made_anew() {
    let files: Vec<_> = (0..50).map(|number| (format!("{number}.md"), format!("card {number} ").repeat(100))).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    let agent = Agent::new(&files);
    let whole = found(&agent.references(true), "card 7");
    let good = fs::read(agent.kept_in()).unwrap();
    for page in 1..good.len() / 4096 {
        let mut damaged = good.clone();
        damaged[page * 4096..][..4096].fill(0x5a);
        fs::write(agent.kept_in(), damaged).unwrap();
        let references = agent.references(true);
        let found = found(&references, "card 7");
        // A page that is not needed for the search is not missed.
        assert_eq!(found, whole, "page {page}");
    }
}

#[test]
fn an_index_that_is_damaged_while_it_is_open_is_made_anew() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    let references = agent.references(true);
    assert_eq!(found(&references, "card"), ["A card."]);
    agent.change("DROP TABLE passages");
    assert_eq!(found(&references, "card"), ["A card."]);
}

#[test]
fn an_index_that_cannot_be_kept_is_held_in_memory() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    fs::write(agent.0.path().join(".tenterhook"), "").unwrap();
    assert_eq!(found(&agent.references(true), "card"), ["A card."]);
}

#[test]
fn what_cannot_be_written_leaves_the_index_as_it_was() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    let references = agent.references(true);
    assert_eq!(found(&references, "card"), ["A card."]);
    agent.change("CREATE TRIGGER full BEFORE INSERT ON files BEGIN SELECT RAISE(ABORT, 'no room'); END");
    agent.write("a.md", "A card and a boat.", 1);
    assert_eq!(found(&references, "card"), ["A card."]);
    let failed = format!(
        "the index `{}`: no room\n  hint: see that its disk has room and may be written to, or remove it: it is made anew",
        agent.kept_in().display()
    );
    assert_eq!(references.refresh(), Err(failed));
}

#[test]
fn several_share_an_index_that_they_make_at_once() {
    for _ in 0..5 {
        let agent = Agent::new(&[("a.md", "A card."), ("b.md", "Two cards.")]);
        thread::scope(|scope| {
            for writer in 0..4 {
                let agent = &agent;
                scope.spawn(move || {
                    let references = agent.references(true);
                    for number in 0..5 {
                        agent.write(&format!("{writer}.md"), &format!("card {number}"), number);
                        let sought = search(&references, &format!("card {number}")).unwrap();
                        assert!(sought.iter().any(|passage| passage.source == format!("{writer}.md")), "{sought:?}");
                    }
                });
            }
        });
        let references = agent.references(true);
        assert_eq!(found(&references, "two"), ["Two cards."]);
        assert_eq!(found(&references, "4").len(), 4);
    }
}

#[test]
fn a_problem_is_told_once_and_the_other_files_are_searched() {
    let agent = Agent::new(&[("a.md", "A card."), ("b.md", "")]);
    let large = agent.0.path().join(FOLDER).join("b.md");
    fs::File::options().write(true).open(&large).unwrap().set_len(files::LARGEST + 1).unwrap();
    let references = agent.references(false);
    let told = |references: &References| locked(&references.shared.state).told.len();
    assert_eq!(found(&references, "card"), ["A card."]);
    assert_eq!(told(&references), 1);
    agent.write("b.md", "Two cards.", 1);
    assert_eq!(found(&references, "card").len(), 2);
    assert_eq!(told(&references), 0);
}

#[test]
fn a_file_that_cannot_be_read_is_told_and_the_others_are_read() {
    let agent = Agent::new(&[("a.md", "A card."), ("b.md", "Two cards.")]);
    let listing = files::list(&agent.0.path().join(FOLDER));
    agent.remove("a.md");
    let mut index = Index::in_memory(Chunking::default()).unwrap();
    let problems = index.refresh(|| listing.clone()).unwrap();
    assert!(problems[0].contains("a.md` is left out: "), "{problems:?}");
    assert_eq!(index.search("card").unwrap().len(), 1);
}

#[test]
fn a_search_that_is_given_up_does_no_harm() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    let references = agent.references(true);
    Runtime::new().unwrap().block_on(async {
        assert_eq!(references.search("card").now_or_never(), None);
        drop(references.search("card"));
        assert_eq!(references.search("card").await.unwrap().unwrap().len(), 1);
    });
}

#[test]
fn the_time_of_a_file_may_be_anything() {
    let agent = Agent::new(&[("a.md", "A card.")]);
    let path = agent.0.path().join(FOLDER).join("a.md");
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_hours(1)).unwrap();
    assert_eq!(found(&agent.references(false), "card"), ["A card."]);
}
