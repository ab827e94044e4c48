//! The recording of a closed window: chunks and tables as the threads left them, not yet a profile.

use std::ops::Range;
use std::sync::Arc;

use mindprof_model::{InputsId, InputsTable, Loss, Metadata, Part, Profile};
use rustc_hash::FxHashSet;

use crate::assemble;
use crate::buffer::{Buffer, ThreadHandle};
use crate::chunk::Chunk;
use crate::clock::{Anchor, TimeAxis};
use crate::forgotten::Forgotten;
use crate::limit::Only;
use crate::lost::{EarlyLoss, LossByKind};
use crate::name::NameLease;
use crate::open::{OpenEntry, OpenSnapshot};
use crate::options::Calls;
use crate::raw::Record;
use crate::samples::SampleCapture;
use crate::thread_key::ThreadKey;

/// The recording of one window, returned by [`Session::stop`](crate::Session::stop). It shares the
/// records with the recorder and its clones, so stopping stays cheap; [`Capture::assemble`] does
/// the expensive conversion when someone needs the profile. Device events and the recordings of
/// other processes are attached to it in between.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the window"
)]
pub struct Capture {
    /// The metadata of the profile.
    pub metadata: Metadata,
    /// The start and the end of the window, in ticks. If earlier records made room for later ones,
    /// it starts behind them.
    pub(crate) window: Range<u64>,
    /// The time at which the window was opened, in ticks.
    pub(crate) opened_at: u64,
    /// The pauses of the window, in ticks, in order.
    pub(crate) pauses: Vec<Range<u64>>,
    /// The operators that the window wants.
    pub(crate) only: Only,
    /// The times in which more operators were recorded than the window wants, in ticks, in order.
    pub(crate) unlimited: Vec<Range<u64>>,
    /// The starts of the steps that the profiler marked, in ticks, with their numbers.
    pub(crate) steps: Vec<(u64, u64)>,
    pub(crate) opened: Anchor,
    pub(crate) closed: Anchor,
    pub(crate) keep_inputs: bool,
    pub(crate) keep_memory: bool,
    pub(crate) keep_results: bool,
    pub(crate) keep_overloads: bool,
    pub(crate) keep_hierarchies: bool,
    pub(crate) keep_calls: Calls,
    pub(crate) threads: Vec<ThreadCapture>,
    /// The samples of all threads, if the window asked for them.
    pub(crate) samples: Option<SampleCapture>,
    /// Keeps the names that the records refer to alive.
    pub(crate) _names: Option<Arc<NameLease>>,
    /// Earlier windows that belong to the same profile.
    pub(crate) earlier: Vec<Capture>,
    /// Parts that other sources reported for this window, such as device events.
    pub(crate) attached: Vec<Attached>,
    /// Parts that other processes recorded during this window.
    pub(crate) processes: Vec<Arc<Part>>,
}

/// Completes an attached part by the events of the window that it belongs to. Added events must refer
/// only to strings, threads, inputs and stacks that the part holds.
pub type Join = fn(window: &WindowEvents, attached: &mut Part);

/// The events that a window recorded itself, for parts that are joined to them.
#[derive(Debug)]
pub struct WindowEvents {
    /// The events.
    pub part: Part,
    /// The handles of the part's first threads. Those that were only sampled have none.
    pub handles: Vec<ThreadHandle>,
}

/// A part that another source reported for a window.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    part: Arc<Part>,
    join: Join,
}

impl Attached {
    /// Returns the part, completed by the events of its window.
    pub(crate) fn joined(&self, window: &WindowEvents) -> Part {
        let mut part = Part::clone(&self.part);
        (self.join)(window, &mut part);
        part
    }
}

impl Capture {
    /// Adds an earlier window. In the profile its times count from its own start, and its threads
    /// are kept apart from those of this window.
    pub fn add_earlier(&mut self, earlier: Self) {
        self.earlier.push(earlier);
    }

    /// Adds events that arrive after the window has closed, such as the kernels and the memory of a
    /// device. A thread of the part is merged with a recorded one if process, number and device are
    /// equal; external and correlation ids refer to those of this recording.
    ///
    /// # Errors
    /// Fails if the part refers to strings, threads, inputs or stacks that it does not hold; the
    /// part is then left out.
    pub fn attach(&mut self, part: Part) -> mindprof_model::Result<()> {
        self.attach_joined(part, |_, _| ())
    }

    /// Adds events as [`Capture::attach`] does, and has `join` complete them when the profile is
    /// built and the window's own events are known.
    ///
    /// # Errors
    /// Fails as [`Capture::attach`] does.
    pub fn attach_joined(&mut self, part: Part, join: Join) -> mindprof_model::Result<()> {
        part.check()?;
        let part = Arc::new(part);
        self.attached.push(Attached { part, join });
        Ok(())
    }

    /// Adds what another process of the same program recorded during this window. Its threads and
    /// ids are kept apart from those of this process.
    ///
    /// # Errors
    /// Fails as [`Capture::attach`] does.
    pub fn attach_process(&mut self, part: Part) -> mindprof_model::Result<()> {
        part.check()?;
        self.processes.push(Arc::new(part));
        Ok(())
    }

    /// Drops the records of all threads but this one.
    pub fn keep_thread(&mut self, thread: ThreadKey) {
        self.threads.retain(|kept| kept.key == thread.to_raw());
        if let Some(samples) = &mut self.samples {
            let threads = &self.threads;
            let is_kept = |number| threads.iter().any(|kept| kept.native == number);
            samples.list.retain(|sample| is_kept(sample.thread));
        }
    }

    /// Renames threads: `name` maps the operating system's thread id to a name, or to `None` to
    /// keep the system's own.
    pub fn name_threads<'a>(&mut self, name: impl Fn(u64) -> Option<&'a str>) {
        for thread in &mut self.threads {
            if let Some(name) = name(thread.native) {
                thread.name = name.into();
            }
        }
        if let Some(samples) = &mut self.samples {
            let numbers = samples.list.iter().map(|sample| sample.thread);
            let named = numbers.filter_map(|number| Some((number, name(number)?.into())));
            samples.names = named.collect();
        }
    }

    /// Returns the time axis of the profile, to place other sources' times on it.
    pub fn axis(&self) -> TimeAxis {
        TimeAxis::new(self.window.start, &self.opened, &self.closed)
    }

    /// Returns whether a scope that began at `start` belongs to the window.
    pub(crate) fn wants(&self, start: u64) -> bool {
        self.window.contains(&start) && (self.pauses.is_empty() || !self.is_paused(start))
    }

    fn is_paused(&self, moment: u64) -> bool {
        let next = self.pauses.partition_point(|pause| pause.end <= moment);
        let pause = self.pauses.get(next);
        pause.is_some_and(|pause| pause.start <= moment)
    }

    /// Returns whether more operators were recorded at a moment than the window wants.
    pub(crate) fn is_unlimited(&self, moment: u64) -> bool {
        self.unlimited.iter().any(|range| range.contains(&moment))
    }

    /// Builds the profile: converts ticks to nanoseconds and names to ids, and counts losses. Takes
    /// time linear in the number of events.
    pub fn assemble(&self) -> Profile {
        assemble::assemble(self)
    }
}

/// The records of one thread, of which a window uses those in its range. The chunks are shared with
/// the thread's buffer and with the captures of other windows.
#[derive(Clone, Debug)]
pub(crate) struct ThreadCapture {
    /// The thread's key, see `thread_key`.
    pub(crate) key: u32,
    pub(crate) native: u64,
    pub(crate) handle: ThreadHandle,
    pub(crate) name: Box<str>,
    pub(crate) open: OpenSnapshot,
    pub(crate) lost: Loss,
    pub(crate) inputs: InputsTable,
    pub(crate) stacks: Vec<[u32; 2]>,
    /// Earlier records, of which only sums are left.
    pub(crate) forgotten: Forgotten,
    chunks: Vec<(Arc<Chunk>, usize)>,
}

impl ThreadCapture {
    /// Takes the current contents of `buffer`. `lost` chooses the losses of the window.
    pub(crate) fn take(
        buffer: &Arc<Buffer>,
        lost: impl FnOnce(&LossByKind, &[EarlyLoss]) -> Loss,
    ) -> Self {
        // While the lock is held, no other thread ends a scope of this one.
        let contents = buffer.contents();
        // The open scopes are read before the records: a scope that closes in between is then found
        // among the records.
        let before = contents.chunks.iter().map(|chunk| chunk.len()).sum();
        let open = buffer.open.snapshot();
        let mut capture = Self {
            key: buffer.index,
            native: buffer.native(),
            handle: buffer.handle,
            name: buffer.name.clone(),
            open,
            lost: lost(&buffer.lost.load(), &contents.lost_early),
            inputs: contents.inputs.clone(),
            stacks: contents.stacks.clone(),
            forgotten: contents.forgotten.clone(),
            chunks: contents
                .chunks
                .iter()
                .map(|chunk| (Arc::clone(chunk), chunk.len()))
                .collect(),
        };
        capture.forget_closed(before);
        capture
    }

    /// Removes open scopes that also have a record. Such a record is either the last of the
    /// `before` records that preceded the snapshot, whose scope was still to be popped, or a later
    /// one.
    fn forget_closed(&mut self, before: usize) {
        if self.open.entries.is_empty() {
            return;
        }
        let mut cursor = self.cursor(&[]);
        let last_and_later = before.saturating_sub(1)..self.len();
        let records = last_and_later.map(|index| cursor.at(index));
        let closed: FxHashSet<_> = records
            .map(|record| (record.start, record.name & !Record::ASYNC))
            .collect();
        let is_open = |entry: &OpenEntry| !closed.contains(&(entry.start, entry.name));
        self.open.entries.retain(is_open);
    }

    /// Iterates over the records in the order in which the scopes ended.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.chunks
            .iter()
            .flat_map(|(chunk, len)| chunk.records(*len))
    }

    /// Returns a reader of single records. Indices beyond the last record continue in `further`.
    pub(crate) fn cursor<'a>(&'a self, further: &'a [Record]) -> Cursor<'a> {
        Cursor {
            chunks: &self.chunks,
            chunk: None,
            begin: 0,
            end: 0,
            further,
        }
    }

    /// Returns the input list that a record refers to.
    pub(crate) fn inputs_words(&self, record: &Record) -> &[u64] {
        self.inputs
            .words(InputsId::from_raw(record.inputs_number()))
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|(_, len)| len).sum()
    }
}

/// Reads records by index. It remembers the chunk of the last record, so that reading neighbours
/// one after another is fast.
pub(crate) struct Cursor<'a> {
    chunks: &'a [(Arc<Chunk>, usize)],
    /// The chunk of the last record, the index of its first record and the index behind its last.
    chunk: Option<&'a Chunk>,
    begin: usize,
    end: usize,
    further: &'a [Record],
}

impl<'a> Cursor<'a> {
    /// Returns the record at `index`.
    ///
    /// # Panics
    /// Panics if there are fewer records.
    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> &'a Record {
        match self.chunk {
            Some(chunk) if index >= self.begin && index < self.end => {
                chunk.record(index - self.begin)
            }
            Some(_) | None => self.seek(index),
        }
    }

    #[cold]
    fn seek(&mut self, index: usize) -> &'a Record {
        let mut begin = 0;
        for (chunk, len) in self.chunks {
            if index < begin + len {
                (self.chunk, self.begin, self.end) = (Some(&**chunk), begin, begin + len);
                return chunk.record(index - begin);
            }
            begin += len;
        }
        &self.further[index - begin]
    }
}
