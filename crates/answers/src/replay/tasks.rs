//! Cuts a profile into tasks: pieces of time in which one thread or stream does one thing, and what
//! each piece has to wait for.
//!
//! Tasks are numbered: first those of CPU threads, then device work in start order.

use std::ops::Range;

use mindprof_analyze::Analysis;
use mindprof_model::{EventId, Nanos, Profile, ThreadId};
use rustc_hash::FxHashMap;

use super::calls::{CallWait, is_pageable_copy, waited_for_copy};
use super::chains::Chain;
use super::device_tasks::{CLOCK_ERROR, DeviceTask, DeviceTasks};
use super::host_tasks::HostTasks;
use super::joints::Joints;
use super::task_queue::TaskQueue;
use crate::device::ByCorrelation;
use crate::recorder_cost::RecorderCost;
use crate::steps::Step;

/// The number that no task has.
pub(super) const NONE: u32 = u32::MAX;

/// With so many works in the queue of a stream, a long launch waits for room in it. The queue of a
/// CUDA stream has room for about a thousand, and other calls take some of it.
const LONG_QUEUE: usize = 256;

/// A launch that takes at least this long has waited, if the queue is long.
const LONG_LAUNCH: Nanos = Nanos(12_000);

/// The tasks of a profile.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    pub(super) host: HostTasks,
    pub(super) device: DeviceTasks,
    /// The CPU threads and their tasks.
    pub(super) threads: Vec<(usize, Range<u32>)>,
    pub(super) joints: Joints,
    /// By step, the tasks after whose end the step is complete.
    pub(super) last_of_steps: Vec<Vec<u32>>,
    /// The device work that was launched before the first step.
    pub(super) backlog: Vec<u32>,
    /// The time that recording took in all steps on the loop's thread.
    pub(super) recording: Nanos,
    /// The usual time between the queuing of a task and its beginning on an idle thread.
    pub(super) queue_latency: Nanos,
}

impl Tasks {
    /// Cuts a profile into tasks in time linear in the number of events.
    pub(super) fn build(
        analysis: &Analysis,
        steps: &[Step],
        loop_thread: ThreadId,
        cost: &RecorderCost,
    ) -> Self {
        let queue = TaskQueue::find(analysis.profile(), loop_thread);
        let mut chains = Chain::cut(analysis, loop_thread, cost, queue.as_ref());
        let mut tasks = Self::join_chains(&mut chains, loop_thread);
        tasks.joints = Joints::new(tasks.host.len());
        let first_tasks: Vec<u32> = (tasks.threads.iter())
            .map(|(_, range)| range.start)
            .collect();
        let firsts = chains.iter().zip(&first_tasks);
        let calls = firsts.flat_map(|(chain, first)| {
            let waits = chain.waits.iter();
            waits.map(move |&(task, wait)| (task + first, wait))
        });
        let calls: Vec<(u32, CallWait)> = calls.collect();
        let launches = Launches::build(&chains, &first_tasks);
        let firsts = chains.iter().zip(&first_tasks);
        let queued = firsts.flat_map(|(chain, first)| {
            let queued = chain.queued.iter();
            queued.map(move |&(event, task)| (event, task + first))
        });
        let queued: FxHashMap<u32, u32> = queued.collect();
        drop(chains);
        tasks.add_device_work(analysis, steps, &launches);
        tasks.find_waits(analysis.profile(), &calls);
        tasks.find_full_queues();
        let queue_thread = queue.as_ref().map(|queue| queue.thread);
        tasks.join_backward_threads(loop_thread, queue_thread);
        if let Some(queue) = &queue {
            tasks.join_queue(queue, &queued);
        }
        // The first step begins when it was recorded to, so nothing before it may get shorter.
        let first_step = steps.first().map_or(Nanos::ZERO, |step| step.start);
        tasks.host.keep_all_before(first_step);
        tasks.find_last_of_steps(steps, loop_thread);
        tasks.find_needed();
        tasks
    }

    /// Puts the tasks of all threads into one list. Those of the loop's thread, which are most, stay
    /// where they are.
    fn join_chains(chains: &mut [Chain], loop_thread: ThreadId) -> Self {
        let mut tasks = Self::default();
        let is_loop = |chain: &&mut Chain| chain.thread == loop_thread.index();
        if let Some(chain) = chains.iter_mut().find(is_loop) {
            tasks.host = std::mem::take(&mut chain.tasks);
        }
        let of_loop = 0..tasks.host.len() as u32;
        for chain in chains {
            let range = if chain.thread == loop_thread.index() {
                of_loop.clone()
            } else {
                let first = tasks.host.len() as u32;
                tasks.host.append(&chain.tasks);
                first..tasks.host.len() as u32
            };
            tasks.threads.push((chain.thread, range));
        }
        tasks
    }

    /// Returns the number of tasks.
    pub(super) const fn len(&self) -> usize {
        self.host.len() + self.device.tasks.len()
    }

    /// Returns the number of the first device work.
    pub(super) const fn first_of_devices(&self) -> u32 {
        self.host.len() as u32
    }

    /// Returns some device work by the number of its task.
    pub(super) fn device_work(&self, task: u32) -> Option<&DeviceTask> {
        let position = task.checked_sub(self.first_of_devices())?;
        self.device.tasks.get(position as usize)
    }

    /// Returns the recorded end of a task, or zero of none.
    pub(super) fn end(&self, task: u32) -> Nanos {
        if task == NONE {
            Nanos::ZERO
        } else if let Some(work) = self.device_work(task) {
            work.end
        } else {
            self.host.end(task)
        }
    }

    /// Returns the task before one of a CPU thread.
    fn before(&self, task: u32) -> u32 {
        let is_first = |(_, range): &(usize, Range<u32>)| range.start == task;
        if self.threads.iter().any(is_first) {
            NONE
        } else {
            task - 1
        }
    }

    /// Returns the task that releases some device work: the one before its launch.
    pub(super) fn released_by(&self, work: &DeviceTask) -> u32 {
        if work.launch == NONE {
            NONE
        } else {
            self.before(work.launch)
        }
    }

    fn add_device_work(&mut self, analysis: &Analysis, steps: &[Step], launches: &Launches) {
        let host = &self.host;
        let first = host.len() as u32;
        let mut last_of_steps: Vec<LastOfStreams> = vec![LastOfStreams::default(); steps.len()];
        let mut backlog = LastOfStreams::default();
        self.device = DeviceTasks::collect(
            analysis,
            |correlation| {
                let launch = launches.task(correlation)?;
                Some((launch, host.begin(launch)))
            },
            |number, work, at| {
                let after = at.map_or(0, |at| steps.partition_point(|step| step.start <= at));
                match (after.checked_sub(1), at) {
                    (Some(step), Some(at)) if at < steps[step].end() => {
                        last_of_steps[step].add(work.thread, first + number);
                    }
                    (None, _) | (_, None) => backlog.add(work.thread, first + number),
                    (Some(_), Some(_)) => {}
                }
            },
        );
        let last_of_steps = last_of_steps.into_iter();
        self.last_of_steps = last_of_steps.map(LastOfStreams::tasks).collect();
        self.backlog = backlog.tasks();
    }

    /// Finds the device work that calls of the runtime wait for.
    fn find_waits(&mut self, profile: &Profile, calls: &[(u32, CallWait)]) {
        let first = self.first_of_devices();
        let is_copy = |call: &&(u32, CallWait)| call.1 == CallWait::Copy;
        for &(call, _) in calls.iter().filter(is_copy) {
            self.joints.of(call);
        }
        // The copy of a call is the last work that it launched.
        for (number, work) in (first..).zip(&self.device.tasks) {
            if work.launch != NONE
                && let Some(joint) = self.joints.get_mut(work.launch)
            {
                let known = joint.waits_for.checked_sub(first);
                let known = known.and_then(|known| self.device.tasks.get(known as usize));
                if known.is_none_or(|known| known.end <= work.end) {
                    joint.waits_for = number;
                }
            }
        }
        let mut ends: Vec<(Nanos, u32)> = Vec::new();
        for &(call, wait) in calls {
            let limit = self.host.end(call).saturating_add(CLOCK_ERROR);
            match wait {
                CallWait::Nothing => {}
                CallWait::Copy => {
                    let copy = self.joints.of(call).waits_for;
                    let is_awaited = |copy: &DeviceTask| {
                        let name = profile.name(profile.event(EventId::from_raw(copy.event)));
                        let is_pageable = is_pageable_copy(name);
                        waited_for_copy(self.host.end(call), (copy.begin, copy.end), is_pageable)
                    };
                    if !self.device_work(copy).is_some_and(is_awaited) {
                        self.joints.of(call).waits_for = NONE;
                    }
                }
                CallWait::All => {
                    if ends.is_empty() {
                        let works = (first..).zip(&self.device.tasks);
                        ends = works.map(|(number, work)| (work.end, number)).collect();
                        ends.sort_unstable();
                    }
                    let after = ends.partition_point(|&(end, _)| end <= limit);
                    let last = after.checked_sub(1).map(|last| ends[last]);
                    let begin = self.host.begin(call);
                    if let Some((_, last)) = last.filter(|&(end, _)| end > begin) {
                        self.joints.of(call).waits_for = last;
                    }
                }
            }
        }
    }

    /// Finds the launches that wait for room in the queue of a stream. A program whose device is
    /// slower than its CPU spends its time in them, and runs on as soon as work on the stream ends.
    ///
    /// ```text
    /// loop      |launch|launch, waits|launch, waits|
    /// stream    |=== work 1 ===|=== work 2 ===|=== work 3 ===|   hundreds of works in the queue
    ///                          ▲ waited for   ▲ waited for
    /// ```
    fn find_full_queues(&mut self) {
        let first = self.first_of_devices();
        for &(_, first_of_stream) in &self.device.streams {
            let next = |&number: &u32| {
                let after = self.device.tasks[number as usize].after;
                (after != NONE).then_some(after)
            };
            let works: Vec<u32> = std::iter::successors(Some(first_of_stream), next).collect();
            let work = |number: u32| &self.device.tasks[number as usize];
            for (place, &number) in works.iter().enumerate().skip(LONG_QUEUE) {
                let call = work(number).launch;
                if call == NONE || self.host.duration(call) < LONG_LAUNCH {
                    continue;
                }
                let (begin, end) = (self.host.begin(call), self.host.end(call));
                let taken = works.partition_point(|&other| work(other).begin <= begin);
                if place.saturating_sub(taken) < LONG_QUEUE {
                    continue;
                }
                let limit = end.saturating_add(CLOCK_ERROR);
                let ended = works.partition_point(|&other| work(other).end <= limit);
                let last = ended.checked_sub(1).map(|last| works[last]);
                if let Some(last) = last.filter(|&last| work(last).end > begin) {
                    let joint = self.joints.of(call);
                    if joint.waits_for == NONE {
                        joint.waits_for = first + last;
                    }
                }
            }
        }
    }

    /// Joins the threads that run backward work with the thread that waits for it.
    ///
    /// ```text
    /// loop      |forward|waits                |optimizer|
    /// engine            |node|node|node|node|
    ///                    ▲ released by        ▲ waited for
    /// ```
    fn join_backward_threads(&mut self, loop_thread: ThreadId, queue_thread: Option<usize>) {
        let threads = std::mem::take(&mut self.threads);
        let is_loop = |thread: usize| thread == loop_thread.index();
        let main = threads.iter().find(|(thread, _)| is_loop(*thread));
        let main = main.map_or(0..0, |(_, range)| range.clone());
        for (thread, range) in &threads {
            if is_loop(*thread) || queue_thread == Some(*thread) || main.is_empty() {
                continue;
            }
            let mut last: Option<u32> = None;
            let mut waiting = main.start;
            for task in range.clone() {
                let begin = self.host.begin(task);
                let waits = &self.host.begins()[waiting as usize..main.end as usize];
                waiting += count_until(waits, begin).saturating_sub(1) as u32;
                let since = self.host.begin(waiting);
                let is_new = last.is_none_or(|last| since > self.host.end(last));
                if is_new && waiting > main.start {
                    self.joints.of(task).released_by = waiting - 1;
                }
                self.joints.of(waiting).waits_for = task;
                if let Some(last) = last.filter(|_| !is_new) {
                    // The time between two nodes of one pass belongs to the second.
                    self.host.extend_back(task, self.host.end(last));
                }
                last = Some(task);
            }
        }
        self.threads = threads;
    }

    /// Joins the thread that takes queued tasks with those that queue them. A task can be taken while
    /// the call that queues it still runs, so the task before that call releases it, as for a launch.
    /// `queued` has the first task of each call.
    fn join_queue(&mut self, queue: &TaskQueue, queued: &FxHashMap<u32, u32>) {
        let mut latencies: Vec<Nanos> = Vec::new();
        for (take, put) in &queue.pairs {
            let (Some(&take), Some(&put)) = (queued.get(take), queued.get(put)) else {
                continue;
            };
            let released_by = self.before(put);
            if released_by == NONE {
                continue;
            }
            let released_at = self.host.end(released_by);
            let before = self.before(take);
            if before == NONE || self.host.end(before) <= released_at {
                latencies.push(self.host.begin(take).saturating_sub(released_at));
            }
            let joint = self.joints.of(take);
            (joint.released_by, joint.is_queued) = (released_by, true);
        }
        let middle = latencies.len() / 2;
        if !latencies.is_empty() {
            self.queue_latency = *latencies.select_nth_unstable(middle).1;
        }
    }

    fn find_last_of_steps(&mut self, steps: &[Step], loop_thread: ThreadId) {
        let is_loop = |(thread, _): &&(usize, Range<u32>)| *thread == loop_thread.index();
        let tasks = self.threads.iter().find(is_loop);
        let tasks = tasks.map_or(0..0, |(_, range)| range.clone());
        let mut step = 0;
        let mut last = NONE;
        for task in tasks {
            let begin = self.host.begin(task);
            while step < steps.len() && begin >= steps[step].end() {
                if last != NONE {
                    self.last_of_steps[step].push(last);
                }
                step += 1;
            }
            if step < steps.len() && begin >= steps[step].start {
                self.recording = self.recording + self.host.recording(task);
            }
            last = task;
        }
        if step < steps.len() && last != NONE {
            self.last_of_steps[step].push(last);
        }
    }

    /// Notes the tasks of CPU threads that others depend on.
    fn find_needed(&mut self) {
        for position in 0..self.device.tasks.len() {
            let released_by = self.released_by(&self.device.tasks[position]);
            if released_by != NONE {
                self.joints.of(released_by).is_needed = true;
            }
        }
        let devices = self.first_of_devices();
        for &last in self.last_of_steps.iter().flatten() {
            if last < devices {
                self.joints.of(last).is_needed = true;
            }
        }
        self.joints.need_each_other();
    }
}

/// Returns how many times at the beginning of a sorted list are at most `limit`. It looks near the
/// beginning first.
fn count_until(times: &[Nanos], limit: Nanos) -> usize {
    let mut reach = 1;
    while reach < times.len() && times[reach] <= limit {
        reach *= 2;
    }
    let reach = times.len().min(reach + 1);
    times[..reach].partition_point(|&time| time <= limit)
}

/// The calls of a device's runtime by their correlation ids.
struct Launches {
    table: ByCorrelation,
    tasks: Vec<u32>,
}

impl Launches {
    fn build(chains: &[Chain], first_tasks: &[u32]) -> Self {
        let launches = chains.iter().zip(first_tasks).flat_map(|(chain, first)| {
            let launches = chain.launches.iter();
            launches.map(move |&(correlation, task)| (correlation, task + first))
        });
        let (correlations, tasks): (Vec<u32>, Vec<u32>) = launches.unzip();
        Self {
            table: ByCorrelation::build(&correlations),
            tasks,
        }
    }

    /// Returns the first task of the call with a correlation id.
    fn task(&self, correlation: u32) -> Option<u32> {
        let position = self.table.get(correlation)?;
        Some(self.tasks[position])
    }
}

/// The last task of each stream.
#[derive(Clone, Debug, Default)]
struct LastOfStreams {
    tasks: Vec<(u32, u32)>,
}

impl LastOfStreams {
    fn add(&mut self, stream: u32, task: u32) {
        match self.tasks.iter_mut().rfind(|(known, _)| *known == stream) {
            Some((_, last)) => *last = task,
            None => self.tasks.push((stream, task)),
        }
    }

    fn tasks(self) -> Vec<u32> {
        self.tasks.into_iter().map(|(_, task)| task).collect()
    }
}
