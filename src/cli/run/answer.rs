//! A recorded completion in the place of the model's answer.

use std::collections::HashSet;
use std::future::ready;

use futures_util::future::BoxFuture;

use crate::conversation::{Completion, RecordedCall};
use crate::providers::requested;
use crate::step::{Model, ModelError, ModelReply, ModelRequest, RequestedCall, Tokens};

/// A model that has one answer: the completion that was recorded, whatever is asked.
pub(super) struct RecordedAnswer {
    pub(super) completion: Completion,
    /// By which id hooks know each call: its own, unless an earlier one of the batch has it.
    ids: Vec<String>,
}

impl RecordedAnswer {
    pub(super) fn new(completion: Completion, new_id: impl Fn() -> String) -> Self {
        let mut taken = HashSet::new();
        let mut own = |id: &String| !id.is_empty() && taken.insert(id.clone());
        let ids = completion
            .calls
            .iter()
            .map(|call| Some(call.id.clone()).filter(&mut own).unwrap_or_else(&new_id))
            .collect();
        Self { completion, ids }
    }

    /// The recorded calls, each with the id by which hooks know it.
    pub(super) fn calls(&self) -> impl ExactSizeIterator<Item = (&str, &RecordedCall)> {
        self.ids.iter().map(String::as_str).zip(&self.completion.calls)
    }

    /// Where among the recorded calls the one stands that hooks know by this id.
    pub(super) fn place_of(&self, id: &str) -> Option<usize> {
        self.ids.iter().position(|known| known == id)
    }
}

impl Model for RecordedAnswer {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn provider(&self) -> &'static str {
        "recorded"
    }

    fn complete<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let call = |(id, call): (&str, _)| RequestedCall { id: Some(id.to_owned()), ..requested(call) };
        let calls = self.calls().map(call).collect();
        let reply = ModelReply { text: self.completion.text.clone(), calls, ..ModelReply::default() };
        // Another model would be asked again; this one has nothing else to say.
        let empty = || ModelError::Exhausted("The recorded completion has neither a text nor a call".to_owned());
        Box::pin(ready(if reply.is_empty() { Err(empty()) } else { Ok(reply) }))
    }
}
