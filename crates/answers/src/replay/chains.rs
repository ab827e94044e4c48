//! Cuts the time of each CPU thread of the program into tasks, at the beginnings and ends of its
//! events.
//!
//! The thread of the loop is a chain of tasks without gaps, each of which belongs to the innermost
//! event that is open. Other threads are kept if they run backward work or take queued tasks, without
//! the gaps between their events.

use mindprof_analyze::Analysis;
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Flags, Nanos, Profile, ScopeKind, ThreadId,
    is_backward_wrapper,
};

use super::calls::CallWait;
use super::host_tasks::{HostTask, HostTasks};
use super::task_queue::TaskQueue;
use super::tasks::NONE;
use crate::recorder_cost::{CostName, RecorderCost};

/// The recorder's time that is looked for in the tasks that follow, at most.
const LARGEST_DEBT: Nanos = Nanos(50_000);

/// The tasks of one thread, and what is known of them.
pub(super) struct Chain {
    pub(super) thread: usize,
    pub(super) tasks: HostTasks,
    /// The first task of each call of a device's runtime, with its correlation id.
    pub(super) launches: Vec<(u32, u32)>,
    /// The tasks of calls that may wait for device work.
    pub(super) waits: Vec<(u32, CallWait)>,
    /// The events that queue or take tasks, each with its first task.
    pub(super) queued: Vec<(u32, u32)>,
    is_loop: bool,
    runs_backward: bool,
    open: Vec<Open>,
    now: Nanos,
    /// The recorder's time that the next task contains.
    recording: Nanos,
    /// The recorder's time in a gap that was dropped.
    carried: Nanos,
    /// The largest part of a task that recording may have taken.
    most: f64,
}

/// An event that has begun.
struct Open {
    event: u32,
    end: Nanos,
    /// The recorder's time after its end.
    after: Nanos,
    /// Whether all of its time is the profiler's.
    is_profiler: bool,
    is_backward: bool,
    /// The correlation id of a call that has no task yet, or zero.
    correlation: u32,
    wait: CallWait,
    /// Whether it queues or takes a task, and has no task of its own yet.
    is_queued: bool,
}

/// Facts about an event that decide on its tasks.
struct Facts {
    /// The time that recording the event took.
    cost: Nanos,
    is_profiler: bool,
    is_backward: bool,
    correlation: u32,
    wait: CallWait,
    is_queued: bool,
}

impl Chain {
    /// Cuts the threads of the loop's process. The chains are in the order of the threads.
    pub(super) fn cut(
        analysis: &Analysis,
        loop_thread: ThreadId,
        cost: &RecorderCost,
        queue: Option<&TaskQueue>,
    ) -> Vec<Self> {
        let profile = analysis.profile();
        let names: Vec<CostName> = profile.strings().iter().map(CostName::of).collect();
        let is_wrapper: Vec<bool> = profile.strings().iter().map(is_backward_wrapper).collect();
        let waits = CallWait::of_names(profile);
        let is_backward =
            |event: &Event| event.scope == ScopeKind::Backward || is_wrapper[event.name.index()];
        let queued = queue.map(TaskQueue::events).unwrap_or_default();
        let takes_tasks = |thread: usize| queue.is_some_and(|queue| queue.thread == thread);
        let (mut chains, chain_of) = Self::begin(profile, loop_thread, |event| {
            is_backward(event) || takes_tasks(event.thread.index())
        });
        for chain in &mut chains {
            chain.most = cost.most();
        }
        for (index, event) in profile.events().iter().enumerate() {
            let chain = chain_of[event.thread.index()];
            if chain == NONE || !is_host_event(event) {
                continue;
            }
            let name = names[event.name.index()];
            let (correlation, wait) = if event.category == Category::Runtime {
                let links = profile.links(EventId::from_index(index));
                let correlation = links.map_or(0, |links| links.correlation);
                (correlation, waits[event.name.index()])
            } else {
                (0, CallWait::Nothing)
            };
            let facts = Facts {
                cost: cost.per_event(event.category, name),
                is_profiler: name == CostName::Profiler,
                is_backward: is_backward(event),
                correlation,
                wait,
                is_queued: queued.contains(&(index as u32)),
            };
            chains[chain as usize].open(index as u32, event, &facts);
        }
        for chain in &mut chains {
            chain.close_until(Nanos(u64::MAX));
        }
        chains.retain(|chain| chain.is_loop || chain.runs_backward || takes_tasks(chain.thread));
        chains
    }

    /// Returns the empty chains of the threads that may have some, and by thread the number of its
    /// chain.
    fn begin(
        profile: &Profile,
        loop_thread: ThreadId,
        is_of_interest: impl Fn(&Event) -> bool,
    ) -> (Vec<Self>, Vec<u32>) {
        let process = profile.threads()[loop_thread.index()].process;
        let threads = profile.threads().iter();
        let is_host: Vec<bool> = threads
            .map(|thread| thread.device == DeviceKind::Cpu && thread.process == process)
            .collect();
        let mut is_kept = vec![false; is_host.len()];
        if is_host.iter().filter(|is_host| **is_host).count() > 1 {
            for event in profile.events() {
                is_kept[event.thread.index()] |= is_of_interest(event);
            }
        }
        let mut chains = Vec::new();
        let mut chain_of = vec![NONE; is_host.len()];
        for (index, is_host) in is_host.into_iter().enumerate() {
            let is_loop = index == loop_thread.index();
            if is_host && (is_loop || is_kept[index]) {
                chain_of[index] = chains.len() as u32;
                // An event ends one task at most where it begins, and one where it ends. Memory that
                // is not used costs nothing.
                let most = if is_loop {
                    2 * profile.events().len()
                } else {
                    0
                };
                chains.push(Self::new(index, is_loop, most));
            }
        }
        (chains, chain_of)
    }

    fn new(thread: usize, is_loop: bool, tasks: usize) -> Self {
        Self {
            thread,
            tasks: HostTasks::with_capacity(tasks),
            launches: Vec::new(),
            waits: Vec::new(),
            queued: Vec::new(),
            is_loop,
            runs_backward: false,
            open: Vec::new(),
            now: Nanos::ZERO,
            recording: Nanos::ZERO,
            carried: Nanos::ZERO,
            most: 0.0,
        }
    }

    /// Begins an event. Half of the cost of recording it lies before its beginning, and half after
    /// its end; that of a call of the runtime, in which the driver calls back, lies inside.
    fn open(&mut self, id: u32, event: &Event, facts: &Facts) {
        self.close_until(event.start);
        if self.tasks.is_empty() && self.open.is_empty() {
            self.now = event.start;
        }
        let (outside, inside) = match event.category {
            Category::Runtime => (Nanos::ZERO, facts.cost),
            Category::Operator
            | Category::Annotation
            | Category::PythonFunction
            | Category::Kernel
            | Category::DeviceAnnotation
            | Category::Other => (Nanos(facts.cost.0 / 2), Nanos::ZERO),
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
            is_profiler: facts.is_profiler || around.is_some_and(|around| around.is_profiler),
            is_backward: facts.is_backward,
            correlation: facts.correlation,
            wait: facts.wait,
            is_queued: facts.is_queued,
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

    /// Adds a task that ends at a time.
    fn advance(&mut self, to: Nanos) {
        if to <= self.now {
            return;
        }
        let time = to - self.now;
        let is_profiler = self.open.last().is_some_and(|open| open.is_profiler);
        let recording = if is_profiler {
            time
        } else {
            // What does not fit is the time of the tasks around it.
            let most = Nanos((time.0 as f64 * self.most) as u64);
            let recording = self.recording.min(most);
            self.recording = (self.recording - recording).min(LARGEST_DEBT);
            recording
        };
        let begin = std::mem::replace(&mut self.now, to);
        let task = self.tasks.len() as u32;
        let event = match self.open.last_mut() {
            Some(open) => {
                self.runs_backward |= open.is_backward;
                let correlation = std::mem::take(&mut open.correlation);
                if correlation != 0 {
                    self.launches.push((correlation, task));
                }
                if open.wait != CallWait::Nothing {
                    self.waits.push((task, open.wait));
                }
                if std::mem::take(&mut open.is_queued) {
                    self.queued.push((open.event, task));
                }
                open.event
            }
            None if self.is_loop => NONE,
            None => {
                // The recorder's time in a gap is that of the task that follows.
                self.carried = recording;
                return;
            }
        };
        self.tasks.push(HostTask {
            event,
            begin,
            end: to,
            recording: recording + std::mem::take(&mut self.carried),
        });
    }
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
