//! The observer of this process: attached to torch while some session wants it.
//!
//! There is one callback however many sessions there are; the recorder's windows keep them apart.
//! Where another one takes its place, because inputs are wanted or no longer are, both are there for
//! a moment, and a scope that torch tells both of is heard once.
//! It is removed with the last session, but torch may call it later, and from snapshots that it
//! took, so that what it needs is never freed.

#![expect(
    unsafe_code,
    reason = "torch's functions are called by their addresses"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::callbacks;
use crate::error::Result;
use crate::layout::Layout;
use crate::memory::{self, MemoryReport};
use crate::symbols::{Callback, RecordFunction, Symbols};
use crate::tensor::Tensors;
use crate::threads::with_state;

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Whether one callback has ever taken the place of another: from then on torch may tell of a scope
/// twice.
static WAS_REPLACED: AtomicBool = AtomicBool::new(false);

/// An observer of the libtorch of this process, which was found to be as expected.
pub struct Observer {
    pub(crate) symbols: Symbols,
    pub(crate) layout: Layout,
    pub(crate) tensors: Tensors,
}

/// What a session wants of the observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The inputs of scopes.
    pub inputs: bool,
    /// Allocations of the calling thread, and of those that work for it.
    pub memory: bool,
}

impl Observer {
    /// Makes the observer, unless there is one. What the layout says was found by a `Probe`.
    pub(crate) fn build(symbols: Symbols, layout: Layout, tensors: Tensors) -> &'static Self {
        OBSERVER.get_or_init(|| Self {
            symbols,
            layout,
            tensors,
        })
    }

    /// Returns the observer, if it was made.
    #[inline]
    pub fn present() -> Option<&'static Self> {
        OBSERVER.get()
    }

    /// Returns whether torch may tell of a scope twice.
    #[inline]
    pub(crate) fn may_hear_twice() -> bool {
        // Relaxed: it is set before the second callback is added, under torch's lock, by which the
        // thread that is called twice has learnt of that one.
        WAS_REPLACED.load(Ordering::Relaxed)
    }

    /// Returns whether plain tensors are read in place; else every tensor is asked.
    pub const fn reads_tensors(&self) -> bool {
        self.tensors.layout.is_some()
    }

    /// Returns where things were found to lie.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns how many ranges and nodes torch has told of on this thread. What asks before and
    /// after knows whether one in between was told of.
    pub fn texts_heard() -> u64 {
        with_state(|state| state.texts.get()).unwrap_or(0)
    }

    /// Has torch tell of what runs, for as long as what is returned lives. The caller holds
    /// Python's lock, here and when it lets go, so that no fork comes in between.
    ///
    /// # Errors
    /// If memory is wanted and libtorch has no way to tell of it.
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

/// One session's hold on the observer.
#[must_use = "torch is observed for as long as this lives"]
pub struct Attachment {
    observer: &'static Observer,
    process: u32,
    wanted: Wanted,
    memory: Option<MemoryReport>,
}

impl Attachment {
    /// Returns what became of the wish for memory; none if there was none.
    pub const fn memory(&self) -> Option<&MemoryReport> {
        self.memory.as_ref()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let symbols = &self.observer.symbols;
        lock().change(symbols, self.process, self.wanted, -1);
    }
}

/// What torch was asked for, and by how many.
#[derive(Default)]
struct Attached {
    /// In which process: what a forked child inherits counts as let go of.
    process: u32,
    sessions: i32,
    with_inputs: i32,
    callback: Option<InstalledCallback>,
}

#[derive(Clone, Copy)]
struct InstalledCallback {
    handle: u64,
    needs_inputs: bool,
}

impl Attached {
    /// Adds sessions or takes them away, and has torch do what is wanted then.
    fn change(&mut self, symbols: &Symbols, process: u32, wanted: Wanted, sessions: i32) {
        if process != std::process::id() {
            return;
        }
        if self.process != process {
            self.process = process;
            self.sessions = 0;
            self.with_inputs = 0;
        }
        self.sessions += sessions;
        self.with_inputs += if wanted.inputs { sessions } else { 0 };
        let needs_inputs = (self.sessions > 0).then_some(self.with_inputs > 0);
        let has_inputs = self.callback.map(|callback| callback.needs_inputs);
        if has_inputs == needs_inputs {
            return;
        }
        let old = self.callback.take();
        if old.is_some() && needs_inputs.is_some() {
            WAS_REPLACED.store(true, Ordering::Relaxed);
        }
        // Before the old one goes: other threads' scopes are heard by either all the time.
        self.callback = needs_inputs.map(|needs_inputs| InstalledCallback {
            handle: symbols.install(needs_inputs),
            needs_inputs,
        });
        if let Some(callback) = old {
            symbols.remove(callback.handle);
        }
    }
}

impl Symbols {
    /// Has torch call the observer on all threads.
    fn install(&self, needs_inputs: bool) -> u64 {
        let callback = Callback::new(callbacks::start, callbacks::end, needs_inputs);
        // SAFETY: the callbacks are there as long as the process, and never unwind.
        unsafe { (self.add_global_callback)(callback) }
    }

    /// Removes a callback that was added by the calling process.
    pub(crate) fn remove(&self, handle: u64) {
        // SAFETY: the handle is one that torch gave out.
        unsafe { (self.remove_callback)(handle) };
    }

    /// Returns torch's number of the calling thread, which is never zero.
    pub(crate) fn thread_number(&self) -> u64 {
        // SAFETY: the function takes nothing and throws nothing.
        unsafe { (self.current_thread_id)() }
    }

    /// Returns how many arguments the schema of a scope has; zero if it has none.
    ///
    /// # Safety
    /// The record is torch's and lives.
    pub(crate) unsafe fn argument_count(&self, record: *const RecordFunction) -> usize {
        // SAFETY: by the caller's word.
        unsafe { (self.num_inputs)(record) }
    }
}

fn lock() -> std::sync::MutexGuard<'static, Attached> {
    static ATTACHED: OnceLock<Mutex<Attached>> = OnceLock::new();
    let attached = ATTACHED.get_or_init(Mutex::default);
    attached.lock().unwrap_or_else(PoisonError::into_inner)
}
