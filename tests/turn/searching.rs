//! The references: the query, the search, the passages.

use serde_json::json;
use tenterhook::{AnyPayload, Passage, Point, ToolOutput};

use crate::scene::{Scene, calls, said};

const NOTHING: &str = "No passages were found. Do not answer from memory: say that the references do not tell.";
const EMPTY: &str = "The query is empty: ask for what the references are to be searched for.";

fn passage(text: &str, score: f64) -> Passage {
    Passage { text: text.into(), scope: "project".into(), source: "a.md".into(), score: Some(score) }
}

fn searching(query: &str) -> Scene {
    Scene::new([calls([("c1", "search_knowledge", json!({"query": query}))]), said("Done.")])
        .references(Ok(Some(vec![passage("one", 0.9), passage("two", 0.1)])))
}

/// What the model has read.
async fn read(scene: &Scene) -> String {
    let played = scene.turn("hello").await;
    assert_eq!((played.heard(), played.status()), (vec!["Done."], "completed"));
    scene.requests()[1][2]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_model_reads_the_passages_and_hooks_see_them_as_they_are() {
    let scene = searching("ticket");
    let passages = json!([
        {"text": "one", "scope": "project", "source": "a.md", "score": 0.9},
        {"text": "two", "scope": "project", "source": "a.md", "score": 0.1},
    ]);
    assert_eq!(read(&scene).await, json!({"passages": passages}).to_string());
    let seen = &scene.observed(Point::KnowledgeResults)[0];
    assert_eq!((&seen["query"], &seen["passages"]), (&json!("ticket"), &passages));
}

#[tokio::test]
async fn search_is_offered_where_there_are_references_and_after_it_the_agents_tools_are_withheld() {
    let scene = searching("x").tool("find", |_| ToolOutput::of(1));
    read(&scene).await;
    scene.answers(Ok(said("Again.")));
    scene.turn("next").await;
    let offered: Vec<_> =
        scene.observed(Point::ModelRequest).iter().map(|request| request["tool_names"].clone()).collect();
    let all = json!(["search_knowledge", "find", "listen"]);
    assert_eq!(offered, [all.clone(), json!(["search_knowledge", "listen"]), all]);
    let scene = Scene::new([said("Fine.")]);
    scene.turn("hello").await;
    assert_eq!(scene.observed(Point::ModelRequest)[0]["tool_names"], json!(["listen"]));
}

#[tokio::test]
async fn a_hooked_query_is_what_is_searched_for() {
    let scene = searching("42").sets(Point::KnowledgeQuery, |payload| {
        if let AnyPayload::KnowledgeQuery(payload) = payload {
            payload.query = format!("ticket {}", payload.query);
        }
    });
    read(&scene).await;
    assert_eq!(scene.searched(), ["ticket 42"]);
    assert_eq!(scene.observed(Point::KnowledgeQuery)[0]["query"], "42");
    assert_eq!(scene.observed(Point::KnowledgeResults)[0]["query"], "ticket 42");
}

#[tokio::test]
async fn an_empty_query_is_guarded_before_the_hooks_and_after() {
    let scene = searching("  ");
    assert_eq!(read(&scene).await, EMPTY);
    assert!(scene.searched().is_empty() && scene.observed(Point::KnowledgeQuery).is_empty());
    let scene = searching("x").sets(Point::KnowledgeQuery, |payload| {
        if let AnyPayload::KnowledgeQuery(payload) = payload {
            payload.query = " ".into();
        }
    });
    assert_eq!(read(&scene).await, EMPTY);
    assert!(scene.searched().is_empty());
}

#[tokio::test]
async fn a_failed_query_hook_skips_the_search_with_the_safe_note() {
    let scene = searching("x").failing(Point::KnowledgeQuery);
    assert_eq!(read(&scene).await, NOTHING);
    assert!(scene.searched().is_empty());
}

#[tokio::test]
async fn results_can_be_filtered_and_emptied() {
    for (keep, expected) in [
        (0.2, json!({"passages": [{"text": "one", "scope": "project", "source": "a.md", "score": 0.9}]}).to_string()),
        (1.0, NOTHING.to_owned()),
    ] {
        let scene = searching("x").sets(Point::KnowledgeResults, move |payload| {
            if let AnyPayload::KnowledgeResults(payload) = payload {
                payload.passages.retain(|passage| passage["score"].as_f64() > Some(keep));
            }
        });
        assert_eq!(read(&scene).await, expected);
    }
}

#[tokio::test]
async fn a_failed_results_hook_and_passages_without_a_text_keep_the_originals() {
    let both = read(&searching("x")).await;
    assert_eq!(read(&searching("x").failing(Point::KnowledgeResults)).await, both);
    let broken = searching("x").sets(Point::KnowledgeResults, |payload| {
        if let AnyPayload::KnowledgeResults(payload) = payload {
            std::sync::Arc::make_mut(&mut payload.passages[1]).insert("text".into(), json!(7));
        }
    });
    assert_eq!(read(&broken).await, both);
}

#[tokio::test]
async fn a_missing_index_and_a_search_that_fails_have_their_notes_with_and_without_hooks() {
    let unchanged =
        |payload| tenterhook::Outcome::Proceed { payload, changed: false, failure: None, discarded_signal: None };
    for (found, expected) in [(Ok(None), "There are no references to search."), (Err("SECRET".to_owned()), NOTHING)] {
        let scene = searching("x").references(found.clone());
        assert_eq!(read(&scene).await, expected);
        let hooked = searching("x")
            .references(found)
            .hook(Point::KnowledgeQuery, unchanged)
            .hook(Point::KnowledgeResults, unchanged);
        assert_eq!(read(&hooked).await, expected);
        assert!(hooked.observed(Point::KnowledgeResults).is_empty());
    }
}
