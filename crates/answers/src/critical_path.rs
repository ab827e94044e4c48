//! The critical path: the chain of work and waiting that determines how long the steps take.
//!
//! It leads over threads, launches, streams and synchronization. Time off the path overlaps with
//! time on it, so that only what is on the path can save anything. How much something saves is found
//! by a replay without it.

mod owners;

use mindprof_analyze::Analysis;
use mindprof_model::{Category, EventId, Nanos, Profile, ThreadId};
use serde::{Serialize, Serializer, ser::SerializeMap};

use self::owners::{NONE, OwnerKind, Owners};
use crate::beside::beside;
use crate::own_code::OwnCode;
use crate::questions::{json, micros, some_micros};
use crate::replay::{
    Lag, Piece, PieceWork, Removals, Replay, Timing, is_allocation_call, is_blocking_call,
};
use crate::step_split::NameKind;
use crate::top_operators::CodePlace;
use crate::verdict::{Refusal, gaps, refusal_ids};

/// A kind of time on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    /// The CPU runs Python code, or nothing that was recorded.
    Python,
    /// The CPU gets the next batch from a data loader.
    DataLoading,
    /// The CPU runs operators.
    Operators,
    /// The CPU is in a call of the device's runtime that does not wait.
    Runtime,
    /// A launched kernel has not begun, although its device is free.
    Launch,
    /// A device computes.
    Kernel,
    /// A device copies or fills memory.
    Copy,
    /// A device has ended one kernel and not yet begun the next.
    Gap,
    /// A device or the CPU exchanges data with other ranks.
    Communication,
    /// A thread sleeps, or has not yet noticed that what it waits for has ended.
    Wait,
    /// The profiler records. Only a path of recorded times contains it.
    Profiler,
}

impl PathKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Python,
        Self::DataLoading,
        Self::Operators,
        Self::Runtime,
        Self::Launch,
        Self::Kernel,
        Self::Copy,
        Self::Gap,
        Self::Communication,
        Self::Wait,
        Self::Profiler,
    ];

    /// Returns the name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::DataLoading => "data loading",
            Self::Operators => "operators",
            Self::Runtime => "runtime calls",
            Self::Launch => "launch latency",
            Self::Kernel => "kernels",
            Self::Copy => "copies",
            Self::Gap => "gaps between kernels",
            Self::Communication => "communication",
            Self::Wait => "waiting",
            Self::Profiler => "profiler",
        }
    }

    /// Returns the key of the kind in JSON.
    const fn key(self) -> &'static str {
        match self {
            Self::Python => "python_us",
            Self::DataLoading => "data_loading_us",
            Self::Operators => "operators_us",
            Self::Runtime => "runtime_us",
            Self::Launch => "launch_us",
            Self::Kernel => "kernel_us",
            Self::Copy => "copy_us",
            Self::Gap => "gap_us",
            Self::Communication => "communication_us",
            Self::Wait => "wait_us",
            Self::Profiler => "profiler_us",
        }
    }

    /// Returns what this kind of time is bound by.
    pub const fn bound(self) -> Bound {
        match self {
            Self::Python
            | Self::DataLoading
            | Self::Operators
            | Self::Runtime
            | Self::Launch
            | Self::Wait
            | Self::Profiler => Bound::Cpu,
            Self::Kernel | Self::Copy | Self::Gap => Bound::Gpu,
            Self::Communication => Bound::Communication,
        }
    }
}

/// The part of the machine that most of the path runs on, and that bounds the steps therefore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The CPU, with launches and synchronization.
    #[default]
    Cpu,
    /// A device that computes or copies.
    Gpu,
    /// The exchange of data with other ranks.
    Communication,
}

/// The time of each kind on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSplit {
    times: [Nanos; PathKind::ALL.len()],
}

impl PathSplit {
    /// Returns the time of a kind.
    pub const fn time(&self, kind: PathKind) -> Nanos {
        self.times[kind as usize]
    }

    /// Iterates over the kinds and their times.
    pub fn iter(&self) -> impl Iterator<Item = (PathKind, Nanos)> {
        PathKind::ALL.into_iter().zip(self.times)
    }

    /// Returns the sum of all kinds, which is the length of the path.
    pub fn total(&self) -> Nanos {
        Nanos(self.times.iter().map(|time| time.0).sum())
    }

    /// Returns what most of the time is bound by.
    pub fn bound(&self) -> Bound {
        let time = |bound: Bound| {
            let kinds = self.iter().filter(|(kind, _)| kind.bound() == bound);
            kinds.map(|(_, time)| time.0).sum::<u64>()
        };
        let (cpu, gpu) = (time(Bound::Cpu), time(Bound::Gpu));
        let communication = time(Bound::Communication);
        if communication > cpu.max(gpu) {
            Bound::Communication
        } else if gpu > cpu {
            Bound::Gpu
        } else {
            Bound::Cpu
        }
    }

    fn add(&mut self, kind: PathKind, time: Nanos) {
        let sum = &mut self.times[kind as usize];
        *sum = *sum + time;
    }

    fn divided(mut self, by: u64) -> Self {
        for time in &mut self.times {
            *time = Nanos(time.0 / by.max(1));
        }
        self
    }
}

impl Serialize for PathSplit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(PathKind::ALL.len()))?;
        for (kind, time) in self.iter() {
            map.serialize_entry(kind.key(), &mindprof_analyze::microseconds(time))?;
        }
        map.end()
    }
}

/// An operator, function, module or kernel on the path. Times are those of an average step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathRow {
    /// The name.
    pub name: String,
    /// The place of a function's definition.
    #[serde(flatten)]
    pub place: Option<CodePlace>,
    /// Its time on the path.
    #[serde(rename = "per_step_us", serialize_with = "micros")]
    pub time: Nanos,
    /// Its part of the path, as a fraction.
    pub share: f64,
    /// The time by which steps would be shorter without it, at most. `None` if a replay of the
    /// recording takes another time than the recording.
    #[serde(rename = "saves_us", serialize_with = "some_micros")]
    pub saves: Option<Nanos>,
    /// Whether a replay found what it saves. Otherwise that is its time on the path.
    pub is_replayed: bool,
}

/// The path of one step: from the completion of the step before to its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepPath {
    /// The number of the step.
    pub number: u64,
    /// The length of the path.
    #[serde(rename = "duration_us", serialize_with = "micros")]
    pub duration: Nanos,
    /// The part of the machine that bounds it.
    pub bound_by: Bound,
    /// The time of each kind.
    pub split: PathSplit,
}

/// A piece of the path at its recorded time, for pictures. Pieces do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathPiece {
    /// The event that it is in; `None` between events.
    pub event: Option<EventId>,
    /// The thread or stream.
    pub thread: ThreadId,
    /// The kind of time.
    pub kind: PathKind,
    /// When it begins.
    pub start: Nanos,
    /// How long it takes.
    pub duration: Nanos,
}

/// The critical path of the steps of a profile.
///
/// Times are those of an average step, unless said otherwise.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CriticalPath {
    /// The number of steps.
    pub steps: usize,
    /// Whether the profile has steps. Otherwise all of it counts as one.
    pub has_steps: bool,
    /// The time of a step as it was recorded.
    #[serde(rename = "recorded_us", serialize_with = "micros")]
    pub recorded: Nanos,
    /// The time of a step in a replay of the recording, whose path this is.
    #[serde(rename = "replayed_us", serialize_with = "micros")]
    pub replayed: Nanos,
    /// Whether that takes another time than the recording, so that nothing is said to save time.
    pub is_doubtful: bool,
    /// The time that a step is estimated to take without a profiler.
    #[serde(rename = "unrecorded_us", serialize_with = "micros")]
    pub unrecorded: Nanos,
    /// The reasons for which the profile is incomplete.
    #[serde(serialize_with = "refusal_ids")]
    pub incomplete: Vec<Refusal>,
    /// Whether the path is one of recorded times, with the profiler's own cost.
    pub is_recorded: bool,
    /// The part of the machine that bounds the steps.
    pub bound_by: Bound,
    /// The time of each kind.
    pub split: PathSplit,
    /// The operators on the path, by decreasing time. Their time includes that of the kernels that
    /// they launched.
    pub operators: Vec<PathRow>,
    /// The user's own functions on the path.
    pub functions: Vec<PathRow>,
    /// The modules on the path, forward and backward together.
    pub modules: Vec<PathRow>,
    /// The kernels on the path.
    pub kernels: Vec<PathRow>,
    /// The path of each step.
    pub per_step: Vec<StepPath>,
    /// The pieces of the path, in order of time.
    #[serde(skip)]
    pub pieces: Vec<PathPiece>,
}

/// Options of [`CriticalPath::build`].
#[derive(Clone, Copy, Debug)]
pub struct PathOptions {
    /// The largest number of rows in each list.
    pub rows: usize,
    /// Whether the profiler's own cost is part of the path.
    pub timing: Timing,
}

impl Default for PathOptions {
    fn default() -> Self {
        Self {
            rows: 10,
            timing: Timing::Unrecorded,
        }
    }
}

/// The number of rows of each list for which a replay finds what they save.
const REPLAYED: usize = Removals::MOST / OwnerKind::ALL.len();

impl CriticalPath {
    /// Finds the path in time linear in the number of events. Returns a path without steps if
    /// nothing ran on the CPU.
    pub fn build(analysis: &Analysis, own: &OwnCode, options: PathOptions) -> Self {
        let (replay, owners) = beside(|| Replay::build(analysis), || Owners::build(analysis, own));
        let Some(replay) = replay else {
            return Self::default();
        };
        let walked = replay.path(options.timing);
        let kinds = Kinds::build(analysis.profile(), &owners);
        let steps = replay.steps().len() as u64;
        let average = |time: Nanos| Nanos(time.0 / steps.max(1));
        let base = walked.replayed.total();
        let (replayed, unrecorded) = match options.timing {
            Timing::Recorded => (base, replay.unrecorded().total()),
            Timing::Unrecorded => (replay.recorded().total(), base),
        };
        let mut path = Self {
            steps: replay.steps().len(),
            has_steps: replay.has_steps(),
            recorded: average(replay.measured().total()),
            replayed: average(replayed),
            is_doubtful: !replay.is_faithful(),
            unrecorded: average(unrecorded),
            is_recorded: options.timing == Timing::Recorded,
            incomplete: gaps(analysis.profile()),
            ..Self::default()
        };
        path.per_step = (replay.steps().iter())
            .map(|step| StepPath {
                number: step.number,
                duration: Nanos::ZERO,
                bound_by: Bound::Cpu,
                split: PathSplit::default(),
            })
            .collect();
        let mut sums = Sums::new(&owners);
        let mut whole = PathSplit::default();
        let mut drawn = Drawn::default();
        let mut step = path.per_step.len();
        walked.visit_back(|piece| {
            sums.add(&owners, &piece);
            kinds.split(&piece, piece.end - piece.begin, &mut whole);
            drawn.add(&piece, &kinds);
            // A piece may be part of several steps.
            let mut to = piece.end;
            while step > 0 {
                let since = (step.checked_sub(2)).map_or(Nanos::ZERO, |at| walked.completions[at]);
                let from = since.max(piece.begin).min(to);
                kinds.split(&piece, to - from, &mut path.per_step[step - 1].split);
                to = from;
                if since <= piece.begin {
                    break;
                }
                step -= 1;
            }
        });
        path.pieces = drawn.finish();
        for step in &mut path.per_step {
            step.duration = step.split.total();
            step.bound_by = step.split.bound();
        }
        path.split = whole.divided(steps);
        path.bound_by = whole.bound();
        path.list_rows(&replay, base, &owners, &sums, options);
        path
    }

    /// Returns the path as JSON. Times are microseconds.
    pub fn json(&self) -> String {
        json(self)
    }

    /// Returns the recorded time of a step that is the profiler's own cost.
    pub fn profiler(&self) -> Nanos {
        self.replayed.saturating_sub(self.unrecorded)
    }

    /// Lists the owners with most time on the path, and finds what each of them saves. `base` is the
    /// time of all steps.
    fn list_rows(
        &mut self,
        replay: &Replay,
        base: Nanos,
        owners: &Owners,
        sums: &Sums,
        options: PathOptions,
    ) {
        let events = owners.events();
        let lists = OwnerKind::ALL.map(|kind| sums.largest(kind, options.rows));
        let mut removals = Removals::new(events);
        let mut count = 0;
        let mut sets = OwnerKind::ALL.map(|kind| vec![NONE; owners.count(kind)]);
        for (list, sets) in lists.iter().zip(&mut sets) {
            for &(owner, _) in list.iter().take(REPLAYED) {
                sets[owner as usize] = count;
                count += 1;
            }
        }
        for index in 0..events {
            let event = EventId::from_index(index);
            for kind in OwnerKind::ALL {
                let owner = owners.of(kind, event);
                let set = sets[kind as usize].get(owner as usize);
                if let Some(&set) = set.filter(|&&set| set != NONE) {
                    removals.remove(set as usize, event);
                }
            }
        }
        let replayed = replay.without(&removals, count as usize, options.timing);
        let steps = (self.steps as u64).max(1);
        let whole = self.split.total().0.max(1) as f64;
        let rows = OwnerKind::ALL.map(|kind| {
            let rows = lists[kind as usize].iter().map(|&(owner, time)| {
                let set = sets[kind as usize][owner as usize];
                let replayed = replayed.get(set as usize);
                let time = Nanos(time.0 / steps);
                let saves = replayed.map(|without| base.saturating_sub(without.total()));
                let name = owners.name(kind, owner);
                PathRow {
                    name: name.name.clone(),
                    place: name.place.clone(),
                    time,
                    share: time.0 as f64 / whole,
                    saves: (!self.is_doubtful)
                        .then(|| saves.map_or(time, |saves| Nanos(saves.0 / steps))),
                    is_replayed: saves.is_some(),
                }
            });
            rows.collect()
        });
        [self.operators, self.functions, self.modules, self.kernels] = rows;
    }
}

/// The time of each owner on the path.
struct Sums {
    times: [Vec<Nanos>; OwnerKind::ALL.len()],
}

impl Sums {
    fn new(owners: &Owners) -> Self {
        Self {
            times: OwnerKind::ALL.map(|kind| vec![Nanos::ZERO; owners.count(kind)]),
        }
    }

    /// Adds the time of a piece to its owners. A lag before a kernel belongs to nobody, because it
    /// would not vanish with the kernel.
    fn add(&mut self, owners: &Owners, piece: &Piece) {
        let Some(event) = piece.event.filter(|_| piece.is_in_event()) else {
            return;
        };
        let recording = match piece.work {
            PieceWork::Host { recording } => recording,
            PieceWork::Device | PieceWork::Lag(_) => Nanos::ZERO,
        };
        let time = (piece.end - piece.begin).saturating_sub(recording);
        for kind in OwnerKind::ALL {
            if let Some(sum) = self.times[kind as usize].get_mut(owners.of(kind, event) as usize) {
                *sum = *sum + time;
            }
        }
    }

    /// Returns the owners of a kind with most time.
    fn largest(&self, kind: OwnerKind, rows: usize) -> Vec<(u32, Nanos)> {
        let times = self.times[kind as usize].iter().enumerate();
        let mut found: Vec<(u32, Nanos)> = times
            .filter(|(_, time)| **time > Nanos::ZERO)
            .map(|(owner, &time)| (owner as u32, time))
            .collect();
        found.sort_by_key(|&(owner, time)| (std::cmp::Reverse(time), owner));
        found.truncate(rows);
        found
    }
}

/// Decides on the kind of each piece.
struct Kinds<'a> {
    profile: &'a Profile,
    owners: &'a Owners,
    names: Vec<NameKind>,
    waits: Vec<bool>,
}

impl<'a> Kinds<'a> {
    fn build(profile: &'a Profile, owners: &'a Owners) -> Self {
        let waits = |name: &str| is_blocking_call(name) && !is_allocation_call(name);
        Self {
            profile,
            owners,
            names: profile.strings().iter().map(NameKind::of).collect(),
            waits: profile.strings().iter().map(waits).collect(),
        }
    }

    /// Adds some time of a piece to the kinds that it consists of.
    fn split(&self, piece: &Piece, time: Nanos, split: &mut PathSplit) {
        let mut own = time;
        if let PieceWork::Host { recording } = piece.work {
            let whole = (piece.end - piece.begin).0.max(1);
            let part = recording.0.min(whole) as f64 / whole as f64;
            let recording = Nanos((time.0 as f64 * part) as u64);
            split.add(PathKind::Profiler, recording);
            own = time.saturating_sub(recording);
        }
        split.add(self.of(piece), own);
    }

    fn of(&self, piece: &Piece) -> PathKind {
        match piece.work {
            PieceWork::Lag(Lag::Launch) => PathKind::Launch,
            PieceWork::Lag(Lag::BetweenKernels) => PathKind::Gap,
            PieceWork::Lag(Lag::Thread) => PathKind::Python,
            PieceWork::Lag(Lag::ThreadStart | Lag::Return) => PathKind::Wait,
            PieceWork::Device => self.of_device(piece.event),
            PieceWork::Host { .. } => self.of_host(piece.event),
        }
    }

    fn of_device(&self, event: Option<EventId>) -> PathKind {
        let name = event.map(|event| self.names[self.profile.event(event).name.index()]);
        match name {
            Some(NameKind::Communication) => PathKind::Communication,
            Some(NameKind::Copy | NameKind::Memset) => PathKind::Copy,
            Some(NameKind::Batch | NameKind::Wait | NameKind::Other) | None => PathKind::Kernel,
        }
    }

    fn of_host(&self, id: Option<EventId>) -> PathKind {
        let Some(id) = id else {
            return PathKind::Python;
        };
        let event = self.profile.event(id);
        let name = event.name.index();
        if event.category == Category::Runtime {
            return if self.waits[name] {
                PathKind::Wait
            } else {
                PathKind::Runtime
            };
        }
        match self.names[name] {
            NameKind::Communication => PathKind::Communication,
            NameKind::Wait => PathKind::Wait,
            _ if self.owners.is_loading(id) => PathKind::DataLoading,
            _ if event.category == Category::Operator => PathKind::Operators,
            NameKind::Batch | NameKind::Copy | NameKind::Memset | NameKind::Other => {
                PathKind::Python
            }
        }
    }
}

/// The pieces at their recorded times, each cut at the beginning of the next one. Pieces of one event
/// that follow each other are joined.
struct Drawn {
    /// The pieces, the last one first.
    pieces: Vec<PathPiece>,
    limit: Nanos,
}

impl Default for Drawn {
    fn default() -> Self {
        Self {
            pieces: Vec::new(),
            limit: Nanos(u64::MAX),
        }
    }
}

impl Drawn {
    /// Adds the piece before those that were added.
    fn add(&mut self, piece: &Piece, kinds: &Kinds<'_>) {
        let (start, end) = piece.recorded;
        let end = end.min(self.limit);
        if start >= end {
            return;
        }
        self.limit = start;
        let added = PathPiece {
            event: piece.event.filter(|_| piece.is_in_event()),
            thread: ThreadId::from_index(piece.thread),
            kind: kinds.of(piece),
            start,
            duration: end - start,
        };
        match self.pieces.last_mut() {
            Some(last)
                if (last.event, last.thread, last.kind, last.start)
                    == (added.event, added.thread, added.kind, end) =>
            {
                last.start = added.start;
                last.duration = last.duration + added.duration;
            }
            Some(_) | None => self.pieces.push(added),
        }
    }

    fn finish(mut self) -> Vec<PathPiece> {
        self.pieces.reverse();
        self.pieces
    }
}

#[cfg(test)]
mod tests;
