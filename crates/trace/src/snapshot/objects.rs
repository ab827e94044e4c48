//! The values and objects that a pickle makes. Objects are numbered, so that values are small and
//! neither copying nor dropping one follows references.

use mindprof_model::{StackId, StringId};

use super::fields::Fields;

/// A value on the stack, in a list or in a dictionary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Value {
    /// `None`, and values that no answer needs.
    #[default]
    Nothing,
    Bool(bool),
    Int(i64),
    Text(StringId),
    Object(u32),
}

impl Value {
    pub(super) const fn text(self) -> Option<StringId> {
        match self {
            Self::Text(text) => Some(text),
            Self::Nothing | Self::Bool(_) | Self::Int(_) | Self::Object(_) => None,
        }
    }

    pub(super) const fn int(self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(number),
            Self::Nothing | Self::Bool(_) | Self::Text(_) | Self::Object(_) => None,
        }
    }

    pub(super) const fn bool(self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(value),
            Self::Nothing | Self::Int(_) | Self::Text(_) | Self::Object(_) => None,
        }
    }

    /// Returns the object that the value refers to.
    pub(super) fn object(self, objects: &[Object]) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(&objects[object as usize]),
            Self::Nothing | Self::Bool(_) | Self::Int(_) | Self::Text(_) => None,
        }
    }

    /// Returns what the value is, for messages.
    pub(super) fn noun(self, objects: &[Object]) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Bool(_) | Self::Int(_) => "a number",
            Self::Text(_) => "a text",
            Self::Object(object) => objects[object as usize].noun(),
        }
    }
}

/// An object. Dictionaries and lists become records once they are complete.
#[derive(Clone, Debug)]
pub(super) enum Object {
    /// A dictionary that is not known to be a record; `None` while it is empty.
    Dict(Option<Box<Dict>>),
    /// A list; `None` while it is empty.
    List(Option<Box<List>>),
    /// A tuple of two small numbers, as pools have for their names.
    Pair(u32, u32),
    /// A scalar that was memoized.
    Scalar(Box<Value>),
    /// A tuple or a set, with its depth.
    Opaque(u8),
    /// A dictionary without any known key, or without those that records have, with its depth.
    OtherDict(u8),
    /// A frame, by its text.
    Frame(StringId),
    /// A list of frames.
    Stack(StackId),
    /// The records, by their positions.
    Entry(u32),
    Block(u32),
    Segment(u32),
}

#[derive(Clone, Debug)]
pub(super) struct Dict {
    pub(super) fields: Fields,
    pub(super) depth: u8,
}

impl Dict {
    pub(super) const fn new() -> Self {
        Self {
            fields: Fields::new(),
            depth: 1,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct List {
    pub(super) items: Vec<Value>,
    pub(super) depth: u8,
}

impl Object {
    /// Returns the number of containers inside one another, itself included.
    pub(super) fn depth(&self) -> u8 {
        match self {
            Self::Dict(dict) => dict.as_ref().map_or(1, |dict| dict.depth),
            Self::List(list) => list.as_ref().map_or(1, |list| list.depth),
            Self::Opaque(depth) | Self::OtherDict(depth) => *depth,
            Self::Pair(..) | Self::Frame(_) => 1,
            Self::Scalar(_) => 0,
            Self::Stack(_) => 2,
            Self::Entry(_) | Self::Block(_) => 3,
            Self::Segment(_) => 5,
        }
    }

    /// Returns what the object is, for messages.
    pub(super) const fn noun(&self) -> &'static str {
        match self {
            Self::Dict(_) => "a dictionary",
            Self::List(_) => "a list",
            Self::Pair(..) | Self::Opaque(_) => "a tuple or set",
            Self::OtherDict(_) => "a dictionary without the keys that are needed",
            Self::Scalar(_) => "a number",
            Self::Frame(_) => "a frame",
            Self::Stack(_) => "a list of frames",
            Self::Entry(_) => "an entry of a history",
            Self::Block(_) => "a block",
            Self::Segment(_) => "a segment",
        }
    }
}
