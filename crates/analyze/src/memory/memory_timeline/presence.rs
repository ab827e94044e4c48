//! Lower bounds for the lifetime of blocks whose allocation or release was not recorded.
//!
//! torch reports the memory of the thread that started the recording and of the threads that work
//! for it, but the operators of all threads. Blocks of the other threads, and foreign ones such as
//! numpy's, show up only when they are used. The peak and the memory page count such blocks only as
//! long as they were certainly there.

use std::ops::Range;

use mindprof_model::{Category, Nanos, Profile, TensorRole, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::blocks::{Blocks, TensorLists};
use super::change::{MemoryAction, MemoryChange, MemoryPlace};

/// The untimed blocks, that is, those without a known beginning and end, and the spans of time in
/// which they were certainly there.
///
/// If every thread reports its memory there are none, and the timeline is exact. Otherwise the
/// peak must not count a block to the end of the window just because its release is missing.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// By block, in time order and disjoint.
    spans: FxHashMap<u32, Vec<Span>>,
}

/// A span of time in which a block was certainly there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: Nanos,
    end: Nanos,
    /// The size of the block, as far as it was seen.
    bytes: u64,
    /// Whether a tensor was made of foreign memory then, possibly of another block than before.
    is_new: bool,
}

impl Presence {
    /// Finds the untimed blocks and their spans. If every thread with operators reports its memory,
    /// no release is missing and no memory is foreign, this costs one pass over the inputs.
    ///
    /// ```text
    /// reporting thread  use of 1   ──────use of 3────────────alloc 4─────────────
    /// silent thread                 op──────use of 2──────────────use of 2, 4────
    /// block             1 before    3 and 2 not known         4 freed when?
    /// ```
    pub(super) fn build(profile: &Profile, blocks: &Blocks) -> Self {
        let silence = Silence::build(profile, blocks);
        let places = places_with_missing_releases(blocks);
        let foreign = foreign(profile, blocks);
        if silence.is_empty() && places.is_empty() && foreign.is_empty() {
            return Self::default();
        }
        let mut untimed = untimed(profile, blocks, &silence, &places);
        for &block in &foreign {
            untimed[block as usize] = true;
        }
        let mut uses = uses(profile, blocks, &untimed);
        uses.sort_by_key(|(block, span)| (*block, span.start));
        let lasting = lasting(profile, blocks);
        let mut spans: FxHashMap<u32, Vec<Span>> = FxHashMap::default();
        for (block, span) in uses {
            let (place, (_, destroyed)) = (blocks.place(block), blocks.life(block));
            let end = destroyed.map_or(span.end, |destroyed| span.end.min(destroyed));
            let of_block = spans.entry(block).or_default();
            match of_block.last_mut() {
                Some(last)
                    if span.start <= last.end
                        || lasting.contains(&block)
                        || !(span.is_new && foreign.contains(&block))
                            && silence.is_idle(place.process, last.end..span.start) =>
                {
                    last.end = last.end.max(end);
                    last.bytes = last.bytes.max(span.bytes);
                }
                Some(_) | None => of_block.push(Span { end, ..span }),
            }
        }
        Self { spans }
    }

    /// Returns whether both ends of every block are known.
    pub(super) fn is_whole(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns whether the beginning or the end of a block is unknown.
    pub(super) fn is_untimed(&self, block: u32) -> bool {
        self.spans.contains_key(&block)
    }

    /// Returns the changes, with untimed blocks limited to their spans.
    ///
    /// ```text
    /// recorded  (before)────v1──────────────────────────
    /// certain         ├─────v1──────┤      ├──────┤
    /// ```
    pub(super) fn certain(&self, changes: &[MemoryChange], blocks: &Blocks) -> Vec<MemoryChange> {
        let mut of_untimed: FxHashMap<u32, Vec<MemoryChange>> = FxHashMap::default();
        let mut certain = Vec::with_capacity(changes.len());
        for change in changes {
            if self.is_untimed(change.block) {
                of_untimed.entry(change.block).or_default().push(*change);
            } else {
                certain.push(*change);
            }
        }
        for (block, changes) in of_untimed {
            let created = blocks.life(block).0;
            certain.extend(in_spans(&changes, &self.spans[&block], created));
        }
        certain.sort_by_key(|change| (change.time, change.action, change.block));
        certain
    }
}

/// Returns the changes of one block within its spans, with a beginning and an end for each.
fn in_spans(changes: &[MemoryChange], spans: &[Span], created: Option<Nanos>) -> Vec<MemoryChange> {
    let Some(first) = changes.first() else {
        return Vec::new();
    };
    let mut writes = changes
        .iter()
        .filter(|change| change.action == MemoryAction::IncrementVersion)
        .peekable();
    let mut state = (0, first.category);
    let mut found = Vec::new();
    for span in spans {
        let at = |time, action, (version, category)| MemoryChange {
            time: Some(time),
            action,
            block: first.block,
            version,
            bytes: span.bytes,
            category,
            after: category,
        };
        while let Some(write) = writes.next_if(|write| write.time <= Some(span.start)) {
            state = (write.version + 1, write.after);
        }
        let begin = if created == Some(span.start) {
            MemoryAction::Create
        } else {
            MemoryAction::Preexisting
        };
        found.push(at(span.start, begin, state));
        while let Some(write) = writes.next_if(|write| write.time <= Some(span.end)) {
            found.push(MemoryChange {
                bytes: span.bytes,
                ..*write
            });
            state = (write.version + 1, write.after);
        }
        found.push(at(span.end, MemoryAction::Destroy, state));
    }
    found
}

/// The silent threads, and the times at which they were running operators.
///
/// A silent thread reports no memory of its own and uses blocks whose allocation was not recorded.
#[derive(Debug, Default)]
struct Silence {
    threads: Vec<bool>,
    /// By process, the times of operators on silent threads, in time order and disjoint.
    work: FxHashMap<u64, Vec<Range<Nanos>>>,
}

impl Silence {
    fn build(profile: &Profile, blocks: &Blocks) -> Self {
        let mut reports = vec![false; profile.threads().len()];
        for record in profile.memory() {
            reports[record.thread.index()] = true;
        }
        let mut silence = Self {
            threads: vec![false; reports.len()],
            work: FxHashMap::default(),
        };
        for (index, event) in profile.events().iter().enumerate() {
            let is_silent = &mut silence.threads[event.thread.index()];
            let is_candidate = !*is_silent && !reports[event.thread.index()];
            let mut used = blocks
                .inputs(index)
                .iter()
                .filter_map(|input| input.block());
            *is_silent |= is_candidate && used.any(|block| blocks.life(block).0.is_none());
        }
        if silence.threads.contains(&true) {
            silence.collect_work(profile);
        }
        silence
    }

    fn collect_work(&mut self, profile: &Profile) {
        let events = profile.events().iter();
        let events = events.filter(|event| event.category == Category::Operator);
        for event in events.filter(|event| self.threads[event.thread.index()]) {
            let process = profile.threads()[event.thread.index()].process;
            let work = self.work.entry(process).or_default();
            match work.last_mut() {
                Some(last) if event.start <= last.end => last.end = last.end.max(event.end()),
                Some(_) | None => work.push(event.start..event.end()),
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    fn has(&self, thread: ThreadId) -> bool {
        self.threads[thread.index()]
    }

    /// Returns whether a block that is first used at a given time may have been allocated by a
    /// silent thread: one was already running operators.
    fn may_have_taken(&self, process: u64, first_use: Nanos) -> bool {
        let work = self.work.get(&process);
        work.is_some_and(|work| work[0].start <= first_use)
    }

    /// Returns whether no silent thread was running operators between two uses of an address. Then
    /// both uses are of the same block, because every other thread reports its allocations.
    fn is_idle(&self, process: u64, gap: Range<Nanos>) -> bool {
        let Some(work) = self.work.get(&process) else {
            return true;
        };
        let next = work.partition_point(|work| work.end < gap.start);
        work.get(next).is_none_or(|work| work.start > gap.end)
    }
}

/// Returns the places in which a block was allocated at the address of another one whose release was
/// not recorded. Other releases may be missing there too.
fn places_with_missing_releases(blocks: &Blocks) -> FxHashSet<MemoryPlace> {
    let replaced = blocks.replaced().iter();
    replaced
        .filter(|&&block| blocks.life(block).0.is_some())
        .map(|&block| blocks.place(block))
        .collect()
}

/// The operator that torch runs when it makes a tensor of memory that it did not allocate, such as a
/// numpy array.
const LIFT: &str = "aten::lift_fresh";

/// Returns the blocks of foreign memory that became tensors in the window.
fn foreign(profile: &Profile, blocks: &Blocks) -> FxHashSet<u32> {
    let mut foreign = FxHashSet::default();
    let Some(lift) = profile.strings().find(LIFT) else {
        return foreign;
    };
    let replaced: FxHashSet<u32> = blocks.replaced().iter().copied().collect();
    let is_reported = |block: u32| {
        let (created, destroyed) = blocks.life(block);
        created.is_some() || destroyed.is_some() && !replaced.contains(&block)
    };
    let mut is_known = vec![false; blocks.len()];
    for (index, event) in profile.events().iter().enumerate() {
        let used = blocks.inputs(index).iter();
        for block in used.filter_map(|input| input.block()) {
            let is_first = !std::mem::replace(&mut is_known[block as usize], true);
            if is_first && event.name == lift && !is_reported(block) {
                foreign.insert(block);
            }
        }
    }
    foreign
}

/// Returns, for each block, whether its beginning or its end is unknown.
fn untimed(
    profile: &Profile,
    blocks: &Blocks,
    silence: &Silence,
    places: &FxHashSet<MemoryPlace>,
) -> Vec<bool> {
    let mut first_uses: Vec<Option<Nanos>> = vec![None; blocks.len()];
    let mut is_shared = vec![false; blocks.len()];
    for (index, event) in profile.events().iter().enumerate() {
        for block in blocks
            .inputs(index)
            .iter()
            .filter_map(|input| input.block())
        {
            first_uses[block as usize].get_or_insert(event.start);
            is_shared[block as usize] |= silence.has(event.thread);
        }
    }
    for (index, role) in profile.roles().iter().enumerate() {
        if let Some(first) = first_uses.get_mut(blocks.of_role(index) as usize) {
            *first = Some(first.map_or(role.time, |first| first.min(role.time)));
        }
    }
    let replaced: FxHashSet<u32> = blocks.replaced().iter().copied().collect();
    let is_untimed = |block: u32| {
        let (created, destroyed) = blocks.life(block);
        let place = blocks.place(block);
        if destroyed.is_some() && !replaced.contains(&block) {
            return false;
        }
        match created {
            Some(_) => is_shared[block as usize] || places.contains(&place),
            None => first_uses[block as usize]
                .is_some_and(|first| silence.may_have_taken(place.process, first)),
        }
    };
    (0..blocks.len() as u32).map(is_untimed).collect()
}

/// Returns the times at which untimed blocks were certainly there: their recorded allocations, their
/// uses, and the times at which a role was recorded for them.
fn uses(profile: &Profile, blocks: &Blocks, untimed: &[bool]) -> Vec<(u32, Span)> {
    let is_wanted = |block: u32| untimed.get(block as usize).is_some_and(|&wanted| wanted);
    let lift = profile.strings().find(LIFT);
    let span = |block: u32, time: Range<Nanos>, seen: u64| {
        let bytes = blocks.life(block).0.map_or(seen, |_| blocks.bytes(block));
        let span = Span {
            start: time.start,
            end: time.end,
            bytes,
            is_new: false,
        };
        (block, span)
    };
    let taken = (0..blocks.len() as u32).filter(|&block| is_wanted(block));
    let taken = taken.filter_map(|block| Some((block, blocks.life(block).0?)));
    let mut found: Vec<_> = taken
        .map(|(block, created)| span(block, created..created, 0))
        .collect();
    let tensors = TensorLists::build(profile);
    for (index, event) in profile.events().iter().enumerate() {
        let seen = blocks.inputs(index).iter().zip(tensors.of(event.inputs));
        for (input, tensor) in seen {
            if let Some(block) = input.block().filter(|&block| is_wanted(block)) {
                let time = event.start..event.end();
                let (block, mut span) = span(block, time, tensor.bytes.unwrap_or_default());
                span.is_new = Some(event.name) == lift;
                found.push((block, span));
            }
        }
    }
    for (index, role) in profile.roles().iter().enumerate() {
        let block = blocks.of_role(index);
        if is_wanted(block) {
            found.push(span(block, role.time..role.time, role.bytes));
        }
    }
    found
}

/// Returns the blocks of parameters and optimizer states, which stay allocated between two uses.
fn lasting(profile: &Profile, blocks: &Blocks) -> FxHashSet<u32> {
    let roles = profile.roles().iter().enumerate();
    roles
        .filter(|(_, role)| role.role != TensorRole::Gradient)
        .map(|(index, _)| blocks.of_role(index))
        .collect()
}
