//! The memory that each CPU event allocated and freed. A memory record belongs to every event of
//! its process that was open at its time, on whatever thread, as in torch.

use std::ops::Range;

use mindprof_model::{
    DeviceKind, EventId, Flags, MemoryRecord, MemoryRecords, MemorySide, Nanos, Profile, Thread,
    ThreadId,
};
use rustc_hash::FxHashMap;

use crate::tree::event_tree::Tree;

/// Bytes of CPU memory and of device memory.
///
/// Negative if more was freed than allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes {
    /// CPU memory.
    pub host: i64,
    /// Device memory.
    pub device: i64,
}

impl Bytes {
    /// Returns the bytes of one record. Some kinds of devices are not counted, as in torch; their
    /// records have zero bytes.
    pub fn of(record: &MemoryRecord) -> Self {
        match record.device.memory_side() {
            Some(MemorySide::Cpu) => Self {
                host: record.bytes,
                device: 0,
            },
            Some(MemorySide::Device) => Self {
                host: 0,
                device: record.bytes,
            },
            None => Self::default(),
        }
    }
}

impl Bytes {
    /// Adds other bytes to these.
    pub fn add(&mut self, other: Self) {
        self.host += other.host;
        self.device += other.device;
    }

    fn subtract(&mut self, other: Self) {
        self.host -= other.host;
        self.device -= other.device;
    }
}

/// The memory use of each CPU event, with and without that of its children.
///
/// Events of one name mostly allocate the same amounts again and again, so each distinct use is
/// stored once and events refer to it by number. It is empty if the profile has no memory records.
#[derive(Clone, Debug, Default)]
pub struct MemoryUse {
    /// The position in `uses` of each event's use.
    numbers: Vec<u32>,
    uses: Vec<Use>,
    unclaimed: Vec<u32>,
}

/// The memory allocated minus the memory freed during an event, with and without its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Use {
    total: Bytes,
    own: Bytes,
}

impl MemoryUse {
    /// Sums the memory records of each event with a sweep over both, in time order.
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
        let processes = Processes::of(profile);
        let (numbers, uses) = uses(profile, tree, &processes);
        Self {
            numbers,
            uses,
            unclaimed: unclaimed(profile, &processes),
        }
    }

    /// Returns the memory allocated minus the memory freed while an event ran.
    pub fn total(&self, id: EventId) -> Bytes {
        self.of(id).total
    }

    /// Returns the memory allocated minus the memory freed while an event, but none of its
    /// children, ran.
    pub fn own(&self, id: EventId) -> Bytes {
        self.of(id).own
    }

    fn of(&self, id: EventId) -> Use {
        let number = self.numbers.get(id.index());
        number.map_or_else(Use::default, |&number| self.uses[number as usize])
    }

    /// Returns the positions of the memory records that lie inside no event, in time order.
    pub fn unclaimed(&self) -> &[u32] {
        &self.unclaimed
    }
}

/// Returns the number of each event's use, and the uses by number.
///
/// It goes backwards, so that the uses of children are known before those of their parents.
fn uses(profile: &Profile, tree: &Tree, processes: &Processes) -> (Vec<u32>, Vec<Use>) {
    let records = processes.ranges(profile.memory());
    let mut distinct = Distinct::default();
    let mut numbers = vec![distinct.number(Use::default()); profile.events().len()];
    let mut of_children: FxHashMap<EventId, Bytes> = FxHashMap::default();
    let mut firsts: Vec<usize> = records.iter().map(Ranges::len).collect();
    for (index, event) in profile.events().iter().enumerate().rev() {
        if !is_claimant(profile, index) {
            continue;
        }
        let process = processes.of_thread(event.thread);
        let (records, first) = (&records[process], &mut firsts[process]);
        *first = records.first_from(*first, event.start);
        let total = records.sum(*first..records.end_of_run(*first, event.end()));
        let id = EventId::from_index(index);
        let mut own = total;
        own.subtract(of_children.remove(&id).unwrap_or_default());
        if tree.is_outside(id) || tree.is_merged(id) {
            own = Bytes::default();
        } else if let Some(parent) = tree.parent(id)
            && total != Bytes::default()
        {
            of_children.entry(parent).or_default().add(total);
        }
        numbers[index] = distinct.number(Use { total, own });
    }
    (numbers, distinct.uses)
}

/// Distinct uses, each stored once.
#[derive(Default)]
struct Distinct {
    uses: Vec<Use>,
    known: FxHashMap<Use, u32>,
    last: u32,
}

impl Distinct {
    fn number(&mut self, found: Use) -> u32 {
        // Mostly it equals that of the previous event.
        if self.uses.get(self.last as usize) != Some(&found) {
            let uses = &mut self.uses;
            self.last = *self.known.entry(found).or_insert_with(|| {
                uses.push(found);
                uses.len() as u32 - 1
            });
        }
        self.last
    }
}

/// The processes that have CPU events, and the process of each memory record.
///
/// Usually there is only one, and then every record belongs to it. Others are, for example, the
/// workers of a data loader, whose recordings were appended.
struct Processes {
    count: usize,
    /// By thread. Empty if there is one process.
    of_threads: Vec<usize>,
    /// By memory record. Empty if there is one process.
    of_records: Vec<usize>,
}

impl Processes {
    fn of(profile: &Profile) -> Self {
        let threads = profile.threads();
        let mut has_events = vec![false; threads.len()];
        for (index, event) in profile.events().iter().enumerate() {
            let has_events = &mut has_events[event.thread.index()];
            *has_events = *has_events || is_claimant(profile, index);
        }
        let mut places: FxHashMap<u64, usize> = FxHashMap::default();
        for (thread, _) in threads.iter().zip(has_events).filter(|(_, has)| *has) {
            let next = places.len();
            places.entry(thread.process).or_insert(next);
        }
        if places.len() < 2 {
            return Self {
                count: 1,
                of_threads: Vec::new(),
                of_records: Vec::new(),
            };
        }
        // Records of processes without events belong to an extra process that claims nothing.
        let nobody = places.len();
        let place = |thread: &Thread| places.get(&thread.process).copied().unwrap_or(nobody);
        let of_threads: Vec<usize> = threads.iter().map(place).collect();
        let of_record = |record: MemoryRecord| of_threads[record.thread.index()];
        Self {
            count: nobody + 1,
            of_records: profile.memory().iter().map(of_record).collect(),
            of_threads,
        }
    }

    fn of_thread(&self, thread: ThreadId) -> usize {
        self.of_threads.get(thread.index()).copied().unwrap_or(0)
    }

    fn of_record(&self, index: usize) -> usize {
        self.of_records.get(index).copied().unwrap_or(0)
    }

    /// Returns the range sums over the records of each process.
    fn ranges<'a>(&self, records: &'a MemoryRecords) -> Vec<Ranges<'a>> {
        if self.of_records.is_empty() {
            return vec![Ranges::new(records, None)];
        }
        let mut places = vec![Vec::new(); self.count];
        for (place, process) in (0..).zip(&self.of_records) {
            places[*process].push(place);
        }
        let ranges = places.into_iter();
        ranges.map(|own| Ranges::new(records, Some(own))).collect()
    }
}

/// Sums over ranges of the memory records of one process.
struct Ranges<'a> {
    records: &'a MemoryRecords,
    /// The positions of the process's records, or `None` if all records are its.
    places: Option<Vec<u32>>,
    /// The sum of all records before each [`STEP`]th one, and the sum of all records last. The
    /// difference of two entries is the sum between them.
    before: Vec<Bytes>,
}

const STEP: usize = 64;

impl<'a> Ranges<'a> {
    fn new(records: &'a MemoryRecords, places: Option<Vec<u32>>) -> Self {
        let mut ranges = Self {
            records,
            places,
            before: Vec::new(),
        };
        let mut sum = Bytes::default();
        for index in 0..ranges.len() {
            if index % STEP == 0 {
                ranges.before.push(sum);
            }
            sum.add(Bytes::of(&ranges.at(index)));
        }
        ranges.before.push(sum);
        ranges
    }

    fn len(&self) -> usize {
        self.places.as_ref().map_or(self.records.len(), Vec::len)
    }

    fn place(&self, index: usize) -> usize {
        self.places
            .as_ref()
            .map_or(index, |places| places[index] as usize)
    }

    fn time(&self, index: usize) -> Nanos {
        self.records.time(self.place(index))
    }

    fn at(&self, index: usize) -> MemoryRecord {
        self.records.at(self.place(index))
    }

    /// Returns the first record that is not earlier than `from`, searching backwards from `known`,
    /// which must not be before it.
    fn first_from(&self, known: usize, from: Nanos) -> usize {
        let mut first = known;
        while first > 0 && self.time(first - 1) >= from {
            first -= 1;
        }
        first
    }

    /// Returns the end of the records from `first` on that are not later than `until`.
    ///
    /// It searches in doubling steps from `first`: most events end soon, and a bisection of all
    /// records would miss the caches at each step.
    fn end_of_run(&self, first: usize, until: Nanos) -> usize {
        let is_inside = |index: usize| index < self.len() && self.time(index) <= until;
        let mut step = 1;
        while is_inside(first + step - 1) {
            step *= 2;
        }
        let (mut begin, mut end) = (first + step / 2, first + step - 1);
        while begin < end {
            let middle = begin.midpoint(end);
            if is_inside(middle) {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        begin
    }

    fn sum(&self, range: Range<usize>) -> Bytes {
        let one_by_one = |range: Range<usize>| {
            let mut sum = Bytes::default();
            range.for_each(|index| sum.add(Bytes::of(&self.at(index))));
            sum
        };
        let (from, to) = (range.start.div_ceil(STEP), range.end / STEP);
        if from >= to {
            return one_by_one(range);
        }
        let mut sum = self.before[to];
        sum.subtract(self.before[from]);
        sum.add(one_by_one(range.start..from * STEP));
        sum.add(one_by_one(to * STEP..range.end));
        sum
    }
}

/// Returns the records at whose time no CPU event of their process was open.
fn unclaimed(profile: &Profile, processes: &Processes) -> Vec<u32> {
    let mut events = (0..profile.events().len())
        .filter(|&index| is_claimant(profile, index))
        .map(|index| &profile.events()[index])
        .peekable();
    let mut open_until = vec![None; processes.count];
    let mut found = Vec::new();
    for (index, record) in profile.memory().iter().enumerate() {
        while let Some(event) = events.next_if(|event| event.start <= record.time) {
            let open_until = &mut open_until[processes.of_thread(event.thread)];
            *open_until = (*open_until).max(Some(event.end()));
        }
        if open_until[processes.of_record(index)].is_none_or(|end| end < record.time) {
            found.push(index as u32);
        }
    }
    found
}

/// Returns whether an event claims the memory records of its time: every CPU event does that is not
/// hidden and has a duration. Instants claim nothing, not even those of failed allocations.
fn is_claimant(profile: &Profile, index: usize) -> bool {
    let event = &profile.events()[index];
    !event.flags.contains(Flags::HIDDEN)
        && !event.flags.contains(Flags::INSTANT)
        && profile.threads()[event.thread.index()].device == DeviceKind::Cpu
}

#[cfg(test)]
mod tests;
