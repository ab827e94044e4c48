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

use super::StepText;
use super::{Cursor, text_hash};

/// The number of a step that was seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step(u16);

impl Step {
    /// Stands before the first step.
    pub(crate) const BEGIN: Self = Self(0);
    /// Stands for the last step that was not remembered.
    const UNKNOWN: Self = Self(1);

    /// Returns it if it is remembered.
    pub(crate) fn known(self) -> Option<Self> {
        (self != Self::UNKNOWN).then_some(self)
    }

    /// Returns its place in tables of what is known of steps.
    pub(crate) const fn index(self) -> usize {
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

/// The steps of a file so far. `Meaning` is what a step says to the reader.
pub(crate) struct Steps<Meaning> {
    steps: Vec<Known<Meaning>>,
    numbers: HashTable<Step>,
}

struct Known<Meaning> {
    text: StepText,
    meaning: Meaning,
    next: [Step; WAYS],
    /// How often a step from here was known, and how often not.
    hits: u32,
    misses: u32,
    /// Whether values are passed that are mostly the same.
    passes: bool,
}

impl<Meaning: PartialEq + Default> Steps<Meaning> {
    /// Makes a table; what leads to a first step has the default meaning.
    pub(crate) fn new() -> Self {
        let root = || {
            let text = StepText::new(b"").expect("nothing is short enough");
            Known::new(text, Meaning::default())
        };
        Self {
            steps: vec![root(), root()],
            numbers: HashTable::new(),
        }
    }

    /// Returns how many steps there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Passes the step that comes next, if it came after `from` before.
    #[inline]
    pub(crate) fn take(&mut self, cursor: &mut Cursor<'_>, from: Step) -> Option<Step> {
        let likely = self.steps[from.index()].next[0];
        if cursor.pass_step(&self.steps[likely.index()].text) && likely != Step::UNKNOWN {
            self.steps[from.index()].hits += 1;
            return Some(likely);
        }
        self.take_other(cursor, from)
    }

    fn take_other(&mut self, cursor: &mut Cursor<'_>, from: Step) -> Option<Step> {
        let ways = self.steps[from.index()].next;
        for (way, step) in ways.into_iter().enumerate().skip(1) {
            if step == Step::UNKNOWN {
                break;
            }
            if cursor.pass_step(&self.steps[step.index()].text) {
                let known = &mut self.steps[from.index()];
                known.hits += 1;
                // What comes often moves to the front, slowly, so that two in turns do not swap.
                if known.hits.is_multiple_of(4) {
                    known.next.swap(way, way - 1);
                }
                return Some(step);
            }
        }
        None
    }

    /// Returns what a step says.
    #[inline]
    pub(crate) fn meaning(&self, step: Step) -> &Meaning {
        &self.steps[step.index()].meaning
    }

    /// Returns whether a step from here may pass values.
    pub(crate) fn may_pass(&self, from: Step) -> bool {
        self.steps[from.index()].passes && self.steps.len() < MOST_PASSING
    }

    /// Remembers a step that came after `from`.
    #[cold]
    pub(crate) fn learn(&mut self, from: Step, text: &[u8], meaning: Meaning) -> Step {
        let step = self.remember(text, meaning);
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

    /// Holds what a step says that is not to be remembered, until the next such step.
    pub(crate) fn hold(&mut self, meaning: Meaning) -> Step {
        self.steps[Step::UNKNOWN.index()].meaning = meaning;
        Step::UNKNOWN
    }

    fn remember(&mut self, text: &[u8], meaning: Meaning) -> Step {
        let hash = text_hash(text);
        let steps = &self.steps;
        let is_it = |step: &Step| {
            let known = &steps[step.index()];
            known.meaning == meaning && known.text.bytes() == text
        };
        if let Some(&step) = self.numbers.find(hash, is_it) {
            return step;
        }
        let text = StepText::new(text).filter(|_| self.steps.len() < MOST_STEPS);
        let Some(text) = text else {
            return self.hold(meaning);
        };
        let step = Step(self.steps.len() as u16);
        self.steps.push(Known::new(text, meaning));
        let steps = &self.steps;
        let hash_of = |step: &Step| text_hash(steps[step.index()].text.bytes());
        self.numbers.insert_unique(hash, step, hash_of);
        step
    }
}

impl<Meaning> Known<Meaning> {
    const fn new(text: StepText, meaning: Meaning) -> Self {
        Self {
            text,
            meaning,
            next: [Step::UNKNOWN; WAYS],
            hits: 0,
            misses: 0,
            passes: true,
        }
    }
}
