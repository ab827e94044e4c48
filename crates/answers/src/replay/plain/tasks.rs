//! Cuts a profile into tasks, each with everything that it depends on, in an order in which each comes
//! after those that it depends on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mindprof_analyze::Analysis;
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Flags, Nanos, Profile, ScopeKind, ThreadId,
    is_backward_wrapper,
};
use rustc_hash::FxHashMap;

use crate::recorder_cost::{CostName, RecorderCost};
use crate::replay::Timing;
use crate::replay::calls::{is_copy_call, is_pageable_copy, waited_for_copy, waits_for_all};
use crate::steps::Step;

/// The index that no task has.
pub(crate) const NONE: u32 = u32::MAX;

/// A piece of time in which one thread or stream does one thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// The event that the time belongs to. [`NONE`] between events.
    pub(crate) event: u32,
    /// The thread or stream.
    pub(crate) thread: u32,
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    /// The part of it that recording took.
    pub(crate) recording: Nanos,
    /// The task before it on its thread or stream.
    pub(crate) before: u32,
    /// The task without whose end it cannot begin. A kernel's is the one before its launch; that of
    /// backward work on a thread of its own is the one before the thread that waits for it.
    pub(crate) released_by: u32,
    /// The task without whose end it cannot end: what a synchronization waits for. A kernel cannot
    /// begin without it.
    pub(crate) waits_for: u32,
    /// The time that passes after the end of each of these three tasks, whatever happens.
    pub(crate) lags: Lags,
    pub(crate) is_device: bool,
}

/// The times between the ends of the tasks that a task depends on and its own beginning, or for a
/// synchronization its own end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lags {
    pub(crate) before: Nanos,
    pub(crate) released_by: Nanos,
    pub(crate) waits_for: Nanos,
}

impl Task {
    pub(crate) fn duration(&self) -> Nanos {
        self.end.saturating_sub(self.begin)
    }

    /// Returns the time without what recording took, if that does not count.
    pub(crate) fn own(&self, timing: Timing) -> Nanos {
        match timing {
            Timing::Recorded => self.duration(),
            Timing::Unrecorded => self.duration().saturating_sub(self.recording),
        }
    }

    /// Returns when the task begins if it depends on no other.
    pub(crate) fn earliest(&self) -> Nanos {
        let is_free = self.needed_to_begin().all(|(other, _)| other == NONE);
        if is_free { self.begin } else { Nanos::ZERO }
    }

    /// Returns the tasks without whose ends it cannot begin, and the times that pass after them.
    pub(crate) fn needed_to_begin(&self) -> impl Iterator<Item = (u32, Nanos)> {
        let stream = if self.is_device { self.waits_for } else { NONE };
        [
            (self.before, self.lags.before),
            (self.released_by, self.lags.released_by),
            (stream, self.lags.waits_for),
        ]
        .into_iter()
    }

    /// Returns the task without whose end a call cannot return.
    pub(crate) const fn awaited(&self) -> u32 {
        if self.is_device { NONE } else { self.waits_for }
    }

    /// The time by which tasks are ordered so that each comes after those that it depends on.
    fn due(&self) -> Nanos {
        if self.waits_for != NONE && !self.is_device {
            self.end
        } else {
            self.begin
        }
    }
}

/// The tasks of a profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    /// The tasks in an order in which each comes after those that it depends on.
    #[expect(
        clippy::struct_field_names,
        reason = "the others are facts about these"
    )]
    pub(crate) tasks: Vec<Task>,
    /// By step, the tasks after whose end the step is complete.
    pub(crate) last_of_steps: Vec<Vec<u32>>,
    /// The device work that was launched before the first step.
    pub(crate) backlog: Vec<u32>,
    /// The usual time between the launch of a kernel and its beginning on an idle stream.
    pub(crate) launch_latency: Nanos,
    /// The time that recording took in all steps on the loop's thread.
    pub(crate) recording: Nanos,
}

/// Device work may seem to end a little later than the call that waited for it, because the clocks
/// differ.
const CLOCK_ERROR: Nanos = Nanos(2_000);

/// A kernel that begins within this time after the end of work on another stream waited for it.
const RELEASE: Nanos = Nanos(3_000);

/// Kernels of one stream follow each other within this time if nothing keeps them apart.
const KERNEL_GAP: Nanos = Nanos(1_500);

/// The longest time that a launch or a thread takes to begin, whatever was recorded.
const LONGEST_START: Nanos = Nanos(30_000);

/// The recorder's time that is looked for in the tasks that follow, at most.
const LARGEST_DEBT: Nanos = Nanos(50_000);

impl Tasks {
    /// Cuts a profile into tasks in time linear in the number of events, except for the order, which
    /// takes a heap of threads.
    pub(crate) fn build(
        analysis: &Analysis,
        steps: &[Step],
        loop_thread: ThreadId,
        cost: &RecorderCost,
    ) -> Self {
        let profile = analysis.profile();
        let mut chains = host_chains(analysis, loop_thread, cost);
        keep_backward_threads(profile, &mut chains, loop_thread);
        let mut built = Self::default();
        let mut first_of = vec![NONE; profile.threads().len()];
        for chain in chains {
            let Some(first) = chain.first() else { continue };
            let thread = first.thread as usize;
            first_of[thread] = built.tasks.len() as u32;
            for (place, mut task) in chain.into_iter().enumerate() {
                if place > 0 {
                    task.before = built.tasks.len() as u32 - 1;
                }
                built.tasks.push(task);
            }
        }
        let launches = built.launches(profile);
        built.add_device_work(analysis, steps, &launches);
        built.find_waits(profile, &launches);
        built.join_backward_threads(loop_thread, &first_of);
        let first_step = steps.first().map_or(Nanos::ZERO, |step| step.start);
        for task in built
            .tasks
            .iter_mut()
            .filter(|task| task.begin < first_step)
        {
            task.recording = Nanos::ZERO;
        }
        built.find_last_of_steps(steps, loop_thread);
        built.put_in_order(profile.threads().len());
        built.find_lags();
        built
    }

    /// Returns the first task of each call of a device's runtime, by its correlation id.
    fn launches(&self, profile: &Profile) -> FxHashMap<u32, u32> {
        let mut found = FxHashMap::default();
        for (index, task) in self.tasks.iter().enumerate() {
            if task.event == NONE {
                continue;
            }
            let id = EventId::from_raw(task.event);
            if profile.event(id).category == Category::Runtime {
                let correlation = profile.links(id).map_or(0, |links| links.correlation);
                if correlation != 0 {
                    found.entry(correlation).or_insert(index as u32);
                }
            }
        }
        found
    }

    fn add_device_work(
        &mut self,
        analysis: &Analysis,
        steps: &[Step],
        launches: &FxHashMap<u32, u32>,
    ) {
        let profile = analysis.profile();
        let mut latest: Vec<u32> = vec![NONE; profile.threads().len()];
        let mut last_launch: Vec<Option<Nanos>> = vec![None; profile.threads().len()];
        let mut streams: Vec<usize> = Vec::new();
        let mut latencies: Vec<Nanos> = Vec::new();
        self.last_of_steps = vec![Vec::new(); steps.len()];
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            let is_work = event.category == Category::Kernel
                && analysis.device(id) != DeviceKind::Cpu
                && !event.flags.contains(Flags::HIDDEN);
            if !is_work {
                continue;
            }
            let stream = event.thread.index();
            let before = latest[stream];
            if before == NONE {
                streams.push(stream);
            }
            let before_end = self.tasks.get(before as usize).map(|task| task.end);
            let correlation = profile.links(id).map_or(0, |links| links.correlation);
            let launch = launches.get(&correlation).map(|&launch| launch as usize);
            let launched_at = launch.map(|launch| self.tasks[launch].begin);
            // A kernel that was launched long ago and whose stream was idle waited for another
            // stream, if work ended there just before.
            let is_free = before_end.is_none_or(|end| end.saturating_add(RELEASE) < event.start);
            let other = if is_free && streams.len() > 1 {
                self.just_ended(&streams, &latest, stream, event.start)
            } else {
                NONE
            };
            let was_idle = |at: &Nanos| other == NONE && before_end.is_none_or(|end| end <= *at);
            if let Some(at) = launched_at.filter(was_idle) {
                latencies.push(event.start.saturating_sub(at));
            }
            let task = self.tasks.len() as u32;
            self.tasks.push(Task {
                event: id.to_raw(),
                thread: stream as u32,
                begin: event.start,
                end: event.end(),
                recording: Nanos::ZERO,
                before,
                released_by: launch.map_or(NONE, |launch| self.tasks[launch].before),
                waits_for: other,
                lags: Lags::default(),
                is_device: true,
            });
            latest[stream] = task;
            // Work whose launch was not recorded belongs to the launch before it, or to the time
            // before the recording.
            let at = launched_at.or(last_launch[stream]);
            last_launch[stream] = at;
            let after = at.map_or(0, |at| steps.partition_point(|step| step.start <= at));
            match (after.checked_sub(1), at) {
                (Some(step), Some(at)) if at < steps[step].end() => {
                    self.last_of_steps[step].push(task);
                }
                (None, _) | (_, None) => self.backlog.push(task),
                (Some(_), Some(_)) => {}
            }
        }
        for last in self.last_of_steps.iter_mut().chain([&mut self.backlog]) {
            keep_last_of_streams(&self.tasks, last);
        }
        let middle = latencies.len() / 2;
        if !latencies.is_empty() {
            self.launch_latency = *latencies.select_nth_unstable(middle).1;
        }
    }

    /// Returns the device task of another stream that ended just before a time.
    fn just_ended(&self, streams: &[usize], latest: &[u32], stream: usize, at: Nanos) -> u32 {
        let others = streams.iter().filter(|&&other| other != stream);
        let ended = others.map(|&other| latest[other]).filter(|&task| {
            let end = self.tasks[task as usize].end;
            end <= at.saturating_add(CLOCK_ERROR) && at.saturating_sub(end) < RELEASE
        });
        ended
            .max_by_key(|&task| self.tasks[task as usize].end)
            .unwrap_or(NONE)
    }

    /// Finds the device work that calls of the runtime wait for.
    fn find_waits(&mut self, profile: &Profile, launches: &FxHashMap<u32, u32>) {
        let mut ends: Vec<(Nanos, u32)> = (self.tasks.iter().enumerate())
            .filter(|(_, task)| task.is_device)
            .map(|(index, task)| (task.end, index as u32))
            .collect();
        if ends.is_empty() {
            return;
        }
        ends.sort_unstable();
        let mut copies: FxHashMap<u32, u32> = FxHashMap::default();
        for &(_, index) in &ends {
            let id = EventId::from_raw(self.tasks[index as usize].event);
            let correlation = profile.links(id).map_or(0, |links| links.correlation);
            if let Some(&launch) = launches.get(&correlation) {
                copies.insert(launch, index);
            }
        }
        let names: Vec<(bool, bool)> = (profile.strings().iter())
            .map(|name| (waits_for_all(name), is_copy_call(name)))
            .collect();
        for index in 0..self.tasks.len() {
            let task = self.tasks[index];
            if task.is_device || task.event == NONE {
                continue;
            }
            let event = profile.event(EventId::from_raw(task.event));
            if event.category != Category::Runtime {
                continue;
            }
            let (is_blocking, is_copy) = names[event.name.index()];
            let limit = task.end.saturating_add(CLOCK_ERROR);
            let found = if is_copy {
                let copy = copies.get(&(index as u32)).copied();
                copy.filter(|&copy| {
                    let copy = &self.tasks[copy as usize];
                    let event = profile.event(EventId::from_raw(copy.event));
                    let is_pageable = is_pageable_copy(profile.name(event));
                    waited_for_copy(task.end, (copy.begin, copy.end), is_pageable)
                })
            } else if is_blocking {
                let after = ends.partition_point(|&(end, _)| end <= limit);
                let last = after.checked_sub(1).map(|last| ends[last]);
                last.filter(|&(end, _)| end > task.begin)
                    .map(|(_, last)| last)
            } else {
                None
            };
            self.tasks[index].waits_for = found.unwrap_or(NONE);
        }
    }

    /// Joins the threads that run backward work with the thread that waits for it.
    ///
    /// ```text
    /// loop      |forward|waits                |optimizer|
    /// engine            |node|node|node|node|
    ///                    ▲ released by        ▲ waited for
    /// ```
    fn join_backward_threads(&mut self, loop_thread: ThreadId, first_of: &[u32]) {
        let main = first_of[loop_thread.index()];
        if main == NONE {
            return;
        }
        let is_of = |task: &Task, thread: usize| task.thread as usize == thread && !task.is_device;
        let main = main as usize;
        let main_end = (main..self.tasks.len())
            .find(|&index| !is_of(&self.tasks[index], loop_thread.index()))
            .unwrap_or(self.tasks.len());
        for (thread, &first) in first_of.iter().enumerate() {
            if first == NONE || thread == loop_thread.index() {
                continue;
            }
            let mut last: Option<usize> = None;
            let mut waiting = main;
            let mut index = first as usize;
            while index < self.tasks.len() && is_of(&self.tasks[index], thread) {
                let begin = self.tasks[index].begin;
                let waits = &self.tasks[waiting..main_end];
                waiting += waits
                    .partition_point(|task| task.begin <= begin)
                    .saturating_sub(1);
                let is_new =
                    last.is_none_or(|last| self.tasks[waiting].begin > self.tasks[last].end);
                if is_new {
                    self.tasks[index].released_by = self.tasks[waiting].before;
                }
                self.tasks[waiting].waits_for = index as u32;
                if let Some(last) = last.filter(|_| !is_new) {
                    // The time between two nodes of one pass belongs to the second.
                    self.tasks[index].begin = begin.min(self.tasks[last].end);
                    self.tasks[index].before = last as u32;
                }
                last = Some(index);
                index += 1;
            }
        }
    }

    fn find_last_of_steps(&mut self, steps: &[Step], loop_thread: ThreadId) {
        let mut step = 0;
        let mut last = NONE;
        for (index, task) in self.tasks.iter().enumerate() {
            if task.is_device || task.thread as usize != loop_thread.index() {
                continue;
            }
            while step < steps.len() && task.begin >= steps[step].end() {
                if last != NONE {
                    self.last_of_steps[step].push(last);
                }
                step += 1;
            }
            if step < steps.len() && task.begin >= steps[step].start {
                self.recording = self.recording + task.recording;
            }
            last = index as u32;
        }
        if step < steps.len() && last != NONE {
            self.last_of_steps[step].push(last);
        }
    }

    /// Puts the tasks in order by merging the chains of all threads and streams, each of which is in
    /// order. A dependency on a later task is an error of a clock, and is dropped.
    fn put_in_order(&mut self, threads: usize) {
        let order = self.order(threads);
        let mut places = vec![NONE; order.len()];
        for (place, &task) in order.iter().enumerate() {
            places[task as usize] = place as u32;
        }
        let tasks = order.iter().enumerate().map(|(place, &task)| {
            let mut task = self.tasks[task as usize];
            for other in [&mut task.before, &mut task.released_by, &mut task.waits_for] {
                let moved = places.get(*other as usize).copied();
                *other = moved
                    .filter(|&moved| (moved as usize) < place)
                    .unwrap_or(NONE);
            }
            task
        });
        self.tasks = tasks.collect();
        for last in self.last_of_steps.iter_mut().chain([&mut self.backlog]) {
            for task in last {
                *task = places[*task as usize];
            }
        }
    }

    fn order(&self, threads: usize) -> Vec<u32> {
        let mut chains: Vec<Vec<u32>> = vec![Vec::new(); threads];
        for (index, task) in self.tasks.iter().enumerate() {
            chains[task.thread as usize].push(index as u32);
        }
        let mut next = vec![0_usize; threads];
        let due = |chain: &[u32], at: usize| {
            let task = self.tasks[*chain.get(at)? as usize];
            Some((task.due(), task.is_device))
        };
        let mut heap: BinaryHeap<Reverse<((Nanos, bool), usize)>> = chains
            .iter()
            .enumerate()
            .filter_map(|(thread, chain)| Some(Reverse((due(chain, 0)?, thread))))
            .collect();
        let mut order = Vec::with_capacity(self.tasks.len());
        while let Some(Reverse((_, thread))) = heap.pop() {
            let limit = heap.peek().map(|Reverse((due, _))| *due);
            // Runs of one thread are taken without the heap.
            loop {
                order.push(chains[thread][next[thread]]);
                next[thread] += 1;
                match due(&chains[thread], next[thread]) {
                    Some(due) if limit.is_none_or(|limit| due <= limit) => {}
                    Some(due) => {
                        heap.push(Reverse((due, thread)));
                        break;
                    }
                    None => break,
                }
            }
        }
        order
    }

    /// Finds the times that pass between tasks, whatever happens.
    fn find_lags(&mut self) {
        let usual = self.launch_latency;
        let longest = Nanos(usual.0.saturating_mul(3)).max(LONGEST_START);
        for index in 0..self.tasks.len() {
            let task = self.tasks[index];
            let end = |other: u32| {
                let other = self.tasks.get(other as usize);
                other.map_or(Nanos::ZERO, |other| other.end)
            };
            let since = |other: u32| task.begin.saturating_sub(end(other));
            let lags = if task.is_device {
                let was_idle = task.waits_for == NONE
                    && (task.before == NONE || end(task.before) <= end(task.released_by));
                Lags {
                    before: since(task.before).min(KERNEL_GAP),
                    released_by: since(task.released_by).min(if was_idle {
                        longest
                    } else {
                        usual
                    }),
                    waits_for: since(task.waits_for),
                }
            } else {
                Lags {
                    // The time between two backward passes depends on the thread that starts them.
                    before: if task.released_by == NONE {
                        since(task.before)
                    } else {
                        Nanos::ZERO
                    },
                    released_by: since(task.released_by).min(LONGEST_START),
                    waits_for: task.end.saturating_sub(end(task.waits_for)),
                }
            };
            self.tasks[index].lags = lags;
        }
    }
}

/// Keeps the last task of each stream.
fn keep_last_of_streams(tasks: &[Task], kept: &mut Vec<u32>) {
    let mut last: FxHashMap<u32, u32> = FxHashMap::default();
    for &task in kept.iter() {
        last.insert(tasks[task as usize].thread, task);
    }
    *kept = last.into_values().collect();
    kept.sort_unstable();
}

/// Cuts the time of each CPU thread of the program at the beginnings and ends of its events.
fn host_chains(analysis: &Analysis, loop_thread: ThreadId, cost: &RecorderCost) -> Vec<Vec<Task>> {
    let profile = analysis.profile();
    let process = profile.threads()[loop_thread.index()].process;
    let names: Vec<CostName> = profile.strings().iter().map(CostName::of).collect();
    let mut chains: Vec<Chain> = (0..profile.threads().len())
        .map(|thread| Chain::new(thread as u32, cost.most()))
        .collect();
    for (index, event) in profile.events().iter().enumerate() {
        let thread = profile.threads()[event.thread.index()];
        let is_host =
            thread.device == DeviceKind::Cpu && thread.process == process && is_host_event(event);
        if is_host {
            let name = names[event.name.index()];
            let cost = Cost {
                time: cost.per_event(event.category, name),
                is_profiler: name == CostName::Profiler,
            };
            chains[event.thread.index()].open(index as u32, event, cost);
        }
    }
    chains.into_iter().map(Chain::finish).collect()
}

fn is_host_event(event: &Event) -> bool {
    let is_work = match event.category {
        Category::Operator
        | Category::Annotation
        | Category::PythonFunction
        | Category::Runtime => true,
        Category::Kernel | Category::DeviceAnnotation | Category::Other => false,
    };
    let flags = event.flags;
    is_work
        && !flags.contains(Flags::ASYNC)
        && !flags.contains(Flags::HIDDEN)
        && !flags.contains(Flags::INSTANT)
}

/// Drops the tasks of threads that nobody waits for, and the gaps between the backward passes of
/// those that run backward work.
fn keep_backward_threads(profile: &Profile, chains: &mut [Vec<Task>], loop_thread: ThreadId) {
    let is_wrapper: Vec<bool> = profile.strings().iter().map(is_backward_wrapper).collect();
    for (thread, chain) in chains.iter_mut().enumerate() {
        if thread == loop_thread.index() {
            continue;
        }
        let runs_backward = chain.iter().any(|task| {
            task.event != NONE && {
                let event = profile.event(EventId::from_raw(task.event));
                event.scope == ScopeKind::Backward || is_wrapper[event.name.index()]
            }
        });
        if runs_backward {
            drop_gaps(chain);
        } else {
            chain.clear();
        }
    }
}

/// Drops the tasks between events, and adds the recorder's time in them to the tasks that follow.
fn drop_gaps(chain: &mut Vec<Task>) {
    let mut carried = Nanos::ZERO;
    chain.retain_mut(|task| {
        if task.event == NONE {
            carried = task.recording;
            return false;
        }
        task.recording = task.recording + std::mem::take(&mut carried);
        true
    });
}

/// The recorder's part in an event.
#[derive(Clone, Copy)]
struct Cost {
    /// The time that recording the event took.
    time: Nanos,
    /// Whether all of its time is the profiler's.
    is_profiler: bool,
}

/// The tasks of one thread while its events are read in start order.
struct Chain {
    thread: u32,
    /// The largest part of a task that recording may have taken.
    most: f64,
    tasks: Vec<Task>,
    open: Vec<Open>,
    now: Nanos,
    /// The recorder's time that the next task contains.
    recording: Nanos,
}

/// An event that has begun.
struct Open {
    event: u32,
    end: Nanos,
    /// The recorder's time after its end.
    after: Nanos,
    /// Whether all of its time is the profiler's.
    is_profiler: bool,
}

impl Chain {
    fn new(thread: u32, most: f64) -> Self {
        Self {
            thread,
            most,
            tasks: Vec::new(),
            open: Vec::new(),
            now: Nanos::ZERO,
            recording: Nanos::ZERO,
        }
    }

    /// Begins an event. Half of the cost of recording it lies before its beginning, and half after
    /// its end; that of a call of the runtime, in which the driver calls back, lies inside.
    fn open(&mut self, id: u32, event: &Event, cost: Cost) {
        self.close_until(event.start);
        if self.tasks.is_empty() && self.open.is_empty() {
            self.now = event.start;
        }
        let (outside, inside) = match event.category {
            Category::Runtime => (Nanos::ZERO, cost.time),
            Category::Operator
            | Category::Annotation
            | Category::PythonFunction
            | Category::Kernel
            | Category::DeviceAnnotation
            | Category::Other => (Nanos(cost.time.0 / 2), Nanos::ZERO),
        };
        self.recording = self.recording + outside;
        self.advance(event.start);
        self.recording = self.recording + inside;
        let around = self.open.last();
        self.open.push(Open {
            event: id,
            // An event that outlives the one around it is cut.
            end: around.map_or(event.end(), |around| event.end().min(around.end)),
            after: outside,
            is_profiler: cost.is_profiler || around.is_some_and(|around| around.is_profiler),
        });
    }

    fn close_until(&mut self, time: Nanos) {
        while let Some(&Open { end, after, .. }) = self.open.last() {
            if end > time {
                break;
            }
            self.advance(end);
            self.open.pop();
            self.recording = self.recording + after;
        }
    }

    fn advance(&mut self, to: Nanos) {
        if to <= self.now {
            return;
        }
        let time = to - self.now;
        let open = self.open.last();
        let recording = if open.is_some_and(|open| open.is_profiler) {
            time
        } else {
            // What does not fit is the time of the tasks around it.
            let most = Nanos((time.0 as f64 * self.most) as u64);
            let recording = self.recording.min(most);
            self.recording = (self.recording - recording).min(LARGEST_DEBT);
            recording
        };
        self.tasks.push(Task {
            event: open.map_or(NONE, |open| open.event),
            thread: self.thread,
            begin: self.now,
            end: to,
            recording,
            before: NONE,
            released_by: NONE,
            waits_for: NONE,
            lags: Lags::default(),
            is_device: false,
        });
        self.now = to;
    }

    fn finish(mut self) -> Vec<Task> {
        self.close_until(Nanos(u64::MAX));
        self.tasks
    }
}
