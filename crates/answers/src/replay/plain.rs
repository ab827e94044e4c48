//! The clear version of a replay, which the quick one is compared with in tests: a list of tasks, each
//! with everything that it depends on, replayed one by one.

mod tasks;

use mindprof_analyze::Analysis;
use mindprof_model::{EventId, Nanos};

use self::tasks::{NONE, Task, Tasks};
use super::path::{Lag, Piece, Work};
use super::{GRAPH_GAP, READY_CALL, Replay, Timing, WhatIf, scaled};
use crate::recorder_cost::RecorderCost;
use crate::step_times::loop_thread;

/// A profile that is replayed task by task.
pub(super) struct PlainReplay {
    tasks: Tasks,
    first_step: Nanos,
}

impl PlainReplay {
    pub(super) fn build(analysis: &Analysis, replay: &Replay) -> Self {
        let profile = analysis.profile();
        let thread = loop_thread(profile).expect("there is host work");
        let cost = RecorderCost::of_profile(profile, analysis.accelerator().is_some());
        Self {
            tasks: Tasks::build(analysis, replay.steps(), thread, &cost),
            first_step: replay.steps()[0].start,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.tasks.len()
    }

    pub(super) const fn recording(&self) -> Nanos {
        self.tasks.recording
    }

    /// Returns how long each step takes.
    pub(super) fn steps(&self, change: &WhatIf, timing: Timing) -> Vec<Nanos> {
        let ends = self.ends(change, timing);
        let (mut done, completions) = self.completions(|task| ends[task as usize]);
        let steps = completions.into_iter().map(|(end, _)| {
            let step = end.saturating_sub(done);
            done = end;
            step
        });
        steps.collect()
    }

    fn ends(&self, change: &WhatIf, timing: Timing) -> Vec<Nanos> {
        let mut ends: Vec<Nanos> = Vec::new();
        for task in &self.tasks.tasks {
            let mut begin = task.earliest();
            for (other, lag) in task.needed_to_begin() {
                let lag = if change.is_captured && task.is_device {
                    lag.min(GRAPH_GAP)
                } else {
                    lag
                };
                if let Some(end) = ends.get(other as usize) {
                    begin = begin.max(end.saturating_add(lag));
                }
            }
            let scale = change.scales.get(task.event as usize);
            let factor = scale.map_or(1.0, |&scale| f64::from(scale));
            let awaited = ends.get(task.awaited() as usize).copied();
            let own = match awaited {
                Some(_) => task.duration().min(READY_CALL),
                None => task.own(timing),
            };
            let mut end = begin.saturating_add(Nanos(scaled(own, factor)));
            let unblocked = change.unblocked.get(task.event as usize) == Some(&true);
            let waits = !unblocked && factor > 0.0;
            if let Some(awaited) = awaited.filter(|_| waits) {
                let rest = Nanos(scaled(task.lags.waits_for, factor));
                end = end.max(awaited.saturating_add(rest));
            }
            ends.push(end);
        }
        ends
    }

    fn completions(&self, end: impl Fn(u32) -> Nanos) -> (Nanos, Vec<(Nanos, u32)>) {
        let latest = |tasks: &[u32]| tasks.iter().map(|&task| (end(task), task)).max();
        let begin = self.first_step;
        let begin = latest(&self.tasks.backlog).map_or(begin, |(end, _)| end.max(begin));
        let mut done = (begin, NONE);
        let steps = self.tasks.last_of_steps.iter().map(|last| {
            if let Some(found) = latest(last).filter(|found| found.0 > done.0) {
                done = found;
            }
            done
        });
        (begin, steps.collect())
    }

    /// Returns the critical path.
    pub(super) fn path(&self, unchanged: &WhatIf, timing: Timing) -> Vec<Piece> {
        let ends = self.ends(unchanged, timing);
        let end_of = |task: u32| ends[task as usize];
        let (begin, completions) = self.completions(end_of);
        let mut pieces = Vec::new();
        let mut next = completions.last().map_or(NONE, |&(_, task)| task);
        while let Some(task) = self.tasks.tasks.get(next as usize) {
            let end = end_of(next);
            if end <= begin {
                break;
            }
            next = step_back(task, end, timing, end_of, &mut pieces);
        }
        pieces.reverse();
        for piece in &mut pieces {
            piece.begin = piece.begin.max(begin);
        }
        pieces.retain(|piece| piece.begin < piece.end);
        pieces
    }
}

/// Adds the pieces of a task that ends at a time, the last one first, and returns the task that it
/// had to wait for.
fn step_back(
    task: &Task,
    end: Nanos,
    timing: Timing,
    end_of: impl Fn(u32) -> Nanos,
    pieces: &mut Vec<Piece>,
) -> u32 {
    let piece = |begin, end, recorded, work| Piece {
        event: (task.event != NONE).then(|| EventId::from_raw(task.event)),
        thread: task.thread as usize,
        begin,
        end,
        recorded,
        work,
    };
    let mut begin = (task.earliest(), NONE);
    for (other, lag) in task.needed_to_begin().filter(|&(other, _)| other != NONE) {
        let ready = end_of(other).saturating_add(lag);
        if begin.1 == NONE || ready > begin.0 {
            begin = (ready, other);
        }
    }
    let (begin, bound_by) = begin;
    let awaited = task.awaited();
    if awaited != NONE {
        let rest = task.lags.waits_for;
        let ready = begin.saturating_add(task.duration().min(READY_CALL));
        if end_of(awaited).saturating_add(rest) >= ready {
            let recorded = (task.end.saturating_sub(rest), task.end);
            pieces.push(piece(
                end_of(awaited),
                end,
                recorded,
                Work::Lag(Lag::Return),
            ));
            return awaited;
        }
    }
    let work = if task.is_device {
        Work::Device
    } else {
        let recording = match timing {
            Timing::Recorded if awaited == NONE => task.recording,
            Timing::Recorded | Timing::Unrecorded => Nanos::ZERO,
        };
        Work::Host { recording }
    };
    pieces.push(piece(begin, end, (task.begin, task.end), work));
    if bound_by != NONE {
        let lag = match bound_by {
            other if !task.is_device && other == task.released_by => Lag::ThreadStart,
            _ if !task.is_device => Lag::Thread,
            other if other == task.released_by => Lag::Launch,
            _ => Lag::BetweenKernels,
        };
        let since = end_of(bound_by);
        let recorded = (
            task.begin.saturating_sub(begin.saturating_sub(since)),
            task.begin,
        );
        pieces.push(piece(since, begin, recorded, Work::Lag(lag)));
    }
    bound_by
}
