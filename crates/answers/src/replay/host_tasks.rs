//! The tasks of CPU threads: pieces of time in which a thread works in one event.
//!
//! A large profile has millions of them, and each replay reads them all. So they lie in columns, and
//! what rarely is large takes four bytes.

use std::ops::Range;

use mindprof_model::Nanos;

use super::Timing;

/// The tasks of CPU threads. Those of one thread follow each other.
#[derive(Clone, Debug, Default)]
pub(super) struct HostTasks {
    /// The event that each task belongs to. [`NONE`](super::tasks::NONE) between events.
    events: Vec<u32>,
    begins: Vec<Nanos>,
    /// The duration in nanoseconds, or [`LONG`].
    durations: Vec<u32>,
    /// The part of it that recording took, or [`ALL`].
    recordings: Vec<u32>,
    /// The tasks whose durations do not fit, in order.
    long: Vec<(u32, Nanos)>,
}

/// The duration of a task that takes more than four seconds.
const LONG: u32 = u32::MAX;

/// The recorder's part of a task in which nothing else happened.
const ALL: u32 = u32::MAX;

/// A task while it is added.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostTask {
    pub(super) event: u32,
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    pub(super) recording: Nanos,
}

impl HostTasks {
    /// Returns no tasks, with room for so many.
    pub(super) fn with_capacity(tasks: usize) -> Self {
        Self {
            events: Vec::with_capacity(tasks),
            begins: Vec::with_capacity(tasks),
            durations: Vec::with_capacity(tasks),
            recordings: Vec::with_capacity(tasks),
            long: Vec::new(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn push(&mut self, task: HostTask) {
        let duration = task.end.saturating_sub(task.begin);
        let short = u32::try_from(duration.0).unwrap_or(LONG);
        if short == LONG {
            self.long.push((self.len() as u32, duration));
        }
        let recording = if task.recording == duration {
            ALL
        } else {
            // More than four seconds are not the recorder's unless all of it is.
            u32::try_from(task.recording.0).unwrap_or(ALL - 1)
        };
        self.events.push(task.event);
        self.begins.push(task.begin);
        self.durations.push(short);
        self.recordings.push(recording);
    }

    /// Adds the tasks of another thread.
    pub(super) fn append(&mut self, other: &Self) {
        let moved = self.len() as u32;
        self.events.extend_from_slice(&other.events);
        self.begins.extend_from_slice(&other.begins);
        self.durations.extend_from_slice(&other.durations);
        self.recordings.extend_from_slice(&other.recordings);
        let long = other.long.iter();
        self.long
            .extend(long.map(|&(task, duration)| (task + moved, duration)));
    }

    /// Returns the event that a task belongs to.
    pub(super) fn event(&self, task: u32) -> u32 {
        self.events[task as usize]
    }

    pub(super) fn begin(&self, task: u32) -> Nanos {
        self.begins[task as usize]
    }

    pub(super) fn begins(&self) -> &[Nanos] {
        &self.begins
    }

    /// Lets a task begin where the one before it ends.
    pub(super) fn extend_back(&mut self, task: u32, begin: Nanos) {
        let end = self.end(task);
        let recording = self.recording(task);
        let whole = self.duration(task);
        if begin >= self.begin(task) {
            return;
        }
        let task = task as usize;
        self.begins[task] = begin;
        let duration = end.saturating_sub(begin);
        let place = self.long.partition_point(|&(known, _)| known < task as u32);
        if self.durations[task] == LONG {
            self.long[place].1 = duration;
        } else {
            let short = u32::try_from(duration.0).unwrap_or(LONG);
            self.durations[task] = short;
            if short == LONG {
                self.long.insert(place, (task as u32, duration));
            }
        }
        if recording == whole {
            self.recordings[task] = u32::try_from(recording.0).unwrap_or(ALL - 1);
        }
    }

    /// Counts no time of tasks that begin before some time as that of recording.
    pub(super) fn keep_all_before(&mut self, time: Nanos) {
        for (recording, begin) in self.recordings.iter_mut().zip(&self.begins) {
            if *begin < time {
                *recording = 0;
            }
        }
    }

    pub(super) fn end(&self, task: u32) -> Nanos {
        self.begin(task).saturating_add(self.duration(task))
    }

    pub(super) fn duration(&self, task: u32) -> Nanos {
        match self.durations[task as usize] {
            LONG => self.long_duration(task),
            short => Nanos(u64::from(short)),
        }
    }

    #[cold]
    fn long_duration(&self, task: u32) -> Nanos {
        let place = self.long.partition_point(|&(known, _)| known < task);
        self.long[place].1
    }

    /// Returns the part of a task that recording took.
    pub(super) fn recording(&self, task: u32) -> Nanos {
        match self.recordings[task as usize] {
            ALL => self.duration(task),
            part => Nanos(u64::from(part)),
        }
    }

    /// Returns the time of a task, without what recording took if that does not count.
    pub(super) fn own(&self, task: u32, timing: Timing) -> Nanos {
        match timing {
            Timing::Recorded => self.duration(task),
            Timing::Unrecorded => self.duration(task).saturating_sub(self.recording(task)),
        }
    }

    /// Iterates over tasks: the event of each and its time in nanoseconds.
    pub(super) fn times(
        &self,
        tasks: Range<u32>,
        timing: Timing,
    ) -> impl Iterator<Item = (u32, u64)> {
        let range = tasks.start as usize..tasks.end as usize;
        let events = self.events[range.clone()].iter();
        let durations = self.durations[range.clone()].iter();
        let recordings = self.recordings[range].iter();
        tasks.zip(events.zip(durations).zip(recordings)).map(
            move |(task, ((&event, &duration), &recording))| {
                let own = if duration == LONG {
                    self.own(task, timing).0
                } else {
                    u64::from(match timing {
                        Timing::Recorded => duration,
                        Timing::Unrecorded => duration.saturating_sub(recording),
                    })
                };
                (event, own)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tasks::NONE;
    use super::*;

    #[test]
    fn long_tasks_keep_their_times() {
        let hour = Nanos(3_600_000_000_000);
        let task = |begin: u64, end: u64, recording| HostTask {
            event: 3,
            begin: Nanos(begin),
            end: Nanos(end),
            recording,
        };
        let mut tasks = HostTasks::default();
        tasks.push(task(0, hour.0, Nanos(500)));
        tasks.push(task(hour.0, 2 * hour.0, hour));
        let mut all = HostTasks::default();
        all.push(task(0, 10, Nanos(10)));
        all.append(&tasks);
        assert_eq!(
            [0, 1, 2].map(|at| all.duration(at)),
            [Nanos(10), hour, hour]
        );
        assert_eq!(all.recording(1), Nanos(500));
        assert_eq!(all.own(2, Timing::Unrecorded), Nanos::ZERO);
        let unrecorded: Vec<u64> = (all.times(0..3, Timing::Unrecorded))
            .map(|(_, own)| own)
            .collect();
        assert_eq!(unrecorded, [0, hour.0 - 500, 0]);
    }

    #[test]
    fn a_task_that_begins_earlier_keeps_its_end_and_its_recording() {
        let mut tasks = HostTasks::default();
        for (begin, recording) in [(100, 5), (110, 10)] {
            tasks.push(HostTask {
                event: NONE,
                begin: Nanos(begin),
                end: Nanos(begin + 10),
                recording: Nanos(recording),
            });
        }
        tasks.extend_back(0, Nanos(80));
        tasks.extend_back(1, Nanos(103));
        assert_eq!([0, 1].map(|task| tasks.end(task).0), [110, 120]);
        assert_eq!([0, 1].map(|task| tasks.recording(task).0), [5, 10]);
        assert_eq!([0, 1].map(|task| tasks.duration(task).0), [30, 17]);
    }
}
