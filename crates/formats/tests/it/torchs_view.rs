//! Rebuilds a recorded trace the way the torch of its session interpreted it, where we differ.
//!
//! torch 2.11 removes Python functions after it has found the stacks and before it builds its tree,
//! while later versions remove only their rows. It also moves calls of the device runtime that no
//! operator made to the starting thread, below the events that ran there at the time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use mindprof_analyze::{Analysis, GroupBy, Item, averages_of, shown_frames};
use mindprof_formats::shapes_text;
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Nanos, Part, Profile, StackId, ThreadId,
};
use mindprof_trace::read_trace_file;

use crate::corpus::Session;

/// Returns the profile as the torch of the session interpreted it.
pub(crate) fn as_torch_saw_it(session: Session) -> Profile {
    let profile = read_trace_file(&session.trace_path()).unwrap();
    if session.host != "h200-torch2.11" {
        return profile;
    }
    let first = profile.events().iter();
    let starting = first
        .filter(|event| event.category == Category::Annotation)
        .map(|event| event.thread)
        .next()
        .unwrap();
    let open = OpenCalls::replay(&profile, starting);
    let analysis = Analysis::build(profile.clone());
    rebuilt(&profile, |id, event, builder| {
        let mut event = *event;
        let is_unasked = profile.links(id).unwrap().external == 0;
        let moved = event.thread != starting;
        match event.category {
            Category::PythonFunction => return None,
            Category::Runtime if is_unasked && (session.has_overlaps() || moved) => {
                event.thread = starting;
                event.stack = open.stack(&profile, id, builder);
            }
            // Its callers leave with the Python functions: it keeps what we found of them.
            Category::Runtime => event.stack = analysis.stack(id),
            Category::Kernel if is_unasked => event.stack = open.stack(&profile, id, builder),
            Category::DeviceAnnotation => event.stack = open.stack(&profile, id, builder),
            Category::Kernel | Category::Operator | Category::Annotation | Category::Other => {}
        }
        Some(event)
    })
}

fn rebuilt(
    profile: &Profile,
    change: impl Fn(EventId, &Event, &mut Part) -> Option<Event>,
) -> Profile {
    let mut builder = Part::new();
    builder.strings = profile.strings().clone();
    builder.inputs = profile.inputs().clone();
    builder.stacks = profile.stacks().clone();
    builder.metadata = profile.metadata().clone();
    for &thread in profile.threads() {
        builder.add_thread(thread);
    }
    for (index, event) in profile.events().iter().enumerate() {
        let id = EventId::from_index(index);
        if let Some(event) = change(id, event, &mut builder) {
            builder.add_linked_event(event, profile.links(id).unwrap());
        }
    }
    for record in profile.memory() {
        builder.add_memory(record);
    }
    builder.into_profile().unwrap()
}

/// The parents that torch assigns to events.
struct OpenCalls {
    callers: Vec<Option<EventId>>,
}

impl OpenCalls {
    /// Replays the events in start order as torch does, each called from what was opened last on
    /// its thread. An event that ends takes along what was opened after it, also what goes on.
    ///
    /// ```text
    /// moved call    |------|
    /// f (Python)       |----------|     called from the moved call, which takes it along
    /// another call            |--|      so this one is not called from f
    /// ```
    fn replay(profile: &Profile, starting: ThreadId) -> Self {
        let mut calls = Self {
            callers: launches(profile),
        };
        let mut innermost: BTreeMap<ThreadId, EventId> = BTreeMap::new();
        let mut ends: BinaryHeap<Reverse<(Nanos, EventId)>> = BinaryHeap::new();
        for (index, event) in profile.events().iter().enumerate() {
            while let Some(&Reverse((end, ended))) = ends.peek()
                && end < event.start
            {
                ends.pop();
                let thread = thread_in_torch(profile.event(ended), starting);
                calls.close(ended, thread, &mut innermost);
            }
            let (id, thread) = (EventId::from_index(index), thread_in_torch(event, starting));
            if calls.caller(id).is_some() {
                continue;
            }
            calls.callers[index] = innermost.get(&thread).copied();
            if event.duration > Nanos::ZERO {
                innermost.insert(thread, id);
                ends.push(Reverse((event.end(), id)));
            }
        }
        calls
    }

    /// Ends an event, unless one that was opened before it has taken it along.
    fn close(&self, ended: EventId, thread: ThreadId, innermost: &mut BTreeMap<ThreadId, EventId>) {
        let open = innermost.get(&thread).copied();
        let mut open = std::iter::successors(open, |&at| self.caller(at));
        if !open.any(|at| at == ended) {
            return;
        }
        match self.caller(ended) {
            Some(caller) => innermost.insert(thread, caller),
            None => innermost.remove(&thread),
        };
    }

    /// Returns the Python functions that torch takes an event to have been called from.
    fn stack(&self, profile: &Profile, id: EventId, builder: &mut Part) -> StackId {
        let callers = std::iter::successors(self.caller(id), |&at| self.caller(at));
        let functions = callers.map(|caller| profile.event(caller));
        let functions = functions.filter(|event| event.category == Category::PythonFunction);
        let names: Vec<_> = functions.map(|event| event.name).collect();
        let outermost_first = names.into_iter().rev();
        outermost_first.fold(StackId::NONE, |stack, name| {
            builder.stacks.push(stack, name)
        })
    }

    fn caller(&self, id: EventId) -> Option<EventId> {
        self.callers[id.index()]
    }
}

/// Returns what made each call into the runtime, and which of those launched each kernel.
fn launches(profile: &Profile) -> Vec<Option<EventId>> {
    let ids = || (0..profile.events().len()).map(EventId::from_index);
    let links = |id: EventId| profile.links(id).unwrap();
    let category = |id: &EventId| profile.event(*id).category;
    let scopes: BTreeMap<u32, EventId> = ids()
        .filter(|id| matches!(category(id), Category::Operator | Category::Annotation))
        .map(|id| (links(id).external, id))
        .collect();
    let calls: BTreeMap<u32, EventId> = ids()
        .filter(|id| category(id) == Category::Runtime)
        .map(|id| (links(id).correlation, id))
        .collect();
    let launch = |id: EventId| match category(&id) {
        Category::Runtime if links(id).external != 0 => scopes.get(&links(id).external),
        Category::Kernel => calls.get(&links(id).correlation),
        Category::Runtime
        | Category::Operator
        | Category::Annotation
        | Category::PythonFunction
        | Category::DeviceAnnotation
        | Category::Other => None,
    };
    ids().map(|id| launch(id).copied()).collect()
}

/// What no operator asked for is of the starting thread in torch.
fn thread_in_torch(event: &Event, starting: ThreadId) -> ThreadId {
    match event.category {
        Category::Runtime | Category::Kernel | Category::DeviceAnnotation => starting,
        Category::Operator | Category::Annotation | Category::PythonFunction | Category::Other => {
            event.thread
        }
    }
}

/// Returns the self time of an event as torch works it out, in nanoseconds: where children overlap
/// their time is taken away twice, and it may become negative. Here what children cover counts
/// once.
pub(crate) fn torchs_self_time(analysis: &Analysis, id: EventId) -> i64 {
    if analysis.tree().is_outside(id) || analysis.device(id) != DeviceKind::Cpu {
        return 0;
    }
    let duration = |id: EventId| analysis.profile().event(id).duration.0 as i64;
    let children = analysis.children().of(id).iter();
    duration(id) - children.map(|&child| duration(child)).sum::<i64>()
}

/// Returns torch's self time of each row, in the order of the rows.
pub(crate) fn torchs_self_times(analysis: &Analysis, group_by: GroupBy) -> Vec<i64> {
    let mut rows: Vec<(String, i64)> = Vec::new();
    for item in analysis.items() {
        let row = averages_of(analysis, [item], group_by);
        let Some(row) = row.rows.first() else {
            continue;
        };
        let inputs = row
            .inputs
            .map(|inputs| shapes_text(analysis.profile().inputs(), inputs));
        let frames = row.stack.map(|stack| {
            let frames = shown_frames(analysis.profile(), stack);
            frames.take(group_by.stack_frames).collect::<Vec<_>>()
        });
        let is_annotation = row.is_annotation();
        let key = format!(
            "{} {:?} {is_annotation} {inputs:?} {frames:?}",
            row.key, row.device
        );
        let own = match item {
            Item::Event(id) => torchs_self_time(analysis, id),
            Item::Memory(_) => 0,
        };
        match rows.iter_mut().find(|(known, _)| *known == key) {
            Some((_, sum)) => *sum += own,
            None => rows.push((key, own)),
        }
    }
    rows.into_iter().map(|(_, sum)| sum).collect()
}
