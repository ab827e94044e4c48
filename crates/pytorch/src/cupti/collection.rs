//! One collection of device records: from its start, by Kineto or by itself, to a part of a profile.

use std::ops::ControlFlow;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mindprof_model::{LossCause, Nanos, Part};
use mindprof_record::{ThreadHandle, TimeAxis, ticks};

use super::blocks::{BLOCKS, KeepRecords, Lost, Taken, complete, request};
use super::calls::{CALLS, called};
use super::interface::{Interface, Refusal, Subscription};
use super::records::{End, Records};
use crate::error::{Error, Result};
use crate::raw_results::{ReadOptions, ThreadIdentity, read_raw_results};

/// The process whose threads may hold the lock of the buffers; zero before the first collection.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether the records of the last collection were read.
static IS_READ: AtomicBool = AtomicBool::new(false);

/// Whether a collection has seen threads that launch graphs, other than the one that ended it.
static GRAPHS_ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// The side that switches CUPTI's records on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorder {
    /// Kineto, which has started before.
    Kineto,
    /// The collection itself, which costs less. Kineto must not record devices meanwhile, and CUPTI is
    /// detached from its subscriber, which Kineto becomes when it is first prepared.
    Own,
}

impl Recorder {
    /// Returns whether a collection can record itself with the CUPTI of this process.
    pub fn own_is_available() -> bool {
        Interface::find().is_ok_and(Interface::records)
    }
}

/// A collection of the records of CUDA devices.
///
/// A process has at most one, because CUPTI has one pair of functions for buffers. Dropping it
/// discards the records.
pub struct DeviceCollection {
    interface: &'static Interface,
    recorder: Recorder,
    number: u64,
    process: u32,
    /// When it ended, in ticks; [`u64::MAX`] before.
    end: AtomicU64,
    /// The subscription to calls of CUDA, while it records itself.
    subscription: Mutex<Option<Subscription>>,
}

impl DeviceCollection {
    /// Begins a collection. At most `budget` bytes of records are kept: the first or the last ones.
    ///
    /// # Errors
    /// If CUPTI is not in use, is unknown, refuses, or has another clock. Kineto then keeps the
    /// records if it has started.
    pub fn begin(recorder: Recorder, budget: usize, keep: KeepRecords) -> Result<Self> {
        let own = process::id();
        // Relaxed: it guards no other memory.
        let owner = OWNER.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed);
        if owner.is_err_and(|owner| owner != own) {
            return Err(forked());
        }
        let interface = Interface::find()?;
        if recorder == Recorder::Kineto {
            interface.check_clock()?;
        }
        // First, because nothing has changed if CUPTI refuses.
        let subscribed = (recorder == Recorder::Own).then(|| subscribe_alone(interface));
        let subscription = subscribed.transpose()?;
        let number = BLOCKS.open(budget, keep);
        let collection = Self {
            interface,
            recorder,
            number,
            process: own,
            end: AtomicU64::new(u64::MAX),
            subscription: Mutex::new(None),
        };
        if let Some(subscription) = subscription {
            collection.start(subscription)?;
            interface.check_clock()?;
        } else {
            collection.resume()?;
        }
        // Relaxed: it guards no other memory.
        IS_READ.store(false, Ordering::Relaxed);
        // Records that CUPTI dropped before are not missing here.
        interface.dropped(ptr::null_mut(), 0);
        Ok(collection)
    }

    /// Goes on after a pause. If Kineto records, it has started its kinds of records again before.
    ///
    /// # Errors
    /// If CUPTI refuses.
    pub fn resume(&self) -> Result<()> {
        self.check_process()?;
        if self.recorder == Recorder::Kineto {
            self.interface.register(request, complete)?;
            // Kineto's buffers go back to Kineto, and threads ask for buffers of ours from now on.
            self.interface.flush()?;
            self.interface.leave_out_calls();
            return Ok(());
        }
        if self.subscription().is_none() {
            self.start(self.interface.subscribe(called)?)?;
        }
        Ok(())
    }

    /// Starts recording itself.
    fn start(&self, own: Subscription) -> Result<()> {
        if let Err(error) = self.start_kinds() {
            self.interface.unsubscribe(&own);
            return Err(error);
        }
        CALLS.open();
        *self.subscription() = Some(own);
        Ok(())
    }

    fn start_kinds(&self) -> Result<()> {
        self.interface.register(request, complete)?;
        self.interface.start_kinds()?;
        // Kineto's buffers go back to Kineto, if it has recorded before.
        self.interface
            .flush()
            .inspect_err(|_| self.interface.stop_kinds())
    }

    /// Takes all records that CUPTI has so far, and stops recording unless Kineto does it.
    ///
    /// # Errors
    /// If CUPTI refuses.
    pub fn pause(&self) -> Result<()> {
        self.check_process()?;
        let subscription = self.subscription().take();
        if let Some(subscription) = &subscription {
            self.interface.unsubscribe(subscription);
        }
        let flushed = self.interface.flush();
        if subscription.is_some() {
            self.interface.stop_kinds();
            for filled in CALLS.close() {
                BLOCKS.keep(self.interface, filled);
            }
        }
        flushed
    }

    fn subscription(&self) -> MutexGuard<'_, Option<Subscription>> {
        self.subscription
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the last records. Kineto may stop afterwards.
    ///
    /// # Errors
    /// If CUPTI refuses.
    pub fn stop(&self) -> Result<()> {
        // Relaxed: it guards no other memory.
        self.end.fetch_min(ticks(), Ordering::Relaxed);
        self.pause()
    }

    /// Ends the collection after Kineto has stopped, and returns its records.
    pub fn end(self) -> DeviceRecords {
        // So that Kineto does not get a buffer of ours at its next start. Nothing is lost if CUPTI
        // refuses.
        let _ = self.pause();
        let is_ours = self.check_process().is_ok();
        let taken = is_ours.then(|| BLOCKS.close(self.number)).flatten();
        DeviceRecords {
            interface: self.interface,
            taken: taken.unwrap_or_default(),
            end: End {
                ticks: self.end.load(Ordering::Relaxed),
                thread: ThreadHandle::current(),
            },
        }
    }

    /// A forked child has no CUPTI, and the state of the buffers may be locked in it.
    fn check_process(&self) -> Result<()> {
        if self.process == process::id() {
            Ok(())
        } else {
            Err(forked())
        }
    }
}

fn forked() -> Error {
    Error::Cupti("this process was forked".to_owned())
}

impl Drop for DeviceCollection {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            return;
        }
        let taken = BLOCKS.close(self.number);
        let is_open = taken.is_some() || self.subscription().is_some();
        if let Some(taken) = taken {
            BLOCKS.recycle(taken.filled);
        }
        if is_open {
            // As when it ends.
            let _ = self.pause();
        }
    }
}

/// Subscribes to calls, and detaches CUPTI from another subscriber before. Not for a collection that
/// goes on, because CUPTI owns the names in its records.
fn subscribe_alone(interface: &Interface) -> Result<Subscription> {
    match interface.subscribe(called) {
        Err(Refusal::Taken(_)) => {
            // Its records go back to it. Those that cannot be handed back are lost.
            let _ = interface.flush();
            interface.detach()?;
            Ok(interface.subscribe(called)?)
        }
        subscribed => Ok(subscribed?),
    }
}

/// Detaches CUPTI from the process, which otherwise stays slower than before the collection. The
/// next collection attaches it again.
///
/// The records must have been read, the devices must have finished, and nobody else may use CUPTI.
///
/// # Errors
/// If CUPTI refuses, in a forked child, and if other threads launch graphs, or no records were read
/// that would tell.
pub fn detach() -> Result<()> {
    // Relaxed: it guards no other memory.
    if OWNER.load(Ordering::Relaxed) != process::id() {
        return Err(forked());
    }
    // Relaxed: it guards no other memory.
    if !IS_READ.load(Ordering::Relaxed) || other_threads_launch_graphs() {
        return Err(Error::Cupti("other threads may launch graphs".to_owned()));
    }
    Interface::find()?.detach()
}

/// Returns whether a collection of this process has seen threads that launch graphs, other than the
/// one that ended it.
///
/// Graphs that are launched while CUPTI is being detached fail on the device, and those that are
/// launched while a collection of ours alone begins or ends may crash, with eight threads within
/// seconds.
pub fn other_threads_launch_graphs() -> bool {
    // Relaxed: it guards no other memory.
    GRAPHS_ELSEWHERE.load(Ordering::Relaxed)
}

/// The records of a collection that has ended, as CUPTI wrote them.
///
/// They are read once the window's time axis is known.
pub struct DeviceRecords {
    interface: &'static Interface,
    taken: Taken,
    end: End,
}

impl DeviceRecords {
    /// Reads the records into a part, without those from before the window of the time axis.
    ///
    /// # Errors
    /// If torch's rules cannot be applied to a record.
    pub fn into_part(self, axis: &TimeAxis) -> Result<Part> {
        let Self {
            interface,
            taken,
            end,
        } = self;
        let records = Records::read(interface, &taken.filled, axis, end);
        BLOCKS.recycle(taken.filled);
        // Relaxed: they guard no other memory.
        GRAPHS_ELSEWHERE.fetch_or(records.has_graphs_elsewhere, Ordering::Relaxed);
        IS_READ.store(true, Ordering::Relaxed);
        let mut lost = taken.lost;
        // The window begins after records that made room, if operators did, too.
        let is_in_window = |until| axis.at_ticks(until) > Nanos::ZERO;
        for evicted in taken.evicted.iter().filter(|it| is_in_window(it.until)) {
            lost.over_budget += evicted.count;
        }
        part_of(&records, axis, lost)
    }
}

/// Makes a part of records, and of what is known to be missing.
pub(super) fn part_of(records: &Records, axis: &TimeAxis, lost: Lost) -> Result<Part> {
    let options = ReadOptions {
        time_zero: axis.reference_unix_ns().into(),
        inputs: false,
        stacks: false,
        threads: ThreadIdentity::System,
        // A launch misses the record of its work if that was lost, but not if a call was.
        known_loss: lost.over_budget.others + lost.dropped,
    };
    let read = read_raw_results(records, options, |_| Ok(ControlFlow::Continue(())))?;
    let mut part = read.part;
    part.add_loss(LossCause::Budget, lost.over_budget.all());
    part.add_loss(LossCause::Unreported, lost.dropped);
    Ok(part)
}
