//! Limits on the operators that are recorded, and how each thread follows the one that is in force.
//!
//! The gate tells whether there is a limit, so that a scope costs nothing more without one. With one,
//! each thread counts the operators that are open on it, whether they are recorded or not, and draws
//! outermost ones at random if a share is wanted.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use mindprof_model::OperatorLimit;

use crate::capture::{Capture, ThreadCapture};
use crate::clock::ticks;
use crate::name::{self, Name, NameKind, split_overload};
use crate::raw::Record;

/// The number of the limit in force; zero if there is none. Relaxed: a thread that reads an old
/// number records more or less for the operator that it just begins.
static IN_FORCE: AtomicU32 = AtomicU32::new(0);

static LIMITS: Mutex<Vec<&'static OperatorLimit>> = Mutex::new(Vec::new());

/// The operators that a window records: all of them, or those that a limit admits. It is a number,
/// so that options can be copied; the limit itself lives as long as the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Only(u32);

impl Only {
    /// Stands for all operators.
    pub const ALL: Self = Self(0);

    /// Returns the operators that a limit admits. Equal limits are stored once.
    pub fn admitted_by(limit: OperatorLimit) -> Self {
        let mut limits = LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
        let position = limits.iter().position(|known| **known == limit);
        let position = position.unwrap_or_else(|| {
            limits.push(Box::leak(Box::new(limit)));
            limits.len() - 1
        });
        Self(position as u32 + 1)
    }

    /// Returns the limit, or `None` if all operators are recorded.
    pub fn limit(self) -> Option<&'static OperatorLimit> {
        let limits = LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
        limits.get((self.0 as usize).checked_sub(1)?).copied()
    }

    /// Puts the limit in force for scopes that begin from now on.
    pub(crate) fn put_in_force(self) {
        IN_FORCE.store(self.0, Ordering::Relaxed);
    }
}

/// The fate of a scope under a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is recorded, and is no operator.
    Uncounted,
    /// It is recorded.
    Recorded,
    /// It is left out.
    LeftOut,
}

/// The operators that are open on one thread, and what the thread knows about the limit.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    /// The limit and the recording that the rest belongs to.
    known: Cell<(u32, u32)>,
    limit: Cell<Option<&'static OperatorLimit>>,
    /// How many operators are open on the thread.
    open: Cell<u32>,
    /// Whether the outermost open operator was drawn.
    is_drawn: Cell<bool>,
    random: Cell<u64>,
    /// The verdicts on names, by their numbers.
    verdicts: RefCell<Vec<Verdict>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    #[default]
    Unknown,
    Range,
    Admitted,
    Refused,
}

impl Limiter {
    /// Decides about a scope that begins on this thread in recording `epoch`. Operators are counted
    /// as open until [`Self::leave`].
    pub(crate) fn enter(&self, name: Name, epoch: u32) -> Admission {
        let in_force = IN_FORCE.load(Ordering::Relaxed);
        if self.known.get() != (in_force, epoch) {
            self.follow(in_force, epoch);
        }
        let Some(limit) = self.limit.get() else {
            return Admission::Uncounted;
        };
        let verdict = self.verdict(name, limit);
        if verdict == Verdict::Range {
            return Admission::Uncounted;
        }
        let outside = self.open.get();
        if let Some(share) = limit.share
            && outside == 0
        {
            self.is_drawn.set(self.next_random() < share);
        }
        self.open.set(outside + 1);
        let is_admitted = verdict == Verdict::Admitted
            && limit.depth.is_none_or(|depth| outside < depth)
            && (limit.share.is_none() || self.is_drawn.get());
        if is_admitted {
            Admission::Recorded
        } else {
            Admission::LeftOut
        }
    }

    /// Notes that `count` operators of this thread have ended.
    pub(crate) fn leave(&self, count: u32) {
        self.open.set(self.open.get().saturating_sub(count));
    }

    #[cold]
    fn follow(&self, in_force: u32, epoch: u32) {
        self.known.set((in_force, epoch));
        self.limit.set(Only(in_force).limit());
        // An operator that is open now began under other rules, so nothing inside it is drawn.
        self.is_drawn.set(false);
        self.verdicts.borrow_mut().clear();
        if self.random.get() == 0 {
            self.random.set(ticks() | 1);
        }
    }

    #[inline]
    fn verdict(&self, name: Name, limit: &OperatorLimit) -> Verdict {
        let known = self.verdicts.borrow().get(name.raw() as usize).copied();
        match known {
            None | Some(Verdict::Unknown) => self.judge(name, limit),
            Some(verdict) => verdict,
        }
    }

    #[cold]
    fn judge(&self, name: Name, limit: &OperatorLimit) -> Verdict {
        // The table is full, so the scope is counted as lost.
        if name.is_refused() {
            return Verdict::Range;
        }
        let verdict = judged(name.raw(), limit);
        let mut verdicts = self.verdicts.borrow_mut();
        let index = name.raw() as usize;
        if verdicts.len() <= index {
            verdicts.resize(index + 1, Verdict::Unknown);
        }
        verdicts[index] = verdict;
        verdict
    }

    /// Returns a random number from 0 to 1, by Marsaglia's xorshift.
    fn next_random(&self) -> f64 {
        let mut bits = self.random.get();
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        self.random.set(bits);
        unit(bits)
    }
}

/// Returns the upper bits of a number as a number from 0 to 1.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

fn judged(name: u32, limit: &OperatorLimit) -> Verdict {
    let table = name::table();
    match table.get(name) {
        Some((text, kind @ (NameKind::Operator | NameKind::Backward))) => {
            if limit.admits_name(split_overload(text, kind).0) {
                Verdict::Admitted
            } else {
                Verdict::Refused
            }
        }
        Some((_, NameKind::Annotation | NameKind::Function | NameKind::Module)) | None => {
            Verdict::Range
        }
    }
}

/// Decides once more about scopes that were recorded for another window, which wanted more of them.
///
/// Operators are passed in start order. Outermost ones that began while the recorder drew them are
/// not drawn again.
struct Sieve {
    limit: &'static OperatorLimit,
    verdicts: Vec<Verdict>,
    /// The ends of the operators that enclose the next one.
    enclosing: Vec<u64>,
    is_drawn: bool,
}

impl Sieve {
    const fn new(limit: &'static OperatorLimit) -> Self {
        Self {
            limit,
            verdicts: Vec::new(),
            enclosing: Vec::new(),
            is_drawn: false,
        }
    }

    /// Returns whether a scope is kept. `is_undrawn` tells whether it began while the recorder drew
    /// no operators.
    fn keeps(&mut self, record: &Record, is_undrawn: bool) -> bool {
        let verdict = self.verdict(record.name & !Record::ASYNC);
        if verdict == Verdict::Range {
            return true;
        }
        while (self.enclosing.pop_if(|end| *end <= record.start)).is_some() {}
        let outside = self.enclosing.len() as u32;
        if let Some(share) = self.limit.share
            && outside == 0
        {
            self.is_drawn = !is_undrawn || unit(scrambled(record.start)) < share;
        }
        if record.name & Record::ASYNC == 0 {
            self.enclosing.push(record.end);
        }
        verdict == Verdict::Admitted
            && self.limit.depth.is_none_or(|depth| outside < depth)
            && (self.limit.share.is_none() || self.is_drawn)
    }

    fn verdict(&mut self, name: u32) -> Verdict {
        let index = name as usize;
        if self.verdicts.len() <= index {
            self.verdicts.resize(index + 1, Verdict::Unknown);
        }
        if self.verdicts[index] == Verdict::Unknown {
            self.verdicts[index] = judged(name, self.limit);
        }
        self.verdicts[index]
    }
}

/// Mixes the bits of a number (the finalizer of splitmix64), so that neighbours differ in all bits.
const fn scrambled(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The scopes of one thread that a window does not want, though they were recorded for another one,
/// by the indices of their records.
#[derive(Default)]
pub(crate) struct LeftOut(Vec<bool>);

impl LeftOut {
    /// Finds them among the records of a thread, followed by those of `open` scopes.
    pub(crate) fn of_window(capture: &Capture, thread: &ThreadCapture, open: &[Record]) -> Self {
        let Some(limit) = capture
            .only
            .limit()
            .filter(|_| !capture.unlimited.is_empty())
        else {
            return Self::default();
        };
        let records = thread.records().chain(open).enumerate();
        let is_scope = |record: &Record| record.is_scope() && record.stack & Record::CALL == 0;
        let scopes = records.filter(|(_, record)| is_scope(record) && capture.wants(record.start));
        let mut scopes: Vec<(usize, &Record)> = scopes.collect();
        scopes.sort_by_key(|(_, record)| (record.start, Reverse(record.end)));
        let mut left_out = vec![false; thread.len() + open.len()];
        let mut sieve = Sieve::new(limit);
        for (index, record) in scopes {
            left_out[index] = !sieve.keeps(record, capture.is_unlimited(record.start));
        }
        Self(left_out)
    }

    /// Returns whether the scope of a record is left out.
    #[inline]
    pub(crate) fn contains(&self, index: usize) -> bool {
        self.0.get(index).copied().unwrap_or(false)
    }
}
