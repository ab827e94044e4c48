//! Records allocations through an object in torch's thread-local debug-info slot for profilers, to
//! which allocators report.
//!
//! torch takes any object in that slot for a profiler of its own. docs/pytorch.md lists the ways in
//! which it gets there and why each is safe. Ours goes in only while the slot is empty, gives way to
//! a profiler of torch, and is gone from every thread as soon as its last recording has ended.

#![expect(
    unsafe_code,
    reason = "torch calls the object's virtual functions and keeps a pointer to it"
)]

use std::cell::Cell;
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use mindprof_model::DeviceKind;
use mindprof_record::{MemoryDevice, ThreadKey, device_memory, memory};

use crate::error::{Error, Result};
use crate::observer::Observer;
use crate::symbols::{MemorySymbols, SharedPointer, Symbols};

type Function = unsafe extern "C" fn(*const Reporter) -> usize;

/// The virtual table of torch's `MemoryReportingInfoBase`, followed by entries for the classes that
/// torch may take the object for.
#[repr(C)]
struct Table {
    destructors: [Function; 2],
    report_usage: unsafe extern "C" fn(*const Reporter, u64, i64, u64, u64, u16),
    report_out_of_memory: Function,
    is_enabled: unsafe extern "C" fn(*const Reporter) -> bool,
    profiler_type: unsafe extern "C" fn(*const Reporter) -> i32,
    further: [Function; 16],
}

/// The object, one per thread with a recording. Zeros follow its virtual table: read as a
/// profiler's fields, they say that it is disabled and has no callback.
///
/// It is never freed, because a thread may be calling it at any time, but it is used again.
#[repr(C)]
struct Reporter {
    table: &'static Table,
    zeros: [AtomicUsize; 511],
    /// How many recordings it serves. If there are none, it ignores reports.
    sessions: AtomicUsize,
    /// How often a profiler of torch has taken a slot from the object.
    yields: AtomicUsize,
    /// The entry of torch's list through which torch finds the object. It has us as an owner.
    entry: [AtomicPtr<c_void>; 2],
    /// The reporter that was made before this one.
    next: *const Self,
}

// SAFETY: `next` is written before the reporter is shared, and refers to one that lives as long as
// the process. All else is atomic.
unsafe impl Sync for Reporter {}

static TABLE: Table = Table {
    destructors: [answer_zero; 2],
    report_usage,
    report_out_of_memory: answer_zero,
    is_enabled,
    profiler_type,
    further: [answer_zero; 16],
};

/// All reporters: the one that was made last, which refers to the one before.
static REPORTERS: AtomicPtr<Reporter> = AtomicPtr::new(ptr::null_mut());

fn reporters() -> impl Iterator<Item = &'static Reporter> {
    // Acquire: pairs with the release in `Reporter::claim`.
    let mut next: *const Reporter = REPORTERS.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: the pointer is null or that of a reporter, which lives as long as the process.
        let reporter = unsafe { next.as_ref() }?;
        next = reporter.next;
        Some(reporter)
    })
}

impl Reporter {
    /// Returns a reporter that nobody uses, for one session.
    fn claim() -> &'static Self {
        let take = |reporter: &&Self| {
            let taken = &reporter.sessions;
            (taken.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)).is_ok()
        };
        reporters().find(take).unwrap_or_else(Self::make)
    }

    #[cold]
    fn make() -> &'static Self {
        watch_forks();
        let mut first = REPORTERS.load(Ordering::Relaxed);
        let made = Box::leak(Box::new(Self {
            table: &TABLE,
            zeros: [const { AtomicUsize::new(0) }; 511],
            sessions: AtomicUsize::new(1),
            yields: AtomicUsize::new(0),
            entry: [const { AtomicPtr::new(ptr::null_mut()) }; 2],
            next: first,
        }));
        loop {
            // Release: a thread that finds the reporter sees its fields.
            match REPORTERS.compare_exchange(first, made, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return made,
                Err(now) => first = now,
            }
            made.next = first;
        }
    }

    fn is_live(&self) -> bool {
        self.sessions.load(Ordering::Relaxed) != 0
    }

    /// Removes the object from its entry. Every thread that has the entry finds the slot empty from
    /// then on. The caller becomes the owner that the reporter was.
    fn vanish(&self) -> SharedPointer {
        let [object, control] = &self.entry;
        let entry = SharedPointer {
            object: object.swap(ptr::null_mut(), Ordering::AcqRel),
            control: control.swap(ptr::null_mut(), Ordering::AcqRel),
        };
        // SAFETY: an entry begins with the pointer to the object, and lives because we own it.
        // torch reads the pointer without a lock, as one word: it finds the object, which is never
        // freed, or nothing.
        if let Some(found) = unsafe { entry.object.cast::<AtomicPtr<c_void>>().as_ref() } {
            found.store(ptr::null_mut(), Ordering::Release);
        }
        entry
    }
}

/// Empties every slot in a forked child, which records nothing.
#[cfg(unix)]
fn watch_forks() {
    extern "C" fn in_child() {
        for reporter in reporters() {
            // The entry keeps us as an owner: the child may not free it here.
            reporter.vanish();
            reporter.sessions.store(0, Ordering::Relaxed);
        }
    }
    static WATCHED: Once = Once::new();
    // SAFETY: the hook lives as long as the process and accesses only atomics, which a child may do
    // before anything else.
    WATCHED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}

#[cfg(not(unix))]
fn watch_forks() {}

unsafe extern "C" fn answer_zero(_reporter: *const Reporter) -> usize {
    0
}

unsafe extern "C" fn is_enabled(reporter: *const Reporter) -> bool {
    // SAFETY: torch passes an object of the slot, which is never freed.
    unsafe { &*reporter }.is_live()
}

/// Returns torch's number of the kind of profiler: Kineto's, or that of none.
unsafe extern "C" fn profiler_type(reporter: *const Reporter) -> i32 {
    const KINETO: i32 = 2;
    // SAFETY: as in `is_enabled`.
    if unsafe { &*reporter }.is_live() {
        KINETO
    } else {
        0
    }
}

/// Called by torch's allocators on any thread that has the object. `device` is two bytes, the first
/// of which is the kind of device, zero for the CPU.
unsafe extern "C" fn report_usage(
    reporter: *const Reporter,
    address: u64,
    bytes: i64,
    total: u64,
    reserved: u64,
    device: u16,
) {
    // SAFETY: as in `is_enabled`.
    if !unsafe { &*reporter }.is_live() {
        return;
    }
    let [kind, index] = device.to_le_bytes();
    if kind != 0 {
        if let Some(kind) = DeviceKind::from_number(kind.into()) {
            let device = MemoryDevice::new(kind, index);
            // A panic never reaches torch; the allocation is then not recorded.
            let _ = catch_unwind(|| device_memory(device, address, bytes, total, reserved));
        }
        return;
    }
    if CHECKS.load(Ordering::Relaxed) != 0 && is_checked(bytes) {
        return;
    }
    // A panic never reaches torch; the allocation is then not recorded.
    let _ = catch_unwind(|| memory(address, bytes, || total));
}

/// Returns whether this is the block of a running check, which is not the program's.
#[cold]
fn is_checked(bytes: i64) -> bool {
    if bytes == 0 || CHECKED_BYTES.get() != bytes {
        return false;
    }
    CHECKED_BYTES.set(-bytes.abs());
    true
}

/// How many threads are running a check. Reading it is cheaper than reading the thread-local.
/// Relaxed, because the checking thread sees its own increment.
static CHECKS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of bytes that a running check expects; negated once they were reported, because
    /// the block is reported again when it is freed.
    static CHECKED_BYTES: Cell<i64> = const { Cell::new(0) };

    /// How many actions of this thread hide the object, one inside of the other.
    static HIDING: Cell<usize> = const { Cell::new(0) };
}

/// The outcome of a request for a thread's allocations. Dropping it ends the reports.
#[derive(Debug)]
pub enum MemoryReport {
    /// Allocations are reported.
    Heard(Reports),
    /// Another profiler occupies the slot of the thread, or has left its callbacks there.
    SlotTaken,
}

/// A recording that is served by the object in a thread's slot. Dropping it empties the slot, if it
/// was the last one.
pub struct Reports {
    reporter: &'static Reporter,
    /// How often the reporter had given way when the recording began.
    yields: usize,
    thread: ThreadKey,
    process: u32,
    slot: SlotSymbols,
}

impl std::fmt::Debug for Reports {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Reports")
    }
}

impl Reports {
    /// Returns how often a profiler of torch has taken the slot from the recording. Allocations of
    /// the thread are missing from each start of such a profiler to its end.
    pub fn gaps(&self) -> usize {
        let yields = self.reporter.yields.load(Ordering::Relaxed);
        yields.wrapping_sub(self.yields)
    }
}

/// The functions that access a thread's slot.
#[derive(Clone, Copy)]
struct SlotSymbols(MemorySymbols);

/// Makes torch report the calling thread's allocations to the recorder.
pub(crate) fn report(symbols: &Symbols) -> Result<MemoryReport> {
    let slot = SlotSymbols(
        symbols
            .memory
            .ok_or(Error::Symbol("c10::ThreadLocalDebugInfo"))?,
    );
    let reporter = match slot.owner() {
        // Callbacks of a profiler that was there before: they would take the object for it.
        Owner::Nobody if slot.has_callbacks() => return Ok(MemoryReport::SlotTaken),
        Owner::Nobody => {
            let reporter = Reporter::claim();
            slot.push(reporter);
            reporter
        }
        // That of another session of this thread, or of a thread whose state this one inherited.
        Owner::Us(reporter) => {
            reporter.sessions.fetch_add(1, Ordering::Relaxed);
            reporter
        }
        Owner::Another => return Ok(MemoryReport::SlotTaken),
    };
    Ok(MemoryReport::Heard(Reports {
        reporter,
        yields: reporter.yields.load(Ordering::Relaxed),
        thread: ThreadKey::current(),
        process: std::process::id(),
        slot,
    }))
}

impl Observer {
    /// Returns whether the memory of the calling thread is recorded, because it began a recording
    /// or inherited the state of a thread that did.
    pub fn hears_memory_here(&self) -> bool {
        let slot = self.symbols.memory.map(SlotSymbols);
        slot.is_some_and(|slot| matches!(slot.owner(), Owner::Us(_)))
    }

    /// Hides the object from torch on the calling thread while `action` runs, so that torch does
    /// not take it for a profiler of its own. Allocations of the thread are not recorded meanwhile.
    ///
    /// If `action` starts a profiler of torch, the object stays hidden below that profiler's entry.
    /// It is back after the `action` that ends the profiler, unless torch leaves callbacks of it:
    /// they would take the object for the profiler.
    ///
    /// ```text
    /// before:   ours
    /// start:    ours  empty  torch's
    /// end:      ours
    /// ```
    pub fn without_slot<T>(&self, action: impl FnOnce() -> T) -> T {
        let Some(slot) = self.symbols.memory.map(SlotSymbols) else {
            return action();
        };
        let hidden = match slot.owner() {
            Owner::Us(reporter) => Some(reporter),
            Owner::Nobody | Owner::Another => None,
        };
        if hidden.is_some() {
            slot.push_object(ptr::null());
        }
        HIDING.set(HIDING.get() + 1);
        let result = action();
        HIDING.set(HIDING.get() - 1);
        // An action around this one still needs the empty entry.
        if HIDING.get() == 0 && !slot.has_callbacks() {
            slot.pop_empty();
        }
        let is_back = matches!(slot.owner(), Owner::Us(_));
        if let Some(reporter) = hidden.filter(|_| !is_back) {
            reporter.yields.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

/// Checks that torch reports an allocation of `bytes` bytes, which `allocate` makes.
///
/// # Errors
/// If it is not reported, or if the slot of this thread is occupied.
pub(crate) fn check(symbols: &Symbols, bytes: i64, allocate: impl FnOnce()) -> Result<()> {
    let report = report(symbols)?;
    if matches!(report, MemoryReport::SlotTaken) {
        return Err(Error::Layout(
            "another profiler occupies this thread, so memory cannot be checked".to_owned(),
        ));
    }
    CHECKED_BYTES.set(bytes);
    CHECKS.fetch_add(1, Ordering::Relaxed);
    allocate();
    CHECKS.fetch_sub(1, Ordering::Relaxed);
    let was_heard = CHECKED_BYTES.replace(0) == -bytes;
    drop(report);
    if was_heard {
        Ok(())
    } else {
        Err(Error::Layout("an allocation was not reported".to_owned()))
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        // A forked child has forgotten the recordings of its parent.
        if self.process != std::process::id() || self.reporter.sessions.load(Ordering::Relaxed) == 0
        {
            return;
        }
        // The object vanishes before it can be claimed again. Relaxed: the caller holds Python's
        // lock, here and where sessions are added.
        if self.reporter.sessions.load(Ordering::Relaxed) == 1 {
            let entry = self.reporter.vanish();
            // Released while the thread is an owner too, which then frees the entry.
            release(entry);
            // An entry can be removed only on its own thread. On others it stays, without an
            // object, until the thread records again.
            if self.thread == ThreadKey::current() {
                self.slot.pop_empty();
            }
        }
        self.reporter.sessions.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The owner of a thread's slot.
enum Owner {
    Nobody,
    Us(&'static Reporter),
    Another,
}

impl SlotSymbols {
    fn has_callbacks(&self) -> bool {
        // SAFETY: the function reads this thread's callbacks and does not throw.
        unsafe { (self.0.has_callbacks)() }
    }

    fn owner(&self) -> Owner {
        // SAFETY: the function reads this thread's slots and does not throw. The object begins with
        // its virtual table, and one with ours is a reporter, which is never freed.
        unsafe {
            let found = (self.0.get)(self.0.kind).cast::<Reporter>();
            if found.is_null() {
                Owner::Nobody
            } else if ptr::eq(found.cast::<*const Table>().read(), &raw const TABLE) {
                Owner::Us(&*found)
            } else {
                Owner::Another
            }
        }
    }

    /// Puts a reporter into the slot, which is empty.
    fn push(&self, reporter: &'static Reporter) {
        while self.pop_empty() {}
        self.push_object(ptr::from_ref(reporter).cast());
        let entry = self.newest();
        reporter.entry[0].store(entry.object.cast_mut(), Ordering::Release);
        reporter.entry[1].store(entry.control.cast_mut(), Ordering::Release);
    }

    fn push_object(&self, object: *const c_void) {
        // Without a control block, owners are not counted and the object is never freed.
        let pointer = SharedPointer {
            object,
            ..SharedPointer::NULL
        };
        // SAFETY: C++ passes a non-trivial class by address, and the caller keeps it, as `pointer`
        // does here. The object is null or lives as long as the process.
        unsafe { (self.0.push)(self.0.kind, &raw const pointer) };
    }

    /// Removes the newest entry if it is one for a profiler and has no object: only our entries are
    /// ever so. Returns whether it was.
    fn pop_empty(&self) -> bool {
        let newest = self.newest();
        // SAFETY: an entry begins with the shared pointer to its object, followed by its kind. It
        // lives because we are an owner.
        let is_empty = unsafe {
            !newest.object.is_null()
                && newest.object.cast::<*const c_void>().read().is_null()
                && self.0.kind.is_at(newest.object.byte_add(16))
        };
        release(newest);
        if is_empty {
            let mut popped = SharedPointer::NULL;
            // SAFETY: the newest entry is of this kind, so the function does not throw. The
            // returned pointer is null and owns nothing.
            unsafe { (self.0.pop)(&raw mut popped, self.0.kind) };
        }
        is_empty
    }

    /// Returns the newest entry of this thread's list. The caller becomes one of its owners.
    fn newest(&self) -> SharedPointer {
        let mut newest = SharedPointer::NULL;
        // SAFETY: the function writes a shared pointer, which may be null, and does not throw.
        unsafe { (self.0.current)(&raw mut newest) };
        newest
    }
}

/// Gives up the ownership of an entry. If nobody else owns it, it is leaked.
fn release(entry: SharedPointer) {
    if entry.control.is_null() {
        return;
    }
    // SAFETY: the control block lives because we are an owner; the count of owners follows its
    // virtual table. If another owner gives up in between, the entry is leaked, never freed twice.
    let owners = unsafe { &*entry.control.byte_add(8).cast::<AtomicI32>() };
    if owners.load(Ordering::Relaxed) > 1 {
        owners.fetch_sub(1, Ordering::AcqRel);
    }
}
