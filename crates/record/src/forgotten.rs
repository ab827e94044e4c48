//! Records that made room for newer ones, summed up by name.
//!
//! A recording that keeps its last part takes the oldest chunk of any thread when the budget is
//! spent (`registry`). The chunk's records are folded into the sums of their thread here, and
//! `assemble` adds the sums to the profile.

use rustc_hash::FxHashMap;

use crate::raw::Record;

/// The records of one thread that were given up, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forgotten {
    /// The start of the window that keeps its last events, in ticks: earlier records do not count.
    since: u64,
    /// The time of the last record, in ticks; zero if no record was given up.
    pub(crate) until: u64,
    /// The number of scopes and memory records.
    pub(crate) scopes: u64,
    pub(crate) memory: u64,
    sums: FxHashMap<u32, TickSums>,
    /// Starts and durations of scopes that no other scope encloses so far, by ascending start.
    standing: Vec<(u64, u64)>,
}

/// The sums over the scopes of one name, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TickSums {
    pub(crate) calls: u64,
    pub(crate) total: u64,
    /// The time outside of the scopes inside.
    pub(crate) own: u64,
}

impl TickSums {
    /// Adds other sums.
    pub(crate) fn merge(&mut self, other: Self) {
        self.calls += other.calls;
        self.total += other.total;
        self.own += other.own;
    }
}

impl Forgotten {
    /// The number of standing scopes beyond which neighbours are joined.
    const MOST_STANDING: usize = 4096;

    /// Returns empty sums for a window that starts at `since`.
    pub(crate) fn since(since: u64) -> Self {
        Self {
            since,
            ..Self::default()
        }
    }

    /// Adds the next record of the thread. Records come in the order in which scopes end, so those
    /// inside of a scope come before it.
    pub(crate) fn add(&mut self, record: &Record) {
        self.until = self.until.max(record.time().unwrap_or(0));
        if record.start < self.since {
            return;
        }
        if record.is_scope() {
            self.add_scope(record);
        } else {
            self.memory += u64::from(record.is_memory());
        }
    }

    /// ```text
    /// records, in end order    b |--|  c |--|  a |----------|
    /// standing before a        b, c
    /// own time of a            a - b - c
    /// ```
    fn add_scope(&mut self, record: &Record) {
        let duration = record.end.saturating_sub(record.start);
        self.scopes += 1;
        let sums = self.sums.entry(record.name & !Record::ASYNC).or_default();
        sums.calls += 1;
        sums.total += duration;
        // A scope that ended on another thread lies beside the thread's own.
        if record.name & Record::ASYNC != 0 {
            return;
        }
        let mut inside = 0;
        while let Some((_, inner)) = self.standing.pop_if(|(start, _)| *start >= record.start) {
            inside += inner;
        }
        sums.own += duration.saturating_sub(inside);
        self.standing.push((record.start, duration));
        if self.standing.len() > Self::MOST_STANDING {
            self.join_neighbours();
        }
    }

    /// Joins pairs of standing scopes, so that a thread whose scopes are never enclosed needs
    /// little memory. A scope that begins between two joined ones counts the second as its own.
    fn join_neighbours(&mut self) {
        let pairs = self.standing.chunks(2).map(|pair| {
            let durations = pair.iter().map(|(_, duration)| duration);
            (pair[0].0, durations.sum())
        });
        self.standing = pairs.collect();
    }

    /// Iterates over the sums by the number of the name.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (u32, TickSums)> {
        self.sums.iter().map(|(&name, &sums)| (name, sums))
    }
}

#[cfg(test)]
mod tests {
    use crate::raw::MemoryDevice;

    use super::*;

    fn scope(name: u32, start: u64, end: u64) -> Record {
        Record {
            start,
            end,
            name,
            inputs: 0,
            stack: 0,
            sequence: Record::NO_SEQUENCE,
        }
    }

    fn sums_of(records: &[Record]) -> Forgotten {
        let mut forgotten = Forgotten::default();
        for record in records {
            forgotten.add(record);
        }
        forgotten
    }

    // a |--------------------|
    // b   |--------|  |--|
    // c     |--|
    #[test]
    fn own_time_excludes_the_scopes_inside() {
        let [a, b, c] = [1, 2, 3];
        let forgotten = sums_of(&[
            scope(c, 4, 6),
            scope(b, 2, 10),
            Record::memory(11, 7, 64, 64, MemoryDevice::CPU),
            scope(b, 12, 15),
            scope(a, 0, 20),
        ]);
        let own = |name| {
            let found = forgotten
                .sums()
                .find(|(found, _)| *found == name)
                .unwrap()
                .1;
            (found.calls, found.total, found.own)
        };
        assert_eq!(own(a), (1, 20, 9));
        assert_eq!(own(b), (2, 11, 9));
        assert_eq!(own(c), (1, 2, 2));
        assert_eq!(
            (forgotten.scopes, forgotten.memory, forgotten.until),
            (4, 1, 20)
        );
    }

    #[test]
    fn many_scopes_beside_each_other_count_inside_of_a_late_parent() {
        let many = 3 * Forgotten::MOST_STANDING as u64;
        let mut records: Vec<_> = (0..many)
            .map(|at| scope(2, 10 + 2 * at, 11 + 2 * at))
            .collect();
        records.push(scope(1, 9, 10 + 2 * many));
        let forgotten = sums_of(&records);
        let parent = forgotten.sums().find(|(name, _)| *name == 1).unwrap().1;
        assert_eq!(parent.own, 1 + many);
        assert!(forgotten.standing.len() <= Forgotten::MOST_STANDING);
    }
}
