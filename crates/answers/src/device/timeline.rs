//! The time of one device, cut wherever the set of running work changes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mindprof_model::Nanos;

use super::work::WorkItem;
use crate::step_split::StepClass;

/// A stretch of time in which a device runs the same work, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch<'a> {
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    pub(crate) state: State<'a>,
}

/// The activity of a device in a stretch of time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State<'a> {
    /// It runs work.
    Busy {
        classes: ClassSet,
        /// The blocks per multiprocessor of all that runs, if any of it tells.
        blocks_per_sm: Option<f64>,
    },
    /// It runs nothing, until this work, if any is left.
    Idle { next: Option<&'a WorkItem> },
}

/// A set of the classes of device work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassSet(u8);

impl ClassSet {
    /// The classes of device work.
    pub(crate) const CLASSES: [StepClass; 4] = [
        StepClass::Kernel,
        StepClass::Communication,
        StepClass::Copy,
        StepClass::Memset,
    ];

    /// The number of distinct sets.
    pub(crate) const COUNT: usize = 1 << Self::CLASSES.len();

    pub(crate) const fn from_index(index: usize) -> Self {
        Self(index as u8)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn has(self, class: StepClass) -> bool {
        self.0 & Self::bit(class) != 0
    }

    fn bit(class: StepClass) -> u8 {
        let position = Self::CLASSES.iter().position(|of| *of == class);
        position.map_or(0, |position| 1 << position)
    }
}

/// Visits the stretches of a device's work from zero to `span`, in time order, without gaps. Costs
/// the number of items times the logarithm of how many run at once.
///
/// ```text
/// stream 7        |----|  |------|
/// stream 20          |------|           |--|
/// stretches    |--|--|-|--|-|----|------|--|----|
///              idle               idle      idle: nothing is left
/// ```
pub(crate) fn visit_stretches<'a>(
    items: &'a [WorkItem],
    span: Nanos,
    mut visit: impl FnMut(Stretch<'a>),
) {
    let mut running = Running::default();
    let mut now = Nanos::ZERO;
    for item in items {
        while let Some(end) = running.first_end()
            && end <= item.start
        {
            running.emit(&mut now, end, &mut visit);
            running.remove_first();
        }
        if running.is_empty() {
            let state = State::Idle { next: Some(item) };
            emit(&mut now, item.start, state, &mut visit);
        } else {
            running.emit(&mut now, item.start, &mut visit);
        }
        running.add(item);
    }
    while let Some(end) = running.first_end() {
        running.emit(&mut now, end, &mut visit);
        running.remove_first();
    }
    emit(&mut now, span, State::Idle { next: None }, &mut visit);
}

fn emit<'a>(now: &mut Nanos, end: Nanos, state: State<'a>, visit: &mut impl FnMut(Stretch<'a>)) {
    if end > *now {
        let begin = std::mem::replace(now, end);
        visit(Stretch { begin, end, state });
    }
}

/// The work that runs at a moment.
#[derive(Debug, Default)]
struct Running {
    /// The end, the class and the bits of the blocks per multiprocessor of each.
    ends: BinaryHeap<Reverse<(Nanos, usize, u64)>>,
    counts: [u32; ClassSet::CLASSES.len()],
    blocks: f64,
    /// How many of them tell their blocks.
    telling: u32,
}

impl Running {
    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn first_end(&self) -> Option<Nanos> {
        self.ends.peek().map(|Reverse((end, ..))| *end)
    }

    fn add(&mut self, item: &WorkItem) {
        let class = ClassSet::CLASSES.iter().position(|of| *of == item.class);
        let class = class.unwrap_or(0);
        let blocks = item.arguments.blocks_per_sm.unwrap_or(f64::NAN);
        self.counts[class] += 1;
        if !blocks.is_nan() {
            self.blocks += blocks;
            self.telling += 1;
        }
        self.ends.push(Reverse((item.end, class, blocks.to_bits())));
    }

    fn remove_first(&mut self) {
        let Some(Reverse((_, class, blocks))) = self.ends.pop() else {
            return;
        };
        let blocks = f64::from_bits(blocks);
        self.counts[class] -= 1;
        if !blocks.is_nan() {
            self.blocks -= blocks;
            self.telling -= 1;
        }
        if self.telling == 0 {
            // No rounding errors are carried on.
            self.blocks = 0.0;
        }
    }

    fn emit<'a>(&self, now: &mut Nanos, end: Nanos, visit: &mut impl FnMut(Stretch<'a>)) {
        let bits = self.counts.iter().enumerate();
        let set = bits.fold(0, |set, (class, &count)| {
            set | usize::from(count > 0) << class
        });
        let state = State::Busy {
            classes: ClassSet::from_index(set),
            blocks_per_sm: (self.telling > 0).then_some(self.blocks),
        };
        emit(now, end, state, visit);
    }
}
