//! Where events ran, in the words of data frames: process, thread, device, stream, rank.

use mindprof_model::{DeviceKind, Profile, ThreadId};
use serde_json::Value;

/// Where the events of a thread or a stream ran. What does not apply is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The process, of a thread of the host.
    pub process: Option<i64>,
    /// The system's number of the thread.
    pub thread_id: Option<i64>,
    /// The name of the thread or stream.
    pub thread_name: Option<&'a str>,
    /// Which of the devices of its kind, of a stream.
    pub device_index: Option<i64>,
    /// The number of the stream.
    pub stream: Option<i64>,
    /// The rank of the process among those that train together.
    pub rank: Option<i64>,
}

impl<'a> Place<'a> {
    /// Returns where the events of every thread of a profile ran, in the order of threads.
    pub fn all(profile: &'a Profile) -> Vec<Self> {
        let told = told_rank(profile);
        let threads = 0..profile.threads().len();
        threads
            .map(|index| Self::build(profile, ThreadId::from_index(index), told))
            .collect()
    }

    /// Returns where the events of one thread ran.
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

/// Returns the rank that a trace says it is of.
fn told_rank(profile: &Profile) -> Option<i64> {
    let told = profile.metadata().get("distributedInfo")?;
    let told: Value = serde_json::from_str(told).ok()?;
    told["rank"].as_i64()
}
