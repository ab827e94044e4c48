//! The threads that called into a device's runtime where no scope asked for it.
//!
//! CUPTI knows threads by numbers that are used again once a thread has ended, and Kineto puts the
//! system's number of the first such thread in their place, however many have had it since. Scopes
//! tell the system's number of their thread, and what they asked for is known by them: so it is told
//! which threads stood behind a number, and when.

use mindprof_model::ThreadId;
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known of callers while results are read.
#[derive(Default)]
pub(super) struct Callers {
    /// When scopes and their calls ran, by thread.
    lives: FxHashMap<ThreadId, Life>,
    /// Numbers that scopes and their calls had, with their threads.
    known: FxHashSet<(i128, ThreadId)>,
    /// The one of them that was met last: mostly the next is the same.
    last: Option<(i128, ThreadId)>,
    unlinked: Vec<UnlinkedCall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Life {
    start: i64,
    end: i64,
}

impl Life {
    /// Returns how far away a moment is; zero if it lies within.
    fn distance(self, time: i64) -> u64 {
        match time {
            time if time < self.start => self.start.abs_diff(time),
            time if time > self.end => time.abs_diff(self.end),
            _ => 0,
        }
    }
}

/// Who made a call that no scope asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A thread whose scopes, or their calls, have this number.
    Known(ThreadId),
    /// One of which no more is known than the number.
    Numbered(i128),
}

/// A call that no scope asked for, by its place among all events.
#[derive(Clone, Copy, Debug)]
struct UnlinkedCall {
    place: usize,
    number: i128,
    time: i64,
}

impl Callers {
    /// Notes a scope of a thread, or a call that one asked for, and the number that it has.
    pub(super) fn add_work(&mut self, thread: ThreadId, number: i128, (start, end): (i64, i64)) {
        let life = self.lives.entry(thread).or_insert(Life { start, end });
        life.start = life.start.min(start);
        life.end = life.end.max(end);
        if self.last.replace((number, thread)) != Some((number, thread)) {
            self.known.insert((number, thread));
        }
    }

    /// Notes a call with a number that no scope asked for.
    pub(super) fn add_unlinked(&mut self, place: usize, number: i128, time: i64) {
        self.unlinked.push(UnlinkedCall {
            place,
            number,
            time,
        });
    }

    /// Returns who made the calls that no scope asked for, by their places.
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
            // One after another had the number, so that only two can be the nearest.
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
