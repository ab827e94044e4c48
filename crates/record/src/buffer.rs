//! The shared side of a thread's buffer: its chunks, its open scopes and its losses.
//!
//! The owner (`local`) appends; `recorder` reads when a window closes. The lock is taken when a
//! chunk is added, when an input list or a stack is new, when a scope ends on another thread, and
//! when a window closes: never per event.

#![expect(
    unsafe_code,
    reason = "the holder of the lock may push to the chunk of scopes that end on other threads"
)]

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mindprof_model::{InputsTable, LossCause};

use crate::budget;
use crate::chunk::{Chunk, FIRST};
use crate::forgotten::Forgotten;
use crate::gate;
use crate::lost::{EarlyLoss, LossCounters, LostKind};
use crate::open::OpenStack;
use crate::raw::Record;

/// The records of one thread in the current recording. The owner thread writes it through `local`,
/// the registry keeps it alive after the thread has exited, and `ThreadCapture` reads it when a
/// window closes.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// The key of the thread, see `thread_key`.
    pub(crate) index: u32,
    /// The operating system's name of the thread.
    pub(crate) name: Box<str>,
    /// The scopes that are open on the thread.
    pub(crate) open: OpenStack,
    native: AtomicU64,
    /// See [`ThreadHandle`].
    pub(crate) handle: ThreadHandle,
    pub(crate) lost: LossCounters,
    /// How many operators that began on the thread ended on others, if they were counted under a
    /// limit and the thread does not know yet. Relaxed: nothing else is published through it.
    pub(crate) left_elsewhere: AtomicU32,
    retired: AtomicBool,
    contents: Mutex<Contents>,
}

/// The part of a buffer that its lock guards.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The recording that the rest belongs to; zero before the first one.
    pub(crate) epoch: u32,
    /// The chunks of scopes that ended on other threads, then the owner's in the order in which
    /// they were filled.
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// The chunk that other threads write to while they hold the lock.
    elsewhere: Option<Arc<Chunk>>,
    /// The distinct input lists.
    pub(crate) inputs: InputsTable,
    /// The distinct stacks, each as the number of its caller and the name of its innermost frame.
    pub(crate) stacks: Vec<[u32; 2]>,
    /// The lost records that began before the newest change of a window.
    pub(crate) lost_early: Vec<EarlyLoss>,
    /// The records that made room for newer ones.
    pub(crate) forgotten: Forgotten,
}

/// Whether the thread of a buffer can still write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Running,
    Exited,
}

/// The number of early losses that are kept. Further ones count for every window.
const MOST_EARLY: usize = 4096;

impl Buffer {
    /// Makes the buffer of the calling thread.
    pub(crate) fn new(index: u32) -> Self {
        let native = native_id(index);
        Self {
            index,
            name: native_name(native),
            open: OpenStack::new(),
            native: AtomicU64::new(native),
            handle: ThreadHandle::current(),
            lost: LossCounters::default(),
            left_elsewhere: AtomicU32::new(0),
            retired: AtomicBool::new(false),
            contents: Mutex::default(),
        }
    }

    /// Returns the operating system's thread id.
    pub(crate) fn native(&self) -> u64 {
        // Relaxed: it changes only in a forked child, before that has a second thread.
        self.native.load(Ordering::Relaxed)
    }

    /// Reads the thread id of the calling thread again, since a fork changes it.
    pub(crate) fn rename(&self) {
        self.native.store(native_id(self.index), Ordering::Relaxed);
    }

    /// Locks the contents.
    pub(crate) fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Empties the buffer for recording `epoch`. Only the owner calls this.
    pub(crate) fn begin_epoch(&self, epoch: u32) {
        let mut contents = self.contents();
        *contents = Contents {
            epoch,
            ..Contents::default()
        };
        self.open.clear();
        // Read together with the epoch, under the lock that is held here.
        self.lost.clear();
    }

    /// Ends a scope of recording `epoch` on a thread other than the owner.
    pub(crate) fn end_elsewhere(&self, epoch: u32, index: u32, mut record: Record) {
        let mut contents = self.contents();
        if contents.epoch != epoch {
            return;
        }
        record.name |= Record::ASYNC;
        if !contents.push_elsewhere(record) {
            self.count_lost(&record, || contents);
        }
        self.open.close_out_of_order(index);
    }

    /// Counts a record that the budget had no room for. The contents are locked only if a window
    /// opened, paused or resumed since the record began.
    pub(crate) fn count_lost<'a>(
        &'a self,
        record: &Record,
        contents: impl FnOnce() -> MutexGuard<'a, Contents>,
    ) {
        let (kind, start) = (LostKind::of(record), record.start);
        if start < gate::last_change() {
            let early = &mut contents().lost_early;
            if early.len() < MOST_EARLY {
                early.push(EarlyLoss { kind, start });
                return;
            }
        }
        self.lost.add(kind, LossCause::Budget, 1);
    }

    /// Marks the thread as exited.
    pub(crate) fn retire(&self) {
        // Release: pairs with the acquire in `is_retired`, after which the thread's last records
        // are visible.
        self.retired.store(true, Ordering::Release);
    }

    /// Returns whether the thread can still write to the buffer.
    pub(crate) fn owner(&self) -> Owner {
        if self.is_retired() {
            Owner::Exited
        } else {
            Owner::Running
        }
    }

    /// Returns whether the thread has exited.
    pub(crate) fn is_retired(&self) -> bool {
        // Acquire: pairs with the release in `retire`.
        self.retired.load(Ordering::Acquire)
    }
}

impl Contents {
    /// Appends a record of a scope that ended on another thread, if there is room for it.
    fn push_elsewhere(&mut self, record: Record) -> bool {
        // SAFETY: only this function pushes to the `elsewhere` chunk, and `&mut self` is reached
        // through the buffer's lock, so one thread at a time pushes.
        let push = |chunk: &Arc<Chunk>| unsafe { chunk.push(record) };
        if self.elsewhere.as_ref().is_some_and(push) {
            return true;
        }
        let Some(chunk) = Chunk::within_budget(FIRST).map(Arc::new) else {
            return false;
        };
        push(&chunk);
        self.chunks.insert(0, Arc::clone(&chunk));
        self.elsewhere = Some(chunk);
        true
    }

    /// Returns the time of the last record of the oldest chunk that nobody writes to, in ticks.
    pub(crate) fn oldest_end(&self, owner: Owner) -> Option<u64> {
        let chunk = &self.chunks[self.oldest(owner)?];
        let mut end = 0;
        for index in (0..chunk.len()).rev() {
            let record = chunk.record(index);
            end = end.max(record.time().unwrap_or(0));
            // Other records may refer to scopes that began long before.
            if record.is_scope() || record.is_memory() {
                break;
            }
        }
        Some(end)
    }

    /// Gives up the oldest chunk that nobody writes to, sums up its records and releases its bytes
    /// from the budget. Its memory is used again unless a capture shares it.
    pub(crate) fn forget_oldest(&mut self, owner: Owner) -> bool {
        let Some(oldest) = self.oldest(owner) else {
            return false;
        };
        let chunk = self.chunks.remove(oldest);
        for record in chunk.records(chunk.len()) {
            self.forgotten.add(record);
        }
        budget::release_records(chunk.bytes());
        true
    }

    /// Returns the index of the oldest chunk that nobody writes to. The owner writes to the last
    /// one, other threads to `elsewhere`.
    fn oldest(&self, owner: Owner) -> Option<usize> {
        let written = match owner {
            Owner::Running => 1,
            Owner::Exited => 0,
        };
        let settled = self.chunks.len().checked_sub(written)?;
        let is_settled = |chunk: &Arc<Chunk>| {
            let elsewhere = self.elsewhere.as_ref();
            !elsewhere.is_some_and(|written| Arc::ptr_eq(written, chunk))
        };
        self.chunks[..settled].iter().position(is_settled)
    }

    /// Drops the chunks.
    pub(crate) fn release(&mut self) {
        self.chunks.clear();
        self.elsewhere = None;
    }
}

#[cfg(target_os = "linux")]
fn native_id(_index: u32) -> u64 {
    u64::from(
        rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs(),
    )
}

#[cfg(not(target_os = "linux"))]
fn native_id(index: u32) -> u64 {
    u64::from(index) + 1
}

/// The C library's handle of a thread, by which CUPTI names threads. Unlike the system's id it is
/// used again soon after the thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadHandle(u64);

impl ThreadHandle {
    /// Returns the handle of the calling thread.
    #[cfg(unix)]
    pub fn current() -> Self {
        // SAFETY: the function has no preconditions.
        Self(unsafe { libc::pthread_self() } as u64)
    }

    /// Returns zero: there are no such handles here.
    #[cfg(not(unix))]
    pub fn current() -> Self {
        Self(0)
    }

    /// Returns the value of the handle.
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// Returns whether a collector means this handle by a number, which may be its low half, with the
    /// sign extended.
    pub const fn is_meant_by(self, number: u64) -> bool {
        let high = number >> u32::BITS;
        let is_whole = high != 0 && high != u32::MAX as u64;
        self.0 as u32 == number as u32 && (!is_whole || self.0 == number)
    }

    /// Returns a handle by its value, for tests.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

fn native_name(native: u64) -> Box<str> {
    let of_kernel = || std::fs::read(format!("/proc/self/task/{native}/comm")).ok();
    // Miri's threads are not the kernel's.
    let from_kernel = if cfg!(miri) { None } else { of_kernel() };
    match from_kernel {
        Some(bytes) => String::from_utf8_lossy(&bytes).trim_end().into(),
        None => std::thread::current().name().unwrap_or_default().into(),
    }
}
