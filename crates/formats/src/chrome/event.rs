//! One event of a trace, as its text says it.
//!
//! Numbers stay text until it is known whether they are needed. A key that comes twice counts as it
//! was said last; what is not known is skipped.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::inputs::RawInputs;

/// The parts of an event that profiles are made of.
#[derive(Debug, Default)]
pub(super) struct RawEvent<'a> {
    pub(super) phase: Text<'a>,
    pub(super) category: Option<Text<'a>>,
    pub(super) name: Text<'a>,
    pub(super) process: Option<&'a RawValue>,
    pub(super) thread: Option<&'a RawValue>,
    pub(super) start: Option<&'a RawValue>,
    pub(super) duration: Option<&'a RawValue>,
    pub(super) arguments: Option<&'a RawValue>,
}

/// The arguments of an event that profiles are made of.
#[derive(Debug, Default)]
pub(super) struct RawArguments<'a> {
    pub(super) sequence: Option<&'a RawValue>,
    pub(super) forward_thread: Option<&'a RawValue>,
    pub(super) inputs: RawInputs<'a>,
    pub(super) finished: Option<&'a RawValue>,
    pub(super) asynchronous: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
    pub(super) call_stack: Option<&'a RawValue>,
    pub(super) external: Option<&'a RawValue>,
    pub(super) correlation: Option<&'a RawValue>,
    pub(super) python: Option<&'a RawValue>,
    pub(super) python_parent: Option<&'a RawValue>,
    pub(super) memory: RawMemory<'a>,
}

/// The arguments of a memory record.
#[derive(Debug, Default)]
pub(super) struct RawMemory<'a> {
    pub(super) bytes: Option<&'a RawValue>,
    pub(super) address: Option<&'a RawValue>,
    pub(super) total_allocated: Option<&'a RawValue>,
    pub(super) total_reserved: Option<&'a RawValue>,
    pub(super) device: Option<&'a RawValue>,
    pub(super) device_index: Option<&'a RawValue>,
}

/// A text that is only copied when it had escapes. Anything but a text counts as an empty one.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(text_of(raw).unwrap_or_default()))
    }
}

/// Returns the text of a JSON string, nothing for other JSON.
pub(super) fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inside = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if !inside.contains('\\') {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_str(raw.get()).ok().map(Cow::Owned)
}

/// Returns the number of a JSON number, zero for other JSON.
pub(super) fn number_of<T: std::str::FromStr + Default>(raw: Option<&RawValue>) -> T {
    raw.and_then(|raw| raw.get().parse().ok())
        .unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum EventKey {
    Ph,
    Cat,
    Name,
    Pid,
    Tid,
    Ts,
    Dur,
    Args,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for RawEvent<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = RawEvent<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a trace event, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut event = RawEvent::default();
        while let Some(key) = map.next_key::<EventKey>()? {
            match key {
                EventKey::Ph => event.phase = map.next_value()?,
                EventKey::Cat => event.category = Some(map.next_value()?),
                EventKey::Name => event.name = map.next_value()?,
                EventKey::Pid => event.process = Some(map.next_value()?),
                EventKey::Tid => event.thread = Some(map.next_value()?),
                EventKey::Ts => event.start = Some(map.next_value()?),
                EventKey::Dur => event.duration = Some(map.next_value()?),
                EventKey::Args => event.arguments = Some(map.next_value()?),
                EventKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(event)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier)]
enum ArgumentKey {
    #[serde(rename = "Sequence number")]
    Sequence,
    #[serde(rename = "Fwd thread id")]
    ForwardThread,
    #[serde(rename = "Input Dims")]
    Dims,
    #[serde(rename = "Input type")]
    Types,
    #[serde(rename = "Input Strides")]
    Strides,
    #[serde(rename = "Concrete Inputs")]
    Values,
    #[serde(rename = "finished")]
    Finished,
    #[serde(rename = "Async")]
    Asynchronous,
    #[serde(rename = "name")]
    Name,
    #[serde(rename = "Call stack")]
    CallStack,
    #[serde(rename = "External id")]
    External,
    #[serde(rename = "correlation")]
    Correlation,
    #[serde(rename = "Python id")]
    Python,
    #[serde(rename = "Python parent id")]
    PythonParent,
    #[serde(rename = "Bytes")]
    Bytes,
    #[serde(rename = "Addr")]
    Address,
    #[serde(rename = "Total Allocated")]
    TotalAllocated,
    #[serde(rename = "Total Reserved")]
    TotalReserved,
    #[serde(rename = "Device Type")]
    DeviceType,
    #[serde(rename = "Device Id")]
    DeviceId,
    #[serde(other)]
    Other,
}

impl<'a> RawArguments<'a> {
    /// Reads the arguments of an event; an event without an object of them has none.
    pub(super) fn of(event: &RawEvent<'a>) -> Self {
        let text = event.arguments.map_or("{}", RawValue::get);
        serde_json::from_str(text).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for RawArguments<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ArgumentsVisitor)
    }
}

struct ArgumentsVisitor;

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = RawArguments<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the arguments of an event, which are an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut arguments = RawArguments::default();
        while let Some(key) = map.next_key::<ArgumentKey>()? {
            let value = Some(map.next_value()?);
            match key {
                ArgumentKey::Sequence => arguments.sequence = value,
                ArgumentKey::ForwardThread => arguments.forward_thread = value,
                ArgumentKey::Dims => arguments.inputs.dims = value,
                ArgumentKey::Types => arguments.inputs.types = value,
                ArgumentKey::Strides => arguments.inputs.strides = value,
                ArgumentKey::Values => arguments.inputs.values = value,
                ArgumentKey::Finished => arguments.finished = value,
                ArgumentKey::Asynchronous => arguments.asynchronous = value,
                ArgumentKey::Name => arguments.name = value,
                ArgumentKey::CallStack => arguments.call_stack = value,
                ArgumentKey::External => arguments.external = value,
                ArgumentKey::Correlation => arguments.correlation = value,
                ArgumentKey::Python => arguments.python = value,
                ArgumentKey::PythonParent => arguments.python_parent = value,
                ArgumentKey::Bytes => arguments.memory.bytes = value,
                ArgumentKey::Address => arguments.memory.address = value,
                ArgumentKey::TotalAllocated => arguments.memory.total_allocated = value,
                ArgumentKey::TotalReserved => arguments.memory.total_reserved = value,
                ArgumentKey::DeviceType => arguments.memory.device = value,
                ArgumentKey::DeviceId => arguments.memory.device_index = value,
                ArgumentKey::Other => {}
            }
        }
        Ok(arguments)
    }
}
