//! Reads all events of a result at once.
//!
//! Events are scattered over torch's memory, and reading them mostly waits for it, so several
//! threads read in parallel. Takes [`KinetoEvents`]; `raw_results` makes a part of the facts.

use std::num::NonZeroUsize;
use std::thread;

use mindprof_model::{StringId, StringTable};

use crate::kineto::{KinetoEvent, KinetoEvents};

/// The number of events per thread. Starting a thread costs as much as reading a few hundred.
const EVENTS_PER_THREAD: usize = 8192;
/// With more threads, the memory itself is the bottleneck.
const MOST_THREADS: usize = 8;

/// The facts and names of all events of a result.
pub(crate) struct KinetoFacts {
    chunks: Vec<Chunk>,
    /// The number of events per chunk; the last may have fewer.
    chunk_len: usize,
}

/// The events that one thread has read.
struct Chunk {
    events: Vec<KinetoEvent>,
    /// For each event, the id of its name in `strings`.
    names: Vec<StringId>,
    strings: StringTable,
}

impl KinetoFacts {
    /// Reads all events of a result.
    pub(crate) fn read(events: &KinetoEvents<'_>) -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let most = processors.min(MOST_THREADS);
        let threads = events.len().div_ceil(EVENTS_PER_THREAD).clamp(1, most);
        Self::read_by(threads, events)
    }

    fn read_by(threads: usize, events: &KinetoEvents<'_>) -> Self {
        let chunk_len = events.len().div_ceil(threads).max(1);
        let chunk = |first: usize| Chunk::read(events, first, chunk_len);
        let chunks = thread::scope(|scope| {
            let others = (chunk_len..events.len()).step_by(chunk_len);
            // If the system refuses to start a thread, this thread reads its chunk.
            let others = others.map(|first| {
                let started = thread::Builder::new().spawn_scoped(scope, move || chunk(first));
                (first, started)
            });
            let others: Vec<_> = others.collect();
            let mut chunks = vec![chunk(0)];
            for (first, started) in others {
                let read = started.ok().and_then(|thread| thread.join().ok());
                chunks.push(read.unwrap_or_else(|| chunk(first)));
            }
            chunks
        });
        Self { chunks, chunk_len }
    }

    /// Returns one event.
    ///
    /// # Panics
    /// If there are fewer events.
    #[inline]
    pub(crate) fn event(&self, index: usize) -> &KinetoEvent {
        &self.chunks[index / self.chunk_len].events[index % self.chunk_len]
    }

    /// Interns the names of all events and returns their ids by position.
    pub(crate) fn names(&self, strings: &mut StringTable) -> Vec<StringId> {
        let count = self.chunks.iter().map(|chunk| chunk.names.len()).sum();
        let mut names = Vec::with_capacity(count);
        for chunk in &self.chunks {
            let ids: Vec<StringId> = chunk
                .strings
                .iter()
                .map(|text| strings.intern(text))
                .collect();
            names.extend(chunk.names.iter().map(|name| ids[name.index()]));
        }
        names
    }
}

impl Chunk {
    fn read(events: &KinetoEvents<'_>, first: usize, most: usize) -> Self {
        let count = most.min(events.len() - first);
        let mut chunk = Self {
            events: Vec::with_capacity(count),
            names: Vec::with_capacity(count),
            strings: StringTable::new(),
        };
        for index in first..first + count {
            chunk.events.push(events.event(index));
            let strings = &mut chunk.strings;
            let intern = |name: &[u8]| match std::str::from_utf8(name) {
                Ok(name) => strings.intern(name),
                Err(_) => strings.intern(&String::from_utf8_lossy(name)),
            };
            chunk.names.push(events.with_name(index, intern));
        }
        chunk
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::kineto_stand_in::{StandInEvent, StandInResult};

    #[test]
    fn any_number_of_threads_reads_the_same() {
        let names = [
            "aten::add",
            "aten::mul",
            "a name of more letters than the others",
        ];
        let event = |number: u64| StandInEvent::new(number, names[number as usize % names.len()]);
        for count in [2, 3, 7, 64] {
            let events: Vec<StandInEvent> = (0..count).map(event).collect();
            let result = StandInResult::new(1, &events);
            let opened = result.open();
            for threads in [1, 2, 3, 8] {
                let facts = KinetoFacts::read_by(threads, &opened);
                let mut strings = StringTable::new();
                let found = facts.names(&mut strings);
                assert_eq!(found.len(), events.len());
                for (index, expected) in events.iter().enumerate() {
                    assert_eq!(facts.event(index).start_ns, expected.start_ns);
                    assert_eq!(strings.text(found[index]), expected.name);
                }
            }
        }
    }
}
