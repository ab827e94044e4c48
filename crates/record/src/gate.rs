//! The gate: one atomic word that says whether anything is recorded, what is wanted, and which
//! recording is running.
//!
//! Every scope starts with one relaxed load of it. Only the recorder writes it, while holding its
//! lock.

use std::sync::atomic::{AtomicU64, Ordering};

// Relaxed everywhere: the word alone carries everything a scope decides by, and no other memory is
// published through it.
static GATE: AtomicU64 = AtomicU64::new(0);

/// The time at which the newest window opened, in ticks.
static LAST_OPENING: AtomicU64 = AtomicU64::new(0);

/// The time at which a window last opened, paused or resumed, in ticks.
static LAST_CHANGE: AtomicU64 = AtomicU64::new(0);

/// The time before which records may make room for newer ones, in ticks.
static RECYCLE_BEFORE: AtomicU64 = AtomicU64::new(0);

/// A snapshot of the gate. A scope loads it once and takes all its decisions from this copy, so
/// that a window that opens or closes meanwhile cannot make it contradict itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gate(u64);

/// The union of what the open windows want. The recorder computes it whenever a window opens,
/// closes, pauses or resumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a bit of the gate")]
pub(crate) struct Wanted {
    /// Scopes; false while every open window is paused.
    pub(crate) scopes: bool,
    /// The inputs of scopes.
    pub(crate) inputs: bool,
    /// Allocations and frees, also while scopes are paused.
    pub(crate) memory: bool,
    /// The results of scopes.
    pub(crate) results: bool,
    /// All calls of the program's language (Python functions), also while scopes are paused.
    pub(crate) all_calls: bool,
    /// Calls of modules, also while scopes are paused.
    pub(crate) modules: bool,
    /// The stacks of scopes without calls.
    pub(crate) sampled: bool,
    /// The calls of `TorchScript` modules that scopes run in.
    pub(crate) module_hierarchies: bool,
    /// Only some operators, see [`crate::limit`].
    pub(crate) limited: bool,
}

/// Returns the time at which the newest window opened, in ticks.
#[inline]
pub(crate) fn last_opening() -> u64 {
    LAST_OPENING.load(Ordering::Relaxed)
}

/// Notes the time at which a window opens.
pub(crate) fn set_last_opening(ticks: u64) {
    LAST_OPENING.store(ticks, Ordering::Relaxed);
}

/// Returns the time before which records may make room for newer ones, in ticks: zero if no window
/// keeps its last part.
pub(crate) fn recycle_before() -> u64 {
    RECYCLE_BEFORE.load(Ordering::Relaxed)
}

/// Sets the time before which records may make room for newer ones.
pub(crate) fn set_recycle_before(ticks: u64) {
    RECYCLE_BEFORE.store(ticks, Ordering::Relaxed);
}

/// Returns the time at which a window last opened, paused or resumed, in ticks.
pub(crate) fn last_change() -> u64 {
    LAST_CHANGE.load(Ordering::Relaxed)
}

/// Notes the time at which a window opens, pauses or resumes.
pub(crate) fn set_last_change(ticks: u64) {
    LAST_CHANGE.store(ticks, Ordering::Relaxed);
}

impl Gate {
    const SCOPES: u64 = 1;
    const INPUTS: u64 = 2;
    const MEMORY: u64 = 4;
    const CALLS: u64 = 8;
    const MODULES: u64 = 16;
    const RESULTS: u64 = 32;
    const SAMPLED: u64 = 64;
    const HIERARCHIES: u64 = 128;
    const LIMITED: u64 = 256;
    const EPOCH_SHIFT: u32 = 9;

    /// Reads the gate.
    #[inline]
    pub(crate) fn load() -> Self {
        Self(GATE.load(Ordering::Relaxed))
    }

    /// Sets what recording `epoch` wants from now on.
    pub(crate) fn set(epoch: u32, wanted: Wanted) {
        let bits = [
            (wanted.scopes, Self::SCOPES),
            (wanted.inputs, Self::INPUTS),
            (wanted.memory, Self::MEMORY),
            (wanted.results, Self::RESULTS),
            (wanted.module_hierarchies, Self::HIERARCHIES),
            (wanted.all_calls, Self::CALLS),
            (wanted.modules, Self::MODULES),
            (wanted.sampled, Self::SAMPLED),
            (wanted.limited, Self::LIMITED),
        ];
        let wanted = bits.into_iter().filter(|(is_wanted, _)| *is_wanted);
        let bits = wanted.fold(0, |bits, (_, bit)| bits | bit);
        GATE.store(
            u64::from(epoch) << Self::EPOCH_SHIFT | bits,
            Ordering::Relaxed,
        );
    }

    /// Closes the gate.
    pub(crate) fn close() {
        GATE.store(0, Ordering::Relaxed);
    }

    /// Returns whether scopes are recorded.
    #[inline]
    pub(crate) const fn is_open(self) -> bool {
        self.0 & Self::SCOPES != 0
    }

    /// Returns whether operators may have to be left out.
    #[inline]
    pub(crate) const fn is_limited(self) -> bool {
        self.0 & Self::LIMITED != 0
    }

    /// Returns whether some window wants inputs.
    #[inline]
    pub(crate) const fn wants_inputs(self) -> bool {
        self.0 & Self::INPUTS != 0
    }

    /// Returns whether some window wants allocations and frees.
    #[inline]
    pub(crate) const fn wants_memory(self) -> bool {
        self.0 & Self::MEMORY != 0
    }

    /// Returns whether some window wants the results of scopes.
    #[inline]
    pub(crate) const fn wants_results(self) -> bool {
        self.0 & Self::RESULTS != 0
    }

    /// Returns whether some window wants the calls of `TorchScript` modules.
    #[inline]
    pub(crate) const fn wants_module_hierarchies(self) -> bool {
        self.0 & Self::HIERARCHIES != 0
    }

    /// Returns whether some window wants the storage addresses of tensors. Memory attribution needs
    /// them, and it runs when both inputs and memory are recorded.
    #[inline]
    pub(crate) const fn wants_storages(self) -> bool {
        const BOTH: u64 = Gate::INPUTS | Gate::MEMORY;
        self.0 & BOTH == BOTH
    }

    /// Returns whether some window wants the stacks of scopes.
    #[inline]
    pub(crate) const fn wants_stacks(self) -> bool {
        self.0 & (Self::CALLS | Self::SAMPLED) != 0
    }

    /// Returns whether some window wants all calls.
    #[inline]
    pub(crate) const fn wants_all_calls(self) -> bool {
        self.0 & Self::CALLS != 0
    }

    /// Returns whether some window wants calls, either all of them or only those of modules.
    #[inline]
    pub(crate) const fn wants_calls(self) -> bool {
        self.0 & (Self::CALLS | Self::MODULES) != 0
    }

    /// Returns the number of the recording, or zero if no window is open. It increases each time a
    /// first window opens.
    #[inline]
    pub(crate) const fn epoch(self) -> u32 {
        (self.0 >> Self::EPOCH_SHIFT) as u32
    }
}
