//! Pairs begins with ends: on each track, an end closes the begin that was opened last.

use mindprof_model::{Event, Flags, Nanos, ThreadId};
use rustc_hash::FxHashMap;

use crate::chrome::repairs::{Repair, Repairs};

/// The begins and ends so far, which need not come in the order of time.
#[derive(Default)]
pub(super) struct Spans {
    marks: Vec<Mark>,
}

struct Mark {
    time: i64,
    thread: ThreadId,
    /// The event that begins here; none where one ends.
    event: Option<u32>,
}

impl Spans {
    pub(super) fn begin(&mut self, time: i64, thread: ThreadId, event: usize) {
        let event = Some(event as u32);
        self.marks.push(Mark {
            time,
            thread,
            event,
        });
    }

    pub(super) fn end(&mut self, time: i64, thread: ThreadId) {
        let event = None;
        self.marks.push(Mark {
            time,
            thread,
            event,
        });
    }

    /// Gives each begun event its duration. What was never ended is closed where the trace ends.
    pub(super) fn close(&mut self, events: &mut [Event], repairs: &mut Repairs) {
        if self.marks.is_empty() {
            return;
        }
        // Of marks at one time, the file's order counts.
        self.marks.sort_by_key(|mark| mark.time);
        let mut open: FxHashMap<ThreadId, Vec<u32>> = FxHashMap::default();
        for mark in &self.marks {
            let stack = open.entry(mark.thread).or_default();
            match (mark.event, stack.pop()) {
                (Some(event), top) => {
                    stack.extend(top);
                    stack.push(event);
                }
                (None, Some(event)) => end_at(&mut events[event as usize], mark.time),
                (None, None) => repairs.add(Repair::UnmatchedEnd, 1),
            }
        }
        let ends = events
            .iter()
            .map(|event| (event.start.0 as i64).saturating_add(event.duration.0 as i64));
        let marks = self.marks.iter().map(|mark| mark.time);
        let last = ends.chain(marks).max().unwrap_or(0);
        for event in open.into_values().flatten() {
            let event = &mut events[event as usize];
            end_at(event, last);
            event.flags = event.flags.union(Flags::UNFINISHED);
            repairs.add(Repair::UnmatchedBegin, 1);
        }
    }
}

fn end_at(event: &mut Event, time: i64) {
    event.duration = Nanos((event.start.0 as i64).abs_diff(time));
}
