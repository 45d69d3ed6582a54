//! What is measured: which handler, on how many messages, how many calls at once.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use serde_json::{Value, json};
use tenterhook::Object;

/// Characters in the content of a message.
const CONTENT: usize = 200;

/// How many messages the payloads have.
pub(crate) const MESSAGES: [usize; 3] = [1, 20, 100];

/// How many calls run at a time.
pub(crate) const AT_ONCE: [usize; 2] = [1, 64];

/// What the handler does with the messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Variant {
    Unchanged,
    Appended,
    Rewritten,
}

impl Variant {
    pub(crate) const ALL: [Self; 3] = [Self::Unchanged, Self::Appended, Self::Rewritten];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Appended => "appended",
            Self::Rewritten => "rewritten",
        }
    }

    const fn module(self) -> &'static str {
        match self {
            Self::Unchanged => include_str!("handlers/unchanged.py"),
            Self::Appended => include_str!("handlers/appended.py"),
            Self::Rewritten => include_str!("handlers/rewritten.py"),
        }
    }

    /// Writes an agent with this handler into `folder`, which is made.
    pub(crate) fn write_agent(self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("hooks.py"), self.module())
    }

    /// What the handler is to make of `messages`.
    pub(crate) fn expected(self, messages: &[Arc<Object>]) -> Value {
        let mut expected = json!(messages);
        let list = expected.as_array_mut().expect("a list was put in");
        match self {
            Self::Unchanged => {}
            Self::Appended => list.push(json!({"role": "system", "content": "Answer in one sentence."})),
            Self::Rewritten => {
                for message in list {
                    message["content"] = message["content"].as_str().map(str::to_uppercase).into();
                }
            }
        }
        expected
    }
}

/// `count` messages of 200 characters, no two the same, from the user and the assistant by turns.
pub(crate) fn messages(count: usize) -> Vec<Arc<Object>> {
    let message = |number: usize| {
        let text: String = "the parcel has not arrived yet, ".chars().cycle().skip(number % 32).take(CONTENT).collect();
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        let text = format!("{number:04}{}", &text[4..]);
        Object::from_iter([("role".to_owned(), role.into()), ("content".to_owned(), text.into())])
    };
    (0..count).map(|number| Arc::new(message(number))).collect()
}
