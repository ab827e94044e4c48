//! What a closed window took with it: chunks and tables as they are, not yet a profile.

use std::ops::Range;
use std::sync::Arc;

use mindprof_model::{InputsId, InputsTable, Loss, Metadata, Part, Profile};
use rustc_hash::FxHashSet;

use crate::assemble;
use crate::buffer::Buffer;
use crate::chunk::Chunk;
use crate::clock::{Anchor, TimeAxis};
use crate::name::NameLease;
use crate::open::{OpenEntry, OpenSnapshot};
use crate::options::Calls;
use crate::raw::Record;
use crate::thread_key::ThreadKey;

/// The recording of one window, ready to become a profile. A copy shares the records.
#[derive(Clone, Debug)]
pub struct Capture {
    /// What the profile will say about itself.
    pub metadata: Metadata,
    /// The window in ticks.
    pub(crate) window: Range<u64>,
    /// When scopes were not wanted, in ticks, in order.
    pub(crate) pauses: Vec<Range<u64>>,
    /// When the steps began that the profiler told of: moments in ticks, and numbers.
    pub(crate) steps: Vec<(u64, u64)>,
    pub(crate) opened: Anchor,
    pub(crate) closed: Anchor,
    pub(crate) keep_inputs: bool,
    pub(crate) keep_memory: bool,
    pub(crate) keep_results: bool,
    pub(crate) keep_calls: Calls,
    pub(crate) threads: Vec<ThreadCapture>,
    /// Keeps the names that the records refer to.
    pub(crate) _names: Option<Arc<NameLease>>,
    /// The windows before this one that the profile is about too.
    pub(crate) earlier: Vec<Capture>,
    /// What others report of this window.
    pub(crate) attached: Vec<Arc<Part>>,
    /// What other processes recorded meanwhile.
    pub(crate) processes: Vec<Arc<Part>>,
}

impl Capture {
    /// Adds an earlier window. In the profile its times count from its own start, and its threads
    /// are threads of their own.
    pub fn add_earlier(&mut self, earlier: Self) {
        self.earlier.push(earlier);
    }

    /// Adds what arrives when the window is closed: kernels and memory of a device, or what another
    /// process did. Its threads are the recording's where process, number and device are equal; its
    /// external and correlation numbers mean what they mean here.
    ///
    /// # Errors
    /// When the part names what it does not hold; then it is left out.
    pub fn attach(&mut self, part: Part) -> mindprof_model::Result<()> {
        part.check()?;
        self.attached.push(Arc::new(part));
        Ok(())
    }

    /// Adds what another process of this program recorded meanwhile. Its threads and numbers are
    /// its own.
    ///
    /// # Errors
    /// As of [`Capture::attach`].
    pub fn attach_process(&mut self, part: Part) -> mindprof_model::Result<()> {
        part.check()?;
        self.processes.push(Arc::new(part));
        Ok(())
    }

    /// Forgets what all other threads did.
    pub fn keep_thread(&mut self, thread: ThreadKey) {
        self.threads.retain(|kept| kept.key == thread.to_raw());
    }

    /// Gives threads the names that `name` knows by the operating system's numbers of them, in place
    /// of the system's.
    pub fn name_threads<'a>(&mut self, name: impl Fn(u64) -> Option<&'a str>) {
        for thread in &mut self.threads {
            if let Some(name) = name(thread.native) {
                thread.name = name.into();
            }
        }
    }

    /// Returns the time axis of the profile.
    pub fn axis(&self) -> TimeAxis {
        TimeAxis::new(self.window.start, &self.opened, &self.closed)
    }

    /// Returns whether the window wants a scope that began at `start`.
    pub(crate) fn wants(&self, start: u64) -> bool {
        self.window.contains(&start) && (self.pauses.is_empty() || !self.is_paused(start))
    }

    fn is_paused(&self, moment: u64) -> bool {
        let next = self.pauses.partition_point(|pause| pause.end <= moment);
        let pause = self.pauses.get(next);
        pause.is_some_and(|pause| pause.start <= moment)
    }

    /// Makes the profile: ticks become nanoseconds, names become ids, loss is counted. Linear in
    /// the number of events.
    pub fn assemble(&self) -> Profile {
        assemble::assemble(self)
    }
}

/// What one thread has for the window, and perhaps for others.
#[derive(Clone, Debug)]
pub(crate) struct ThreadCapture {
    /// The thread's key, see `thread_key`.
    pub(crate) key: u32,
    pub(crate) native: u64,
    pub(crate) name: Box<str>,
    pub(crate) open: OpenSnapshot,
    pub(crate) lost: Loss,
    pub(crate) inputs: InputsTable,
    pub(crate) stacks: Vec<[u32; 2]>,
    chunks: Vec<(Arc<Chunk>, usize)>,
}

impl ThreadCapture {
    /// Takes what `buffer` holds at this moment.
    pub(crate) fn take(buffer: &Arc<Buffer>, lost_before: &Loss) -> Self {
        // Under the lock no other thread ends a scope of this one.
        let contents = buffer.contents();
        // The open scopes come first: one that closes in between is then found among the records.
        let before = contents.chunks.iter().map(|chunk| chunk.len()).sum();
        let open = buffer.open.snapshot();
        let mut capture = Self {
            key: buffer.index,
            native: buffer.native(),
            name: buffer.name.clone(),
            open,
            lost: buffer.lost().since(lost_before),
            inputs: contents.inputs.clone(),
            stacks: contents.stacks.clone(),
            chunks: contents
                .chunks
                .iter()
                .map(|chunk| (Arc::clone(chunk), chunk.len()))
                .collect(),
        };
        capture.forget_closed(before);
        capture
    }

    /// Takes out of the open scopes those that have a record too: it is the last one of `before`
    /// the snapshot, whose scope had still to be closed, or came after them.
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

    /// Walks the records in the order in which the scopes ended.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.chunks
            .iter()
            .flat_map(|(chunk, len)| chunk.records(*len))
    }

    /// Returns a reader of single records; what lies behind the last one is taken from `further`.
    pub(crate) fn cursor<'a>(&'a self, further: &'a [Record]) -> Cursor<'a> {
        Cursor {
            chunks: &self.chunks,
            chunk: None,
            begin: 0,
            end: 0,
            further,
        }
    }

    /// Returns the list that a record names.
    pub(crate) fn inputs_words(&self, record: &Record) -> &[u64] {
        self.inputs
            .words(InputsId::from_raw(record.inputs_number()))
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|(_, len)| len).sum()
    }
}

/// Reads records by their numbers; fast if those next to each other are asked for one after the
/// other.
pub(crate) struct Cursor<'a> {
    chunks: &'a [(Arc<Chunk>, usize)],
    /// The chunk of the last record, and the numbers of its first record and of the one behind it.
    chunk: Option<&'a Chunk>,
    begin: usize,
    end: usize,
    further: &'a [Record],
}

impl<'a> Cursor<'a> {
    /// Returns a record.
    ///
    /// # Panics
    /// When there are fewer records.
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
