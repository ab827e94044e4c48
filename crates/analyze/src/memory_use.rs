//! The memory that each host event took and gave back, by time alone: a record belongs to every
//! event that was open.

use mindprof_model::{DeviceKind, EventId, Flags, MemoryRecord, Profile};

use crate::Tree;

/// Bytes on the host and on devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// On the host.
    pub host: i64,
    /// On devices.
    pub device: i64,
}

impl Bytes {
    /// Returns the bytes of one record: on the host, on a device, or on one that is not counted.
    pub fn of(record: &MemoryRecord) -> Self {
        match record.device {
            DeviceKind::Cpu | DeviceKind::Mkldnn | DeviceKind::Ideep => Self {
                host: record.bytes,
                device: 0,
            },
            DeviceKind::Cuda | DeviceKind::Hip | DeviceKind::Xpu | DeviceKind::PrivateUse1 => {
                Self {
                    host: 0,
                    device: record.bytes,
                }
            }
            DeviceKind::OpenGl
            | DeviceKind::OpenCl
            | DeviceKind::Fpga
            | DeviceKind::Maia
            | DeviceKind::Xla
            | DeviceKind::Vulkan
            | DeviceKind::Metal
            | DeviceKind::Mps
            | DeviceKind::Meta
            | DeviceKind::Hpu
            | DeviceKind::Ve
            | DeviceKind::Lazy
            | DeviceKind::Ipu
            | DeviceKind::Mtia => Self::default(),
        }
    }
}

impl Bytes {
    /// Adds other bytes to these.
    pub fn add(&mut self, other: Self) {
        self.host += other.host;
        self.device += other.device;
    }
}

/// Memory per event. Empty when the profile has no memory records.
#[derive(Clone, Debug, Default)]
pub struct MemoryUse {
    host: Column,
    device: Column,
    unclaimed: Vec<u32>,
}

/// Bytes per event, with and without those of the children. Empty when all are zero.
#[derive(Clone, Debug, Default)]
struct Column {
    total: Vec<i64>,
    own: Vec<i64>,
}

impl MemoryUse {
    /// Builds it with a sweep over events and records, both in time order.
    ///
    /// ```text
    /// thread 1  a |-------------|
    /// thread 2       b |----|
    /// records     x  y   z      w     x      a claims x y z w (both ends count), b claims z
    ///             |  |   |      |     |      the last x is unclaimed
    /// ```
    pub fn build(profile: &Profile, tree: &Tree) -> Self {
        if profile.memory().is_empty() {
            return Self::default();
        }
        Self {
            host: Column::build(profile, tree, |record| Bytes::of(record).host),
            device: Column::build(profile, tree, |record| Bytes::of(record).device),
            unclaimed: unclaimed(profile),
        }
    }

    /// Returns what was taken and given back while an event ran.
    pub fn total(&self, id: EventId) -> Bytes {
        Bytes {
            host: at(&self.host.total, id),
            device: at(&self.device.total, id),
        }
    }

    /// Returns what was taken and given back while an event ran but none of its children.
    pub fn own(&self, id: EventId) -> Bytes {
        Bytes {
            host: at(&self.host.own, id),
            device: at(&self.device.own, id),
        }
    }

    /// Returns the positions of the memory records that fall into no event, in time order.
    pub fn unclaimed(&self) -> &[u32] {
        &self.unclaimed
    }
}

fn at(column: &[i64], id: EventId) -> i64 {
    column.get(id.index()).copied().unwrap_or(0)
}

impl Column {
    fn build(profile: &Profile, tree: &Tree, bytes: fn(&MemoryRecord) -> i64) -> Self {
        let records = profile.memory();
        if records.iter().all(|record| bytes(record) == 0) {
            return Self::default();
        }
        // What came before each record: a difference of two of these is the sum between them.
        let mut before = Vec::with_capacity(records.len() + 1);
        before.push(0_i64);
        for record in records {
            before.push(before[before.len() - 1] + bytes(record));
        }
        let mut total = vec![0; profile.events().len()];
        let mut first = 0;
        for (index, event) in profile.events().iter().enumerate() {
            if !is_claimant(profile, index) {
                continue;
            }
            while records
                .get(first)
                .is_some_and(|record| record.time < event.start)
            {
                first += 1;
            }
            let inside = count_first(&records[first..], |record| record.time <= event.end());
            total[index] = before[first + inside] - before[first];
        }
        let mut own = total.clone();
        for index in 0..total.len() {
            let id = EventId::from_index(index);
            match tree.parent(id) {
                _ if tree.is_outside(id) || tree.is_merged(id) => own[index] = 0,
                Some(parent) => own[parent.index()] -= total[index],
                None => {}
            }
        }
        Self { total, own }
    }
}

/// Returns how many records at the beginning hold to `is_inside`, after which none does. Doubles
/// its steps from there: most events end soon, and a search from the middle of everything would
/// miss the caches at each step.
fn count_first(records: &[MemoryRecord], is_inside: impl Fn(&MemoryRecord) -> bool) -> usize {
    let mut end = 1;
    while records.get(end - 1).is_some_and(&is_inside) {
        end *= 2;
    }
    let begin = end / 2;
    let end = records.len().min(end);
    begin + records[begin..end].partition_point(is_inside)
}

/// Finds the records that no host event was open at.
fn unclaimed(profile: &Profile) -> Vec<u32> {
    let mut events = (0..profile.events().len())
        .filter(|&index| is_claimant(profile, index))
        .map(|index| &profile.events()[index])
        .peekable();
    let mut open_until = None;
    let mut found = Vec::new();
    for (index, record) in profile.memory().iter().enumerate() {
        while let Some(event) = events.next_if(|event| event.start <= record.time) {
            open_until = open_until.max(Some(event.end()));
        }
        if open_until.is_none_or(|end| end < record.time) {
            found.push(index as u32);
        }
    }
    found
}

/// Returns whether an event takes the memory records of its time: all do that are shown and ran on
/// the host.
fn is_claimant(profile: &Profile, index: usize) -> bool {
    let event = &profile.events()[index];
    !event.flags.contains(Flags::HIDDEN)
        && profile.threads()[event.thread.index()].device == DeviceKind::Cpu
}

#[cfg(test)]
mod tests;
