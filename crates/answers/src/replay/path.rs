//! The chain of tasks that determines when the last step is complete.

use mindprof_model::{EventId, Nanos};

use super::tasks::{NONE, Task};
use super::{READY_CALL, Replay, Timing, Unchanged};

/// A piece of the chain: a task, or the time that passes between two tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The event that the time belongs to; `None` between events.
    pub(crate) event: Option<EventId>,
    /// The index of the thread or stream.
    pub(crate) thread: usize,
    /// When it begins and ends in the replay.
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    /// When it began and ended in the recording.
    pub(crate) recorded: (Nanos, Nanos),
    pub(crate) work: Work,
}

impl Piece {
    /// Returns whether it lies inside of its event, and not before it.
    pub(crate) const fn is_in_event(&self) -> bool {
        match self.work {
            Work::Host { .. } | Work::Device | Work::Lag(Lag::Return) => true,
            Work::Lag(Lag::Launch | Lag::BetweenKernels | Lag::ThreadStart | Lag::Thread) => false,
        }
    }
}

/// The work that is done in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The CPU works. Some of the time is the recorder's.
    Host { recording: Nanos },
    /// A device works.
    Device,
    /// Nothing does.
    Lag(Lag),
}

/// The reason why time passes between two tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lag {
    /// A kernel begins some time after its launch.
    Launch,
    /// A kernel begins some time after the one before it, on its own or on another stream.
    BetweenKernels,
    /// A thread begins some time after another one has released it.
    ThreadStart,
    /// A thread does nothing that was recorded.
    Thread,
    /// A call returns some time after the work that it waits for.
    Return,
}

/// The critical path of all steps, in order of time, and when each step is complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    pub(crate) pieces: Vec<Piece>,
    /// When each step is complete.
    pub(crate) completions: Vec<Nanos>,
}

impl Replay {
    /// Walks back from the end of the last step through the dependency that bound each task.
    ///
    /// ```text
    /// CPU      |==launch==|-----------|waits          |==|
    /// stream              ╰─>|========kernel=========|╯
    /// ```
    pub(crate) fn path(&self, timing: Timing) -> Path {
        let ends = self.ends(&Unchanged, timing);
        let end_of = |task: u32| Nanos(ends[task as usize][0]);
        let (begin, completions) = self.completion_times(end_of);
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
        Path {
            pieces,
            completions: completions.into_iter().map(|(end, _)| end).collect(),
        }
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
