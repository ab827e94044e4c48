//! The process, thread, device, stream and rank that an event ran on, as data frames report them.

use mindprof_model::{DeviceKind, Profile, ThreadId};
use serde_json::Value;

/// The location of the events of one thread or stream.
///
/// It turns the single kind of track that a profile has into the separate columns of a data frame.
/// A field is `None` if it does not apply: CPU threads have no stream, and streams have no thread id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The process id, for a CPU thread.
    pub process: Option<i64>,
    /// The operating system's id of the thread, for a CPU thread.
    pub thread_id: Option<i64>,
    /// The name of the thread or stream.
    pub thread_name: Option<&'a str>,
    /// The index of the device among those of its kind, for a stream.
    pub device_index: Option<i64>,
    /// The number of the stream, for a stream.
    pub stream: Option<i64>,
    /// The rank of the process in distributed training.
    pub rank: Option<i64>,
}

impl<'a> Place<'a> {
    /// Returns the place of every thread of a profile, indexed by [`ThreadId`].
    pub fn all(profile: &'a Profile) -> Vec<Self> {
        let told = told_rank(profile);
        let threads = 0..profile.threads().len();
        threads
            .map(|index| Self::build(profile, ThreadId::from_index(index), told))
            .collect()
    }

    /// Returns the place of one thread.
    pub fn of(profile: &'a Profile, thread: ThreadId) -> Self {
        Self::build(profile, thread, told_rank(profile))
    }

    fn build(profile: &'a Profile, id: ThreadId, told: Option<i64>) -> Self {
        let thread = &profile.threads()[id.index()];
        let name = profile.strings().text(thread.name);
        let common = Self {
            thread_name: (!name.is_empty()).then_some(name),
            rank: profile.rank(id).map(i64::from).or(told),
            ..Self::default()
        };
        if thread.device == DeviceKind::Cpu {
            Self {
                process: Some(thread.process as i64),
                thread_id: Some(thread.native as i64),
                ..common
            }
        } else {
            Self {
                device_index: Some(thread.process as i64),
                stream: Some(thread.native as i64),
                ..common
            }
        }
    }
}

/// Returns the rank in the metadata of a trace.
fn told_rank(profile: &Profile) -> Option<i64> {
    let told = profile.metadata().get("distributedInfo")?;
    let told: Value = serde_json::from_str(told).ok()?;
    told["rank"].as_i64()
}
