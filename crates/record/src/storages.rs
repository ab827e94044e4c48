//! The storage addresses of the tensors that scopes take as inputs.
//!
//! The addresses of a scope are records of their own. They are written when it begins, keyed by its
//! start, and only if they differ from those of the last scope in the same slot (the number of its
//! name modulo [`SLOTS`]). The scope's own record follows when it ends, with a flag that it has
//! addresses; `assemble` joins the two.
//!
//! ```text
//! first record   start of the scope, address, count and slot, address
//! further ones   address, address, address
//! ```

use crate::raw::{RawRole, Record};

/// How many lists of addresses a thread remembers: the last one of each slot.
pub(crate) const SLOTS: usize = 64;

/// Returns the slot for scopes of a name.
#[inline]
pub(crate) const fn slot(name: u32) -> usize {
    name as usize % SLOTS
}

/// Writes the records of a list of addresses. Returns whether there was room for all of them.
pub(crate) fn write(
    start: u64,
    slot: usize,
    addresses: &[u64],
    mut push: impl FnMut(Record) -> bool,
) -> bool {
    let at = |list: &[u64], index: usize| list.get(index).copied().unwrap_or_default();
    let (one, two) = (at(addresses, 0), at(addresses, 1));
    let count_and_slot = (addresses.len() * SLOTS + slot) as u32;
    let mut has_room = push(Record::other(
        Record::STORAGES,
        start,
        one,
        two,
        count_and_slot,
    ));
    for rest in addresses.get(2..).unwrap_or_default().chunks(3) {
        let [one, two, three] = [0, 1, 2].map(|index| at(rest, index));
        has_room = has_room && push(Record::other(Record::FURTHER_STORAGES, one, two, three, 0));
    }
    has_room
}

/// The side records of one thread, everything beside scopes and memory. `assemble` collects them
/// first and then looks up the addresses of each scope.
#[derive(Debug, Default)]
pub(crate) struct SideRecords {
    /// The lists of each slot, in the order of the scopes that they were written for.
    lists: Vec<Vec<List>>,
    addresses: Vec<u64>,
    /// The number of addresses once the last list is complete.
    wanted: usize,
    roles: Vec<RawRole>,
}

/// The addresses of the scopes of one slot, from one scope on until the next list.
#[derive(Clone, Copy, Debug)]
struct List {
    /// The start of the first such scope.
    start: u64,
    /// The index of the first address among all, and the expected number of addresses.
    begin: usize,
    count: u32,
}

impl SideRecords {
    /// Collects the side records among some records.
    pub(crate) fn collect<'a>(records: impl Iterator<Item = &'a Record>) -> Self {
        let mut notes = Self {
            lists: vec![Vec::new(); SLOTS],
            ..Self::default()
        };
        for record in records.filter(|record| !record.is_scope()) {
            notes.take(record);
        }
        notes
    }

    fn take(&mut self, record: &Record) {
        match record.name {
            Record::STORAGES => {
                let (count, begin) = (record.inputs / SLOTS as u32, self.addresses.len());
                self.lists[slot(record.inputs)].push(List {
                    start: record.start,
                    begin,
                    count,
                });
                self.wanted = begin + count as usize;
                self.add([record.end, record.third()]);
            }
            Record::FURTHER_STORAGES => self.add([record.start, record.end, record.third()]),
            Record::ROLE => self.roles.extend(RawRole::from_record(record)),
            _ => {}
        }
    }

    /// Adds as many of the addresses as the last list still lacks.
    fn add<const N: usize>(&mut self, addresses: [u64; N]) {
        let lacking = self.wanted - self.addresses.len();
        self.addresses.extend(addresses.into_iter().take(lacking));
    }

    /// Returns the roles of tensors.
    pub(crate) fn roles(&self) -> &[RawRole] {
        &self.roles
    }

    /// Returns a function that finds the addresses of a scope; it is fast if called in start order.
    pub(crate) fn walk<'a>(&'a self) -> impl FnMut(&Record) -> &'a [u64] {
        let mut nexts = [0; SLOTS];
        move |scope| {
            let slot = slot(scope.name);
            let (lists, next) = (&self.lists[slot], &mut nexts[slot]);
            // Overlapping scopes may come out of order.
            if *next > 0 && lists[*next - 1].start > scope.start {
                *next = lists.partition_point(|list| list.start <= scope.start);
            }
            while lists
                .get(*next)
                .is_some_and(|list| list.start <= scope.start)
            {
                *next += 1;
            }
            let list = next.checked_sub(1).map(|last| lists[last]);
            let found =
                list.and_then(|list| self.addresses[list.begin..].get(..list.count as usize));
            found.unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: usize = 5;

    fn notes(lists: &[(u64, &[u64])], room: usize) -> SideRecords {
        let mut written = Vec::new();
        for (start, addresses) in lists {
            write(*start, SLOT, addresses, |record| {
                let has_room = written.len() < room;
                written.extend(has_room.then_some(record));
                has_room
            });
        }
        SideRecords::collect(written.iter())
    }

    /// Returns a scope record of a slot.
    fn scope(start: u64, slot: usize) -> Record {
        Record::other(
            (SLOTS + slot) as u32,
            start,
            start + 1,
            0,
            Record::HAS_STORAGES,
        )
    }

    #[test]
    fn a_scope_finds_the_addresses_written_last_for_its_slot() {
        let long: Vec<u64> = (0..9).map(|index| u64::MAX - index).collect();
        let notes = notes(&[(3, &[7]), (5, &long), (9, &[1, 2])], usize::MAX);
        let mut find = notes.walk();
        let mut at = |start| find(&scope(start, SLOT)).to_vec();
        let found: Vec<_> = [2, 3, 4, 5, 8, 9, 10, 4].map(&mut at).into();
        let (short, last) = (vec![7], vec![1, 2]);
        let expected = [
            vec![],
            short.clone(),
            short.clone(),
            long.clone(),
            long,
            last.clone(),
            last,
            short,
        ];
        assert_eq!(found, expected);
        assert!(find(&scope(9, SLOT + 1)).is_empty());
    }

    #[test]
    fn a_list_without_room_for_its_end_is_left_out() {
        let notes = notes(&[(3, &[7]), (5, &[1, 2, 3, 4])], 2);
        let mut find = notes.walk();
        assert_eq!(find(&scope(3, SLOT)), [7]);
        assert!(find(&scope(5, SLOT)).is_empty());
    }
}
