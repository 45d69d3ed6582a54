//! The fields of payloads, seen one by one: what crosses the border to Python and back.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::payload::TurnStatus;
use super::settings::ModelSettings;
use crate::conversation::{CallInfo, ChannelInfo, Object};

/// What a field holds; the strings of [`FieldKind::annotation`] are the Python annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// `str`
    Text,
    /// `str | None`
    OptionalText,
    /// `bool`
    Flag,
    /// `int`, not negative
    Count,
    /// `float | None`
    OptionalNumber,
    /// `list[str]`
    Names,
    /// `dict[str, str]`
    TextMap,
    /// `dict[str, Any]`
    Object,
    /// `list[dict[str, Any]]`
    Objects,
    /// `dict[str, Any]`, of which only the allow-listed keys count
    Settings,
    /// one of the three ends of a turn
    Status,
    /// any JSON value
    Json,
    /// `CallInfo`
    Call,
    /// `ChannelInfo`
    Channel,
}

impl FieldKind {
    /// The field's Python annotation.
    pub const fn annotation(self) -> &'static str {
        match self {
            Self::Text => "str",
            Self::OptionalText => "str | None",
            Self::Flag => "bool",
            Self::Count => "int",
            Self::OptionalNumber => "float | None",
            Self::Names => "list[str]",
            Self::TextMap => "dict[str, str]",
            Self::Object | Self::Settings => "dict[str, Any]",
            Self::Objects => "list[dict[str, Any]]",
            Self::Status => "Literal['completed', 'cancelled', 'error']",
            Self::Json => "Any",
            Self::Call => "CallInfo",
            Self::Channel => "ChannelInfo",
        }
    }
}

/// What the catalogue says of one field.
#[derive(Clone, Copy, Debug)]
pub struct FieldSpec {
    /// The field's name, in Rust and Python alike.
    pub name: &'static str,
    /// What it holds.
    pub kind: FieldKind,
    /// Whether a modify hook may change it; what it may not change comes back unchanged.
    pub mutable: bool,
    /// Whether it must be given.
    pub required: bool,
}

/// A field's value, borrowed.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the variants are those of `FieldKind`")]
pub enum Slot<'a> {
    Text(&'a str),
    OptionalText(Option<&'a str>),
    Flag(bool),
    Count(u64),
    OptionalNumber(Option<f64>),
    Names(&'a [String]),
    TextMap(&'a IndexMap<String, String>),
    Object(&'a Object),
    Objects(&'a [Arc<Object>]),
    Settings(&'a ModelSettings),
    Status(TurnStatus),
    Json(&'a Value),
    Call(&'a CallInfo),
    Channel(&'a ChannelInfo),
}

/// A field's new value, owned. Only what a hook may change has a variant.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants are those of `FieldKind`")]
pub enum SlotValue {
    Text(String),
    OptionalText(Option<String>),
    Flag(bool),
    TextMap(IndexMap<String, String>),
    Object(Object),
    Objects(Vec<Arc<Object>>),
    Settings(ModelSettings),
    Json(Value),
}

/// A Rust type that is the type of a payload's field.
pub(super) trait FieldType: Sized {
    const KIND: FieldKind;
    fn slot(&self) -> Slot<'_>;
    /// Takes over a new value; `false`: the value is of another kind, or the field cannot be changed.
    fn replace(&mut self, _value: SlotValue) -> bool {
        false
    }
}

/// Implements [`FieldType`]; with `mutable`, a [`SlotValue`] of the same name can take its place.
macro_rules! field_type {
    ($type:ty, $kind:ident, |$it:ident| $view:expr $(, $mutable:ident)?) => {
        impl FieldType for $type {
            const KIND: FieldKind = FieldKind::$kind;
            fn slot(&self) -> Slot<'_> {
                let $it = self;
                Slot::$kind($view)
            }
            field_type!(@replace $kind $($mutable)?);
        }
    };
    (@replace $kind:ident mutable) => {
        fn replace(&mut self, value: SlotValue) -> bool {
            if let SlotValue::$kind(new) = value {
                *self = new;
                return true;
            }
            false
        }
    };
    (@replace $kind:ident) => {};
}

field_type!(String, Text, |it| it, mutable);
field_type!(Option<String>, OptionalText, |it| it.as_deref(), mutable);
field_type!(bool, Flag, |it| *it, mutable);
field_type!(u64, Count, |it| *it);
field_type!(Option<f64>, OptionalNumber, |it| *it);
field_type!(Vec<String>, Names, |it| it);
field_type!(IndexMap<String, String>, TextMap, |it| it, mutable);
field_type!(Object, Object, |it| it, mutable);
field_type!(Vec<Arc<Object>>, Objects, |it| it, mutable);
field_type!(ModelSettings, Settings, |it| it, mutable);
field_type!(TurnStatus, Status, |it| *it);
field_type!(Value, Json, |it| it, mutable);
field_type!(CallInfo, Call, |it| it);
field_type!(ChannelInfo, Channel, |it| it);
