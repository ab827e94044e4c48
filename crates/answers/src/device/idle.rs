//! Why a device is idle.

use mindprof_model::Nanos;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::work::WorkItem;

/// A gap before work that was launched in time is the usual latency of a launch if it is shorter
/// than this; otherwise something held the work up.
const LAUNCH_LATENCY: Nanos = Nanos(30_000);

/// Why a device is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdleCause {
    /// The CPU had not launched the next work yet.
    CpuLate,
    /// The CPU could not launch the next work earlier, because it was in a synchronizing call.
    Synchronization,
    /// The next work was being launched: the call, and the latency of the launch.
    Launch,
    /// The next work was in the queue, and its stream had to wait for an event of another stream,
    /// which may in turn wait for another rank.
    OtherStream,
    /// No work followed.
    EndOfWork,
    /// The call that launched the next work was not recorded, or nothing that was recorded explains
    /// why the work stayed in the queue.
    Unknown,
}

impl IdleCause {
    /// Every cause.
    pub const ALL: [Self; 6] = [
        Self::CpuLate,
        Self::Synchronization,
        Self::Launch,
        Self::OtherStream,
        Self::EndOfWork,
        Self::Unknown,
    ];

    /// Returns the name of the cause.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuLate => "CPU late",
            Self::Synchronization => "synchronization",
            Self::Launch => "launch",
            Self::OtherStream => "another stream",
            Self::EndOfWork => "end of work",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the key of the cause in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::CpuLate => "cpu_late_us",
            Self::Synchronization => "synchronization_us",
            Self::Launch => "launch_us",
            Self::OtherStream => "other_stream_us",
            Self::EndOfWork => "end_of_work_us",
            Self::Unknown => "unknown_us",
        }
    }
}

/// The idle time of a device by cause. The sum is all of its idle time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleTimes {
    times: [Nanos; IdleCause::ALL.len()],
}

impl IdleTimes {
    /// Returns the time of a cause.
    pub const fn time(&self, cause: IdleCause) -> Nanos {
        self.times[cause as usize]
    }

    /// Iterates over the causes and their times.
    pub fn iter(&self) -> impl Iterator<Item = (IdleCause, Nanos)> {
        IdleCause::ALL.into_iter().zip(self.times)
    }

    /// Returns the sum of all causes.
    pub fn total(&self) -> Nanos {
        Nanos(self.times.iter().map(|time| time.0).sum())
    }

    pub(crate) fn add(&mut self, cause: IdleCause, time: Nanos) {
        let sum = &mut self.times[cause as usize];
        *sum = *sum + time;
    }
}

impl Serialize for IdleTimes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(IdleCause::ALL.len()))?;
        for (cause, time) in self.iter() {
            map.serialize_entry(cause.key(), &mindprof_analyze::microseconds(time))?;
        }
        map.end()
    }
}

/// Visits the parts of an idle time by cause, in time order. `next` is the work that ends it.
///
/// ```text
/// device    ----|                                      |----
/// CPU            in a synchronizing call  |  |-launch-|
///               '-------------------------'--'---------'
///                synchronization           |   launch
///                                      CPU late
/// ```
pub(crate) fn visit_causes(
    begin: Nanos,
    end: Nanos,
    next: Option<&WorkItem>,
    mut visit: impl FnMut(Nanos, Nanos, IdleCause),
) {
    let Some(next) = next else {
        return visit(begin, end, IdleCause::EndOfWork);
    };
    let Some(launch) = next.launch else {
        return visit(begin, end, IdleCause::Unknown);
    };
    let launched = launch.start.clamp(begin, end);
    let held_up = (begin + launch.held_up.min(launched - begin)).min(launched);
    let returned = launch.end.clamp(launched, end);
    let after = if end - returned < LAUNCH_LATENCY {
        IdleCause::Launch
    } else if launch.is_after_wait {
        IdleCause::OtherStream
    } else {
        IdleCause::Unknown
    };
    for (from, to, cause) in [
        (begin, held_up, IdleCause::Synchronization),
        (held_up, launched, IdleCause::CpuLate),
        (launched, returned, IdleCause::Launch),
        (returned, end, after),
    ] {
        if from < to {
            visit(from, to, cause);
        }
    }
}
