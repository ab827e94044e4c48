//! The thread-local state of the observer, and a table from torch's thread numbers to the
//! recorder's keys.
//!
//! torch identifies the forward thread of a backward node by a number of its own. A thread
//! registers its number with the first scope that it opens.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use mindprof_record::{ThreadKey, ThreadTable, fast_thread_local};

use crate::context::FreeList;
use crate::names::KnownNames;
use crate::symbols::{RecordFunction, Symbols};

fast_thread_local! {
    static STATE: ThreadState = ThreadState::new()
}

/// The state of one thread.
#[derive(Debug)]
pub(crate) struct ThreadState {
    pub(crate) contexts: FreeList,
    pub(crate) names: KnownNames,
    /// The context of the engine's scope around a backward node, until the node itself begins.
    pub(crate) evaluation: Cell<*mut c_void>,
    /// How many ranges and backward nodes, whose names are temporary, torch has begun on this
    /// thread.
    pub(crate) texts: Cell<u64>,
    /// Whether ranges that torch begins on this thread are left to someone else.
    pub(crate) skips_texts: Cell<bool>,
    /// torch's number of the thread; zero until it is known.
    number: Cell<u64>,
    /// The scope that began last, unless one has ended here since, and the value of
    /// `ENDS_ELSEWHERE` then.
    last: Cell<(*const RecordFunction, u64)>,
}

impl ThreadState {
    const fn new() -> Self {
        Self {
            contexts: FreeList::new(),
            names: KnownNames::new(),
            evaluation: Cell::new(ptr::null_mut()),
            texts: Cell::new(0),
            skips_texts: Cell::new(false),
            number: Cell::new(0),
            last: Cell::new((ptr::null(), 0)),
        }
    }

    /// Returns whether torch reports the same scope again. A new scope at the same address can only
    /// come after the end of the old one.
    pub(crate) fn hears_again(&self, record: *const RecordFunction) -> bool {
        let now = (record, ENDS_ELSEWHERE.load(Ordering::Relaxed));
        self.last.replace(now) == now
    }

    /// Notes that a scope ends.
    pub(crate) fn forget_last(&self) {
        self.last.set((ptr::null(), 0));
    }

    /// Registers the thread under torch's number of it.
    #[inline]
    pub(crate) fn enter(&self, symbols: &Symbols) {
        if self.number.get() == 0 {
            self.enter_first(symbols);
        }
    }

    #[cold]
    fn enter_first(&self, symbols: &Symbols) {
        let number = symbols.thread_number();
        self.number.set(number);
        THREADS.enter(number, ThreadKey::current());
    }
}

impl Drop for ThreadState {
    fn drop(&mut self) {
        if self.number.get() != 0 {
            THREADS.leave(self.number.get());
        }
    }
}

/// How many scopes have ended on another thread than they began on. Relaxed: a thread that reuses
/// the memory of such a scope has synchronized with its end by other means.
static ENDS_ELSEWHERE: AtomicU64 = AtomicU64::new(0);

/// Notes the end of a scope that began on another thread, which is not told.
#[cold]
pub(crate) fn count_end_elsewhere() {
    ENDS_ELSEWHERE.fetch_add(1, Ordering::Relaxed);
}

/// Calls `action` with the state of the calling thread. Returns `None` if the thread is ending.
#[inline]
pub(crate) fn with_state<T>(action: impl FnOnce(&ThreadState) -> T) -> Option<T> {
    STATE.try_with(action).ok()
}

/// torch's thread numbers with the recorder's keys. The memory of slots that no thread uses is never
/// touched.
static THREADS: ThreadTable<{ 1 << 20 }> = ThreadTable::new();

/// Returns the key of the thread with torch's number `number`, or [`ThreadKey::NONE`] if it never
/// opened a scope.
#[inline]
pub(crate) fn key_of(number: u64) -> ThreadKey {
    THREADS.key_of(number)
}
