//! Which source each thread of a profile is of, and that source's rank.

use crate::ThreadId;

/// The sources of a profile. The threads of one follow each other.
#[derive(Clone, Debug)]
pub(crate) struct Origins {
    /// By source, its rank and the number of the thread behind its last.
    sources: Vec<Source>,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    rank: Option<u32>,
    threads_end: usize,
}

impl Default for Origins {
    fn default() -> Self {
        Self::new(None, 0)
    }
}

impl Origins {
    /// Makes the only source, of `threads` threads.
    pub(crate) fn new(rank: Option<u32>, threads: usize) -> Self {
        Self {
            sources: vec![Source {
                rank,
                threads_end: threads,
            }],
        }
    }

    /// Adds a source whose threads are those up to `threads_end`.
    pub(crate) fn begin(&mut self, rank: Option<u32>, threads_end: usize) {
        self.sources.push(Source { rank, threads_end });
    }

    /// Gives the last source the threads up to `threads_end`.
    pub(crate) fn extend(&mut self, threads_end: usize) {
        if let Some(last) = self.sources.last_mut() {
            last.threads_end = threads_end;
        }
    }

    /// Returns the number of a thread's source.
    pub(crate) fn of(&self, thread: ThreadId) -> usize {
        (self.sources).partition_point(|source| source.threads_end <= thread.index())
    }

    /// Returns the rank of a thread's source.
    pub(crate) fn rank(&self, thread: ThreadId) -> Option<u32> {
        self.sources[self.of(thread)].rank
    }
}
