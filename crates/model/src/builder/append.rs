//! Appends a part to others: translates its ids, link numbers and times.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Kinship, ProfileBuilder};
use crate::{
    Damage, Event, EventBatch, ForwardThread, InputsId, LinkColumns, Links, Nanos, Part,
    PassthroughArgs, PassthroughKind, StackId, StorageLists, StringId, StringTable, TextId, Thread,
    ThreadId,
};

/// Appends one part to the whole. It works out all translations first, then moves the data over.
pub(super) struct Appender<'a> {
    whole: &'a mut Part,
    tables: Tables,
    numbers: Numbers,
    /// How much later the part's time zero is than that of the whole.
    later: Nanos,
}

/// Maps the part's ids to those of the whole.
struct Tables {
    strings: Vec<StringId>,
    inputs: Vec<InputsId>,
    stacks: Vec<StackId>,
    threads: Vec<ThreadId>,
}

impl<'a> Appender<'a> {
    pub(super) fn new(builder: &'a mut ProfileBuilder, part: &Part, kinship: Kinship) -> Self {
        let ProfileBuilder { whole, origins } = builder;
        let tables = Tables::build(whole, part, kinship);
        match kinship {
            Kinship::Window => origins.extend(whole.threads.len()),
            Kinship::Process | Kinship::Job => origins.begin(part.rank, whole.threads.len()),
        }
        let numbers = match kinship {
            Kinship::Window => Numbers::default(),
            Kinship::Process | Kinship::Job => Numbers::apart(&whole.links, &part.links),
        };
        let later = align(whole, part.reference_unix_ns);
        Self {
            whole,
            tables,
            numbers,
            later,
        }
    }

    pub(super) fn append(self, mut part: Part) {
        let Self {
            whole,
            tables,
            numbers,
            later,
        } = self;
        let (events, records) = (whole.events.len(), whole.memory.len());
        let count = part.events.len();
        whole.events.append(EventBatch::settled(
            part.events.events,
            |event: &mut Event| tables.translate(event, later),
        ));
        let mut links = part.links;
        numbers.apply(&mut links);
        let thread = |thread| ForwardThread::At(tables.thread(thread));
        links.map_forward_threads(|forward| forward.map(thread));
        links.map_strings(|string| tables.string(string));
        whole.links.append(events, links, count);
        whole.memory.extend(part.memory.iter().map(|mut record| {
            record.time = record.time.saturating_add(later);
            record.thread = tables.thread(record.thread);
            record.stack = tables.stack(record.stack);
            record
        }));
        append_storages(&mut whole.storages, events, &part.storages, count);
        (whole.results).append(part.results, events, |list| tables.inputs(list));
        whole.roles.extend(part.roles.into_iter().map(|mut role| {
            role.time = role.time.saturating_add(later);
            role.thread = tables.thread(role.thread);
            role
        }));
        let offset = |kind: PassthroughKind, index: usize| match kind {
            PassthroughKind::Category | PassthroughKind::Fields | PassthroughKind::Arguments => {
                events + index
            }
            PassthroughKind::MemoryArguments => records + index,
            PassthroughKind::Track => tables.thread(ThreadId::from_index(index)).index(),
        };
        append_passthrough(
            &mut whole.passthrough,
            &mut part.passthrough,
            offset,
            &tables,
            later,
        );
        whole.loss.merge(&part.loss);
        let damage = Damage::read(&whole.metadata).and(Damage::read(&part.metadata));
        damage.write(&mut whole.metadata);
        for (key, value) in part.metadata.iter() {
            if whole.metadata.get(key).is_none() {
                whole.metadata.set(key, value);
            }
        }
        whole.span = whole.span.max(part.span.saturating_add(later));
    }
}

impl Tables {
    fn build(whole: &mut Part, part: &Part, kinship: Kinship) -> Self {
        let strings: Vec<_> = part
            .strings
            .iter()
            .map(|text| whole.strings.intern(text))
            .collect();
        let inputs = part
            .inputs
            .iter()
            .map(|words| whole.inputs.intern(words))
            .collect();
        let mut stacks = vec![StackId::NONE];
        for (caller, frame) in part.stacks.nodes() {
            let (caller, frame) = (stacks[caller.index()], strings[frame.index()]);
            stacks.push(whole.stacks.push(caller, frame));
        }
        let threads = append_threads(whole, part, &strings, kinship);
        Self {
            strings,
            inputs,
            stacks,
            threads,
        }
    }

    /// Translates a thread. An invalid id stays invalid, so that the check finds it.
    fn thread(&self, thread: ThreadId) -> ThreadId {
        let found = self.threads.get(thread.index()).copied();
        found.unwrap_or(ThreadId::from_raw(u32::MAX))
    }

    fn stack(&self, stack: StackId) -> StackId {
        let found = self.stacks.get(stack.index()).copied();
        found.unwrap_or(StackId::from_raw(u32::MAX))
    }

    /// Translates a string of links. An invalid id means none.
    fn string(&self, text: StringId) -> StringId {
        let found = self.strings.get(text.index()).copied();
        found.unwrap_or(StringTable::EMPTY)
    }

    fn inputs(&self, list: InputsId) -> InputsId {
        let found = self.inputs.get(list.index()).copied();
        found.unwrap_or(InputsId::from_raw(u32::MAX))
    }

    fn translate(&self, event: &mut Event, later: Nanos) {
        let name = self.strings.get(event.name.index()).copied();
        event.name = name.unwrap_or(StringId::from_raw(u32::MAX));
        event.inputs = self.inputs(event.inputs);
        event.stack = self.stack(event.stack);
        event.thread = self.thread(event.thread);
        shift_event(event, later);
    }
}

/// Shifts an event to a later time. An end that would overflow becomes the largest time.
fn shift_event(event: &mut Event, later: Nanos) {
    event.start = event.start.saturating_add(later);
    event.duration = event.duration.min(Nanos(u64::MAX - event.start.0));
}

/// Appends the threads of a part and returns their ids in the whole.
fn append_threads(
    whole: &mut Part,
    part: &Part,
    strings: &[StringId],
    kinship: Kinship,
) -> Vec<ThreadId> {
    let identity = |thread: &Thread| (thread.process, thread.native, thread.device);
    let ids_of_whole = (0..).map(ThreadId::from_raw);
    let known: FxHashMap<_, ThreadId> = match kinship {
        Kinship::Window => whole
            .threads
            .iter()
            .map(identity)
            .zip(ids_of_whole)
            .collect(),
        Kinship::Process | Kinship::Job => FxHashMap::default(),
    };
    let processes = match kinship {
        Kinship::Window | Kinship::Process => FxHashMap::default(),
        Kinship::Job => free_processes(whole, part),
    };
    let mut ids = Vec::with_capacity(part.threads.len());
    for thread in &part.threads {
        let mut thread = *thread;
        thread.name = strings
            .get(thread.name.index())
            .copied()
            .unwrap_or(thread.name);
        thread.process = *processes.get(&thread.process).unwrap_or(&thread.process);
        let found = known.get(&identity(&thread)).copied();
        ids.push(found.unwrap_or_else(|| whole.add_thread(thread)));
    }
    ids
}

/// Maps the part's process ids that the whole already uses to free ones.
fn free_processes(whole: &Part, part: &Part) -> FxHashMap<u64, u64> {
    let numbers = |part: &Part| -> FxHashSet<u64> {
        part.threads.iter().map(|thread| thread.process).collect()
    };
    let (taken, own) = (numbers(whole), numbers(part));
    let mut doubles: Vec<u64> = own.intersection(&taken).copied().collect();
    doubles.sort_unstable();
    let is_free = |number: &u64| !taken.contains(number) && !own.contains(number);
    let free = (1..).filter(is_free);
    doubles.into_iter().zip(free).collect()
}

/// Returns how much later `reference_unix_ns` is than the time zero of the whole. If it is earlier,
/// the whole is shifted so that it becomes its time zero.
fn align(whole: &mut Part, reference_unix_ns: u64) -> Nanos {
    let earlier = whole.reference_unix_ns.saturating_sub(reference_unix_ns);
    if earlier > 0 {
        whole.shift(Nanos(earlier));
        whole.reference_unix_ns = reference_unix_ns;
    }
    Nanos(reference_unix_ns - whole.reference_unix_ns)
}

impl Part {
    /// Shifts everything to later times.
    fn shift(&mut self, later: Nanos) {
        let events = std::mem::take(&mut self.events);
        self.events = EventBatch::settled(events.events, |event| shift_event(event, later));
        self.memory.shift(later);
        for role in &mut self.roles {
            role.time = role.time.saturating_add(later);
        }
        for record in self.passthrough.unknown_events_mut() {
            record.time_ns = record.time_ns.saturating_add_unsigned(later.0);
        }
        self.span = self.span.saturating_add(later);
    }
}

/// The renumbering of links that keeps those of two sources apart.
#[derive(Default)]
struct Numbers {
    external: Renumbering,
    correlation: Renumbering,
}

/// The renumbering of one kind of link. Zero stays zero.
#[derive(Default)]
enum Renumbering {
    #[default]
    Same,
    Raised(u32),
    /// Number by number, if adding would overflow.
    Listed(FxHashMap<u32, u32>),
}

impl Numbers {
    /// Keeps the links of a part apart from those already in use. Both kinds are raised by the same
    /// amount if possible, so that an external id that merely repeats the correlation id still
    /// equals it.
    fn apart(taken: &LinkColumns, own: &LinkColumns) -> Self {
        let external = Renumbering::apart(taken, own, |links| links.external);
        let correlation = Renumbering::apart(taken, own, |links| links.correlation);
        let largest = own
            .iter()
            .map(|links| links.external.max(links.correlation));
        if let (&Renumbering::Raised(one), &Renumbering::Raised(other)) = (&external, &correlation)
            && let by = one.max(other)
            && largest.max().unwrap_or(0).checked_add(by).is_some()
        {
            return Self {
                external: Renumbering::Raised(by),
                correlation: Renumbering::Raised(by),
            };
        }
        Self {
            external,
            correlation,
        }
    }

    fn apply(&self, links: &mut LinkColumns) {
        let (external, correlation) = (&self.external, &self.correlation);
        links.map_numbers(
            |number| external.translate(number),
            |number| correlation.translate(number),
        );
    }
}

impl Renumbering {
    /// Keeps one kind of link apart from the numbers already in use.
    fn apart(taken: &LinkColumns, own: &LinkColumns, number: fn(Links) -> u32) -> Self {
        let largest = |columns: &LinkColumns| columns.iter().map(number).max().unwrap_or(0);
        let (largest_taken, largest_own) = (largest(taken), largest(own));
        if largest_taken == 0 || largest_own == 0 {
            return Self::Same;
        }
        if let Some(_fits) = largest_own.checked_add(largest_taken) {
            return Self::Raised(largest_taken);
        }
        let taken: FxHashSet<u32> = taken.iter().map(number).collect();
        let own: FxHashSet<u32> = own.iter().map(number).collect();
        // There are fewer numbers than events, and fewer events than 2^32.
        let free = (1..=u32::MAX).filter(|number| !taken.contains(number));
        let used = own.into_iter().filter(|&number| number != 0);
        Self::Listed(used.zip(free).collect())
    }

    fn translate(&self, number: u32) -> u32 {
        match self {
            _ if number == 0 => 0,
            Self::Same => number,
            Self::Raised(by) => number + by,
            Self::Listed(listed) => listed.get(&number).copied().unwrap_or(0),
        }
    }
}

fn append_storages(whole: &mut StorageLists, events: usize, part: &StorageLists, count: usize) {
    if !part.is_empty() {
        for index in 0..count {
            whole.set(events + index, part.words(index));
        }
    }
}

fn append_passthrough(
    whole: &mut PassthroughArgs,
    part: &mut PassthroughArgs,
    offset: impl Fn(PassthroughKind, usize) -> usize,
    tables: &Tables,
    later: Nanos,
) {
    // The texts of the first part keep their ids, so that rows that share one still do.
    let is_first = whole.texts.is_empty();
    if is_first {
        whole.texts = std::mem::take(&mut part.texts);
    }
    let moved = |whole: &mut PassthroughArgs, text: TextId| {
        if is_first {
            return Some(text);
        }
        whole.texts.add(&part.texts.text(text))
    };
    for kind in PassthroughKind::ALL {
        for (index, text) in part.rows(kind) {
            if let Some(text) = moved(whole, text) {
                whole.set(kind, offset(kind, index), text);
            }
        }
    }
    for record in part.unknown_events() {
        let mut record = *record;
        record.time_ns = record.time_ns.saturating_add_unsigned(later.0);
        record.thread = tables.thread(record.thread);
        if let Some(text) = moved(whole, record.text) {
            record.text = text;
            whole.add_unknown_event(record);
        }
    }
}
