//! The holders of memory in one state: by stack, and by the line of the user's that allocated it.

use mindprof_model::{MemorySnapshot, Place, StackId, StringId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::lifetimes::{Lifetime, Lifetimes};
use crate::own_code::OwnCode;
use crate::top_operators::CodePlace;

/// The most lines, stacks, and frames of a stack that are listed. A program has thousands, and the
/// first ones hold the most. Files exist whose stacks share a frame ten thousand times.
const MOST_LINES: usize = 100;
const MOST_STACKS: usize = 50;
const MOST_FRAMES: usize = 128;

/// The most lines and stacks that are listed for each out-of-memory error.
const MOST_LINES_OF_ERRORS: usize = 50;
const MOST_STACKS_OF_ERRORS: usize = 10;

/// The holders of memory, each list by decreasing bytes. It exists for the peak and for each
/// out-of-memory error.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HeldBy {
    /// By the line of the user's, those that hold the most.
    pub lines: Vec<LineHolder>,
    /// The number of lines that are not listed.
    pub lines_left_out: u64,
    /// The bytes of these lines. With those of `lines`, they are all bytes.
    pub lines_left_out_bytes: u64,
    /// By the whole stack, those that hold the most.
    pub stacks: Vec<StackHolder>,
    /// The number of all stacks.
    pub stack_count: u64,
}

/// Memory that one line of the user's allocated, or that no line is known for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineHolder {
    /// Which line it is, or why there is none.
    #[serde(flatten)]
    pub kind: HolderKind,
    /// Its bytes.
    pub bytes: u64,
    /// The number of its allocations.
    pub blocks: u64,
}

/// Memory that one stack allocated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StackHolder {
    /// The line of the user's in it, or why there is none.
    #[serde(flatten)]
    pub kind: HolderKind,
    /// Its bytes.
    pub bytes: u64,
    /// The number of its allocations.
    pub blocks: u64,
    /// Its frames, innermost first.
    pub frames: Vec<String>,
    /// The number of outer frames that are not listed.
    pub frames_left_out: u64,
}

/// The origin of memory, as far as its stack shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "held_by", content = "place", rename_all = "snake_case")]
pub enum HolderKind {
    /// A line of the user's own code.
    Line(CodePlace),
    /// A library, without any code of the user's in the stack: its outermost Python frame.
    Library(CodePlace),
    /// A thread without Python code, as that of the backward pass.
    NoPython,
    /// It was allocated before the history, and no stack of it is known.
    Before,
}

impl HeldBy {
    /// Keeps the first lines and stacks, as the state of each of several errors has.
    pub(super) fn shortened(mut self) -> Self {
        let left_out = self
            .lines
            .split_off(self.lines.len().min(MOST_LINES_OF_ERRORS));
        self.lines_left_out += left_out.len() as u64;
        for line in left_out {
            self.lines_left_out_bytes = self.lines_left_out_bytes.saturating_add(line.bytes);
        }
        self.stacks.truncate(MOST_STACKS_OF_ERRORS);
        self
    }

    /// Sums up the allocations of a state.
    pub(super) fn at(
        lifetimes: &Lifetimes,
        state: u32,
        snapshot: &MemorySnapshot,
        places: &mut StackPlaces<'_>,
    ) -> Self {
        let mut sums: FxHashMap<(StackId, bool), (u64, u64)> = FxHashMap::default();
        for one in lifetimes.all.iter().filter(|one| one.is_in(state)) {
            let sum = sums.entry((one.stack, is_unknown(one))).or_default();
            *sum = (sum.0.saturating_add(one.bytes), sum.1 + 1);
        }
        let mut stacks: Vec<_> = sums.into_iter().collect();
        stacks.sort_by_key(|&((stack, is_before), (bytes, _))| {
            (std::cmp::Reverse(bytes), stack.to_raw(), is_before)
        });
        let mut lines: FxHashMap<HolderKind, (u64, u64)> = FxHashMap::default();
        for &((stack, is_before), (bytes, blocks)) in &stacks {
            let sum = lines.entry(places.kind(stack, is_before)).or_default();
            *sum = (sum.0.saturating_add(bytes), sum.1 + blocks);
        }
        let mut lines: Vec<LineHolder> = lines
            .into_iter()
            .map(|(kind, (bytes, blocks))| LineHolder {
                kind,
                bytes,
                blocks,
            })
            .collect();
        lines.sort_by(|a, b| {
            b.bytes
                .cmp(&a.bytes)
                .then_with(|| order(&a.kind).cmp(&order(&b.kind)))
        });
        let left_out = lines.split_off(lines.len().min(MOST_LINES));
        let left_out_bytes = left_out.iter().map(|line| line.bytes);
        let first = stacks.iter().take(MOST_STACKS);
        let first = first.map(|&((stack, is_before), (bytes, blocks))| {
            let (frames, frames_left_out) = frames(snapshot, stack);
            StackHolder {
                kind: places.kind(stack, is_before),
                bytes,
                blocks,
                frames,
                frames_left_out,
            }
        });
        Self {
            lines,
            lines_left_out: left_out.len() as u64,
            lines_left_out_bytes: left_out_bytes.fold(0, u64::saturating_add),
            stacks: first.collect(),
            stack_count: stacks.len() as u64,
        }
    }
}

const fn is_unknown(lifetime: &Lifetime) -> bool {
    lifetime.begin == 0 && lifetime.stack.to_raw() == StackId::NONE.to_raw()
}

/// Returns what equal sums are sorted by.
fn order(kind: &HolderKind) -> (u8, &str, u32) {
    match kind {
        HolderKind::Line(place) => (0, &place.file, place.line),
        HolderKind::Library(place) => (1, &place.file, place.line),
        HolderKind::NoPython => (2, "", 0),
        HolderKind::Before => (3, "", 0),
    }
}

/// Returns the innermost frames of a stack, and the number of those that are left out.
pub(super) fn frames(snapshot: &MemorySnapshot, stack: StackId) -> (Vec<String>, u64) {
    let mut frames = snapshot.stacks.frames(stack);
    let listed = frames.by_ref().take(MOST_FRAMES);
    let listed = listed.map(|frame| snapshot.strings.text(frame).into());
    (listed.collect(), frames.count() as u64)
}

/// The line that each stack belongs to, found once for each stack.
pub(super) struct StackPlaces<'a> {
    snapshot: &'a MemorySnapshot,
    own: &'a OwnCode,
    kinds: FxHashMap<StackId, HolderKind>,
    is_own: FxHashMap<StringId, bool>,
}

impl<'a> StackPlaces<'a> {
    pub(super) fn new(snapshot: &'a MemorySnapshot, own: &'a OwnCode) -> Self {
        Self {
            snapshot,
            own,
            kinds: FxHashMap::default(),
            is_own: FxHashMap::default(),
        }
    }

    /// Returns where a stack allocates. `is_before` tells that nothing recorded it.
    pub(super) fn kind(&mut self, stack: StackId, is_before: bool) -> HolderKind {
        if is_before {
            return HolderKind::Before;
        }
        if let Some(kind) = self.kinds.get(&stack) {
            return kind.clone();
        }
        let kind = self.find(stack);
        self.kinds.insert(stack, kind.clone());
        kind
    }

    fn find(&mut self, stack: StackId) -> HolderKind {
        let (snapshot, own) = (self.snapshot, self.own);
        let mut outermost = None;
        for frame in snapshot.stacks.frames(stack) {
            let text = snapshot.strings.text(frame);
            let is_own = self
                .is_own
                .entry(frame)
                .or_insert_with(|| own.place(text).is_some_and(|place| place.is_python()));
            let Some(place) = Place::parse(text).filter(Place::is_python) else {
                continue;
            };
            if *is_own {
                return HolderKind::Line(CodePlace::new(&place));
            }
            outermost = Some(place);
        }
        outermost.map_or(HolderKind::NoPython, |place| {
            HolderKind::Library(CodePlace::new(&place))
        })
    }
}
