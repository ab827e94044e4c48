//! Records of the calls of CUDA, made by us when CUPTI calls back at their beginning and their end.
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
use std::mem::{self, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use mindprof_record::{ThreadHandle, ticks};

use super::blocks::{BLOCKS, Filled};
use super::interface::Interface;
use super::layout::kind;
use super::names::Domain;

/// The records of a thread's first run. Most threads make few calls.
const FIRST_RUN: usize = 64;

/// The records of each further run.
const RUN: usize = 1024;

/// The calls of the process.
pub(super) static CALLS: Calls = Calls::new();

/// A call, in CUPTI's own layout, with the whole handle of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct CallRecord {
    pub(super) kind: u32,
    pub(super) number: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    /// CUPTI writes the number of the process here.
    pub(super) thread_high: u32,
    pub(super) thread: u32,
    pub(super) correlation: u32,
    result: u32,
}

/// The calls that threads are recording.
pub(super) struct Calls {
    /// The number of the current opening, or zero. It changes only under the lock.
    open: AtomicU64,
    state: Mutex<State>,
    /// Told when no full run is on its way any more.
    arrived: Condvar,
}

struct State {
    openings: u64,
    /// The runs that threads are filling.
    runs: Vec<Arc<Run>>,
    /// The number of full runs that threads are handing over.
    on_their_way: usize,
}

/// A run that its thread hands over to the collection, which does not end before.
struct Full<'a> {
    run: Arc<Run>,
    calls: &'a Calls,
}

impl Full<'_> {
    /// Returns its records.
    fn filled(&self) -> Filled {
        Filled::calls(Arc::clone(&self.run))
    }
}

impl Drop for Full<'_> {
    fn drop(&mut self) {
        let mut state = self.calls.lock();
        state.on_their_way -= 1;
        if state.on_their_way == 0 {
            self.calls.arrived.notify_all();
        }
    }
}

impl Calls {
    pub(super) const fn new() -> Self {
        Self {
            open: AtomicU64::new(0),
            state: Mutex::new(State {
                openings: 0,
                runs: Vec::new(),
                on_their_way: 0,
            }),
            arrived: Condvar::new(),
        }
    }

    /// Starts to record, also after a pause.
    pub(super) fn open(&self) {
        let mut state = self.lock();
        state.runs.clear();
        // Each opening has a number, so that no thread goes on with a run that was taken from it.
        state.openings += 1;
        // Relaxed: a thread that sees it later records a call less.
        self.open.store(state.openings, Ordering::Relaxed);
    }

    /// Stops to record, and returns what threads have recorded that was not handed over before. Waits
    /// for the runs that are being handed over, for which a thread needs nothing but memory.
    pub(super) fn close(&self) -> Vec<Filled> {
        let mut state = self.lock();
        // Relaxed: a thread that sees it later fills a run that nobody reads.
        self.open.store(0, Ordering::Relaxed);
        while state.on_their_way > 0 {
            let waited = self.arrived.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let runs = mem::take(&mut state.runs);
        drop(state);
        let filled = runs.into_iter().map(Filled::calls);
        filled.filter(|filled| !filled.is_empty()).collect()
    }

    /// Returns the number of the current opening, or zero.
    fn opening(&self) -> u64 {
        // Relaxed: see where it is stored.
        self.open.load(Ordering::Relaxed)
    }

    /// Returns a new run for a thread, and the thread's last one if it is to be handed over. `None`
    /// if the opening has ended.
    fn exchange(
        &self,
        opening: u64,
        full: Option<&Arc<Run>>,
    ) -> Option<(Arc<Run>, Option<Full<'_>>)> {
        let records = if full.is_some() { RUN } else { FIRST_RUN };
        let next = Arc::new(Run::new(opening, records));
        let mut state = self.lock();
        if self.opening() != opening {
            return None;
        }
        let full = full.and_then(|full| state.take(full));
        state.runs.push(Arc::clone(&next));
        drop(state);
        Some((next, full.map(|run| Full { run, calls: self })))
    }

    /// Returns the run of a thread that ends, if it is to be handed over.
    fn last(&self, run: &Arc<Run>) -> Option<Full<'_>> {
        let run = self.lock().take(run)?;
        Some(Full { run, calls: self })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes a run, which is on its way then, unless it was taken before.
    fn take(&mut self, run: &Arc<Run>) -> Option<Arc<Run>> {
        let place = self.runs.iter().position(|it| Arc::ptr_eq(it, run))?;
        self.on_their_way += 1;
        Some(self.runs.swap_remove(place))
    }
}

/// Records of one thread. The thread appends, and anyone reads below the published length.
pub(super) struct Run {
    opening: u64,
    length: AtomicUsize,
    records: Box<[UnsafeCell<MaybeUninit<CallRecord>>]>,
}

// SAFETY: one thread writes beyond the published length, and others read only below it, where
// nothing is written again.
unsafe impl Send for Run {}
// SAFETY: as above.
unsafe impl Sync for Run {}

impl Run {
    fn new(opening: u64, records: usize) -> Self {
        let empty = || UnsafeCell::new(MaybeUninit::uninit());
        Self {
            opening,
            length: AtomicUsize::new(0),
            records: (0..records).map(|_| empty()).collect(),
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

    /// Returns the memory that its records take.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.records)
    }

    /// Returns the first records in memory of their size, if they leave most of the run empty.
    pub(super) fn shrunk(self: Arc<Self>, count: usize) -> Arc<Self> {
        if count > self.records.len() / 4 {
            return self;
        }
        let copied = Self::new(self.opening, count);
        self.each(count, |record| {
            // SAFETY: the record is one of a call, and nobody else has the copy.
            unsafe { copied.push(record.cast::<CallRecord>().read_unaligned()) };
        });
        Arc::new(copied)
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
    /// Zero at the beginning of the call, one at its end.
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
struct ThreadCalls {
    /// The opening that the other fields belong to.
    opening: Cell<u64>,
    depth: Cell<usize>,
    begun: [Cell<Begun>; DEEPEST],
    run: RefCell<Option<Arc<Run>>>,
}

thread_local! {
    static OWN: ThreadCalls = const { ThreadCalls::new() };
}

impl ThreadCalls {
    const fn new() -> Self {
        const NONE: Begun = Begun {
            domain: 0,
            correlation: 0,
            start: 0,
        };
        Self {
            opening: Cell::new(0),
            depth: Cell::new(0),
            begun: [const { Cell::new(NONE) }; DEEPEST],
            run: RefCell::new(None),
        }
    }

    /// A call begins.
    fn begin(&self, opening: u64, domain: u32, correlation: u32) {
        if self.opening.replace(opening) != opening {
            self.depth.set(0);
        }
        let mut depth = self.depth.get();
        // The driver call within a call of the runtime has its number. torch does not show it.
        let outer = depth.checked_sub(1).map(|last| self.begun[last].get());
        if outer.is_some_and(|outer| outer.correlation == correlation && outer.domain != domain) {
            return;
        }
        if depth == DEEPEST {
            // The ends of these calls were not reported.
            depth = 0;
        }
        self.begun[depth].set(Begun {
            domain,
            correlation,
            start: ticks(),
        });
        self.depth.set(depth + 1);
    }

    /// A call ends. Returns when it began, or `None` if that was not reported.
    fn end(&self, opening: u64, domain: u32, correlation: u32) -> Option<u64> {
        if self.opening.get() != opening {
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
    fn record<'a>(&self, calls: &'a Calls, opening: u64, record: CallRecord) -> Option<Full<'a>> {
        let mut run = self.run.try_borrow_mut().ok()?;
        run.take_if(|run| run.opening != opening);
        // SAFETY: the run is this thread's.
        if run.as_ref().is_some_and(|run| unsafe { run.push(record) }) {
            return None;
        }
        let (next, full) = calls.exchange(opening, run.as_ref())?;
        // SAFETY: as above.
        unsafe { next.push(record) };
        *run = Some(next);
        full
    }
}

impl Drop for ThreadCalls {
    fn drop(&mut self) {
        if let Some(last) = self.run.get_mut().take().and_then(|run| CALLS.last(&run)) {
            hand_over(&last);
        }
    }
}

/// Gives records to the open collection.
fn hand_over(full: &Full<'_>) {
    let filled = full.filled();
    if filled.is_empty() {
        return;
    }
    if let Ok(interface) = Interface::find() {
        BLOCKS.keep(interface, filled);
    }
}

/// CUPTI calls back at the beginning and the end of a call.
///
/// # Safety
/// CUPTI passes the data of a call.
pub(super) unsafe extern "C" fn called(
    _user: *mut c_void,
    domain: u32,
    number: u32,
    data: *const CallbackData,
) {
    let opening = CALLS.opening();
    if opening == 0 {
        return;
    }
    // SAFETY: as the caller guarantees.
    let (site, correlation) = unsafe { ((*data).site, (*data).correlation) };
    // A thread that is ending has no variables any more.
    let _ = OWN.try_with(|own| {
        if site == BEGIN {
            own.begin(opening, domain, correlation);
            return;
        }
        let end = ticks();
        let Some(start) = own.end(opening, domain, correlation) else {
            return;
        };
        let kind = if domain == Domain::Driver.number() {
            kind::DRIVER
        } else {
            kind::RUNTIME
        };
        let record = CallRecord::new(kind, number, (start, end), correlation);
        if let Some(full) = own.record(&CALLS, opening, record) {
            // A panic must not reach CUPTI.
            let _ = catch_unwind(AssertUnwindSafe(|| hand_over(&full)));
        }
    });
}

impl CallRecord {
    pub(super) fn new(kind: u32, number: u32, (start, end): (u64, u64), correlation: u32) -> Self {
        let thread = ThreadHandle::current().to_raw();
        Self {
            kind,
            number,
            start,
            end,
            thread_high: (thread >> u32::BITS) as u32,
            thread: thread as u32,
            correlation,
            // It is not read.
            result: 0,
        }
    }
}

/// Returns a run with these records.
#[cfg(test)]
pub(super) fn run_of(records: &[CallRecord]) -> Arc<Run> {
    let run = Run::new(1, records.len());
    for &record in records {
        // SAFETY: nobody else has the run.
        unsafe { run.push(record) };
    }
    Arc::new(run)
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
            filled.each(&interface, |record| {
                // SAFETY: the records are calls.
                let correlation = unsafe { record.add(call::CORRELATION).cast::<[u8; 4]>().read() };
                found.push(u32::from_ne_bytes(correlation));
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
        assert_eq!(offset_of!(CallRecord, thread_high), call::THREAD_HIGH);
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
        calls.open();
        let count = (FIRST_RUN + RUN) as u32 + 3;
        let full = (0..count).filter_map(|correlation| own.record(&calls, 1, record(correlation)));
        let mut all: Vec<Filled> = full.map(|full| full.filled()).collect();
        assert_eq!(all.len(), 2);
        all.extend(calls.close());
        assert_eq!(correlations(&all), (0..count).collect::<Vec<_>>());
    }

    #[test]
    fn a_thread_goes_on_after_a_pause() {
        let (calls, own) = (Calls::new(), ThreadCalls::new());
        calls.open();
        own.record(&calls, calls.opening(), record(1));
        assert_eq!(correlations(&calls.close()), [1]);
        assert_eq!(calls.opening(), 0);
        calls.open();
        own.record(&calls, calls.opening(), record(2));
        assert_eq!(correlations(&calls.close()), [2]);
    }

    #[test]
    fn records_after_the_end_are_dropped() {
        let (calls, own) = (Calls::new(), ThreadCalls::new());
        calls.open();
        own.record(&calls, 1, record(1));
        assert_eq!(correlations(&calls.close()), [1]);
        own.record(&calls, 1, record(2));
        let other = ThreadCalls::new();
        other.record(&calls, 1, record(3));
        calls.open();
        own.record(&calls, 2, record(4));
        assert_eq!(correlations(&calls.close()), [4]);
        assert!(calls.close().is_empty());
    }

    #[test]
    fn the_run_of_a_thread_that_ends_is_taken_once() {
        let (calls, own) = (Calls::new(), ThreadCalls::new());
        calls.open();
        own.record(&calls, 1, record(1));
        let run = own.run.borrow_mut().take().unwrap();
        let last = calls.last(&run).map(|last| last.filled());
        assert_eq!(correlations(last.as_slice()), [1]);
        assert!(calls.last(&run).is_none());
        assert!(calls.close().is_empty());
    }

    // A thread has taken its full run, but the collection does not have it yet.
    #[test]
    fn a_collection_ends_after_the_runs_that_are_on_their_way() {
        let (calls, own) = (Calls::new(), ThreadCalls::new());
        calls.open();
        let count = FIRST_RUN as u32 + 1;
        let mut full = (0..count).filter_map(|number| own.record(&calls, 1, record(number)));
        let full = full.next().expect("the first run is full");
        let collection = Mutex::new(Vec::new());
        let left = thread::scope(|scope| {
            scope.spawn(|| {
                let full = full;
                for _ in 0..1_000 {
                    thread::yield_now();
                }
                collection.lock().unwrap().push(full.filled());
            });
            let left = calls.close();
            assert_eq!(collection.lock().unwrap().len(), 1);
            left
        });
        let mut all = collection.into_inner().unwrap();
        all.extend(left);
        assert_eq!(correlations(&all), (0..count).collect::<Vec<_>>());
    }

    // One call of a thousand threads takes no megabytes of the budget.
    #[test]
    fn a_run_that_is_mostly_empty_is_copied() {
        let (calls, own) = (Calls::new(), ThreadCalls::new());
        calls.open();
        own.record(&calls, 1, record(1));
        let [filled] = calls
            .close()
            .try_into()
            .unwrap_or_else(|_| panic!("one run"));
        assert_eq!(filled.cost(), size_of::<CallRecord>());
        assert_eq!(correlations(&[filled]), [1]);
    }

    #[test]
    fn threads_record_while_a_collection_ends() {
        let calls = Calls::new();
        calls.open();
        let (found, handed) = thread::scope(|scope| {
            let work = |base: u32| {
                let calls = &calls;
                scope.spawn(move || {
                    let own = ThreadCalls::new();
                    let records = (0..5_000).map(|index| record(base + index));
                    let full: Vec<Filled> = records
                        .filter_map(|record| own.record(calls, 1, record))
                        .map(|full| full.filled())
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
            let of_thread = all.iter().copied();
            let own = of_thread.filter(|it| (base..base + 10_000).contains(it));
            let own: Vec<u32> = own.collect();
            let count = own.len() as u32;
            assert_eq!(own, (base..base + count).collect::<Vec<_>>());
        }
    }
}
