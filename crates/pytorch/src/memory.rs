//! Allocations: an object that torch takes for a profiler's, in the slot of the thread where torch
//! looks for whom to tell.
//!
//! The slot is also that of torch's own profiler, which takes what it finds there for its own: ours
//! goes in only while the slot is empty, is padded with zeros, and answers every question with
//! zero; torch then refuses to start its profiler on this thread, with its usual words. The object
//! is one for the process and is never freed: threads that work for this one have it too, and may
//! tell it of memory at any time.

#![expect(
    unsafe_code,
    reason = "torch calls the object's functions, and keeps it by a pointer of C++"
)]

use std::cell::{Cell, OnceCell};
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use mindprof_record::{ThreadKey, is_profiling, memory};

use crate::error::{Error, Result};
use crate::symbols::{MemorySymbols, SharedPointer, Symbols};

type Function = unsafe extern "C" fn(*const Reporter) -> usize;

/// The functions of torch's `MemoryReportingInfoBase`, in its order, and after them room for those
/// of classes that torch may take the object for.
#[repr(C)]
struct Table {
    destructors: [Function; 2],
    report_usage: unsafe extern "C" fn(*const Reporter, u64, i64, u64, u64, u16),
    report_out_of_memory: Function,
    is_enabled: unsafe extern "C" fn(*const Reporter) -> bool,
    further: [Function; 16],
}

/// The object. Zeros follow its table: for a profiler they say that it is disabled.
#[repr(C)]
struct Reporter {
    table: &'static Table,
    zeros: [u64; 511],
}

static TABLE: Table = Table {
    destructors: [answer_zero; 2],
    report_usage,
    report_out_of_memory: answer_zero,
    is_enabled,
    further: [answer_zero; 16],
};

static REPORTER: Reporter = Reporter {
    table: &TABLE,
    zeros: [0; 511],
};

unsafe extern "C" fn answer_zero(_reporter: *const Reporter) -> usize {
    0
}

unsafe extern "C" fn is_enabled(_reporter: *const Reporter) -> bool {
    is_profiling() || (CHECKS.load(Ordering::Relaxed) != 0 && CHECKED_BYTES.get() != 0)
}

/// Is called by torch's allocators on whichever thread has the object. The device comes as two
/// bytes, its kind first, which is zero for the host.
unsafe extern "C" fn report_usage(
    _reporter: *const Reporter,
    address: u64,
    bytes: i64,
    total: u64,
    _reserved: u64,
    device: u16,
) {
    if device as u8 != 0 {
        return;
    }
    if CHECKS.load(Ordering::Relaxed) != 0 && is_checked(bytes) {
        return;
    }
    // A panic never reaches torch: what it was about is not told.
    let _ = catch_unwind(|| memory(address, bytes, || total));
}

/// Returns whether what is told of is the block that a check takes or gives back, which is no block
/// of the program's.
#[cold]
fn is_checked(bytes: i64) -> bool {
    if bytes == 0 || CHECKED_BYTES.get() != bytes {
        return false;
    }
    CHECKED_BYTES.set(-bytes.abs());
    true
}

/// On how many threads it is checked that memory is told of: asking that is cheaper than asking for
/// the thread's own. Relaxed, because the thread that checks sees what it has counted itself.
static CHECKS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// While it is checked that memory is told of: of how many bytes; below zero once it was, as
    /// the block is told of when it is given back.
    static CHECKED_BYTES: Cell<i64> = const { Cell::new(0) };

    /// How many sessions want the memory of this thread.
    static USERS: OnceCell<Arc<AtomicUsize>> = const { OnceCell::new() };
}

/// What became of the wish to hear of a thread's memory. Ends with it.
#[derive(Debug)]
pub enum MemoryReport {
    /// It is told of.
    Heard {
        /// Of which thread.
        thread: ThreadKey,
        /// By whom else it is wanted.
        users: Arc<AtomicUsize>,
        /// How to stop it.
        symbols: SlotSymbols,
    },
    /// Another profiler has the slot of the thread.
    SlotTaken,
}

/// The functions around a thread's slot.
#[derive(Clone, Copy)]
pub struct SlotSymbols(MemorySymbols);

impl std::fmt::Debug for SlotSymbols {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SlotSymbols")
    }
}

/// Has memory of the calling thread told to the recorder.
pub(crate) fn report(symbols: &Symbols) -> Result<MemoryReport> {
    let slot = SlotSymbols(
        symbols
            .memory
            .ok_or(Error::Symbol("c10::ThreadLocalDebugInfo"))?,
    );
    let users = USERS.with(|users| Arc::clone(users.get_or_init(Arc::default)));
    match slot.owner() {
        Owner::Nobody => slot.push(),
        // Of another session, or of one that ended on another thread.
        Owner::Us => {}
        Owner::Another => return Ok(MemoryReport::SlotTaken),
    }
    // Relaxed: it is read and changed with Python's lock held.
    users.fetch_add(1, Ordering::Relaxed);
    Ok(MemoryReport::Heard {
        thread: ThreadKey::current(),
        users,
        symbols: slot,
    })
}

/// Checks, with an allocation of so many bytes that `allocate` makes, that memory is told of.
///
/// # Errors
/// If it is not, or if the slot of this thread is taken.
pub(crate) fn check(symbols: &Symbols, bytes: i64, allocate: impl FnOnce()) -> Result<()> {
    let report = report(symbols)?;
    if matches!(report, MemoryReport::SlotTaken) {
        return Err(Error::Layout(
            "another profiler has this thread, so that memory cannot be checked".to_owned(),
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
        Err(Error::Layout("an allocation was not told of".to_owned()))
    }
}

impl Drop for MemoryReport {
    fn drop(&mut self) {
        let Self::Heard {
            thread,
            users,
            symbols,
        } = self
        else {
            return;
        };
        let is_last = users.fetch_sub(1, Ordering::Relaxed) == 1;
        // A slot can be emptied on its own thread alone. Elsewhere the object stays, and tells the
        // recorder nothing while nothing is recorded.
        if is_last && *thread == ThreadKey::current() {
            symbols.pop();
        }
    }
}

/// Who has the slot of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Nobody,
    Us,
    Another,
}

impl SlotSymbols {
    fn owner(&self) -> Owner {
        // SAFETY: the function looks at this thread's slots and throws nothing.
        let found = unsafe { (self.0.get)(self.0.kind) };
        if found.is_null() {
            Owner::Nobody
        } else if ptr::eq(found.cast(), &raw const REPORTER) {
            Owner::Us
        } else {
            Owner::Another
        }
    }

    fn push(&self) {
        // Without a control block nobody counts its owners, and nobody frees it.
        let pointer = SharedPointer {
            object: (&raw const REPORTER).cast(),
            ..SharedPointer::NULL
        };
        // SAFETY: a class that is not trivial is passed by its address, and stays the caller's.
        unsafe { (self.0.push)(self.0.kind, &raw const pointer) };
    }

    /// Empties the slot, if ours was the last that was pushed: else torch's function would throw.
    fn pop(&self) {
        if self.owner() != Owner::Us || !self.is_last_pushed() {
            return;
        }
        let mut popped = SharedPointer::NULL;
        // SAFETY: the last that was pushed is of this kind. What is returned owns nothing.
        unsafe { (self.0.pop)(&raw mut popped, self.0.kind) };
    }

    fn is_last_pushed(&self) -> bool {
        let mut current = SharedPointer::NULL;
        // SAFETY: the function returns one more owner of the thread's newest entry, which begins
        // with a pointer to the object that was pushed. The thread itself is an owner too, so that
        // this one is never the last, and is taken off the count where the control block has it:
        // after its table.
        unsafe {
            (self.0.current)(&raw mut current);
            if current.object.is_null() {
                return false;
            }
            let object = current.object.cast::<*const c_void>().read();
            if let Some(owners) = current.control.byte_add(8).cast::<AtomicI32>().as_ref()
                && owners.load(Ordering::Relaxed) > 1
            {
                owners.fetch_sub(1, Ordering::AcqRel);
            }
            ptr::eq(object.cast(), &raw const REPORTER)
        }
    }
}
