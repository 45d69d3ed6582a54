//! What an agent says in fixed words.

use crate::conversation::Object;

/// The responses of the engine itself, by their names; an agent overrides each by declaring it.
const BUILT_IN: [(Response, &str, &str); 6] = [
    (Response::IncomingRejected, "utter_incoming_message_rejected", "I'm sorry, but I can't process that message."),
    (Response::OutgoingRejected, "utter_outgoing_text_rejected", "I'm sorry, but I can't share that."),
    (
        Response::RequestHookError,
        "utter_model_request_hook_error",
        "I'm sorry, but I can't answer right now. Please try again.",
    ),
    (
        Response::ToolCallHookError,
        "utter_tool_call_hook_error",
        "I'm sorry, but I can't do that right now. Please try again.",
    ),
    (Response::MaxIterations, "utter_max_iterations", "I'm sorry, but this is taking me too long. Please try again."),
    (Response::GenericFailure, "utter_generic_failure", "I'm sorry, but something went wrong. Please try again."),
];

/// A response of the engine itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Response {
    /// A hook has rejected the user's message.
    IncomingRejected,
    /// A hook has rejected a text of the agent's.
    OutgoingRejected,
    /// The model was not asked, since a hook failed.
    RequestHookError,
    /// No tool ran, since a hook failed.
    ToolCallHookError,
    /// The model was asked as often as a turn allows.
    MaxIterations,
    /// Anything else went wrong.
    GenericFailure,
}

impl Response {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::IncomingRejected,
        Self::OutgoingRejected,
        Self::RequestHookError,
        Self::ToolCallHookError,
        Self::MaxIterations,
        Self::GenericFailure,
    ];

    /// Its name in `responses.yml`.
    pub fn name(self) -> &'static str {
        BUILT_IN[self as usize].1
    }

    /// What is said where the agent does not say otherwise.
    pub fn text(self) -> &'static str {
        BUILT_IN[self as usize].2
    }
}

/// A response as it is to be said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// Its buttons.
    pub buttons: Vec<Object>,
    /// Whether the model is to put it into its own words.
    pub rephrase: bool,
}

/// The fixed responses of an agent.
pub trait Responses: Send + Sync {
    /// A response by its name, with what it shows of memory: `session.<namespace>.<entry>` to a value, and `<entry>` for short. `None`:
    /// there is no such response.
    fn render(&self, name: &str, values: &Object) -> Option<Rendered>;
}

/// The responses of the engine itself and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedResponses;

impl Responses for FixedResponses {
    fn render(&self, name: &str, _: &Object) -> Option<Rendered> {
        let built_in = BUILT_IN.iter().find(|(_, other, _)| *other == name)?;
        Some(Rendered { text: built_in.2.to_owned(), ..Rendered::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_responses() {
        for (index, response) in Response::ALL.into_iter().enumerate() {
            assert_eq!((BUILT_IN[index].0, response as usize), (response, index));
            assert_eq!(FixedResponses.render(response.name(), &Object::new()).unwrap().text, response.text());
        }
    }
}
