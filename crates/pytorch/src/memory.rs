//! Records allocations through a fake profiler object in torch's thread-local debug-info slot, to
//! which allocators report.
//!
//! torch's own profiler uses the same slot and takes any object in it for its own. Ours therefore
//! goes in only while the slot is empty, is padded with zeros, and returns zero from every method;
//! torch then refuses to start its profiler on this thread, with its usual error. There is one
//! object per process, and it is never freed: worker threads inherit it and may report to it at any
//! time.

#![expect(
    unsafe_code,
    reason = "torch calls the object's virtual functions and keeps a pointer to it"
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

/// The virtual table of torch's `MemoryReportingInfoBase`, followed by entries for the classes that
/// torch may take the object for.
#[repr(C)]
struct Table {
    destructors: [Function; 2],
    report_usage: unsafe extern "C" fn(*const Reporter, u64, i64, u64, u64, u16),
    report_out_of_memory: Function,
    is_enabled: unsafe extern "C" fn(*const Reporter) -> bool,
    further: [Function; 16],
}

/// The object. Zeros follow its virtual table: read as a profiler's fields, they say that it is
/// disabled.
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

/// Called by torch's allocators on any thread that has the object. `device` is two bytes, the first
/// of which is the kind of device, zero for the CPU.
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

    /// How many sessions record the memory of this thread.
    static USERS: OnceCell<Arc<AtomicUsize>> = const { OnceCell::new() };
}

/// The outcome of a request for a thread's allocations. Dropping it ends the reports.
#[derive(Debug)]
pub enum MemoryReport {
    /// Allocations are reported.
    Heard {
        /// The thread whose slot was filled.
        thread: ThreadKey,
        /// How many sessions use the slot.
        users: Arc<AtomicUsize>,
        /// The functions that empty the slot.
        symbols: SlotSymbols,
    },
    /// Another profiler occupies the slot of the thread.
    SlotTaken,
}

/// The functions that access a thread's slot.
#[derive(Clone, Copy)]
pub struct SlotSymbols(MemorySymbols);

impl std::fmt::Debug for SlotSymbols {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SlotSymbols")
    }
}

/// Makes torch report the calling thread's allocations to the recorder.
pub(crate) fn report(symbols: &Symbols) -> Result<MemoryReport> {
    let slot = SlotSymbols(
        symbols
            .memory
            .ok_or(Error::Symbol("c10::ThreadLocalDebugInfo"))?,
    );
    let users = USERS.with(|users| Arc::clone(users.get_or_init(Arc::default)));
    match slot.owner() {
        Owner::Nobody => slot.push(),
        // Pushed by another session, or by one that ended on another thread.
        Owner::Us => {}
        Owner::Another => return Ok(MemoryReport::SlotTaken),
    }
    // Relaxed: it is accessed with Python's lock held.
    users.fetch_add(1, Ordering::Relaxed);
    Ok(MemoryReport::Heard {
        thread: ThreadKey::current(),
        users,
        symbols: slot,
    })
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
        // A slot can be emptied only on its own thread. On others the object stays; while nothing
        // is recorded, it ignores reports.
        if is_last && *thread == ThreadKey::current() {
            symbols.pop();
        }
    }
}

/// The owner of a thread's slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Nobody,
    Us,
    Another,
}

impl SlotSymbols {
    fn owner(&self) -> Owner {
        // SAFETY: the function reads this thread's slots and does not throw.
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
        // Without a control block, owners are not counted and the object is never freed.
        let pointer = SharedPointer {
            object: (&raw const REPORTER).cast(),
            ..SharedPointer::NULL
        };
        // SAFETY: C++ passes a non-trivial class by address, and the caller keeps it, as `pointer`
        // does here. The object is static.
        unsafe { (self.0.push)(self.0.kind, &raw const pointer) };
    }

    /// Empties the slot, but only if our object was pushed last, because torch's function throws
    /// otherwise.
    fn pop(&self) {
        if self.owner() != Owner::Us || !self.is_last_pushed() {
            return;
        }
        let mut popped = SharedPointer::NULL;
        // SAFETY: the last entry is of this kind, so the function does not throw. The returned
        // pointer has no control block and owns nothing.
        unsafe { (self.0.pop)(&raw mut popped, self.0.kind) };
    }

    fn is_last_pushed(&self) -> bool {
        let mut current = SharedPointer::NULL;
        // SAFETY: the function returns one more owner of the thread's newest entry, which begins
        // with a pointer to the pushed object. The thread is an owner too, so ours is never the
        // last: it is released by decrementing the count, which follows the virtual table of the
        // control block.
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
