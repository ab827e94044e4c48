//! Infers the threads of runtime calls that were made outside any scope.
//!
//! CUPTI identifies threads by numbers that it reuses once a thread has ended, and Kineto replaces
//! each with the system's id of the first thread that had it. Scopes report their thread reliably,
//! and so do calls inside scopes: together they show which threads used a number, and when.

use mindprof_model::ThreadId;
use rustc_hash::{FxHashMap, FxHashSet};

/// The threads seen so far, and the calls whose thread is still unknown.
#[derive(Default)]
pub(super) struct Callers {
    /// For each thread, the time span of its scopes and their calls.
    lives: FxHashMap<ThreadId, Life>,
    /// The numbers that scopes and their calls reported, with their threads.
    known: FxHashSet<(i128, ThreadId)>,
    /// The most recently added pair, because the next one is mostly the same.
    last: Option<(i128, ThreadId)>,
    unlinked: Vec<UnlinkedCall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Life {
    start: i64,
    end: i64,
}

impl Life {
    /// Returns the distance to a time; zero if the time lies within.
    fn distance(self, time: i64) -> u64 {
        match time {
            time if time < self.start => self.start.abs_diff(time),
            time if time > self.end => time.abs_diff(self.end),
            _ => 0,
        }
    }
}

/// The thread that made a call outside any scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A thread whose scopes, or their calls, reported the same number.
    Known(ThreadId),
    /// A thread of which only the number is known.
    Numbered(i128),
}

/// A call outside any scope, by its index among all events.
#[derive(Clone, Copy, Debug)]
struct UnlinkedCall {
    place: usize,
    number: i128,
    time: i64,
}

impl Callers {
    /// Adds a scope of a thread, or a call inside one, with the number that it reports.
    pub(super) fn add_work(&mut self, thread: ThreadId, number: i128, (start, end): (i64, i64)) {
        let life = self.lives.entry(thread).or_insert(Life { start, end });
        life.start = life.start.min(start);
        life.end = life.end.max(end);
        if self.last.replace((number, thread)) != Some((number, thread)) {
            self.known.insert((number, thread));
        }
    }

    /// Adds a call outside any scope, with the number that it reports.
    pub(super) fn add_unlinked(&mut self, place: usize, number: i128, time: i64) {
        self.unlinked.push(UnlinkedCall {
            place,
            number,
            time,
        });
    }

    /// Returns the inferred threads of the calls outside any scope, with the calls' indices.
    ///
    /// ```text
    /// number 7    ──thread 3──      ───thread 5───
    /// call                      ^ thread 5, the nearest
    /// ```
    pub(super) fn into_threads(self) -> impl Iterator<Item = (usize, Caller)> {
        let mut behind: FxHashMap<i128, Vec<(Life, ThreadId)>> = FxHashMap::default();
        for &(number, thread) in &self.known {
            let life = self.lives[&thread];
            behind.entry(number).or_default().push((life, thread));
        }
        for lives in behind.values_mut() {
            lives.sort_unstable_by_key(|(life, thread)| (life.start, life.end, thread.index()));
        }
        self.unlinked.into_iter().map(move |call| {
            let lives = behind.get(&call.number).map_or(&[][..], Vec::as_slice);
            // Threads used the number one after another, so only two can be the nearest.
            let next = lives.partition_point(|(life, _)| life.start <= call.time);
            let near = &lives[next.saturating_sub(1)..lives.len().min(next + 1)];
            let nearest = near.iter().min_by_key(|(life, _)| life.distance(call.time));
            let known = nearest.map(|&(_, thread)| Caller::Known(thread));
            (call.place, known.unwrap_or(Caller::Numbered(call.number)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_of_the_thread_that_was_nearest_with_its_number() {
        let mut callers = Callers::default();
        let threads = [3, 5, 6].map(ThreadId::from_raw);
        callers.add_work(threads[1], 7, (50, 60));
        callers.add_work(threads[1], 5, (48, 90));
        callers.add_work(threads[0], 7, (10, 20));
        callers.add_work(threads[2], 8, (0, 100));
        for (place, time) in [5, 15, 30, 40, 70, 95].into_iter().enumerate() {
            callers.add_unlinked(place, 7, time);
        }
        callers.add_unlinked(6, 9, 15);
        let found: Vec<_> = callers.into_threads().map(|(_, caller)| caller).collect();
        let (first, second) = (Caller::Known(threads[0]), Caller::Known(threads[1]));
        let unknown = Caller::Numbered(9);
        assert_eq!(
            found,
            [first, first, first, second, second, second, unknown]
        );
    }
}
