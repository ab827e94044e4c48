//! What each thread has for the observer, and which of torch's thread numbers is whose.
//!
//! torch says of a backward node on which thread its forward operator ran, by a number of its own.
//! A thread enters its number here with the first scope that it opens; nothing is locked, so that a
//! fork finds nothing half done.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use mindprof_record::{ThreadKey, fast_thread_local};

use crate::context::FreeList;
use crate::names::KnownNames;
use crate::symbols::{RecordFunction, Symbols};

fast_thread_local! {
    static STATE: ThreadState = ThreadState::new()
}

/// What one thread holds.
#[derive(Debug)]
pub(crate) struct ThreadState {
    pub(crate) contexts: FreeList,
    pub(crate) names: KnownNames,
    /// The context of a backward node's evaluation, until the node itself begins in it.
    pub(crate) evaluation: Cell<*mut c_void>,
    /// How many ranges and nodes, whose names are texts of the moment, torch has begun here.
    pub(crate) texts: Cell<u64>,
    /// torch's number of the thread; zero until it is known.
    number: Cell<u64>,
    /// The scope that began last, unless one has ended here since, and how many had ended elsewhere.
    last: Cell<(*const RecordFunction, u64)>,
}

impl ThreadState {
    const fn new() -> Self {
        Self {
            contexts: FreeList::new(),
            names: KnownNames::new(),
            evaluation: Cell::new(ptr::null_mut()),
            texts: Cell::new(0),
            number: Cell::new(0),
            last: Cell::new((ptr::null(), 0)),
        }
    }

    /// Returns whether a scope that torch tells of is the one that it told of last. Another one at its
    /// place would come after its end.
    pub(crate) fn hears_again(&self, record: *const RecordFunction) -> bool {
        let now = (record, ENDS_ELSEWHERE.load(Ordering::Relaxed));
        self.last.replace(now) == now
    }

    /// Says that a scope ends.
    pub(crate) fn forget_last(&self) {
        self.last.set((ptr::null(), 0));
    }

    /// Has the thread found by torch's number of it.
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
        // Relaxed: a number and its key are one word, and carry nothing else.
        slot(number).store(entry(number, ThreadKey::current()), Ordering::Relaxed);
    }
}

/// How many scopes have ended on another thread than they began on. Relaxed: whoever begins another
/// scope in the place of such a one has learnt of its end by other means.
static ENDS_ELSEWHERE: AtomicU64 = AtomicU64::new(0);

/// Says that a scope ends which began on another thread: that one does not hear of it.
#[cold]
pub(crate) fn count_end_elsewhere() {
    ENDS_ELSEWHERE.fetch_add(1, Ordering::Relaxed);
}

/// Calls `action` with what the calling thread holds, unless the thread is ending.
#[inline]
pub(crate) fn with_state<T>(action: impl FnOnce(&ThreadState) -> T) -> Option<T> {
    STATE.try_with(action).ok()
}

/// Numbers of threads with their keys. Of numbers that share a slot the newest is known.
const SLOTS: usize = 4096;
static KEYS: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

fn slot(number: u64) -> &'static AtomicU64 {
    &KEYS[number as usize % SLOTS]
}

fn entry(number: u64, key: ThreadKey) -> u64 {
    number << 32 | u64::from(key.to_raw())
}

/// Returns the key of the thread with torch's number `number`, [`ThreadKey::NONE`] if it never
/// opened a scope.
#[inline]
pub(crate) fn key_of(number: u64) -> ThreadKey {
    let found = slot(number).load(Ordering::Relaxed);
    if found >> 32 == number & u64::from(u32::MAX) {
        ThreadKey::from_raw(found as u32)
    } else {
        ThreadKey::NONE
    }
}
