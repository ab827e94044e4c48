//! Where the tensors lie that scopes are given, and what a training program says of its tensors.
//!
//! Both are records of their own in the thread's buffer, marked by names that no scope has. The
//! addresses of a scope are written when it begins, under its start; the scope itself follows when
//! it ends, so the two meet in `assemble`.
//!
//! ```text
//! first record   start of the scope, address, count, address      each further one   address, address, address
//! ```

use mindprof_model::{InputsEncoder, Nanos, RoleRecord, TensorRole, ThreadId};

use crate::chunk::Record;
use crate::clock::{Scale, ticks};
use crate::gate::Gate;
use crate::local;

/// Returns whether some window wants to know where tensors lie: one relaxed load.
#[inline]
pub fn wants_storages() -> bool {
    Gate::load().wants_storages()
}

/// Tells what a tensor is whose storage of `bytes` bytes lies at `address`.
#[inline]
pub fn tensor_role(role: TensorRole, address: u64, bytes: u64) {
    let gate = Gate::load();
    if gate.wants_storages() {
        local::push_note(
            gate,
            record(Record::ROLE, ticks(), address, bytes, role as u32),
        );
    }
}

/// Writes the records of a scope's tensors, and stops when there is no room for one.
pub(crate) fn write(start: u64, inputs: &InputsEncoder, mut push: impl FnMut(Record) -> bool) {
    let (Some(&one), count) = (inputs.storages().first(), inputs.storages().len()) else {
        return;
    };
    let two = inputs.storages().get(1).copied().unwrap_or_default();
    let mut has_room = push(record(Record::STORAGES, start, one, two, count as u32));
    for rest in inputs.storages().get(2..).unwrap_or_default().chunks(3) {
        let at = |index: usize| rest.get(index).copied().unwrap_or_default();
        has_room = has_room && push(record(Record::FURTHER_STORAGES, at(0), at(1), at(2), 0));
    }
}

fn record(name: u32, start: u64, end: u64, third: u64, inputs: u32) -> Record {
    Record {
        start,
        end,
        name,
        inputs,
        stack: third as u32,
        sequence: (third >> 32) as u32,
    }
}

fn third(record: &Record) -> u64 {
    u64::from(record.stack) | u64::from(record.sequence) << 32
}

/// What one thread said of tensors, taken from its records.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The lists of scopes with tensors, in start order.
    lists: Vec<List>,
    addresses: Vec<u64>,
    roles: Vec<Said>,
}

/// The list of one scope.
#[derive(Clone, Copy, Debug)]
struct List {
    /// The start of the scope.
    start: u64,
    /// Where its addresses begin among all.
    begin: u32,
    /// How many there should be.
    count: u32,
}

/// What a tensor was said to be, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) time: u64,
    address: u64,
    bytes: u64,
    role: TensorRole,
}

impl Said {
    /// Makes the model's record of it.
    pub(crate) fn assemble(self, thread: ThreadId, scale: &Scale) -> RoleRecord {
        RoleRecord {
            time: Nanos(scale.nanoseconds(self.time)),
            address: self.address,
            bytes: self.bytes,
            thread,
            role: self.role,
        }
    }
}

impl Notes {
    /// Takes the notes among some records, with room for `lists` lists; others are passed by.
    pub(crate) fn collect<'a>(records: impl Iterator<Item = &'a Record>, lists: usize) -> Self {
        let mut notes = Self {
            lists: Vec::with_capacity(lists),
            addresses: Vec::with_capacity(2 * lists),
            roles: Vec::new(),
        };
        for record in records.filter(|record| !record.is_scope()) {
            notes.take(record);
        }
        notes
    }

    fn take(&mut self, record: &Record) {
        match record.name {
            Record::STORAGES => {
                // Beyond 2^32 addresses there is no room for more: those scopes have none.
                if let Ok(begin) = u32::try_from(self.addresses.len()) {
                    self.lists.push(List {
                        start: record.start,
                        begin,
                        count: record.inputs,
                    });
                    self.add([record.end, third(record)]);
                }
            }
            Record::FURTHER_STORAGES => self.add([record.start, record.end, third(record)]),
            Record::ROLE => {
                let role = TensorRole::ALL.get(record.inputs as usize);
                self.roles.extend(role.map(|&role| Said {
                    time: record.start,
                    address: record.end,
                    bytes: third(record),
                    role,
                }));
            }
            _ => {}
        }
    }

    /// Adds those of some addresses that the last scope still lacks.
    fn add<const N: usize>(&mut self, addresses: [u64; N]) {
        if let Some(list) = self.lists.last() {
            let end = list.begin as usize + list.count as usize;
            let lacking = end.saturating_sub(self.addresses.len());
            self.addresses.extend(addresses.into_iter().take(lacking));
        }
    }

    /// Returns what tensors were said to be.
    pub(crate) fn roles(&self) -> &[Said] {
        &self.roles
    }

    /// Returns how many addresses there are.
    pub(crate) fn addresses(&self) -> usize {
        self.addresses.len()
    }

    /// Finds the addresses of the scope with a start; fast if starts are asked for in order.
    pub(crate) fn walk<'a>(&'a self) -> impl FnMut(u64) -> &'a [u64] {
        let mut next = 0;
        move |start| {
            // Scopes that cross come out of order.
            if next > 0 && self.lists[next - 1].start > start {
                next = self.lists.partition_point(|list| list.start < start);
            }
            while self.lists.get(next).is_some_and(|list| list.start < start) {
                next += 1;
            }
            match self.lists.get(next) {
                Some(list) if list.start == start => {
                    next += 1;
                    // A list that there was no room for to its end is left out.
                    let (begin, count) = (list.begin as usize, list.count as usize);
                    self.addresses.get(begin..begin + count).unwrap_or_default()
                }
                Some(_) | None => &[],
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(lists: &[(u64, &[u64])], room: usize) -> Notes {
        let mut written = Vec::new();
        for (start, addresses) in lists {
            let mut encoder = InputsEncoder::default();
            for &address in *addresses {
                encoder.storage(address);
            }
            write(*start, &encoder, |record| {
                let has_room = written.len() < room;
                written.extend(has_room.then_some(record));
                has_room
            });
        }
        Notes::collect(written.iter(), 0)
    }

    #[test]
    fn a_scope_finds_the_addresses_written_under_its_start() {
        let long: Vec<u64> = (0..9).map(|index| u64::MAX - index).collect();
        let notes = notes(&[(3, &[7]), (5, &long), (8, &[]), (9, &[1, 2])], usize::MAX);
        let mut find = notes.walk();
        let found: Vec<_> = [3, 4, 5, 8, 9, 9].map(|start| find(start).to_vec()).into();
        assert_eq!(found, [vec![7], vec![], long, vec![], vec![1, 2], vec![]]);
    }

    #[test]
    fn a_list_without_room_for_its_end_is_left_out() {
        let notes = notes(&[(3, &[7]), (5, &[1, 2, 3, 4])], 2);
        let mut find = notes.walk();
        assert_eq!([find(3), find(5)], [&[7][..], &[]]);
    }
}
