//! The stages of a replay: tasks that follow each other on a thread without anything else depending
//! on those in between, or a piece of device work.
//!
//! A replay needs the ends of stages alone, which are much fewer than tasks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use mindprof_model::Nanos;

use super::device_tasks::DeviceTask;
use super::tasks::{NONE, Tasks};

/// Some tasks of one thread, or one piece of device work. Stages are named by their positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// The first of the tasks, or the position of the device work.
    first: u32,
    /// The number of tasks of a CPU thread. Zero for device work.
    count: u32,
    /// The thread or stream.
    pub(super) thread: u32,
    /// The stage before it on its thread or stream, or [`NONE`].
    pub(super) before: u32,
    /// The stage without whose end it cannot begin, or [`NONE`]. A kernel's is the one before its
    /// launch; that of backward work on a thread of its own is the one before the thread that waits
    /// for it.
    pub(super) released_by: u32,
    /// The stage without whose end it cannot end, or [`NONE`]: what a synchronization waits for. A
    /// kernel cannot begin without it.
    pub(super) waits_for: u32,
    /// The time that passes after the end of each of these three, whatever happens.
    pub(super) lags: Lags,
}

/// The times between the ends of the stages that a stage depends on and its own beginning, or for a
/// synchronization its own end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lags {
    pub(super) before: Nanos,
    pub(super) released_by: Nanos,
    pub(super) waits_for: Nanos,
}

impl Stage {
    pub(super) const fn is_device(&self) -> bool {
        self.count == 0
    }

    /// Returns the tasks of a CPU thread.
    pub(super) const fn tasks(&self) -> Range<u32> {
        self.first..self.first + self.count
    }

    /// Returns the position of device work.
    pub(super) const fn device_work(&self) -> usize {
        self.first as usize
    }

    /// Returns whether it depends on no other.
    pub(super) fn is_free(&self) -> bool {
        self.needed_to_begin().all(|(other, _)| other == NONE)
    }

    /// Returns the stages without whose ends it cannot begin, and the times that pass after them.
    pub(super) fn needed_to_begin(&self) -> impl Iterator<Item = (u32, Nanos)> {
        let stream = if self.is_device() {
            self.waits_for
        } else {
            NONE
        };
        [
            (self.before, self.lags.before),
            (self.released_by, self.lags.released_by),
            (stream, self.lags.waits_for),
        ]
        .into_iter()
    }

    /// Returns the stage without whose end a call cannot return. Such a stage is one task.
    pub(super) const fn awaited(&self) -> u32 {
        if self.is_device() {
            NONE
        } else {
            self.waits_for
        }
    }
}

/// Kernels of one stream follow each other within this time if nothing keeps them apart.
const KERNEL_GAP: Nanos = Nanos(1_500);

/// The longest time that a launch or a thread takes to begin, whatever was recorded.
pub(super) const LONGEST_START: Nanos = Nanos(30_000);

/// The stages of a profile.
#[derive(Clone, Debug, Default)]
pub(super) struct Stages {
    /// The stages in an order in which each comes after those that it depends on.
    pub(super) all: Vec<Stage>,
    /// By step, the stages after whose end the step is complete.
    pub(super) last_of_steps: Vec<Vec<u32>>,
    /// The device work that was launched before the first step.
    pub(super) backlog: Vec<u32>,
}

impl Stages {
    /// Joins tasks to stages, by merging the threads and streams, each of which is in order. A
    /// dependency on a later task is an error of a clock, and is dropped.
    pub(super) fn build(tasks: &Tasks, threads: usize) -> Self {
        let mut merging = Merging::new(tasks, threads);
        let mut heap: BinaryHeap<Reverse<(Due, usize)>> = (0..threads)
            .filter_map(|thread| Some(Reverse((merging.due(thread)?, thread))))
            .collect();
        while let Some(Reverse((_, thread))) = heap.pop() {
            let limit = heap.peek().map(|Reverse((due, _))| *due);
            // Runs of one thread are taken without the heap.
            if let Some(due) = merging.take_until(thread, limit) {
                heap.push(Reverse((due, thread)));
            }
        }
        merging.finish()
    }
}

/// When a task is due, so that each comes after those that it depends on, and whether it is device
/// work.
type Due = (Nanos, bool);

/// Threads and streams while they are merged.
struct Merging<'a> {
    tasks: &'a Tasks,
    stages: Vec<Stage>,
    /// By joint and by device work, the stage that ends with it, or [`NONE`] as long as it is not
    /// reached.
    of_joints: Vec<u32>,
    of_devices: Vec<u32>,
    cursors: Vec<Cursor>,
}

/// The place that is reached on a thread or stream.
#[derive(Clone, Copy)]
struct Cursor {
    /// The next task of a CPU thread, or the position of the next device work.
    next: u32,
    /// The end of the tasks of a CPU thread. Zero for a stream.
    end: u32,
    /// The stage that is being joined. It has no tasks if there is none.
    open: Stage,
    /// The last stage.
    last: u32,
}

impl<'a> Merging<'a> {
    fn new(tasks: &'a Tasks, threads: usize) -> Self {
        let mut cursors: Vec<Cursor> = (0..threads).map(Cursor::new).collect();
        for (thread, range) in tasks.threads.iter().filter(|(_, range)| !range.is_empty()) {
            cursors[*thread].next = range.start;
            cursors[*thread].end = range.end;
        }
        for &(stream, first) in &tasks.device.streams {
            cursors[stream as usize].next = first;
        }
        Self {
            tasks,
            stages: Vec::with_capacity(2 * tasks.device.tasks.len() + tasks.joints.len()),
            of_joints: vec![NONE; tasks.joints.len()],
            of_devices: vec![NONE; tasks.device.tasks.len()],
            cursors,
        }
    }

    /// Returns when the next task of a thread or stream is due.
    fn due(&self, thread: usize) -> Option<Due> {
        let Cursor { next, end, .. } = self.cursors[thread];
        if next == NONE {
            None
        } else if end == 0 {
            Some((self.tasks.device.tasks[next as usize].begin, true))
        } else {
            (next < end).then(|| (self.host_due(next), false))
        }
    }

    fn host_due(&self, task: u32) -> Nanos {
        let joint = self.tasks.joints.get(task);
        if joint.is_some_and(|joint| joint.waits_for != NONE) {
            self.tasks.host.end(task)
        } else {
            self.tasks.host.begin(task)
        }
    }

    /// Takes the next task of a thread or stream and those that are due until a limit. Returns when
    /// the one after them is due.
    fn take_until(&mut self, thread: usize, limit: Option<Due>) -> Option<Due> {
        let is_device = self.cursors[thread].end == 0;
        loop {
            if is_device {
                self.take_device(thread);
            } else {
                self.take_host(thread);
                self.take_unjoined(thread, limit);
            }
            let due = self.due(thread);
            if let Some(due) = due
                && limit.is_none_or(|limit| due <= limit)
            {
                continue;
            }
            return due;
        }
    }

    /// Takes tasks that nothing joins to others, which are most, into the open stage of a thread.
    fn take_unjoined(&mut self, thread: usize, limit: Option<Due>) {
        let cursor = &mut self.cursors[thread];
        if cursor.open.count == 0 {
            return;
        }
        let Tasks { host, joints, .. } = self.tasks;
        let limit = limit.unwrap_or((Nanos(u64::MAX), true));
        let rest = cursor.next..cursor.end;
        let is_plain = |&task: &u32| {
            let begin = host.begin(task);
            joints.number(task) == NONE && (begin, false) <= limit && begin == host.end(task - 1)
        };
        let count = rest.take_while(is_plain).count() as u32;
        cursor.open.count += count;
        cursor.next += count;
    }

    fn take_device(&mut self, thread: usize) {
        let number = self.cursors[thread].next;
        let work = self.tasks.device.tasks[number as usize];
        let devices = self.tasks.first_of_devices();
        let waits_for = if work.waits_for == NONE {
            NONE
        } else {
            work.waits_for + devices
        };
        let (released_by, waits_for) = (
            self.reached(self.tasks.released_by(&work)),
            self.reached(waits_for),
        );
        let stage = Stage {
            first: number,
            count: 0,
            thread: work.thread,
            before: self.cursors[thread].last,
            released_by: self.stage_of(released_by),
            waits_for: self.stage_of(waits_for),
            lags: self.lags_of_device(&work, released_by, waits_for),
        };
        let position = self.stages.len() as u32;
        self.stages.push(stage);
        self.of_devices[number as usize] = position;
        let cursor = &mut self.cursors[thread];
        cursor.last = position;
        cursor.next = work.after;
    }

    fn lags_of_device(&self, work: &DeviceTask, released_by: u32, waits_for: u32) -> Lags {
        let usual = self.tasks.device.launch_latency;
        let longest = Nanos(usual.0.saturating_mul(3)).max(LONGEST_START);
        let before = self.tasks.device.tasks.get(work.before as usize);
        let before_end = before.map_or(Nanos::ZERO, |before| before.end);
        let released_at = self.tasks.end(released_by);
        let was_idle = waits_for == NONE && (before.is_none() || before_end <= released_at);
        let since = |end: Nanos| work.begin.saturating_sub(end);
        Lags {
            before: since(before_end).min(KERNEL_GAP),
            released_by: since(released_at).min(if was_idle { longest } else { usual }),
            waits_for: since(self.tasks.end(waits_for)),
        }
    }

    fn take_host(&mut self, thread: usize) {
        let task = self.cursors[thread].next;
        self.cursors[thread].next += 1;
        let host = &self.tasks.host;
        let open = &self.cursors[thread].open;
        // Tasks of one stage follow each other without a gap.
        let gap = if open.count > 0 || self.cursors[thread].last != NONE {
            host.begin(task).saturating_sub(host.end(task - 1))
        } else {
            Nanos::ZERO
        };
        let Some(&joint) = self.tasks.joints.get(task) else {
            if gap > Nanos::ZERO {
                self.close(thread);
            }
            self.extend(thread, task, gap);
            return;
        };
        let released_by = self.reached(joint.released_by);
        let waits_for = self.reached(joint.waits_for);
        let is_joined = released_by != NONE || waits_for != NONE;
        if is_joined || gap > Nanos::ZERO {
            self.close(thread);
        }
        self.extend(thread, task, gap);
        if is_joined {
            let lags = Lags {
                waits_for: host.end(task).saturating_sub(self.tasks.end(waits_for)),
                ..self.lags_of_start(task, gap, released_by)
            };
            let (released_by, waits_for) = (self.stage_of(released_by), self.stage_of(waits_for));
            let open = &mut self.cursors[thread].open;
            (open.released_by, open.waits_for, open.lags) = (released_by, waits_for, lags);
        }
        if joint.is_needed || waits_for != NONE {
            let stage = self.close(thread);
            self.of_joints[self.tasks.joints.number(task) as usize] = stage;
        }
    }

    /// Returns the times that pass before a task begins: since the one before it, which was a gap ago,
    /// and since the one that releases it.
    fn lags_of_start(&self, task: u32, gap: Nanos, released_by: u32) -> Lags {
        let Tasks { host, joints, .. } = self.tasks;
        let since = (host.begin(task)).saturating_sub(self.tasks.end(released_by));
        let is_queued = joints.get(task).is_some_and(|joint| joint.is_queued);
        let (before, released_by) = match released_by {
            NONE => (gap, since),
            // The thread was busy until after the task had been queued.
            _ if is_queued && gap < since => (gap, since.min(self.tasks.queue_latency)),
            _ if is_queued => (gap.min(self.tasks.queue_latency), since),
            // The time between two backward passes depends on the thread that starts them.
            _ => (Nanos::ZERO, since),
        };
        Lags {
            before,
            released_by: released_by.min(LONGEST_START),
            waits_for: Nanos::ZERO,
        }
    }

    /// Adds a task to the open stage of a thread, or opens one after a gap.
    fn extend(&mut self, thread: usize, task: u32, gap: Nanos) {
        let cursor = &mut self.cursors[thread];
        if cursor.open.count == 0 {
            cursor.open = Stage {
                first: task,
                before: cursor.last,
                lags: Lags {
                    before: gap,
                    ..Lags::default()
                },
                ..Cursor::new(thread).open
            };
        }
        cursor.open.count += 1;
    }

    /// Ends the open stage of a thread, if there is one, and returns the last stage.
    fn close(&mut self, thread: usize) -> u32 {
        let cursor = &mut self.cursors[thread];
        if cursor.open.count > 0 {
            cursor.last = self.stages.len() as u32;
            self.stages.push(cursor.open);
            cursor.open.count = 0;
        }
        cursor.last
    }

    /// Returns the task if it has been reached, and [`NONE`] otherwise.
    fn reached(&self, task: u32) -> u32 {
        if self.stage_of(task) == NONE {
            NONE
        } else {
            task
        }
    }

    /// Returns the stage that ends with a task.
    fn stage_of(&self, task: u32) -> u32 {
        if task == NONE {
            return NONE;
        }
        let found = match task.checked_sub(self.tasks.first_of_devices()) {
            Some(position) => self.of_devices.get(position as usize),
            None => (self.of_joints).get(self.tasks.joints.number(task) as usize),
        };
        found.copied().unwrap_or(NONE)
    }

    fn finish(mut self) -> Stages {
        for thread in 0..self.cursors.len() {
            self.close(thread);
        }
        let stages_of = |tasks: &Vec<u32>| tasks.iter().map(|&task| self.stage_of(task)).collect();
        Stages {
            last_of_steps: self.tasks.last_of_steps.iter().map(stages_of).collect(),
            backlog: stages_of(&self.tasks.backlog),
            all: self.stages,
        }
    }
}

impl Cursor {
    const fn new(thread: usize) -> Self {
        Self {
            next: NONE,
            end: 0,
            open: Stage {
                first: 0,
                count: 0,
                thread: thread as u32,
                before: NONE,
                released_by: NONE,
                waits_for: NONE,
                lags: Lags {
                    before: Nanos::ZERO,
                    released_by: Nanos::ZERO,
                    waits_for: Nanos::ZERO,
                },
            },
            last: NONE,
        }
    }
}
