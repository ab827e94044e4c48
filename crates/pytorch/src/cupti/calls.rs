//! Records of the calls of CUDA, made by us when CUPTI calls back at their begin and their end.
//!
//! CUPTI would write such records, too, but they cost more than the records of kernels, and those of
//! driver calls slow down all calls of the runtime. A callback costs a fraction of that.
//!
//! Each thread fills a run of records of its own and publishes its length, so that a collection ends
//! without stopping the program. A lock is taken once per run.

#![expect(
    unsafe_code,
    reason = "the thread that fills a run and the reader share its memory, split at the published length"
)]

use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mindprof_record::ticks;

use super::blocks::{BLOCKS, Filled};
use super::interface::Interface;
use super::layout::kind;
use super::names::Domain;

/// The records of a run.
pub(super) const RUN: usize = 1024;

/// The calls of the process.
pub(super) static CALLS: Calls = Calls::new();

/// A call, in CUPTI's own layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct CallRecord {
    pub(super) kind: u32,
    pub(super) number: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    process: u32,
    pub(super) thread: u32,
    pub(super) correlation: u32,
    result: u32,
}

/// The runs of the open collection.
pub(super) struct Calls {
    /// The number of the open collection, or zero. It changes only under the lock.
    open: AtomicU64,
    /// The runs that threads are filling.
    runs: Mutex<Vec<Arc<Run>>>,
}

impl Calls {
    pub(super) const fn new() -> Self {
        Self {
            open: AtomicU64::new(0),
            runs: Mutex::new(Vec::new()),
        }
    }

    /// Starts to record, for the collection of this number.
    pub(super) fn open(&self, collection: u64) {
        let mut runs = self.lock();
        runs.clear();
        // Relaxed: a thread that sees it later records a call less.
        self.open.store(collection, Ordering::Relaxed);
    }

    /// Stops to record, and returns what threads have recorded that was not handed over before.
    pub(super) fn close(&self) -> Vec<Filled> {
        let mut runs = self.lock();
        // Relaxed: a thread that sees it later fills a run that nobody reads.
        self.open.store(0, Ordering::Relaxed);
        let runs = std::mem::take(&mut *runs);
        let filled = runs.into_iter().map(Filled::calls);
        filled.filter(|filled| !filled.is_empty()).collect()
    }

    /// Returns the number of the open collection, or zero.
    fn collection(&self) -> u64 {
        // Relaxed: see where it is stored.
        self.open.load(Ordering::Relaxed)
    }

    /// Returns a new run for a thread, and the thread's last one if it is to be handed over. `None`
    /// if the collection has ended.
    fn exchange(
        &self,
        collection: u64,
        full: Option<Arc<Run>>,
    ) -> Option<(Arc<Run>, Option<Filled>)> {
        let next = Arc::new(Run::new(collection));
        let mut runs = self.lock();
        if self.collection() != collection {
            return None;
        }
        let full = full.and_then(|full| {
            let place = runs.iter().position(|run| Arc::ptr_eq(run, &full))?;
            Some(runs.swap_remove(place))
        });
        runs.push(Arc::clone(&next));
        Some((next, full.map(Filled::calls)))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Run>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records of one thread. The thread appends, and anyone reads below the published length.
pub(super) struct Run {
    collection: u64,
    length: AtomicUsize,
    records: Box<[UnsafeCell<MaybeUninit<CallRecord>>]>,
}

// SAFETY: one thread writes beyond the published length, and others read only below it, where
// nothing is written again.
unsafe impl Send for Run {}
// SAFETY: as above.
unsafe impl Sync for Run {}

impl Run {
    fn new(collection: u64) -> Self {
        let empty = || UnsafeCell::new(MaybeUninit::uninit());
        Self {
            collection,
            length: AtomicUsize::new(0),
            records: (0..RUN).map(|_| empty()).collect(),
        }
    }

    /// Appends a record, or returns false if there is no room.
    ///
    /// # Safety
    /// Only one thread calls this.
    unsafe fn push(&self, record: CallRecord) -> bool {
        // Relaxed: only this thread writes it.
        let length = self.length.load(Ordering::Relaxed);
        let Some(slot) = self.records.get(length) else {
            return false;
        };
        // SAFETY: the slot is beyond the published length, so nobody reads it, and no other thread
        // writes.
        unsafe { (*slot.get()).write(record) };
        // Release: pairs with the acquire in `len`.
        self.length.store(length + 1, Ordering::Release);
        true
    }

    pub(super) fn len(&self) -> usize {
        // Acquire: pairs with the release in `push`.
        self.length.load(Ordering::Acquire)
    }

    /// Calls `visit` with each of the first records.
    pub(super) fn each(&self, count: usize, mut visit: impl FnMut(*const u8)) {
        for slot in &self.records[..count.min(self.len())] {
            visit(slot.get().cast());
        }
    }
}

/// The data that CUPTI passes about a call, as far as it is read.
#[repr(C)]
pub(super) struct CallbackData {
    /// Zero at the begin of the call, one at its end.
    pub(super) site: u32,
    pub(super) function_name: *const c_void,
    pub(super) parameters: *const c_void,
    pub(super) result: *const c_void,
    pub(super) symbol: *const c_void,
    pub(super) context: *const c_void,
    pub(super) context_number: u32,
    pub(super) correlation_data: *mut u64,
    pub(super) correlation: u32,
}

const BEGIN: u32 = 0;

/// The most calls within each other that are told apart. There are two in practice.
const DEEPEST: usize = 4;

/// A call that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    domain: u32,
    correlation: u32,
    start: u64,
}

/// The calls of one thread.
pub(super) struct ThreadCalls {
    /// The collection that the other fields belong to.
    collection: Cell<u64>,
    depth: Cell<usize>,
    begun: [Cell<Begun>; DEEPEST],
    run: RefCell<Option<Arc<Run>>>,
}

thread_local! {
    static OWN: ThreadCalls = const { ThreadCalls::new() };
}

impl ThreadCalls {
    pub(super) const fn new() -> Self {
        const NONE: Cell<Begun> = Cell::new(Begun {
            domain: 0,
            correlation: 0,
            start: 0,
        });
        Self {
            collection: Cell::new(0),
            depth: Cell::new(0),
            begun: [NONE; DEEPEST],
            run: RefCell::new(None),
        }
    }

    /// A call begins.
    pub(super) fn begin(&self, collection: u64, domain: u32, correlation: u32) {
        if self.collection.replace(collection) != collection {
            self.depth.set(0);
        }
        let mut depth = self.depth.get();
        // The driver call within a call of the runtime has its number. torch does not show it.
        let outer = depth.checked_sub(1).map(|last| self.begun[last].get());
        if outer.is_some_and(|outer| outer.correlation == correlation && outer.domain != domain) {
            return;
        }
        if depth == DEEPEST {
            // The ends of these calls were not told.
            depth = 0;
        }
        self.begun[depth].set(Begun {
            domain,
            correlation,
            start: ticks(),
        });
        self.depth.set(depth + 1);
    }

    /// A call ends. Returns when it began, or `None` if that was not told.
    pub(super) fn end(&self, collection: u64, domain: u32, correlation: u32) -> Option<u64> {
        if self.collection.get() != collection {
            return None;
        }
        let open = &self.begun[..self.depth.get()];
        let is_it = |call: &Cell<Begun>| {
            let call = call.get();
            call.correlation == correlation && call.domain == domain
        };
        let place = open.iter().rposition(is_it)?;
        self.depth.set(place);
        Some(self.begun[place].get().start)
    }

    /// Records a call, and returns a run that is to be handed over.
    pub(super) fn record(
        &self,
        calls: &Calls,
        collection: u64,
        record: CallRecord,
    ) -> Option<Filled> {
        let mut run = self.run.try_borrow_mut().ok()?;
        let own = run.take_if(|run| run.collection != collection);
        drop(own);
        // SAFETY: the run is this thread's.
        if run.as_ref().is_some_and(|run| unsafe { run.push(record) }) {
            return None;
        }
        let (next, full) = calls.exchange(collection, run.take())?;
        // SAFETY: as above.
        unsafe { next.push(record) };
        *run = Some(next);
        full
    }
}

/// CUPTI calls back at the begin and the end of a call.
///
/// # Safety
/// CUPTI passes the data of a call.
pub(super) unsafe extern "C" fn called(
    _user: *mut c_void,
    domain: u32,
    number: u32,
    data: *const CallbackData,
) {
    let collection = CALLS.collection();
    if collection == 0 {
        return;
    }
    // SAFETY: as the caller guarantees.
    let (site, correlation) = unsafe { ((*data).site, (*data).correlation) };
    // A thread that is ending has no variables any more.
    let _ = OWN.try_with(|own| {
        if site == BEGIN {
            own.begin(collection, domain, correlation);
            return;
        }
        let end = ticks();
        let Some(start) = own.end(collection, domain, correlation) else {
            return;
        };
        let kind = if domain == Domain::Driver.number() {
            kind::DRIVER
        } else {
            kind::RUNTIME
        };
        let record = CallRecord::new(kind, number, (start, end), correlation);
        if let Some(full) = own.record(&CALLS, collection, record)
            && let Ok(interface) = Interface::find()
        {
            BLOCKS.keep(interface, full);
        }
    });
}

impl CallRecord {
    pub(super) fn new(kind: u32, number: u32, (start, end): (u64, u64), correlation: u32) -> Self {
        Self {
            kind,
            number,
            start,
            end,
            // Neither is read.
            process: 0,
            result: 0,
            thread: thread(),
            correlation,
        }
    }
}

/// Returns CUPTI's number of the current thread: the low half of its handle.
#[cfg(unix)]
fn thread() -> u32 {
    // SAFETY: the function has no conditions.
    (unsafe { libc::pthread_self() }) as u32
}

#[cfg(not(unix))]
fn thread() -> u32 {
    0
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;
    use std::thread;

    use super::super::layout::call;
    use super::super::tests::interface;
    use super::*;

    const RUNTIME: u32 = 2;
    const DRIVER: u32 = 1;

    fn record(correlation: u32) -> CallRecord {
        CallRecord::new(kind::RUNTIME, 211, (1, 2), correlation)
    }

    fn correlations(filled: &[Filled]) -> Vec<u32> {
        let interface = interface();
        let mut found = Vec::new();
        for filled in filled {
            // SAFETY: the records are calls.
            filled.each(&interface, |record| {
                found.push(unsafe { (*record.cast::<CallRecord>()).correlation })
            });
        }
        found
    }

    #[test]
    fn a_record_has_the_layout_of_cupti() {
        assert_eq!(offset_of!(CallRecord, kind), 0);
        assert_eq!(offset_of!(CallRecord, number), call::NUMBER);
        assert_eq!(offset_of!(CallRecord, start), call::START);
        assert_eq!(offset_of!(CallRecord, end), call::END);
        assert_eq!(offset_of!(CallRecord, thread), call::THREAD);
        assert_eq!(offset_of!(CallRecord, correlation), call::CORRELATION);
        assert_eq!(size_of::<CallRecord>(), 40);
    }

    // The numbers are those that `offsetof` gives for `CUpti_CallbackData`.
    #[test]
    fn the_data_of_a_callback_has_the_layout_of_cupti() {
        assert_eq!(offset_of!(CallbackData, correlation), 64);
        assert_eq!(offset_of!(CallbackData, context_number), 48);
    }

    #[test]
    fn a_call_lasts_from_its_begin_to_its_end() {
        let own = ThreadCalls::new();
        let before = ticks();
        own.begin(1, RUNTIME, 7);
        let start = own.end(1, RUNTIME, 7).unwrap();
        assert!((before..=ticks()).contains(&start));
        assert_eq!(own.end(1, RUNTIME, 7), None);
    }

    #[test]
    fn the_driver_call_within_a_call_of_the_runtime_is_left_out() {
        let own = ThreadCalls::new();
        own.begin(1, RUNTIME, 7);
        own.begin(1, DRIVER, 7);
        assert_eq!(own.end(1, DRIVER, 7), None);
        assert!(own.end(1, RUNTIME, 7).is_some());
    }

    #[test]
    fn calls_of_other_numbers_may_lie_within_each_other() {
        let own = ThreadCalls::new();
        own.begin(1, RUNTIME, 7);
        own.begin(1, RUNTIME, 8);
        assert!(own.end(1, RUNTIME, 8).is_some());
        assert!(own.end(1, RUNTIME, 7).is_some());
    }

    #[test]
    fn calls_without_a_begin_or_an_end_do_not_disturb_later_ones() {
        let own = ThreadCalls::new();
        assert_eq!(own.end(1, RUNTIME, 1), None);
        for correlation in 2..20 {
            own.begin(1, RUNTIME, correlation);
        }
        own.begin(1, RUNTIME, 20);
        assert!(own.end(1, RUNTIME, 20).is_some());
        // The window closed within the call, and another one opened.
        own.begin(1, RUNTIME, 21);
        assert_eq!(own.end(2, RUNTIME, 21), None);
        own.begin(2, RUNTIME, 22);
        assert!(own.end(2, RUNTIME, 22).is_some());
    }

    #[test]
    fn full_runs_are_handed_over_and_the_rest_at_the_end() {
        let (calls, own) = (Calls::new(), ThreadCalls::new());
        calls.open(1);
        let count = 2 * RUN as u32 + 3;
        let full = (0..count).filter_map(|correlation| own.record(&calls, 1, record(correlation)));
        let mut all: Vec<Filled> = full.collect();
        assert_eq!(all.len(), 2);
        all.extend(calls.close());
        assert_eq!(correlations(&all), (0..count).collect::<Vec<_>>());
    }

    #[test]
    fn records_of_a_collection_that_has_ended_are_dropped() {
        let (calls, own) = (Calls::new(), ThreadCalls::new());
        calls.open(1);
        own.record(&calls, 1, record(1));
        assert_eq!(correlations(&calls.close()), [1]);
        own.record(&calls, 1, record(2));
        let other = ThreadCalls::new();
        other.record(&calls, 1, record(3));
        calls.open(2);
        own.record(&calls, 2, record(4));
        assert_eq!(correlations(&calls.close()), [4]);
        assert!(calls.close().is_empty());
    }

    #[test]
    fn threads_record_while_collections_end() {
        let calls = Calls::new();
        calls.open(1);
        let (found, handed) = thread::scope(|scope| {
            let work = |base: u32| {
                let calls = &calls;
                scope.spawn(move || {
                    let own = ThreadCalls::new();
                    let records = (0..5_000).map(|index| record(base + index));
                    let full: Vec<Filled> = records
                        .filter_map(|record| own.record(calls, 1, record))
                        .collect();
                    full
                })
            };
            let threads = [work(0), work(10_000), work(20_000)];
            let found = calls.close();
            let handed: Vec<Filled> = threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect();
            (found, handed)
        });
        let mut all = correlations(&found);
        all.extend(correlations(&handed));
        all.sort_unstable();
        // Each thread's records up to some point, none twice.
        for base in [0, 10_000, 20_000] {
            let own: Vec<u32> = all
                .iter()
                .copied()
                .filter(|it| (base..base + 10_000).contains(it))
                .collect();
            let count = own.len() as u32;
            assert_eq!(own, (base..base + count).collect::<Vec<_>>());
        }
    }
}
