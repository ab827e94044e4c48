//! The names of tracks, and their processes.

use std::io::Write;

use mindprof_model::{DeviceKind, Profile, Thread};
use rustc_hash::FxHashMap;

use super::fields::{trace, track};
use super::message::Message;
use super::packets::Packets;
use crate::chrome::{TrackFacts, facts_of};
use crate::error::Result;

/// The processes and devices of a profile, each with the id of its track, which is even.
pub(super) struct Processes {
    /// The processes in order, each with its first thread.
    known: Vec<(u64, DeviceKind, usize)>,
    positions: FxHashMap<(u64, DeviceKind), u64>,
}

impl Processes {
    pub(super) fn new(profile: &Profile) -> Self {
        let mut known = Vec::new();
        let mut positions = FxHashMap::default();
        for (index, thread) in profile.threads().iter().enumerate() {
            let (process, device) = (thread.process, thread.device);
            positions.entry((process, device)).or_insert_with(|| {
                known.push((process, device, index));
                known.len() as u64
            });
        }
        Self { known, positions }
    }

    /// Writes the descriptors of the processes.
    pub(super) fn describe(
        &self,
        profile: &Profile,
        packets: &mut Packets<impl Write>,
    ) -> Result<()> {
        let facts = facts_of(profile);
        for (&(process, device, thread), number) in self.known.iter().zip(1_u64..) {
            packets.add(|packet| {
                packet.message(trace::TRACK, |descriptor| {
                    descriptor.number(track::UUID, 2 * number);
                    describe_process((process, device), &facts[thread], descriptor);
                });
            })?;
        }
        Ok(())
    }

    /// Returns the id of the process track of a thread.
    pub(super) fn of(&self, thread: &Thread) -> u64 {
        let key = (thread.process, thread.device);
        2 * self.positions.get(&key).copied().unwrap_or(1)
    }
}

/// Fills the descriptor of a process. Its name is the text it has in place of a number, else the
/// stated name, else that of its main thread.
fn describe_process(process: (u64, DeviceKind), facts: &TrackFacts, descriptor: &mut Message) {
    if process.1 == DeviceKind::Cpu {
        let name = facts.pid.as_deref().or(facts.process_name.as_deref());
        descriptor.message(track::PROCESS, |described| {
            described.number(track::PROCESS_ID, process.0);
            described.text(track::PROCESS_NAME, name.unwrap_or_default());
        });
    } else {
        let rank = facts.rank.map(|rank| format!("rank {rank}: "));
        let rank = rank.unwrap_or_default();
        descriptor.text(track::NAME, &format!("{rank}GPU {}", process.0));
    }
}

/// Fills the descriptor of a thread's own track.
pub(super) fn describe_thread(
    profile: &Profile,
    thread: &Thread,
    parent: u64,
    descriptor: &mut Message,
) {
    descriptor.number(track::PARENT, parent);
    if thread.device == DeviceKind::Cpu {
        descriptor.message(track::THREAD, |described| {
            described.number(track::PROCESS_ID, thread.process);
            described.number(track::THREAD_ID, thread.native);
            described.text(track::THREAD_NAME, profile.strings().text(thread.name));
        });
    } else {
        descriptor.text(track::NAME, &format!("stream {}", thread.native));
    }
}

/// Fills the descriptor of an overflow track of a thread.
pub(super) fn describe_overflow(
    thread: &Thread,
    number: usize,
    parent: u64,
    descriptor: &mut Message,
) {
    let kind = match thread.device {
        DeviceKind::Cpu => "thread",
        _ => "stream",
    };
    descriptor.number(track::PARENT, parent);
    let name = format!("{kind} {}, overlapping {number}", thread.native);
    descriptor.text(track::NAME, &name);
}

/// Fills the descriptor of the memory counter of a device.
pub(super) fn describe_memory(
    device: DeviceKind,
    index: i16,
    what: &str,
    descriptor: &mut Message,
) {
    let place = match (device, index) {
        (DeviceKind::Cpu, _) => "CPU".into(),
        (_, -1) => device.name().to_uppercase(),
        _ => format!("{} {index}", device.name().to_uppercase()),
    };
    descriptor.text(track::NAME, &format!("{what} memory, {place}"));
    descriptor.message(track::COUNTER, |counter| {
        counter.number(track::COUNTER_UNIT, track::UNIT_BYTES);
    });
}
