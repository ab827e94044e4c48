//! The observer of this process, attached to torch while any session wants it.
//!
//! There is one callback however many sessions there are; the recorder's windows keep them apart.
//! When operators or their inputs become wanted or unwanted, a new callback replaces it: both are briefly registered,
//! and a scope reported to both is recorded once. torch may call a callback even after its removal,
//! so nothing it needs is freed.

#![expect(
    unsafe_code,
    reason = "torch's functions are called by their addresses"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::Result;
use crate::layout::Layout;
use crate::memory::{self, MemoryReport};
use crate::symbols::{Callback, Hears, RecordFunction, Symbols};
use crate::tensor::Tensors;
use crate::threads::with_state;
use crate::{callback_lock, callbacks};

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Whether a callback has ever been replaced. From then on torch may report a scope twice.
static WAS_REPLACED: AtomicBool = AtomicBool::new(false);

/// An observer of the libtorch of this process. [`Probe`](crate::Probe) creates it once it has
/// found all facts, and it lives as long as the process.
pub struct Observer {
    pub(crate) symbols: Symbols,
    pub(crate) layout: Layout,
    pub(crate) tensors: Tensors,
}

/// The facts that a session wants from the observer, besides ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Operators and backward nodes. A session that wants none costs them nothing.
    pub operators: bool,
    /// The inputs of scopes.
    pub inputs: bool,
    /// Allocations of the calling thread, and of the worker threads that inherit its state.
    pub memory: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            operators: true,
            inputs: false,
            memory: false,
        }
    }
}

impl Observer {
    /// Creates the observer, or returns the existing one. A `Probe` found the layout.
    pub(crate) fn build(symbols: Symbols, layout: Layout, tensors: Tensors) -> &'static Self {
        OBSERVER.get_or_init(|| Self {
            symbols,
            layout,
            tensors,
        })
    }

    /// Returns the observer, or `None` if no probe has created it.
    #[inline]
    pub fn present() -> Option<&'static Self> {
        OBSERVER.get()
    }

    /// Returns whether torch may report a scope twice.
    #[inline]
    pub(crate) fn may_hear_twice() -> bool {
        // Relaxed: it is set before the second callback is registered under torch's lock, and a
        // thread that is called twice has taken that lock since.
        WAS_REPLACED.load(Ordering::Relaxed)
    }

    /// Returns whether plain tensors are read in place; otherwise every tensor is queried through
    /// torch's C interface.
    pub const fn reads_tensors(&self) -> bool {
        self.tensors.layout.is_some()
    }

    /// Returns whether a session of this process is attached.
    pub fn is_attached() -> bool {
        let attached = lock();
        attached.process == std::process::id() && attached.sessions > 0
    }

    /// Returns whether a forked child can run operators whatever other threads did at the fork:
    /// forks hold torch's lock of callbacks. Otherwise the lock was not found.
    pub fn protects_forks(&self) -> bool {
        callback_lock::is_held_by_forks()
    }

    /// Returns the layout that the probe found.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns how many ranges and backward nodes torch has reported on this thread. Comparing two
    /// calls tells whether one in between was reported.
    pub fn texts_heard() -> u64 {
        with_state(|state| state.texts.get()).unwrap_or(0)
    }

    /// Returns what `begin` returns. The range that it begins on this thread is not recorded, though
    /// other observers of torch hear it.
    pub fn unrecorded<T>(begin: impl FnOnce() -> T) -> T {
        let skip = |skips| with_state(|state| state.skips_texts.replace(skips)).unwrap_or(false);
        let before = skip(true);
        let result = begin();
        skip(before);
        result
    }

    /// Makes torch report scopes until the returned attachment is dropped. The caller holds
    /// Python's lock in both calls, so that no fork comes in between.
    ///
    /// # Errors
    /// If memory is wanted and libtorch lacks the functions to report it.
    pub fn attach(&'static self, wanted: Wanted) -> Result<Attachment> {
        let memory = if wanted.memory {
            Some(memory::report(&self.symbols)?)
        } else {
            None
        };
        let process = std::process::id();
        lock().change(&self.symbols, process, wanted, 1);
        Ok(Attachment {
            observer: self,
            process,
            wanted,
            memory,
        })
    }
}

/// One session's registration with the observer. Dropping it ends the registration.
#[must_use = "torch is observed until this is dropped"]
pub struct Attachment {
    observer: &'static Observer,
    process: u32,
    wanted: Wanted,
    memory: Option<MemoryReport>,
}

impl Attachment {
    /// Returns the outcome of the request for memory, or `None` if memory was not wanted.
    pub const fn memory(&self) -> Option<&MemoryReport> {
        self.memory.as_ref()
    }

    /// Returns how often the recording of memory was interrupted by a profiler of torch.
    pub fn memory_gaps(&self) -> usize {
        match &self.memory {
            Some(MemoryReport::Heard(reports)) => reports.gaps(),
            Some(MemoryReport::SlotTaken) | None => 0,
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let symbols = &self.observer.symbols;
        lock().change(symbols, self.process, self.wanted, -1);
    }
}

/// The registered callback, and the number of sessions that need it.
#[derive(Default)]
struct Attached {
    /// The process that the counts are of. A forked child starts from zero.
    process: u32,
    sessions: i32,
    with_operators: i32,
    with_inputs: i32,
    callback: Option<InstalledCallback>,
}

#[derive(Clone, Copy)]
struct InstalledCallback {
    handle: u64,
    hears: Hears,
}

impl Attached {
    /// Adds or removes sessions, and registers or removes callbacks accordingly.
    fn change(&mut self, symbols: &Symbols, process: u32, wanted: Wanted, sessions: i32) {
        if process != std::process::id() {
            return;
        }
        if self.process != process {
            self.process = process;
            self.sessions = 0;
            self.with_operators = 0;
            self.with_inputs = 0;
        }
        self.sessions += sessions;
        self.with_operators += if wanted.operators { sessions } else { 0 };
        self.with_inputs += if wanted.inputs { sessions } else { 0 };
        let hears = (self.sessions > 0).then_some(Hears {
            operators: self.with_operators > 0,
            inputs: self.with_inputs > 0,
        });
        if self.callback.map(|callback| callback.hears) == hears {
            return;
        }
        let old = self.callback.take();
        if old.is_some() && hears.is_some() {
            WAS_REPLACED.store(true, Ordering::Relaxed);
        }
        // Registered before the old one is removed, so that no scope of another thread is missed.
        self.callback = hears.map(|hears| InstalledCallback {
            handle: symbols.install(hears),
            hears,
        });
        if let Some(callback) = old {
            symbols.remove(callback.handle);
        }
    }
}

impl Symbols {
    /// Registers the observer's callbacks on all threads.
    fn install(&self, hears: Hears) -> u64 {
        let callback = Callback::new(callbacks::start, callbacks::end, hears);
        // SAFETY: the callbacks are static functions and never unwind.
        unsafe { (self.add_global_callback)(callback) }
    }

    /// Removes a callback that the calling process registered.
    pub(crate) fn remove(&self, handle: u64) {
        // SAFETY: torch returned the handle.
        unsafe { (self.remove_callback)(handle) };
    }

    /// Returns torch's number of the calling thread, which is never zero.
    pub(crate) fn thread_number(&self) -> u64 {
        // SAFETY: the function takes no arguments and does not throw.
        unsafe { (self.current_thread_id)() }
    }

    /// Returns the number of arguments in the schema of a scope; zero if it has no schema.
    ///
    /// # Safety
    /// The record is a live `RecordFunction` of torch's.
    pub(crate) unsafe fn argument_count(&self, record: *const RecordFunction) -> usize {
        // SAFETY: the caller guarantees a live record.
        unsafe { (self.num_inputs)(record) }
    }
}

fn lock() -> std::sync::MutexGuard<'static, Attached> {
    static ATTACHED: OnceLock<Mutex<Attached>> = OnceLock::new();
    let attached = ATTACHED.get_or_init(Mutex::default);
    attached.lock().unwrap_or_else(PoisonError::into_inner)
}
