//! The chain of tasks that determines when the last step is complete.

use mindprof_model::{EventId, Nanos};

use super::stages::Stage;
use super::tasks::NONE;
use super::{READY_CALL, Replay, Replayed, Timing, Unchanged};

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

/// The critical path of all steps. Its pieces are many, so they are visited one by one.
#[derive(Debug)]
pub(crate) struct Path<'a> {
    replay: &'a Replay,
    timing: Timing,
    /// The end of each stage.
    ends: Vec<[u64; 1]>,
    /// When the first step begins.
    begin: Nanos,
    /// The stage that ends last.
    last: u32,
    /// When each step is complete.
    pub(crate) completions: Vec<Nanos>,
    /// How long the steps take.
    pub(crate) replayed: Replayed,
}

impl Replay {
    /// Finds the critical path.
    pub(crate) fn path(&self, timing: Timing) -> Path<'_> {
        let ends = self.ends(&Unchanged, timing);
        let end_of = |stage: u32| Nanos(ends[stage as usize][0]);
        let (begin, completions) = self.completion_times(end_of);
        Path {
            replay: self,
            timing,
            begin,
            last: completions.last().map_or(NONE, |&(_, stage)| stage),
            completions: completions.into_iter().map(|(end, _)| end).collect(),
            replayed: self.completions(end_of),
            ends,
        }
    }
}

impl Path<'_> {
    /// Visits the pieces, the last one first: walks back from the end of the last step through the
    /// dependency that bound each stage.
    ///
    /// ```text
    /// CPU      |==launch==|-----------|waits          |==|
    /// stream              ╰─>|========kernel=========|╯
    /// ```
    pub(crate) fn visit_back(&self, mut visit: impl FnMut(Piece)) {
        let mut add = |mut piece: Piece| {
            piece.begin = piece.begin.max(self.begin);
            if piece.begin < piece.end {
                visit(piece);
            }
        };
        let mut next = self.last;
        while let Some(stage) = self.replay.stages.all.get(next as usize) {
            let end = self.end_of(next);
            if end <= self.begin {
                break;
            }
            next = self.step_back(stage, end, &mut add);
        }
    }

    fn end_of(&self, stage: u32) -> Nanos {
        Nanos(self.ends[stage as usize][0])
    }

    /// Adds the pieces of a stage that ends at a time, the last one first, and returns the stage that
    /// it had to wait for.
    fn step_back(&self, stage: &Stage, end: Nanos, add: &mut impl FnMut(Piece)) -> u32 {
        let host = &self.replay.tasks.host;
        let end_of = |stage: u32| self.end_of(stage);
        let mut begin = (self.replay.earliest(stage), NONE);
        for (other, lag) in (stage.needed_to_begin()).filter(|&(other, _)| other != NONE) {
            let ready = end_of(other).saturating_add(lag);
            if begin.1 == NONE || ready > begin.0 {
                begin = (ready, other);
            }
        }
        let (begin, bound_by) = begin;
        let awaited = stage.awaited();
        if awaited != NONE {
            let task = stage.tasks().start;
            let (recorded_end, duration) = (host.end(task), host.duration(task));
            let rest = stage.lags.waits_for;
            let ready = begin.saturating_add(duration.min(READY_CALL));
            if end_of(awaited).saturating_add(rest) >= ready {
                add(Piece {
                    event: event_id(host.event(task)),
                    thread: stage.thread as usize,
                    begin: end_of(awaited),
                    end,
                    recorded: (recorded_end.saturating_sub(rest), recorded_end),
                    work: Work::Lag(Lag::Return),
                });
                return awaited;
            }
        }
        let first = self.add_work(stage, (begin, end), add);
        if bound_by != NONE {
            let lag = match bound_by {
                other if !stage.is_device() && other == stage.released_by => Lag::ThreadStart,
                _ if !stage.is_device() => Lag::Thread,
                other if other == stage.released_by => Lag::Launch,
                _ => Lag::BetweenKernels,
            };
            let since = end_of(bound_by);
            let (event, recorded_begin) = first;
            add(Piece {
                event,
                thread: stage.thread as usize,
                begin: since,
                end: begin,
                recorded: (
                    recorded_begin.saturating_sub(begin.saturating_sub(since)),
                    recorded_begin,
                ),
                work: Work::Lag(lag),
            });
        }
        bound_by
    }

    /// Adds the work of a stage, the last piece first. Returns the event of the first piece, and when
    /// that began in the recording.
    fn add_work(
        &self,
        stage: &Stage,
        (begin, end): (Nanos, Nanos),
        add: &mut impl FnMut(Piece),
    ) -> (Option<EventId>, Nanos) {
        let piece = |event, (begin, end), recorded, work| Piece {
            event,
            thread: stage.thread as usize,
            begin,
            end,
            recorded,
            work,
        };
        if stage.is_device() {
            let work = &self.replay.tasks.device.tasks[stage.device_work()];
            let event = event_id(work.event);
            let recorded = (work.begin, work.end);
            add(piece(event, (begin, end), recorded, Work::Device));
            return (event, work.begin);
        }
        let (host, timing) = (&self.replay.tasks.host, self.timing);
        let mut until = end;
        for task in stage.tasks().rev() {
            let is_first = task == stage.tasks().start;
            let from = if is_first {
                begin
            } else {
                until.saturating_sub(host.own(task, timing))
            };
            let recording = match timing {
                Timing::Recorded if stage.awaited() == NONE => host.recording(task),
                Timing::Recorded | Timing::Unrecorded => Nanos::ZERO,
            };
            let recorded = (host.begin(task), host.end(task));
            let event = event_id(host.event(task));
            add(piece(
                event,
                (from, until),
                recorded,
                Work::Host { recording },
            ));
            until = from;
        }
        let first = stage.tasks().start;
        (event_id(host.event(first)), host.begin(first))
    }
}

fn event_id(event: u32) -> Option<EventId> {
    (event != NONE).then(|| EventId::from_raw(event))
}
