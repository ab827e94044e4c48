//! Matches begin events with end events: on each track, an end closes the most recent open begin.

use mindprof_model::{Event, Flags, Nanos, ThreadId};
use rustc_hash::FxHashMap;

use crate::repairs::{Repair, Repairs};

/// The begin and end events so far, which need not be in the order of time.
///
/// [`Spans::close`] sorts and matches them when all are known. The arguments of an end need its event
/// earlier, so [`Spans::end`] matches in the order of the file.
#[derive(Default)]
pub(super) struct Spans {
    marks: Vec<Mark>,
    /// The open events by thread, in the order of the file.
    open: FxHashMap<ThreadId, Vec<u32>>,
}

struct Mark {
    time: i64,
    thread: ThreadId,
    /// The event that begins here. `None` for an end.
    event: Option<u32>,
}

impl Spans {
    pub(super) fn begin(&mut self, time: i64, thread: ThreadId, event: usize) {
        let event = event as u32;
        self.open.entry(thread).or_default().push(event);
        let event = Some(event);
        self.marks.push(Mark {
            time,
            thread,
            event,
        });
    }

    /// Records an end. Returns the last open event of the thread in the order of the file, which is
    /// the one it ends unless the marks of the thread are out of order.
    pub(super) fn end(&mut self, time: i64, thread: ThreadId) -> Option<usize> {
        let event = None;
        self.marks.push(Mark {
            time,
            thread,
            event,
        });
        let ended = self.open.get_mut(&thread)?.pop()?;
        Some(ended as usize)
    }

    /// Sets the duration of each event that was begun. Events without an end are closed at the end
    /// of the trace and returned.
    pub(super) fn close(&mut self, events: &mut [Event], repairs: &mut Repairs) -> Vec<usize> {
        if self.marks.is_empty() {
            return Vec::new();
        }
        // Marks at the same time keep the order of the file.
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
        let unfinished = open.into_values().flatten();
        let unfinished: Vec<usize> = unfinished.map(|event| event as usize).collect();
        for &event in &unfinished {
            let event = &mut events[event];
            end_at(event, last);
            event.flags = event.flags.union(Flags::UNFINISHED);
            repairs.add(Repair::UnmatchedBegin, 1);
        }
        unfinished
    }
}

fn end_at(event: &mut Event, time: i64) {
    event.duration = Nanos((event.start.0 as i64).abs_diff(time));
}
