//! Replays a profile: how long its steps would take if some of their work took less time.
//!
//! A sum of durations says little about what could be gained, because work overlaps. A replay lets
//! each task begin as soon as those that it depends on have ended: the task before it on its thread
//! or stream, its launch, the work that a synchronization waits for. Without a change it gives the
//! recorded times again.

mod calls;
mod chains;
mod device_tasks;
mod host_tasks;
mod joints;
mod path;
mod removals;
mod stages;
mod task_queue;
mod tasks;

use std::ops::Range;

use mindprof_analyze::Analysis;
use mindprof_model::{EventId, Nanos};

pub(crate) use calls::{
    is_allocation_call, is_blocking_call, is_copy_call, is_pageable_copy, waited_for_copy,
};
use host_tasks::HostTasks;
pub(crate) use path::{Lag, Piece, Work as PieceWork};
pub(crate) use removals::Removals;
use stages::{Stage, Stages};
use tasks::{NONE, Tasks};

use crate::recorder_cost::RecorderCost;
use crate::step_times::loop_thread;
use crate::steps::{Step, Steps};

/// A change to a replay: events that take another time, and calls that no longer wait.
#[derive(Clone, Debug)]
pub struct WhatIf {
    /// By event, the factor of its own time.
    scales: Vec<f32>,
    /// By event, whether its call no longer waits for device work.
    unblocked: Vec<bool>,
    /// The events that nothing makes shorter, sorted.
    kept: Vec<EventId>,
    /// Whether kernels are launched together, as those of a captured graph.
    is_captured: bool,
}

impl WhatIf {
    /// Returns no change to the events of a profile.
    pub fn none(analysis: &Analysis) -> Self {
        let events = analysis.profile().events().len();
        Self {
            scales: vec![1.0; events],
            unblocked: vec![false; events],
            kept: Vec::new(),
            is_captured: false,
        }
    }

    /// Scales the own time of an event, without that of the events inside it.
    pub fn scale(&mut self, event: EventId, factor: f32) {
        self.scales[event.index()] = factor;
    }

    /// Scales the own time of an event unless it is scaled down further already, or kept.
    pub fn limit(&mut self, event: EventId, factor: f32) {
        if self.kept.binary_search(&event).is_err() {
            let scale = &mut self.scales[event.index()];
            *scale = scale.min(factor);
        }
    }

    /// Keeps the time of an event, whatever [`limit`](Self::limit) is asked for. Events are kept in
    /// time order.
    pub(crate) fn keep(&mut self, event: EventId) {
        self.kept.push(event);
    }

    /// Adds another change: each event takes the shorter of its times.
    pub fn add(&mut self, other: &Self) {
        for (scale, other) in self.scales.iter_mut().zip(&other.scales) {
            *scale = scale.min(*other);
        }
        for (unblocked, other) in self.unblocked.iter_mut().zip(&other.unblocked) {
            *unblocked |= other;
        }
        self.is_captured |= other.is_captured;
    }

    /// Lets a call of a device's runtime return without waiting.
    pub fn unblock(&mut self, event: EventId) {
        self.unblocked[event.index()] = true;
    }

    /// Lets kernels begin without the latency of a launch, as in a CUDA graph.
    pub fn capture_launches(&mut self) {
        self.is_captured = true;
    }

    /// Returns the factor of the own time of an event.
    pub(crate) fn factor(&self, event: EventId) -> f32 {
        self.scales[event.index()]
    }
}

/// Whether the time that recording took is part of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// The program as it runs without a profiler.
    #[default]
    Unrecorded,
    /// The times that were recorded.
    Recorded,
}

/// A profile that can be replayed.
#[derive(Clone, Debug)]
pub struct Replay {
    tasks: Tasks,
    stages: Stages,
    steps: Vec<Step>,
    has_steps: bool,
}

/// The times of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How long each step took, from the completion of the one before: of its work on the CPU, and of the
    /// device work that it launched.
    pub steps: Vec<Nanos>,
}

impl Replayed {
    /// Returns the time of all steps.
    pub fn total(&self) -> Nanos {
        Nanos(self.steps.iter().map(|step| step.0).sum())
    }

    /// Returns the time of the median step, the lower one of two.
    pub fn median(&self) -> Nanos {
        let mut steps = self.steps.clone();
        steps.sort_unstable();
        let middle = steps.len().saturating_sub(1) / 2;
        steps.get(middle).copied().unwrap_or_default()
    }
}

/// A call that finds its device work done takes at most this long.
const READY_CALL: Nanos = Nanos(2_000);

/// The part of the recorded time that a faithful replay takes, at least and at most.
const EXPLAINED: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// Kernels follow each other within this time if no launch is in between, as in a CUDA graph.
const GRAPH_GAP: Nanos = Nanos(500);

/// The changes to several replays that are made at once.
trait Change<const REPLAYS: usize> {
    /// Returns the factors of the time of an event, or of the time between events.
    fn factors(&self, event: u32) -> [f64; REPLAYS];

    /// Returns the time of some tasks of a CPU thread, in nanoseconds.
    fn host_times(&self, host: &HostTasks, tasks: Range<u32>, timing: Timing) -> [u64; REPLAYS];

    /// Returns the time that passes before device work begins.
    fn device_lag(&self, lag: Nanos) -> Nanos {
        lag
    }

    /// Returns whether a call no longer waits for device work.
    fn is_unblocked(&self, _event: u32) -> bool {
        false
    }
}

/// Nothing is different.
struct Unchanged;

impl Change<1> for Unchanged {
    fn factors(&self, _event: u32) -> [f64; 1] {
        [1.0]
    }

    fn host_times(&self, host: &HostTasks, tasks: Range<u32>, timing: Timing) -> [u64; 1] {
        [host.times(tasks, timing).map(|(_, own)| own).sum()]
    }
}

impl Change<1> for WhatIf {
    fn factors(&self, event: u32) -> [f64; 1] {
        let scale = self.scales.get(event as usize);
        [scale.map_or(1.0, |&scale| f64::from(scale))]
    }

    fn host_times(&self, host: &HostTasks, tasks: Range<u32>, timing: Timing) -> [u64; 1] {
        let times = host.times(tasks, timing).map(|(event, own)| {
            match self.scales.get(event as usize).copied() {
                Some(scale) if scale.total_cmp(&1.0).is_ne() => {
                    scaled(Nanos(own), f64::from(scale))
                }
                Some(_) | None => own,
            }
        });
        [times.sum()]
    }

    fn device_lag(&self, lag: Nanos) -> Nanos {
        if self.is_captured {
            lag.min(GRAPH_GAP)
        } else {
            lag
        }
    }

    fn is_unblocked(&self, event: u32) -> bool {
        let unblocked = self.unblocked.get(event as usize);
        unblocked.is_some_and(|&unblocked| unblocked)
    }
}

impl Replay {
    /// Prepares the steps of a profile, or all of it as one step if it has none. Returns `None` if
    /// nothing ran on the CPU.
    pub fn build(analysis: &Analysis) -> Option<Self> {
        let profile = analysis.profile();
        let known = Steps::build(profile);
        let skipped = usize::from(known.first_of_marks().is_some());
        let mut steps = known.complete()[skipped..].to_vec();
        steps.sort_by_key(|step| step.start);
        let has_steps = !steps.is_empty();
        let thread = loop_thread(profile)?;
        if !has_steps {
            // Nothing can be replayed before the first event of the thread.
            let mut events = profile.events().iter();
            let first = events.find(|event| event.thread == thread);
            let start = first.map_or(Nanos::ZERO, |event| event.start);
            steps.push(Step {
                number: 0,
                start,
                duration: profile.span().saturating_sub(start),
            });
        }
        let has_device = analysis.accelerator().is_some();
        let cost = RecorderCost::of_profile(profile, has_device);
        let tasks = Tasks::build(analysis, &steps, thread, &cost);
        let stages = Stages::build(&tasks, profile.threads().len());
        Some(Self {
            tasks,
            stages,
            steps,
            has_steps,
        })
    }

    /// Returns the steps that are replayed.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns whether the profile has steps. Otherwise all of it is replayed as one.
    pub const fn has_steps(&self) -> bool {
        self.has_steps
    }

    /// Returns the time that recording took on the loop's thread, in all steps.
    pub fn recording(&self) -> Nanos {
        self.tasks.recording
    }

    /// Returns the number of tasks.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether there is nothing to replay.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Replays what was recorded, with the time that recording took.
    pub fn recorded(&self) -> Replayed {
        self.replayed(Timing::Recorded)
    }

    /// Returns how long each step took in the recording.
    ///
    /// A replay of what was recorded ([`Self::recorded`]) gives the same times if it knows everything
    /// that work waits for. They are counted from one completion to the next, as in replays. If the
    /// replay has other times, they are those of the steps on the CPU: device work without a launch
    /// counts as work from before the first step, and may hide all of it.
    pub fn measured(&self) -> Replayed {
        let completed = self.completions_recorded();
        if self.explains(completed.total()) {
            return completed;
        }
        Replayed {
            steps: self.steps.iter().map(|step| step.duration).collect(),
        }
    }

    fn completions_recorded(&self) -> Replayed {
        self.completions(|stage| {
            let stage = &self.stages.all[stage as usize];
            if stage.is_device() {
                self.tasks.device.tasks[stage.device_work()].end
            } else {
                self.tasks.host.end(stage.tasks().end - 1)
            }
        })
    }

    /// Returns whether a replay of what was recorded takes about as long as the recording. Otherwise
    /// work waits for something that the recording does not tell, and no prediction can be trusted.
    pub fn is_faithful(&self) -> bool {
        self.explains(self.measured().total())
    }

    /// Returns whether a replay of what was recorded takes about this time.
    fn explains(&self, measured: Nanos) -> bool {
        let replayed = self.recorded().total().0 as f64;
        EXPLAINED.contains(&(replayed / measured.0.max(1) as f64))
    }

    /// Replays the program as it runs without a profiler.
    pub fn unrecorded(&self) -> Replayed {
        self.replayed(Timing::Unrecorded)
    }

    /// Replays the program with a change and without a profiler.
    pub fn with(&self, change: &WhatIf) -> Replayed {
        let [replayed] = self.run(change, Timing::Unrecorded);
        replayed
    }

    /// Replays the program without a change.
    pub(crate) fn replayed(&self, timing: Timing) -> Replayed {
        let [replayed] = self.run(&Unchanged, timing);
        replayed
    }

    fn run<const REPLAYS: usize>(
        &self,
        change: &impl Change<REPLAYS>,
        timing: Timing,
    ) -> [Replayed; REPLAYS] {
        let ends = self.ends(change, timing);
        std::array::from_fn(|replay| self.completions(|stage| Nanos(ends[stage as usize][replay])))
    }

    /// Returns the ends of all stages, in nanoseconds.
    fn ends<const REPLAYS: usize>(
        &self,
        change: &impl Change<REPLAYS>,
        timing: Timing,
    ) -> Vec<[u64; REPLAYS]> {
        let mut ends: Vec<[u64; REPLAYS]> = Vec::with_capacity(self.stages.all.len());
        for stage in &self.stages.all {
            let mut begin = [self.earliest(stage).0; REPLAYS];
            for (other, lag) in stage.needed_to_begin() {
                if let Some(end) = ends.get(other as usize) {
                    let is_device = stage.is_device();
                    let lag = if is_device {
                        change.device_lag(lag)
                    } else {
                        lag
                    };
                    latest(&mut begin, end, lag);
                }
            }
            let end = if stage.is_device() {
                let work = &self.tasks.device.tasks[stage.device_work()];
                let factors = change.factors(work.event);
                let duration = work.end.saturating_sub(work.begin);
                std::array::from_fn(|replay| {
                    begin[replay].saturating_add(scaled(duration, factors[replay]))
                })
            } else if let Some(awaited) = ends.get(stage.awaited() as usize) {
                self.end_of_wait(stage, begin, *awaited, change)
            } else {
                let times = change.host_times(&self.tasks.host, stage.tasks(), timing);
                std::array::from_fn(|replay| begin[replay].saturating_add(times[replay]))
            };
            ends.push(end);
        }
        ends
    }

    /// Returns the end of a call that waits.
    fn end_of_wait<const REPLAYS: usize>(
        &self,
        stage: &Stage,
        begin: [u64; REPLAYS],
        awaited: [u64; REPLAYS],
        change: &impl Change<REPLAYS>,
    ) -> [u64; REPLAYS] {
        let task = stage.tasks().start;
        let event = self.tasks.host.event(task);
        let factors = change.factors(event);
        let is_unblocked = change.is_unblocked(event);
        let own = self.tasks.host.duration(task).min(READY_CALL);
        std::array::from_fn(|replay| {
            let ready = begin[replay].saturating_add(scaled(own, factors[replay]));
            // A call that is removed does not wait either.
            if is_unblocked || factors[replay] <= 0.0 {
                return ready;
            }
            let rest = scaled(stage.lags.waits_for, factors[replay]);
            ready.max(awaited[replay].saturating_add(rest))
        })
    }

    /// Returns when a stage begins if it depends on no other.
    fn earliest(&self, stage: &Stage) -> Nanos {
        if !stage.is_free() {
            Nanos::ZERO
        } else if stage.is_device() {
            self.tasks.device.tasks[stage.device_work()].begin
        } else {
            self.tasks.host.begin(stage.tasks().start)
        }
    }

    /// Returns how long each step took until all of its work was done.
    fn completions(&self, end: impl Fn(u32) -> Nanos) -> Replayed {
        let (mut done, completions) = self.completion_times(end);
        let steps = completions.into_iter().map(|(end, _)| {
            let step = end.saturating_sub(done);
            done = end;
            step
        });
        Replayed {
            steps: steps.collect(),
        }
    }

    /// Returns when the first step begins and each one is complete, with the stage that ends last.
    fn completion_times(&self, end: impl Fn(u32) -> Nanos) -> (Nanos, Vec<(Nanos, u32)>) {
        let latest = |stages: &[u32]| stages.iter().map(|&stage| (end(stage), stage)).max();
        let begin = self.steps.first().map_or(Nanos::ZERO, |step| step.start);
        let begin = latest(&self.stages.backlog).map_or(begin, |(end, _)| end.max(begin));
        let mut done = (begin, NONE);
        let steps = self.stages.last_of_steps.iter().map(|last| {
            if let Some(found) = latest(last).filter(|found| found.0 > done.0) {
                done = found;
            }
            done
        });
        (begin, steps.collect())
    }
}

/// Moves beginnings to a time after the ends of a stage.
fn latest<const REPLAYS: usize>(begins: &mut [u64; REPLAYS], ends: &[u64; REPLAYS], lag: Nanos) {
    for (begin, end) in begins.iter_mut().zip(ends) {
        *begin = (*begin).max(end.saturating_add(lag.0));
    }
}

fn scaled(time: Nanos, factor: f64) -> u64 {
    (time.0 as f64 * factor) as u64
}

#[cfg(test)]
pub(crate) mod drawing;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod tests;
