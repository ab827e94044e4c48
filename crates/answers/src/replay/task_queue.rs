//! The queue through which operators of an NPU launch their work.
//!
//! `torch_npu` lets operators queue tasks, and a thread of its own takes them and calls the NPU's
//! runtime. Tasks are taken in the order in which they were queued, by whatever thread.
//!
//! ```text
//! loop     |mm: Enqueue|relu: Enqueue|              |waits
//! queue         |Dequeue@mm: launch  |Dequeue@relu: launch|
//! stream                    |==mm==|           |=relu=|
//! ```

use mindprof_model::{Category, Nanos, Profile, ThreadId};
use rustc_hash::FxHashSet;

/// The queued tasks of a profile in which one thread takes them.
///
/// The replay joins the thread with those that queue. With several such threads, the recording does
/// not tell which of them takes a task, so that there is no queue to follow.
#[derive(Clone, Debug)]
pub(super) struct TaskQueue {
    /// The thread that takes tasks.
    pub(super) thread: usize,
    /// The event that takes each task, with the event that queued it.
    pub(super) pairs: Vec<(u32, u32)>,
}

/// The side of the queue that an event is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Neither,
    Puts,
    Takes,
}

impl Side {
    fn of(name: &str) -> Self {
        let is = |call: &str| {
            let rest = name.strip_prefix(call);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
        };
        if is("Enqueue") {
            Self::Puts
        } else if is("Dequeue") {
            Self::Takes
        } else {
            Self::Neither
        }
    }
}

impl TaskQueue {
    /// Returns the queue of a profile, unless it has none or several, or the loop's own thread takes
    /// tasks.
    pub(super) fn find(profile: &Profile, loop_thread: ThreadId) -> Option<Self> {
        let sides: Vec<Side> = profile.strings().iter().map(Side::of).collect();
        if sides.iter().all(|side| *side == Side::Neither) {
            return None;
        }
        let process = profile.threads()[loop_thread.index()].process;
        let mut thread = None;
        let (mut puts, mut takes) = (Vec::new(), Vec::new());
        for (index, event) in (0..).zip(profile.events()) {
            let is_of_program = profile.threads()[event.thread.index()].process == process;
            if event.category != Category::Runtime || !is_of_program {
                continue;
            }
            match sides[event.name.index()] {
                Side::Neither => {}
                Side::Puts => puts.push((event.start, index)),
                Side::Takes => {
                    if *thread.get_or_insert(event.thread) != event.thread {
                        return None;
                    }
                    takes.push((event.start, index));
                }
            }
        }
        let thread = thread.filter(|thread| *thread != loop_thread)?.index();
        let mut puts = puts.into_iter().peekable();
        let pair = |(start, take): (Nanos, u32)| {
            // A task that nothing had queued yet was queued before the recording.
            let (_, put) = puts.next_if(|&(queued, _)| queued <= start)?;
            Some((take, put))
        };
        let pairs = takes.into_iter().filter_map(pair).collect();
        Some(Self { thread, pairs })
    }

    /// Returns the events of all pairs.
    pub(super) fn events(&self) -> FxHashSet<u32> {
        let pairs = self.pairs.iter();
        pairs.flat_map(|&(take, put)| [take, put]).collect()
    }
}

#[cfg(test)]
mod tests {
    use mindprof_analyze::Analysis;

    use super::super::drawing::{Drawing, events, whole_ms};
    use super::super::{Replay, WhatIf};
    use super::*;

    #[test]
    fn both_ends_of_the_queue_are_told_by_their_names() {
        for name in ["Enqueue", "Enqueue@aclnnMm"] {
            assert!(Side::of(name) == Side::Puts, "{name}");
        }
        for name in ["Dequeue", "Dequeue@aclnnMm"] {
            assert!(Side::of(name) == Side::Takes, "{name}");
        }
        for name in ["Enqueued", "clEnqueue", "AscendCL@Enqueue", ""] {
            assert!(Side::of(name) == Side::Neither, "{name}");
        }
    }

    const SYNCHRONIZE: &str = "AscendCL@aclrtSynchronizeStream";

    /// A step in which an operator queues a task every 4 ms, and a thread takes 10 ms for each. The
    /// program waits for the last kernel.
    ///
    /// ```text
    /// loop    |mm|mm|mm|mm|waits --------------|
    /// queue    |Dequeue ||Dequeue ||Dequeue ||Dequeue |
    /// stream     |k|       |k|       |k|       |k|
    /// ```
    fn queued(queues: u64) -> Analysis {
        let mut drawing = Drawing::new();
        let stream = drawing.stream(1);
        let threads: Vec<ThreadId> = (0..queues).map(|at| drawing.thread(20 + at)).collect();
        drawing.step(0, 0, 60);
        for task in 0..4 {
            drawing.host(Category::Operator, "aten::mm", task * 4, task * 4 + 4);
            drawing.host(Category::Runtime, "Enqueue", task * 4 + 1, task * 4 + 2);
            let begin = 1 + 10 * task;
            let thread = threads[(task % queues) as usize];
            let (take, launch) = ((begin, begin + 10), (begin + 1, begin + 9));
            drawing.event(thread, Category::Runtime, "Dequeue@mm", take, 0);
            drawing.event(
                thread,
                Category::Runtime,
                "AscendCL@mm",
                launch,
                task as u32 + 1,
            );
            let kernel = (begin + 2, begin + 3);
            drawing.event(stream, Category::Kernel, "MatMul", kernel, task as u32 + 1);
        }
        drawing.host(Category::Runtime, SYNCHRONIZE, 17, 35);
        drawing.analysis()
    }

    /// Replays with the events of a name taking this part of their time.
    fn scaled(analysis: &Analysis, name: &str, factor: f32) -> u64 {
        let mut change = WhatIf::none(analysis);
        for event in events(analysis.profile(), name) {
            change.scale(event, factor);
        }
        let replay = Replay::build(analysis).expect("there is host work");
        whole_ms(&replay.with(&change))[0]
    }

    #[test]
    fn the_thread_that_launches_takes_its_time() {
        let analysis = queued(1);
        let replay = Replay::build(&analysis).expect("there is host work");
        assert_eq!(whole_ms(&replay.recorded()), [60]);
        // 32 of the 40 ms of that thread are calls of CANN.
        assert_eq!(scaled(&analysis, "AscendCL@mm", 0.5), 60 - 12);
    }

    // The thread has to catch up, whatever the operators do.
    #[test]
    fn operators_that_are_faster_than_the_queue_save_nothing() {
        let analysis = queued(1);
        assert_eq!(scaled(&analysis, "aten::mm", 0.0), 60 - 1);
        // Slower ones hold it up: the last task is queued after 103 ms.
        assert!(scaled(&analysis, "aten::mm", 10.0) > 100);
    }

    #[test]
    fn a_recording_does_not_tell_which_of_two_threads_takes_a_task() {
        let loop_thread = ThreadId::from_raw(0);
        assert!(TaskQueue::find(queued(1).profile(), loop_thread).is_some());
        assert!(TaskQueue::find(queued(2).profile(), loop_thread).is_none());
    }

    // The first task was queued before the recording.
    #[test]
    fn tasks_are_taken_in_the_order_in_which_they_were_queued() {
        let mut drawing = Drawing::new();
        let queue = drawing.thread(20);
        let take = |drawing: &mut Drawing, begin| {
            drawing.event(queue, Category::Runtime, "Dequeue", (begin, begin + 1), 0);
        };
        drawing.step(0, 0, 20);
        take(&mut drawing, 1);
        drawing.host(Category::Runtime, "Enqueue", 2, 3);
        drawing.host(Category::Runtime, "Enqueue", 4, 5);
        take(&mut drawing, 6);
        take(&mut drawing, 8);
        let analysis = drawing.analysis();
        let found = TaskQueue::find(analysis.profile(), ThreadId::from_raw(0));
        let start = |event: u32| analysis.profile().events()[event as usize].start.0 / 1_000_000;
        let pairs = found.expect("one thread takes tasks").pairs;
        let pairs: Vec<(u64, u64)> = (pairs.into_iter())
            .map(|(take, put)| (start(take), start(put)))
            .collect();
        assert_eq!(pairs, [(6, 2), (8, 4)]);
    }
}
