//! The steps from one value that varies to the next, with all that stands between them.
//!
//! ```text
//! {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": 5.125, "dur": ...
//! ^----------------------------------^            ^-------------------------^      ^-------^
//! ```
//!
//! Files are written by programs, so the same steps come in the same order. Each is remembered with
//! those that came after it, and is taken by one comparison when it comes again.

use hashbrown::HashTable;

use super::cursor::StepText;
use super::{Cursor, Fragment, text_hash};

/// The number of a step that was seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step(u16);

impl Step {
    /// Stands before the first step.
    pub(crate) const BEGIN: Self = Self(0);
    /// Stands for the last step that was not remembered.
    const UNKNOWN: Self = Self(1);

    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// No more steps than this are remembered; what comes beyond is read the slow way. Those that pass
/// values leave room for others.
const MOST_STEPS: usize = 4096;
const MOST_PASSING: usize = 3072;
/// How many steps are remembered to come after one.
const WAYS: usize = 8;
/// After so many steps that were not known it is asked whether it is worth to pass values.
const PATIENCE: u32 = 32;

/// The steps of a file so far. `Key` is what a key means to the reader.
pub(crate) struct Steps<Key> {
    steps: Vec<Known<Key>>,
    numbers: HashTable<Step>,
}

struct Known<Key> {
    text: StepText,
    passed: Box<[Passed<Key>]>,
    key: Key,
    entry: usize,
    next: [Step; WAYS],
    /// How often a step from here was known, and how often not.
    hits: u32,
    misses: u32,
    /// Whether values are passed that are mostly the same.
    passes: bool,
}

/// A value within a step, which is always the same there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed<Key> {
    pub(crate) key: Key,
    /// Where it lies in the text of the step.
    pub(crate) begin: u32,
    pub(crate) end: u32,
    /// Its number, if it is one of those texts that are numbered.
    pub(crate) fragment: Fragment,
}

/// A step that was walked for the first time, or for the first time in a while.
pub(crate) struct Walked<'a, Key> {
    pub(crate) text: &'a [u8],
    pub(crate) passed: &'a [Passed<Key>],
    /// What it leads to, and where in the text the entry of that begins.
    pub(crate) key: Key,
    pub(crate) entry: usize,
}

impl<Key: Copy + PartialEq> Steps<Key> {
    /// Makes a table; `end` is what leads to a first step.
    pub(crate) fn new(end: Key) -> Self {
        let root = || {
            let walked = Walked {
                text: b"",
                passed: &[],
                key: end,
                entry: 0,
            };
            let text = StepText::new(b"").expect("nothing is short enough");
            Known::new(text, &walked)
        };
        Self {
            steps: vec![root(), root()],
            numbers: HashTable::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Passes the step that comes next, if it came after `from` before.
    #[inline]
    pub(crate) fn take(&mut self, cursor: &mut Cursor<'_>, from: Step) -> Option<Step> {
        let ways = self.steps[from.index()].next;
        for (way, step) in ways.into_iter().enumerate() {
            if step == Step::UNKNOWN {
                break;
            }
            if cursor.pass_step(&self.steps[step.index()].text) {
                let known = &mut self.steps[from.index()];
                known.hits += 1;
                // What comes often moves to the front, slowly, so that two in turns do not swap.
                if way > 0 && known.hits.is_multiple_of(4) {
                    known.next.swap(way, way - 1);
                }
                return Some(step);
            }
        }
        None
    }

    /// Returns what a step leads to.
    #[inline]
    pub(crate) fn key(&self, step: Step) -> Key {
        self.steps[step.index()].key
    }

    /// Returns the values within a step.
    #[inline]
    pub(crate) fn passed(&self, step: Step) -> &[Passed<Key>] {
        &self.steps[step.index()].passed
    }

    /// Returns where in a step the entry begins that it leads to.
    #[inline]
    pub(crate) fn entry(&self, step: Step) -> usize {
        self.steps[step.index()].entry
    }

    /// Returns whether a step from here may pass values.
    pub(crate) fn may_pass(&self, from: Step) -> bool {
        self.steps[from.index()].passes && self.steps.len() < MOST_PASSING
    }

    /// Remembers a step that came after `from`.
    #[cold]
    pub(crate) fn learn(&mut self, from: Step, walked: &Walked<'_, Key>) -> Step {
        let step = self.remember(walked);
        let known = &mut self.steps[from.index()];
        known.misses += 1;
        if known.passes && known.misses > PATIENCE && known.misses > known.hits / 8 {
            known.passes = false;
            known.next = [Step::UNKNOWN; WAYS];
        } else if from != Step::UNKNOWN && step != Step::UNKNOWN {
            let free = known.next.iter().position(|&step| step == Step::UNKNOWN);
            known.next[free.unwrap_or(WAYS - 1)] = step;
        }
        step
    }

    fn remember(&mut self, walked: &Walked<'_, Key>) -> Step {
        let hash = text_hash(walked.text);
        let steps = &self.steps;
        let found = self
            .numbers
            .find(hash, |step| steps[step.index()].is(walked));
        if let Some(&step) = found {
            return step;
        }
        let text = StepText::new(walked.text).filter(|_| self.steps.len() < MOST_STEPS);
        let Some(text) = text else {
            let unknown = &mut self.steps[Step::UNKNOWN.index()];
            unknown.passed = walked.passed.into();
            (unknown.key, unknown.entry) = (walked.key, walked.entry);
            return Step::UNKNOWN;
        };
        let step = Step(self.steps.len() as u16);
        self.steps.push(Known::new(text, walked));
        let steps = &self.steps;
        let hash_of = |step: &Step| text_hash(steps[step.index()].text.bytes());
        self.numbers.insert_unique(hash, step, hash_of);
        step
    }
}

impl<Key: Copy + PartialEq> Known<Key> {
    fn new(text: StepText, walked: &Walked<'_, Key>) -> Self {
        Self {
            text,
            passed: walked.passed.into(),
            key: walked.key,
            entry: walked.entry,
            next: [Step::UNKNOWN; WAYS],
            hits: 0,
            misses: 0,
            passes: true,
        }
    }

    fn is(&self, walked: &Walked<'_, Key>) -> bool {
        self.key == walked.key && *self.passed == *walked.passed && self.text.bytes() == walked.text
    }
}
