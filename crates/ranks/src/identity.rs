//! Which rank of which job a trace is of, and where that is known from.

use std::sync::Arc;

use mindprof_model::{Metadata, OperatorLimit, Profile};
use serde::Serialize;
use serde_json::Value;

use crate::codec::{encode_choice, encode_fields};
use crate::rank_set::{all_ranks, text_of};

/// The source that the number of a rank is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RankSource {
    /// The trace states it (`distributedInfo`).
    Trace,
    /// The name of the file contains it, as in `rank3.json`.
    FileName,
    /// Nothing tells it.
    Unknown,
}
encode_choice!(RankSource);

impl RankSource {
    /// Every source.
    pub const ALL: [Self; 3] = [Self::Trace, Self::FileName, Self::Unknown];
}

/// The place of a trace in its job.
///
/// Everything but the name of the file comes from the metadata that torch writes into a trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The number of the rank, if it is known.
    pub rank: Option<u32>,
    /// The source that the number is known from.
    pub source: RankSource,
    /// The name of the file, without its folder.
    pub file: Arc<str>,
    /// The number of ranks of the job.
    pub world_size: Option<u32>,
    /// The name of the machine.
    pub host: Option<Arc<str>>,
    /// The backend of the collectives, such as `nccl`.
    pub backend: Option<Arc<str>>,
    /// The models of the devices that the machine has.
    pub devices: Vec<Arc<str>>,
    /// Versions of libraries, sorted by name.
    pub versions: Vec<(Arc<str>, Arc<str>)>,
    /// The process groups that the trace lists, sorted by name.
    pub groups: Vec<Group>,
    /// Which operators were recorded, as in `share=0.1`, if not all of them.
    pub limit: Option<Arc<str>>,
}
encode_fields!(Identity {
    rank,
    source,
    file,
    world_size,
    host,
    backend,
    devices,
    versions,
    groups,
    limit,
});

/// A process group: ranks that communicate with each other.
///
/// Its name alone does not identify it, because ranks of different groups may use the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// The name, unique within a rank.
    pub name: Arc<str>,
    /// The ranks, as in `0-7`; empty if they are not known.
    pub ranks: Arc<str>,
    /// The description, such as `default_pg`; empty if there is none.
    pub description: Arc<str>,
}
encode_fields!(Group {
    name,
    ranks,
    description
});

/// The metadata of distributed training, as torch writes it into a trace. A member of another type
/// than torch's is not known, and the others are.
#[derive(Debug, Default)]
struct DistributedInfo {
    backend: Option<String>,
    rank: Option<u32>,
    world_size: Option<u32>,
    groups: Vec<Group>,
    nccl_version: Option<String>,
}

impl DistributedInfo {
    fn of(info: &Value) -> Self {
        let text = |key: &str| info[key].as_str().map(Into::into);
        let world_size = number(&info["world_size"]);
        let configs = match &info["pg_config"] {
            Value::Array(configs) => configs.iter().collect(),
            Value::Object(configs) => configs.values().collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        };
        let groups = configs.into_iter();
        Self {
            backend: text("backend"),
            rank: number(&info["rank"]),
            world_size,
            groups: groups
                .filter_map(|config| listed_group(config, world_size))
                .collect(),
            nccl_version: text("nccl_version"),
        }
    }
}

/// Returns a number that is written as one or as text.
fn number(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64().and_then(|number| number.try_into().ok()),
    }
}

/// Returns a process group of the metadata. torch lists no ranks if all ranks are members.
fn listed_group(config: &Value, world_size: Option<u32>) -> Option<Group> {
    let listed = config["ranks"].as_array();
    let ranks: Vec<u64> = listed
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64)
        .collect();
    let size = number(&config["pg_size"]).or_else(|| number(&config["group_size"]));
    let is_whole =
        listed.is_some() && ranks.is_empty() && size.is_none_or(|size| Some(size) == world_size);
    let all = world_size
        .filter(|_| is_whole)
        .and_then(|size| all_ranks(size.into()));
    Some(Group {
        name: config["pg_name"].as_str()?.into(),
        ranks: all.unwrap_or_else(|| text_of(&ranks)).into(),
        description: config["pg_desc"].as_str().unwrap_or_default().into(),
    })
}

impl Identity {
    /// Reads the identity from the metadata of a profile and the name of its file.
    pub(crate) fn of(profile: &Profile, file: &str) -> Self {
        let metadata = profile.metadata();
        let info = metadata.get("distributedInfo");
        let info: Value = info
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let info = DistributedInfo::of(&info);
        let named = rank_in_name(file);
        let (rank, source) = match (info.rank, named) {
            (Some(rank), _) => (Some(rank), RankSource::Trace),
            (None, Some(rank)) => (Some(rank), RankSource::FileName),
            (None, None) => (None, RankSource::Unknown),
        };
        let mut groups = info.groups;
        groups.sort_unstable();
        groups.dedup();
        Self {
            rank,
            source,
            file: file.into(),
            world_size: info.world_size,
            host: text(metadata, "host_name"),
            backend: info.backend.map(Into::into),
            devices: device_models(metadata),
            versions: versions(metadata, info.nccl_version),
            groups,
            limit: OperatorLimit::read(metadata).map(|limit| limit.words().join(",").into()),
        }
    }
}

fn text(metadata: &Metadata, key: &str) -> Option<Arc<str>> {
    let value: Value = serde_json::from_str(metadata.get(key)?).ok()?;
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(Into::into)
}

fn device_models(metadata: &Metadata) -> Vec<Arc<str>> {
    let listed = metadata.get("deviceProperties").unwrap_or_default();
    let listed: Vec<Value> = serde_json::from_str(listed).unwrap_or_default();
    let names = listed.iter().filter_map(|device| device["name"].as_str());
    names.map(Into::into).collect()
}

/// Returns every version that the metadata names, as `cuda_runtime_version` does.
fn versions(metadata: &Metadata, nccl: Option<String>) -> Vec<(Arc<str>, Arc<str>)> {
    let named = metadata.iter().filter(|(key, _)| {
        key.ends_with("version") && !matches!(*key, "schemaVersion" | "schema_version")
    });
    let mut found: Vec<(Arc<str>, Arc<str>)> = named
        .map(|(key, value)| (key.into(), value.trim_matches('"').into()))
        .collect();
    found.extend(nccl.map(|version| ("nccl_version".into(), version.into())));
    found.sort_unstable();
    found
}

/// Returns the rank in the name of a file: the number behind the last `rank`, as in `rank3.json`,
/// `rank_3` or `trace-rank-3`, or a name that is a number, as in `3.json.gz`.
fn rank_in_name(file: &str) -> Option<u32> {
    let lower = file.to_ascii_lowercase();
    if let Some(place) = lower.rfind("rank") {
        let rest = lower[place + "rank".len()..].trim_start_matches(['_', '-', '=', '.', ' ']);
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        if let Ok(rank) = rest[..end].parse() {
            return Some(rank);
        }
    }
    let stem = lower.split('.').next().unwrap_or_default();
    let is_number = !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| stem.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Part, Timeline};

    use super::*;

    #[test]
    fn names_of_files_tell_ranks() {
        for (file, rank) in [
            ("rank3.json.gz", Some(3)),
            ("trace_rank_12.json", Some(12)),
            ("Rank-0_step5.pt.trace.json", Some(0)),
            ("7.json", Some(7)),
            ("node1_2910249.1716.pt.trace.json", None),
            ("trace.json", None),
            ("ranking.json", None),
            ("99999999999.json", None),
        ] {
            assert_eq!(rank_in_name(file), rank, "{file}");
        }
    }

    fn identity(info: Option<&str>, file: &str) -> Identity {
        let mut part = Part::from(Timeline::draw(|time| time.op("mm", 1)));
        if let Some(info) = info {
            part.metadata.set("distributedInfo", info);
        }
        part.metadata.set("host_name", "\"node1\"");
        part.metadata.set("cuda_runtime_version", "12080");
        Identity::of(&part.into_profile().unwrap(), file)
    }

    #[test]
    fn the_trace_is_trusted_before_the_name() {
        let info = r#"{"backend": "nccl", "rank": 5, "world_size": 8, "nccl_version": "2.27",
            "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2, 3]}, 7]}"#;
        let told = identity(Some(info), "rank3.json");
        assert_eq!((told.rank, told.source), (Some(5), RankSource::Trace));
        assert_eq!(
            (told.world_size, told.host.as_deref()),
            (Some(8), Some("node1"))
        );
        assert_eq!(&*told.groups[0].ranks, "0-3");
        let versions: Vec<_> = told
            .versions
            .iter()
            .map(|(key, of)| (&**key, &**of))
            .collect();
        assert_eq!(
            versions,
            [("cuda_runtime_version", "12080"), ("nccl_version", "2.27")]
        );
        let named = identity(None, "rank3.json");
        assert_eq!((named.rank, named.source), (Some(3), RankSource::FileName));
        let neither = identity(Some("[]"), "trace.json");
        assert_eq!((neither.rank, neither.source), (None, RankSource::Unknown));
    }

    #[test]
    fn a_member_of_an_odd_type_hides_no_other() {
        for (odd, world_size) in [
            (r#""pg_config": null, "world_size": 8"#, Some(8)),
            (
                r#""pg_config": {"0": {"pg_name": 7}}, "world_size": "8""#,
                Some(8),
            ),
            (
                r#""nccl_version": [2, 27, 3], "backend": ["nccl"], "world_size": 8"#,
                Some(8),
            ),
            (r#""world_size": -1"#, None),
        ] {
            let told = identity(Some(&format!(r#"{{"rank": 5, {odd}}}"#)), "rank3.json");
            assert_eq!(
                (told.rank, told.source),
                (Some(5), RankSource::Trace),
                "{odd}"
            );
            assert_eq!(told.world_size, world_size, "{odd}");
        }
    }

    #[test]
    fn a_listed_group_without_ranks_has_all_of_them() {
        let info = r#"{"rank": 1, "world_size": 4, "pg_config": [
            {"pg_name": "0", "pg_size": 4, "ranks": []},
            {"pg_name": "1", "pg_size": 2, "ranks": []}]}"#;
        let told = identity(Some(info), "trace.json");
        let ranks: Vec<&str> = told.groups.iter().map(|group| &*group.ranks).collect();
        assert_eq!(ranks, ["0-3", ""]);
    }
}
