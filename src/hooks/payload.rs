//! The ten payloads: owned values, the same fields and defaults as the Python classes (published interface, rasa-pro 3.21.0).

use std::sync::Arc;

use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::field::{FieldSpec, FieldType, Slot, SlotValue};
use super::point::Point;
use super::settings::ModelSettings;
use crate::conversation::{CallInfo, ChannelInfo, Object};

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The turn finished normally.
    Completed,
    /// The turn was interrupted, for example by barge-in.
    Cancelled,
    /// The turn failed.
    Error,
}

impl TurnStatus {
    /// The status as Python writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

/// What a point carries. Implemented by the ten payloads alone.
pub trait Payload:
    sealed::Sealed + Clone + std::fmt::Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The point that the payload belongs to.
    const POINT: Point;

    /// Sets what a payload shows of the call and the channel that its turn came by.
    fn came_by(&mut self, call: &CallInfo, channel: &ChannelInfo);

    /// Wraps the payload, its point now known at run time only.
    fn into_any(self) -> AnyPayload;

    /// Unwraps the payload; `None`: it belongs to another point.
    fn from_any(any: AnyPayload) -> Option<Self>;
}

/// A payload whose point has a modify lane.
pub trait ModifiablePayload: Payload {}

mod sealed {
    pub trait Sealed {}
}

/// Declares the payloads and the enum of them all. `[mutable]`: a modify hook may change the field; `[fixed]`: it may not.
macro_rules! payloads {
    ($(
        $(#[$doc:meta])*
        $variant:ident = $name:ident {
            $( $(#[$rdoc:meta])* $rfield:ident: $rtype:ty [$rmut:ident], )*
            ;
            $( $(#[$ofield_doc:meta])* $ofield:ident: $otype:ty = $default:expr, [$omut:ident], )*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            pub struct $name {
                /// The conversation's or user's id; never empty in a real turn.
                pub sender_id: String,
                /// Telephony and session metadata.
                #[serde(default)]
                pub call: CallInfo,
                /// The channel of the turn.
                #[serde(default)]
                pub channel: ChannelInfo,
                $( $(#[$rdoc])* pub $rfield: $rtype, )*
                $( $(#[$ofield_doc])* #[serde(default)] pub $ofield: $otype, )*
            }

            impl $name {
                /// A payload with the default of every field that has one.
                pub fn new(sender_id: impl Into<String> $(, $rfield: impl Into<$rtype>)*) -> Self {
                    Self {
                        sender_id: sender_id.into(),
                        call: CallInfo::default(),
                        channel: ChannelInfo::default(),
                        $( $rfield: $rfield.into(), )*
                        $( $ofield: $default, )*
                    }
                }

                const FIELDS: &'static [FieldSpec] = &[
                    FieldSpec { name: "sender_id", kind: <String as FieldType>::KIND, mutable: false, required: true },
                    FieldSpec { name: "call", kind: <CallInfo as FieldType>::KIND, mutable: false, required: false },
                    FieldSpec { name: "channel", kind: <ChannelInfo as FieldType>::KIND, mutable: false, required: false },
                    $( FieldSpec {
                        name: stringify!($rfield), kind: <$rtype as FieldType>::KIND,
                        mutable: payloads!(@mutable $rmut), required: true,
                    }, )*
                    $( FieldSpec {
                        name: stringify!($ofield), kind: <$otype as FieldType>::KIND,
                        mutable: payloads!(@mutable $omut), required: false,
                    }, )*
                ];

                fn visit<'a>(&'a self, see: &mut dyn FnMut(&'static FieldSpec, Slot<'a>) ) {
                    let mut specs = Self::FIELDS.iter();
                    let mut next = |slot| see(specs.next().expect("as many specs as fields"), slot);
                    next(self.sender_id.slot());
                    next(self.call.slot());
                    next(self.channel.slot());
                    $( next(self.$rfield.slot()); )*
                    $( next(self.$ofield.slot()); )*
                }

                fn replace(&mut self, field: &str, value: SlotValue) -> bool {
                    match field {
                        $( stringify!($rfield) => payloads!(@mutable $rmut) && FieldType::replace(&mut self.$rfield, value), )*
                        $( stringify!($ofield) => payloads!(@mutable $omut) && FieldType::replace(&mut self.$ofield, value), )*
                        _ => false,
                    }
                }
            }

            impl sealed::Sealed for $name {}

            impl Payload for $name {
                const POINT: Point = Point::$variant;

                fn came_by(&mut self, call: &CallInfo, channel: &ChannelInfo) {
                    self.call.clone_from(call);
                    self.channel.clone_from(channel);
                }

                fn into_any(self) -> AnyPayload {
                    AnyPayload::$variant(self)
                }

                fn from_any(any: AnyPayload) -> Option<Self> {
                    if let AnyPayload::$variant(payload) = any { Some(payload) } else { None }
                }
            }
        )*

        /// A payload of any point.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        #[expect(missing_docs, reason = "one variant a point")]
        pub enum AnyPayload {
            $( $variant($name), )*
        }

        impl AnyPayload {
            /// The point that the payload belongs to.
            pub fn point(&self) -> Point {
                match self { $( Self::$variant(_) => Point::$variant, )* }
            }

            /// The conversation that the payload belongs to.
            pub fn sender_id(&self) -> &str {
                match self { $( Self::$variant(payload) => &payload.sender_id, )* }
            }

            /// What the catalogue says of the fields of a point's payload.
            pub fn fields_of(point: Point) -> &'static [FieldSpec] {
                match point { $( Point::$variant => $name::FIELDS, )* }
            }

            /// Shows every field in the order of the catalogue.
            pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'static FieldSpec, Slot<'a>)) {
                match self { $( Self::$variant(payload) => payload.visit(see), )* }
            }

            /// Sets a field that a hook may change; `false`: it may not, there is none, or the value is of another kind.
            pub fn replace(&mut self, field: &str, value: SlotValue) -> bool {
                match self { $( Self::$variant(payload) => payload.replace(field, value), )* }
            }

            /// Reads a point's payload from its JSON form.
            ///
            /// # Errors
            ///
            /// A sentence with the path of the value that does not fit.
            pub fn from_json(point: Point, json: Value) -> Result<Self, String> {
                Ok(match point { $( Point::$variant => {
                    let read = serde_path_to_error::deserialize(json);
                    Self::$variant(read.map_err(|error| format!("`{}`: {}", error.path(), error.inner()))?)
                } )* })
            }

            /// Reads a point's payload in whatever form it was written with its field names.
            pub(crate) fn read<'de, D: serde::Deserializer<'de>>(point: Point, from: D) -> Result<Self, D::Error> {
                Ok(match point { $( Point::$variant => Self::$variant(Deserialize::deserialize(from)?), )* })
            }
        }
    };
    (@mutable mutable) => { true };
    (@mutable fixed) => { false };
}

payloads! {
    /// The turn begins. Observed only.
    TurnStarted = TurnStartedPayload {
        ;
        /// The turn's id, where the engine gives one.
        turn_id: Option<String> = None, [fixed],
        /// Whether the turn came from a voice channel.
        is_voice: bool = false, [fixed],
    }

    /// The turn has ended. Observed only.
    TurnFinished = TurnFinishedPayload {
        /// How it ended.
        status: TurnStatus [fixed],
        ;
        /// The turn's id, where the engine gives one.
        turn_id: Option<String> = None, [fixed],
    }

    /// The user's final text, before it is stored.
    IncomingMessage = IncomingMessagePayload {
        /// The text.
        text: String [mutable],
        ;
        /// The message's id, where the channel gives one.
        message_id: Option<String> = None, [fixed],
    }

    /// A request that is about to be sent to the model.
    ModelRequest = ModelRequestPayload {
        /// The chat messages, passed through as the JSON they are; equal messages are shared, not copied.
        messages: Vec<Arc<Object>> [mutable],
        ;
        /// Overrides for this call; starts empty.
        model_settings: ModelSettings = ModelSettings::default(), [mutable],
        /// The names of the tools that the model is offered.
        tool_names: Vec<String> = Vec::new(), [fixed],
        /// The iteration of the turn's loop, from 0.
        iteration: u64 = 0, [fixed],
    }

    /// The model's answer, before anything is emitted or dispatched.
    ModelResponse = ModelResponsePayload {
        ;
        /// The assistant's text.
        text: Option<String> = None, [mutable],
        /// Tool calls: objects with `id`, `tool_name`, `tool_args` and, where known, `type`.
        tool_calls: Vec<Arc<Object>> = Vec::new(), [mutable],
        /// The provider's latency in milliseconds, where known.
        latency_ms: Option<f64> = None, [fixed],
    }

    /// A tool call, before any of its batch runs.
    ToolCall = ToolCallPayload {
        /// The tool that is about to run.
        tool_name: String [mutable],
        /// Its arguments.
        arguments: Object [mutable],
        ;
        /// Headers; they stay in the payload and reach no tool.
        headers: IndexMap<String, String> = IndexMap::new(), [mutable],
    }

    /// A tool's result, before it is stored and replayed to the model.
    ToolResult = ToolResultPayload {
        /// The tool that ran.
        tool_name: String [fixed],
        /// The arguments that it ran with.
        arguments: Object [mutable],
        /// The result; the text of a JSON document where the tool gave one.
        value: Value [mutable],
        ;
        /// Whether the result is an error.
        is_error: bool = false, [mutable],
    }

    /// A query that is about to be put to the references.
    KnowledgeQuery = KnowledgeQueryPayload {
        /// The search string.
        query: String [mutable],
        ;
    }

    /// The passages that a search gave.
    KnowledgeResults = KnowledgeResultsPayload {
        /// The search string that was used.
        query: String [fixed],
        /// Passages: objects with `text`, `scope`, `source` and, where known, `score`.
        passages: Vec<Arc<Object>> [mutable],
        ;
    }

    /// A completed text that is about to be sent to the user.
    OutgoingText = OutgoingTextPayload {
        /// The text.
        text: String [mutable],
        ;
        /// Whether the turn came from a voice channel.
        is_voice: bool = false, [fixed],
    }
}

impl ModifiablePayload for IncomingMessagePayload {}
impl ModifiablePayload for ModelRequestPayload {}
impl ModifiablePayload for ModelResponsePayload {}
impl ModifiablePayload for ToolCallPayload {}
impl ModifiablePayload for ToolResultPayload {}
impl ModifiablePayload for KnowledgeQueryPayload {}
impl ModifiablePayload for KnowledgeResultsPayload {}
impl ModifiablePayload for OutgoingTextPayload {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::POINTS;
    use serde_json::json;

    #[test]
    fn a_payload_reads_from_its_json_form_with_defaults() {
        let payload: ModelRequestPayload =
            serde_json::from_value(json!({"sender_id": "s", "messages": [{"role": "user", "b": 1, "a": 2}]})).unwrap();
        assert!(payload.model_settings.as_object().is_empty());
        assert_eq!(payload.iteration, 0);
        assert_eq!(serde_json::to_string(&payload.messages).unwrap(), r#"[{"role":"user","b":1,"a":2}]"#);
    }

    #[test]
    fn a_fixed_field_cannot_be_replaced() {
        let mut payload = ModelRequestPayload::new("s", Vec::new()).into_any();
        assert!(!payload.replace("tool_names", SlotValue::Text("x".into())));
        assert!(!payload.replace("sender_id", SlotValue::Text("x".into())));
        assert!(!payload.replace("messages", SlotValue::Text("x".into())));
        assert!(payload.replace("messages", SlotValue::Objects(vec![Arc::new(Object::new())])));
    }

    #[test]
    fn a_visit_meets_each_field_with_the_kind_that_the_catalogue_names() {
        for spec in &POINTS {
            let names: Vec<_> = spec.fields().iter().map(|field| field.name).collect();
            assert_eq!(names[..3], ["sender_id", "call", "channel"]);
        }
        let mut seen = Vec::new();
        TurnStartedPayload::new("s").into_any().visit(&mut |field, slot| seen.push(format!("{} {slot:?}", field.name)));
        assert_eq!(seen[0], r#"sender_id Text("s")"#);
        assert_eq!(seen[3..], ["turn_id OptionalText(None)", "is_voice Flag(false)"]);
    }
}
