//! The sources of a profile: which one each thread came from, and its rank.

use crate::ThreadId;

/// The sources of a profile, in the order in which they were appended. The threads of one source
/// are consecutive.
#[derive(Clone, Debug)]
pub(crate) struct Origins {
    /// The rank of each source, and the index behind its last thread.
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
    /// Starts with one source of `threads` threads.
    pub(crate) fn new(rank: Option<u32>, threads: usize) -> Self {
        Self {
            sources: vec![Source {
                rank,
                threads_end: threads,
            }],
        }
    }

    /// Adds a source with the threads up to `threads_end`.
    pub(crate) fn begin(&mut self, rank: Option<u32>, threads_end: usize) {
        self.sources.push(Source { rank, threads_end });
    }

    /// Extends the last source to the threads up to `threads_end`.
    pub(crate) fn extend(&mut self, threads_end: usize) {
        if let Some(last) = self.sources.last_mut() {
            last.threads_end = threads_end;
        }
    }

    /// Returns the index of a thread's source.
    pub(crate) fn of(&self, thread: ThreadId) -> usize {
        (self.sources).partition_point(|source| source.threads_end <= thread.index())
    }

    /// Returns the rank of a thread's source.
    pub(crate) fn rank(&self, thread: ThreadId) -> Option<u32> {
        self.sources[self.of(thread)].rank
    }
}
