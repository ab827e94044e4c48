//! Losses by kind of record, so that each window counts only what it would have kept.
//!
//! Threads record the union of what the open windows want. When the budget is spent, a window
//! without stacks must not count the Python calls that only its neighbour lost.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use mindprof_model::{Loss, LossCause};

use crate::options::{Calls, Options};
use crate::raw::Record;

/// The kinds of records that can be lost, as far as windows differ in what they want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostKind {
    /// Scopes, which every window wants unless it is paused.
    Scope,
    /// Calls of the program's language, wanted also during pauses.
    Call,
    /// Allocations and frees, wanted also during pauses.
    Memory,
}

impl LostKind {
    const ALL: [Self; 3] = [Self::Scope, Self::Call, Self::Memory];

    /// Returns the kind of a record.
    pub(crate) const fn of(record: &Record) -> Self {
        if record.is_memory() {
            Self::Memory
        } else {
            Self::of_stack(record.stack)
        }
    }

    /// Returns the kind of a scope with this stack, which is flagged for a call.
    pub(crate) const fn of_stack(stack: u32) -> Self {
        if stack & Record::CALL == 0 {
            Self::Scope
        } else {
            Self::Call
        }
    }
}

/// The counters of one thread, which its owner increments and the recorder reads.
#[derive(Debug, Default)]
pub(crate) struct LossCounters([[AtomicU64; LossCause::ALL.len()]; LostKind::ALL.len()]);

impl LossCounters {
    /// Counts lost records.
    pub(crate) fn add(&self, kind: LostKind, cause: LossCause, records: u64) {
        // Relaxed: a plain count.
        self.0[kind as usize][cause as usize].fetch_add(records, Ordering::Relaxed);
    }

    /// Sets all counts to zero.
    pub(crate) fn clear(&self) {
        for count in self.0.iter().flatten() {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the current counts.
    pub(crate) fn load(&self) -> LossByKind {
        let mut losses = LossByKind::default();
        for (loss, counts) in losses.0.iter_mut().zip(&self.0) {
            for (cause, count) in LossCause::ALL.into_iter().zip(counts) {
                loss.add(cause, count.load(Ordering::Relaxed));
            }
        }
        losses
    }
}

/// Numbers of lost records by kind and cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossByKind([Loss; LostKind::ALL.len()]);

impl LossByKind {
    /// Returns the losses since a moment at which `before` was the total.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self(LostKind::ALL.map(|kind| self.0[kind as usize].since(&before.0[kind as usize])))
    }

    /// Adds other losses.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (loss, more) in self.0.iter_mut().zip(&other.0) {
            loss.merge(more);
        }
    }

    /// Returns the losses of scopes alone, which are all that a pause excuses.
    pub(crate) fn of_scopes(&self) -> Self {
        let mut scopes = Self::default();
        scopes.0[LostKind::Scope as usize] = self.0[LostKind::Scope as usize];
        scopes
    }

    fn of(&self, kind: LostKind) -> &Loss {
        &self.0[kind as usize]
    }
}

/// A record that was lost, and that began before the newest change of a window. Which windows
/// wanted it depends on its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyLoss {
    pub(crate) kind: LostKind,
    pub(crate) start: u64,
}

/// The part of the losses that a closed window has to report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossFilter<'a> {
    pub(crate) options: Options,
    pub(crate) start: u64,
    pub(crate) pauses: &'a [Range<u64>],
}

impl LossFilter<'_> {
    /// Sums up the losses that the window would have kept: those counted while it was open, and
    /// those of earlier scopes that began in it.
    pub(crate) fn sum(&self, counted: &LossByKind, early: &[EarlyLoss]) -> Loss {
        let mut sum = Loss::default();
        for kind in LostKind::ALL.into_iter().filter(|&kind| self.wants(kind)) {
            sum.merge(counted.of(kind));
        }
        let own = early.iter().filter(|loss| self.wants_early(loss));
        sum.add(LossCause::Budget, own.count() as u64);
        sum
    }

    /// Whether a lost call was one of a module is not known, so a window that wants only those
    /// counts all calls.
    fn wants(&self, kind: LostKind) -> bool {
        match kind {
            LostKind::Scope => true,
            LostKind::Call => self.options.calls != Calls::None,
            LostKind::Memory => self.options.memory,
        }
    }

    fn wants_early(&self, loss: &EarlyLoss) -> bool {
        let is_paused = || self.pauses.iter().any(|pause| pause.contains(&loss.start));
        self.wants(loss.kind)
            && loss.start >= self.start
            && !(loss.kind == LostKind::Scope && is_paused())
    }
}
