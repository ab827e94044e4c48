//! Samples: what each thread was doing at some moments, as another thread saw it.
//!
//! A sampler, which runs on a thread of its own, adds the stacks of all threads at intervals. They
//! are kept in one list with one tree of stacks, both charged to the budget; a window takes what
//! falls into it when it closes.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::budget;
use crate::clock::ticks;
use crate::gate::{self, Gate};
use crate::name::Name;

/// The mean time between two samples of a thread.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);

static SAMPLES: Mutex<Samples> = Mutex::new(Samples {
    epoch: 0,
    list: Vec::new(),
    stacks: Vec::new(),
    known: None,
    dropped: Vec::new(),
});

/// The samples of the running recording.
#[derive(Debug)]
pub(crate) struct Samples {
    epoch: u32,
    list: Vec<Sample>,
    /// The distinct stacks, each as the number of its caller and the name of its innermost frame.
    /// Numbers count from one; zero is the empty stack.
    stacks: Vec<[u32; 2]>,
    known: Option<FxHashMap<[u32; 2], u32>>,
    /// The times of samples that were dropped.
    dropped: Vec<u64>,
}

/// The stack of a thread at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The moment, in ticks.
    pub(crate) time: u64,
    /// The operating system's number of the thread.
    pub(crate) thread: u64,
    /// The number of its stack.
    pub(crate) stack: u32,
}

/// The samples of one window.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleCapture {
    /// The samples in order of time.
    pub(crate) list: Vec<Sample>,
    /// The stacks, as in [`Samples`].
    pub(crate) stacks: Vec<[u32; 2]>,
    /// The number of samples that could not be taken or kept.
    pub(crate) dropped: u64,
    /// The names of threads by number, as far as somebody has named them.
    pub(crate) names: FxHashMap<u64, Box<str>>,
}

/// Adds a sample of the thread with this number, taken now. The frames come outermost first.
pub fn add_sample(thread: u64, frames: impl IntoIterator<Item = Name>) {
    let gate = Gate::load();
    if !gate.wants_stacks() {
        return;
    }
    let mut samples = samples();
    samples.follow(gate.epoch());
    let stack = frames
        .into_iter()
        .try_fold(0, |caller, frame| samples.push_frame(caller, frame));
    let time = ticks();
    match stack {
        Some(stack) if samples.charge(size_of::<Sample>()) => {
            samples.list.push(Sample {
                time,
                thread,
                stack,
            });
        }
        Some(_) | None => samples.drop_one(time),
    }
}

/// Counts a sample that could not be taken.
pub fn count_dropped_sample() {
    let gate = Gate::load();
    if gate.wants_stacks() {
        let mut samples = samples();
        samples.follow(gate.epoch());
        samples.drop_one(ticks());
    }
}

/// Locks the samples.
pub(crate) fn samples() -> MutexGuard<'static, Samples> {
    SAMPLES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Samples {
    /// Forgets the samples of earlier recordings.
    fn follow(&mut self, epoch: u32) {
        if self.epoch != epoch {
            self.clear();
            self.epoch = epoch;
        }
    }

    /// Forgets all samples.
    pub(crate) fn clear(&mut self) {
        self.epoch = 0;
        self.list = Vec::new();
        self.stacks = Vec::new();
        self.known = None;
        self.dropped = Vec::new();
    }

    /// Returns the samples of recording `epoch` within a window.
    pub(crate) fn within(&self, epoch: u32, window: &Range<u64>) -> SampleCapture {
        if self.epoch != epoch {
            return SampleCapture::default();
        }
        let first = self
            .list
            .partition_point(|sample| sample.time < window.start);
        let end = self.list.partition_point(|sample| sample.time < window.end);
        let dropped = self.dropped.iter().filter(|time| window.contains(time));
        SampleCapture {
            list: self.list[first..end].to_vec(),
            stacks: self.stacks.clone(),
            dropped: dropped.count() as u64,
            names: FxHashMap::default(),
        }
    }

    /// Charges the budget. If it is spent, the older half of the samples makes room, provided that
    /// the windows keep their last events.
    fn charge(&mut self, bytes: usize) -> bool {
        budget::charge(bytes, bytes) > 0 || (self.forget_half() && budget::charge(bytes, bytes) > 0)
    }

    /// Drops the older half of the samples, as far as no window needs them. Returns false if there
    /// are none.
    fn forget_half(&mut self) -> bool {
        let before = gate::recycle_before();
        let old = self.list.partition_point(|sample| sample.time < before);
        let forgotten: Vec<Sample> = self.list.drain(..old.min(self.list.len() / 2)).collect();
        for sample in &forgotten {
            self.drop_one(sample.time);
        }
        budget::release(size_of_val(&*forgotten));
        !forgotten.is_empty()
    }

    /// Returns the number of a stack, adding it if it is new and the budget has room.
    fn push_frame(&mut self, caller: u32, frame: Name) -> Option<u32> {
        // A node, and its entry in the index, which is three quarters full on average.
        const BYTES: usize = size_of::<[u32; 2]>() + 4 * size_of::<[u32; 3]>() / 3 + 1;
        if frame.is_refused() {
            return None;
        }
        let node = [caller, frame.raw()];
        let known = self.known.get_or_insert_default().get(&node);
        if let Some(&stack) = known {
            return Some(stack);
        }
        if !self.charge(BYTES) {
            return None;
        }
        self.stacks.push(node);
        let stack = self.stacks.len() as u32;
        self.known.get_or_insert_default().insert(node, stack);
        Some(stack)
    }

    fn drop_one(&mut self, time: u64) {
        // Beyond this number, a more exact count would help nobody.
        const MOST: usize = 1 << 20;
        if self.dropped.len() < MOST {
            self.dropped.push(time);
        }
    }
}
