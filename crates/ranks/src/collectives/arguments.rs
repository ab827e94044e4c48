//! The arguments that torch writes beside communication: the process group, the message and the
//! number of the collective.

use serde::Deserialize;
use serde_json::Value;

use super::{listed_group, only_group, shared};
use crate::identity::{Group, Identity};
use crate::rank_set::{MOST_RANKS, all_ranks, count_of, text_of};

/// The arguments of one collective. Each is `None` if the trace does not tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommunicationArguments {
    pub(super) kind: Option<String>,
    pub(super) sequence: Option<u64>,
    pub(super) bytes: Option<u64>,
    name: Option<String>,
    description: Option<String>,
    ranks: Option<Vec<u64>>,
    size: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct Fields {
    #[serde(rename = "Collective name")]
    kind: Option<String>,
    #[serde(rename = "Seq")]
    sequence: Option<u64>,
    #[serde(rename = "In msg nelems", default)]
    input_elements: u64,
    #[serde(rename = "Out msg nelems", default)]
    output_elements: u64,
    dtype: Option<String>,
    #[serde(rename = "Process Group Name")]
    name: Option<String>,
    #[serde(rename = "Process Group Description")]
    description: Option<String>,
    #[serde(rename = "Process Group Ranks")]
    ranks: Option<Value>,
    #[serde(rename = "Group size")]
    size: Option<u64>,
    #[serde(rename = "Global rank start")]
    first: Option<u64>,
    #[serde(rename = "Global rank stride")]
    stride: Option<u64>,
}

impl CommunicationArguments {
    /// Parses the members of a JSON object, without its braces. Anything else has no arguments.
    pub(super) fn parse(text: &str) -> Self {
        let fields: Fields = serde_json::from_str(&format!("{{{text}}}")).unwrap_or_default();
        let elements = fields.input_elements.max(fields.output_elements);
        let width = fields.dtype.as_deref().and_then(element_bytes);
        let ranks = fields.ranks.as_ref().and_then(listed_ranks);
        let is_whole = |ranks: &Vec<u64>| fields.size.is_none_or(|size| size == ranks.len() as u64);
        let ranks = ranks.filter(|ranks| !ranks.is_empty()).filter(is_whole);
        let ranks = ranks.or_else(|| strided_ranks(fields.first?, fields.stride?, fields.size?));
        Self {
            kind: fields.kind.filter(|kind| !kind.is_empty()),
            sequence: fields.sequence,
            bytes: width.map(|width| elements.saturating_mul(width)),
            name: fields.name,
            description: fields.description,
            ranks,
            size: fields.size,
        }
    }

    /// Returns the process group: the named one or, if none is named, the only one.
    pub(super) fn group(&self, identity: &Identity) -> Option<Group> {
        let Some(name) = &self.name else {
            return only_group(identity);
        };
        let listed = listed_group(identity, name);
        let ranks = self.ranks.as_deref().map(|ranks| shared(&text_of(ranks)));
        let is_sized = |group: &&Group| self.size.is_none_or(|size| size == count_of(&group.ranks));
        let ranks = ranks.or_else(|| Some(listed.filter(is_sized)?.ranks.clone()));
        // A group as large as the job has all of its ranks.
        let size = self
            .size
            .filter(|&size| identity.world_size.map(u64::from) == Some(size));
        let ranks = ranks.or_else(|| size.and_then(all_ranks).map(Into::into));
        let description = self.description.as_deref().map(shared);
        let description = description.or_else(|| listed.map(|group| group.description.clone()));
        Some(Group {
            name: shared(name),
            ranks: ranks.unwrap_or_default(),
            description: description.unwrap_or_default(),
        })
    }
}

/// Returns the ranks of a list, or of the text of a list. A shortened text has none.
fn listed_ranks(value: &Value) -> Option<Vec<u64>> {
    match value {
        Value::String(text) => serde_json::from_str(text).ok(),
        list => serde_json::from_value(list.clone()).ok(),
    }
}

fn strided_ranks(first: u64, stride: u64, size: u64) -> Option<Vec<u64>> {
    let is_sound = stride > 0 && (1..=MOST_RANKS).contains(&size);
    let last = first.checked_add(stride.checked_mul(size)?)?;
    let stride = usize::try_from(stride).ok()?;
    is_sound.then(|| (first..last).step_by(stride).collect())
}

/// Returns the size of an element by torch's name of its scalar type.
fn element_bytes(dtype: &str) -> Option<u64> {
    match dtype {
        "Byte" | "Char" | "Bool" => Some(1),
        "Half" | "BFloat16" | "Short" | "UInt16" => Some(2),
        "Float" | "Int" | "UInt32" | "ComplexHalf" => Some(4),
        "Double" | "Long" | "UInt64" | "ComplexFloat" => Some(8),
        "ComplexDouble" => Some(16),
        other => other.starts_with("Float8").then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_tells_its_message_and_its_group() {
        let told = CommunicationArguments::parse(
            r#""queued":0,"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,
            "Group size":2,"dtype":"BFloat16","Process Group Name":"0","Seq":17,
            "Process Group Description":"default_pg","Process Group Ranks":"[0, 1]""#,
        );
        assert_eq!(told.kind.as_deref(), Some("allreduce"));
        assert_eq!((told.bytes, told.sequence), (Some(2_000), Some(17)));
        assert_eq!(told.ranks, Some(vec![0, 1]));
    }

    #[test]
    fn a_shortened_list_of_ranks_is_replaced_by_start_and_stride() {
        let told = CommunicationArguments::parse(
            r#""Process Group Name":"dp","Process Group Ranks":"[0, 8, ..., 56]","Group size":8,
            "Global rank start":0,"Global rank stride":8"#,
        );
        assert_eq!(
            told.ranks.as_deref().map(text_of).as_deref(),
            Some("0-56:8")
        );
        let unknown = CommunicationArguments::parse(r#""Process Group Ranks":"[0, ...]""#);
        assert_eq!(unknown.ranks, None);
    }

    #[test]
    fn broken_and_missing_arguments_tell_nothing() {
        let nothing = CommunicationArguments::default();
        for text in ["", "\"Seq\":", "\"Seq\":\"x\"", "7"] {
            assert_eq!(CommunicationArguments::parse(text), nothing, "{text}");
        }
    }
}
