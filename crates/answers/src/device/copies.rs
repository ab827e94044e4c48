//! Copies and fills by direction and by the kind of CPU memory.

use mindprof_model::{Nanos, Profile, StringId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::work::WorkItem;
use crate::questions::micros;
use crate::step_split::StepClass;

/// The direction of a copy, as the name of the copy tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyDirection {
    /// From the CPU to the device.
    CpuToDevice,
    /// From the device to the CPU.
    DeviceToCpu,
    /// Within the device.
    DeviceToDevice,
    /// From one device to another.
    PeerToPeer,
    /// No copy: the device fills memory.
    Fill,
    /// The name does not tell.
    Unknown,
}

impl CopyDirection {
    /// Returns the name of the direction.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuToDevice => "CPU to device",
            Self::DeviceToCpu => "device to CPU",
            Self::DeviceToDevice => "device to device",
            Self::PeerToPeer => "device to another",
            Self::Fill => "fill",
            Self::Unknown => "copy",
        }
    }
}

/// The kind of CPU memory at one end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuMemory {
    /// Locked in place: the device copies by itself, and the CPU goes on.
    Pinned,
    /// Ordinary memory: the driver copies it twice, and the CPU waits.
    Pageable,
}

/// Copies of one direction and one kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CopyUse {
    /// The direction.
    pub direction: CopyDirection,
    /// The kind of CPU memory, if the copy has one and its name tells.
    pub memory: Option<CpuMemory>,
    /// The number of copies.
    pub copies: u64,
    /// The sum of their durations.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
    /// The bytes that they moved, or `None` if not all of them tell.
    pub bytes: Option<u64>,
    /// The bytes per second while they ran.
    pub bytes_per_s: Option<f64>,
}

/// Sums of copies in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopySums {
    sums: FxHashMap<(CopyDirection, Option<CpuMemory>), CopySum>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CopySum {
    count: u64,
    time: Nanos,
    bytes: u64,
    silent: u64,
}

impl CopySums {
    pub(crate) fn add(&mut self, item: &WorkItem, kind: CopyKind) {
        let sum = self.sums.entry((kind.direction, kind.memory)).or_default();
        sum.count += 1;
        sum.time = sum.time + item.duration();
        match item.arguments.bytes {
            Some(bytes) => sum.bytes = sum.bytes.saturating_add(bytes),
            None => sum.silent += 1,
        }
    }

    /// Returns the sums, sorted by direction and memory.
    pub(crate) fn finish(self) -> Vec<CopyUse> {
        let mut copies: Vec<CopyUse> = self
            .sums
            .into_iter()
            .map(|((direction, memory), sum)| {
                let bytes = (sum.silent == 0).then_some(sum.bytes);
                CopyUse {
                    direction,
                    memory,
                    copies: sum.count,
                    time: sum.time,
                    bytes,
                    bytes_per_s: bytes
                        .filter(|_| sum.time > Nanos::ZERO)
                        .map(|bytes| bytes as f64 * 1e9 / sum.time.0 as f64),
                }
            })
            .collect();
        copies.sort_by_key(|copies| (copies.direction, copies.memory));
        copies
    }
}

/// The facts in the name of a copy or a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyKind {
    direction: CopyDirection,
    memory: Option<CpuMemory>,
}

impl CopyKind {
    fn of(name: &str) -> Self {
        let has = |text: &str| name.contains(text);
        let direction = if has("HtoD") {
            CopyDirection::CpuToDevice
        } else if has("DtoH") {
            CopyDirection::DeviceToCpu
        } else if has("DtoD") {
            CopyDirection::DeviceToDevice
        } else if has("PtoP") {
            CopyDirection::PeerToPeer
        } else {
            CopyDirection::Unknown
        };
        let memory = if has("Pageable") {
            Some(CpuMemory::Pageable)
        } else if has("Pinned") {
            Some(CpuMemory::Pinned)
        } else {
            None
        };
        Self { direction, memory }
    }
}

/// The facts in the names of copies, each looked at once.
#[derive(Debug, Default)]
pub(crate) struct CopyKinds {
    known: FxHashMap<StringId, CopyKind>,
}

impl CopyKinds {
    /// Returns the kind of a copy or a fill, or `None` for other work.
    pub(crate) fn of(&mut self, profile: &Profile, item: &WorkItem) -> Option<CopyKind> {
        match item.class {
            StepClass::Memset => Some(CopyKind {
                direction: CopyDirection::Fill,
                memory: None,
            }),
            StepClass::Copy => {
                let name = profile.event(item.id).name;
                let kind = self.known.entry(name);
                Some(*kind.or_insert_with(|| CopyKind::of(profile.strings().text(name))))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_direction_and_memory() {
        for (name, direction, memory) in [
            (
                "Memcpy HtoD (Pageable -> Device)",
                CopyDirection::CpuToDevice,
                Some(CpuMemory::Pageable),
            ),
            (
                "Memcpy DtoH (Device -> Pinned)",
                CopyDirection::DeviceToCpu,
                Some(CpuMemory::Pinned),
            ),
            (
                "Memcpy DtoD (Device -> Device)",
                CopyDirection::DeviceToDevice,
                None,
            ),
            (
                "Memcpy PtoP (Device -> Device)",
                CopyDirection::PeerToPeer,
                None,
            ),
            (
                "Memcpy HtoD (Host -> Device)",
                CopyDirection::CpuToDevice,
                None,
            ),
            ("dma_request", CopyDirection::Unknown, None),
        ] {
            assert_eq!(CopyKind::of(name), CopyKind { direction, memory }, "{name}");
        }
    }
}
