//! Charges the cost of events to the stacks that they were called from.
//!
//! Functions, lines and modules all are frames of stacks, so their costs are sums over one tree:
//! what each stack cost by itself, and with everything that it called.

use mindprof_analyze::{Analysis, Flops, Keys};
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Nanos, Place, Profile, ScopeKind, StackId, StringId,
    Thread, ThreadId, WAITING_FRAME, is_backward_wrapper,
};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::questions::micros;
use crate::recorder_cost::{CostName, RecorderCost};
use crate::sampling::Sampling;
use crate::work::Work;

/// The cost of some events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// CPU time.
    #[serde(rename = "cpu_us", serialize_with = "micros")]
    pub cpu: Nanos,
    /// The part of the CPU time that is Python code, outside of operators.
    #[serde(rename = "python_us", serialize_with = "micros")]
    pub python: Nanos,
    /// The part of the CPU time that is backward work.
    #[serde(rename = "backward_us", serialize_with = "micros")]
    pub backward: Nanos,
    /// Device time of the kernels that were launched.
    #[serde(rename = "device_us", serialize_with = "micros")]
    pub device: Nanos,
    /// Bytes of memory allocated minus bytes freed, on all devices.
    #[serde(rename = "memory_bytes")]
    pub memory: i64,
    /// Floating-point operations, as far as there are formulas.
    pub flops: u64,
}

impl Cost {
    pub(crate) fn add(&mut self, other: Self) {
        self.cpu = self.cpu + other.cpu;
        self.python = self.python + other.python;
        self.backward = self.backward + other.backward;
        self.device = self.device + other.device;
        self.memory += other.memory;
        self.flops += other.flops;
    }

    /// Returns the time by which costs are ranked: on the CPU and on devices.
    pub fn time(&self) -> Nanos {
        self.cpu + self.device
    }
}

/// A stack, and the cost of the events that were called from it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The position of the caller's node.
    pub(crate) caller: usize,
    /// The innermost frame.
    pub(crate) frame: StringId,
    /// The number of recorded calls that the node stands for; zero for a stack.
    pub(crate) calls: u64,
    /// The cost of the events that were called from exactly this stack.
    pub(crate) own: Cost,
    /// The time that recording these events took. It is part of their time, or of the time between
    /// them.
    pub(crate) recording: Nanos,
}

/// The costs of a profile by stack. Node zero is the empty stack, and callers precede callees.
#[derive(Clone, Debug, Default)]
pub(crate) struct Charges {
    pub(crate) nodes: Vec<Node>,
    /// The largest part of a function's time that recording may have taken.
    pub(crate) most_recording: f64,
    /// By node and name of the outermost event called from it, what such events took.
    pub(crate) called: FxHashMap<(usize, StringId), CalledWork>,
}

/// The outermost events of one name that were called from one stack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CalledWork {
    /// The time of the events, on the CPU and on devices.
    pub(crate) time: Nanos,
    /// The part of the time that is backward work.
    pub(crate) backward: Nanos,
    /// The number of calls of operators, without backward work.
    pub(crate) calls: u64,
}

/// The charges of a profile, by who does the work.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllCharges {
    /// The main thread of the program, and the backward work that it waits for.
    pub(crate) main: Charges,
    /// All others: further threads, and processes such as data loader workers.
    pub(crate) others: Charges,
    /// By event, whether its cost is charged to the main thread.
    pub(crate) is_main: Vec<bool>,
    /// The operators of the main thread that no other operator calls, without backward work.
    pub(crate) main_operators: Vec<EventId>,
}

impl AllCharges {
    /// Charges all events in time linear in the number of events and stacks.
    pub(crate) fn build(analysis: &Analysis, work: &Work) -> Self {
        let profile = analysis.profile();
        let mut all = Self {
            is_main: vec![false; profile.events().len()],
            ..Self::default()
        };
        let mut calls: FxHashMap<(bool, StackId, StringId), usize> = FxHashMap::default();
        let mut flops = Flops::new(profile.strings());
        let main = main_thread(profile);
        let context = Context::build(analysis, work, main);
        let recorder = RecorderCost::of_own(analysis);
        all.main.most_recording = recorder.most();
        all.others.most_recording = recorder.most();
        let names: Vec<CostName> = profile.strings().iter().map(CostName::of).collect();
        let profilers = Profilers::build(profile, work.side_ranges().is_some());
        let is_of_main: Vec<bool> = (0..profile.threads().len())
            .map(|index| is_same_process(profile, main, ThreadId::from_index(index)))
            .collect();
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            let around = context.around[index];
            let is_call = event.category == Category::PythonFunction;
            let stack = analysis.charged_stack(id);
            let is_counted = analysis.is_shown(id)
                && analysis.device(id) == DeviceKind::Cpu
                && !around.is_import
                && !profilers.is_inside(stack)
                && !(is_call && profilers.is_frame[event.name.index()]);
            if !is_counted {
                continue;
            }
            let is_main = Some(event.thread) == main
                || (around.is_backward && is_of_main[event.thread.index()]);
            all.is_main[index] = is_main;
            let charges = if is_main {
                &mut all.main
            } else {
                &mut all.others
            };
            if charges.nodes.is_empty() {
                charges.nodes = nodes(profile);
            }
            let mut cpu = analysis.tree().self_time(id);
            if is_call && context.waits_for_engine(analysis, id) {
                cpu = cpu.saturating_sub(context.worked_elsewhere(event));
            }
            let bytes = analysis.memory().own(id);
            let part = |is_in: bool| if is_in { cpu } else { Nanos::ZERO };
            let cost = Cost {
                cpu,
                python: part(is_call),
                backward: part(around.is_backward),
                device: analysis.device_times().own(id),
                memory: bytes.host + bytes.device,
                flops: flops.count(profile, id),
            };
            let node = if is_call {
                let added = charges.nodes.len();
                let node = *calls.entry((is_main, stack, event.name)).or_insert(added);
                if node == added {
                    charges.nodes.push(Node {
                        caller: stack.index(),
                        frame: event.name,
                        calls: 0,
                        own: Cost::default(),
                        recording: Nanos::ZERO,
                    });
                }
                charges.nodes[node].calls += 1;
                node
            } else {
                let called = (stack.index(), around.outermost);
                let work = charges.called.entry(called).or_default();
                work.time = work.time + cost.time();
                if around.is_backward {
                    work.backward = work.backward + cost.time();
                } else if around.nesting == Nesting::Outermost {
                    work.calls += 1;
                    if is_main {
                        all.main_operators.push(id);
                    }
                }
                stack.index()
            };
            let name = names[event.name.index()];
            let node = &mut charges.nodes[node];
            node.own.add(cost);
            node.recording = node.recording + recorder.per_event(event.category, name);
        }
        all
    }
}

impl Charges {
    /// Returns the cost of all nodes together.
    pub(crate) fn total(&self) -> Cost {
        let mut total = Cost::default();
        for node in &self.nodes {
            total.add(node.own);
        }
        total
    }

    /// Returns the cost of each node with everything that was called from it.
    pub(crate) fn wholes(&self) -> Vec<Cost> {
        let mut wholes: Vec<Cost> = self.nodes.iter().map(|node| node.own).collect();
        for index in (1..self.nodes.len()).rev() {
            let whole = wholes[index];
            wholes[self.nodes[index].caller].add(whole);
        }
        wholes
    }

    /// Sums up whole costs by key. A node counts for its key unless a caller has the same key
    /// already, so that recursion counts once.
    pub(crate) fn sum_wholes(&self, keys: &[Option<usize>], count: usize) -> Vec<Cost> {
        let mut sums = vec![Cost::default(); count];
        if self.nodes.is_empty() {
            return sums;
        }
        let wholes = self.wholes();
        let (first, next) = self.children();
        let mut active = vec![0_u32; count];
        let mut open = vec![(0_usize, first[0])];
        while let Some((node, child)) = open.last_mut() {
            if *child == NONE {
                if let Some(key) = keys[*node] {
                    active[key] -= 1;
                }
                open.pop();
                continue;
            }
            let entered = *child;
            *child = next[entered];
            if let Some(key) = keys[entered] {
                if active[key] == 0 {
                    sums[key].add(wholes[entered]);
                }
                active[key] += 1;
            }
            open.push((entered, first[entered]));
        }
        sums
    }

    /// Returns the first child and the next sibling of each node.
    fn children(&self) -> (Vec<usize>, Vec<usize>) {
        let mut first = vec![NONE; self.nodes.len()];
        let mut next = vec![NONE; self.nodes.len()];
        for index in (1..self.nodes.len()).rev() {
            let caller = self.nodes[index].caller;
            next[index] = first[caller];
            first[caller] = index;
        }
        (first, next)
    }
}

/// The position that no node has.
const NONE: usize = usize::MAX;

/// The C function in which a thread waits for backward work that other threads do.
const ENGINE: &str = "run_backward";

/// The files of profilers, and the functions by which programs switch them. They take time only
/// because the program is profiled.
const PROFILERS: [&str; 4] = [
    "mindprof/_profiler/",
    "torch/autograd/profiler.py",
    "torch/profiler/profiler.py",
    "torch/profiler/_utils.py",
];
const SWITCHES: [&str; 5] = ["__enter__", "__exit__", "start", "step", "stop"];

/// The function in which a program waits for the end of its data loader workers.
const WORKERS_END: (&str, &str) = ("torch/utils/data/dataloader.py", "_shutdown_workers");

/// The stacks in which a profiler works for itself.
struct Profilers {
    is_frame: Vec<bool>,
    is_stack: Vec<bool>,
}

impl Profilers {
    fn build(profile: &Profile, is_run: bool) -> Self {
        let is_switch = |frame: &str| (is_run && is_workers_end(frame)) || switches_profiler(frame);
        let is_frame: Vec<bool> = profile.strings().iter().map(is_switch).collect();
        let mut is_stack = vec![false];
        for (caller, frame) in profile.stacks().nodes() {
            is_stack.push(is_stack[caller.index()] || is_frame[frame.index()]);
        }
        Self { is_frame, is_stack }
    }

    fn is_inside(&self, stack: StackId) -> bool {
        self.is_stack[stack.index()]
    }
}

/// Returns whether a frame is a function by which a program starts, stops or steps a profiler.
pub(crate) fn switches_profiler(frame: &str) -> bool {
    Place::parse(frame).is_some_and(|place| {
        SWITCHES.contains(&place.function) && PROFILERS.iter().any(|file| place.file.contains(file))
    })
}

/// Returns whether a frame waits for the end of data loader workers. In a run, they write what they
/// recorded meanwhile, which takes longer than their end.
pub(crate) fn is_workers_end(frame: &str) -> bool {
    let (file, function) = WORKERS_END;
    Place::parse(frame)
        .is_some_and(|place| place.function == function && place.file.ends_with(file))
}

fn nodes(profile: &Profile) -> Vec<Node> {
    let node = |(caller, frame): (StackId, StringId)| Node {
        caller: caller.index(),
        frame,
        calls: 0,
        own: Cost::default(),
        recording: Nanos::ZERO,
    };
    let root = node((StackId::NONE, StringId::from_raw(0)));
    let stacks = profile.stacks().nodes().map(node);
    std::iter::once(root).chain(stacks).collect()
}

/// Returns the main thread of the program: on Linux the one with the number of its process. The
/// program is the process of the first thread, because parts of other processes come later.
pub(crate) fn main_thread(profile: &Profile) -> Option<ThreadId> {
    let threads = profile.threads().iter().enumerate();
    let mut on_cpu = threads.filter(|(_, thread)| thread.device == DeviceKind::Cpu);
    let (first, program) = on_cpu.next()?;
    let is_main =
        |thread: &Thread| thread.process == program.process && thread.native == program.process;
    let named = on_cpu.find(|(_, thread)| is_main(thread));
    let found = if is_main(program) { None } else { named };
    Some(ThreadId::from_index(
        found.map_or(first, |(index, _)| index),
    ))
}

fn is_same_process(profile: &Profile, main: Option<ThreadId>, thread: ThreadId) -> bool {
    let process = |thread: ThreadId| profile.threads()[thread.index()].process;
    main.is_some_and(|main| process(main) == process(thread))
}

/// Facts about events that depend on the events around them.
struct Context {
    around: Vec<Around>,
    /// By name, whether a call of it waits for backward work.
    waits_for_engine: Vec<bool>,
    /// The times at which threads other than the main one did backward work, in order and apart.
    backward_elsewhere: Vec<(Nanos, Nanos)>,
}

/// Whether an event is an operator, and one that another operator calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    NoOperator,
    Outermost,
    Inner,
}

/// The surroundings of an event.
#[derive(Clone, Copy)]
struct Around {
    is_import: bool,
    is_backward: bool,
    nesting: Nesting,
    /// The name of the outermost operator that the event is or runs in.
    outermost: StringId,
    /// The operator that the event is or runs in.
    operator: Option<EventId>,
}

impl Context {
    fn build(analysis: &Analysis, work: &Work, main: Option<ThreadId>) -> Self {
        let profile = analysis.profile();
        let imports: FxHashSet<&str> = work
            .side_ranges()
            .into_iter()
            .flat_map(|side| side.imports.iter().map(String::as_str))
            .collect();
        let is_import_name: Vec<bool> = profile
            .strings()
            .iter()
            .map(|name| !imports.is_empty() && imports.contains(Keys::text(name)))
            .collect();
        let mut context = Self {
            around: Vec::with_capacity(profile.events().len()),
            waits_for_engine: profile
                .strings()
                .iter()
                .map(|name| name.contains(ENGINE))
                .collect(),
            backward_elsewhere: Vec::new(),
        };
        let names = profile.strings().iter();
        let is_wrapper_name: Vec<bool> = names.map(is_backward_wrapper).collect();
        let is_sampled = Sampling::read(profile.metadata()).is_some();
        // Parents precede their children.
        for (index, event) in profile.events().iter().enumerate() {
            let parent = analysis.tree().parent(EventId::from_index(index));
            let parent = parent.map(|parent| context.around[parent.index()]);
            let is_import =
                event.category == Category::Annotation && is_import_name[event.name.index()];
            let is_outer_backward =
                event.scope == ScopeKind::Backward || is_wrapper_name[event.name.index()];
            let is_in_backward = parent.is_some_and(|parent| parent.is_backward);
            if is_outer_backward && !is_in_backward && Some(event.thread) != main {
                context.add_elsewhere(event);
            }
            let id = EventId::from_index(index);
            let operator = parent.filter(|parent| {
                let is_direct = parent.nesting != Nesting::NoOperator;
                // An operator calls others from its own line. Where sampled Python code is drawn
                // between the two is left to chance.
                let is_same = |outer| analysis.charged_stack(outer) == analysis.charged_stack(id);
                is_direct || parent.operator.is_some_and(is_same)
            });
            let is_slice = is_sampled && event.category == Category::PythonFunction;
            context.around.push(Around {
                is_import: is_import || parent.is_some_and(|parent| parent.is_import),
                is_backward: is_outer_backward || is_in_backward,
                nesting: match (is_operator(event), operator) {
                    (false, _) => Nesting::NoOperator,
                    (true, None) => Nesting::Outermost,
                    (true, Some(_)) => Nesting::Inner,
                },
                outermost: operator.map_or(event.name, |parent| parent.outermost),
                operator: if is_slice {
                    parent.and_then(|parent| parent.operator)
                } else {
                    is_operator(event).then_some(id)
                },
            });
        }
        context
    }

    /// Adds a span of backward work. Spans come in start order.
    fn add_elsewhere(&mut self, event: &Event) {
        match self.backward_elsewhere.last_mut() {
            Some((_, end)) if event.start <= *end => *end = (*end).max(event.end()),
            Some(_) | None => self.backward_elsewhere.push((event.start, event.end())),
        }
    }

    /// Returns whether a call waits for backward work, by its name or by that of its caller if it is
    /// nothing but a wait.
    fn waits_for_engine(&self, analysis: &Analysis, id: EventId) -> bool {
        let waits = |id| self.waits_for_engine[analysis.profile().event(id).name.index()];
        let is_wait = || analysis.profile().name(analysis.profile().event(id)) == WAITING_FRAME;
        waits(id) || is_wait() && analysis.tree().parent(id).is_some_and(waits)
    }

    /// Returns how long other threads did backward work while an event ran.
    fn worked_elsewhere(&self, event: &Event) -> Nanos {
        let spans = &self.backward_elsewhere;
        let first = spans.partition_point(|&(_, end)| end <= event.start);
        let spans = spans[first..].iter();
        let overlaps = spans
            .take_while(|(start, _)| *start < event.end())
            .map(|&(start, end)| {
                end.min(event.end())
                    .saturating_sub(start.max(event.start))
                    .0
            });
        Nanos(overlaps.sum())
    }
}

fn is_operator(event: &Event) -> bool {
    match event.category {
        Category::Operator | Category::Runtime => true,
        Category::Annotation
        | Category::PythonFunction
        | Category::Kernel
        | Category::DeviceAnnotation
        | Category::Other => false,
    }
}
