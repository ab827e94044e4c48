//! Facts about the events of a profile that several rules use.

mod by_name;

use std::sync::OnceLock;

use mindprof_analyze::Analysis;
use mindprof_model::{
    Category, DType, DeviceKind, EventId, Input, Nanos, PassthroughKind, Profile, StringId,
    TextPiece,
};
use rustc_hash::FxHashMap;

use super::rule::{Evidence, Mending};
use super::rules::{Loop, Pass};
use crate::beside::beside;
use crate::completeness::Completeness;
use crate::device::{is_in_number, value_of};
use crate::functions::{CallNames, Definitions};
use crate::own_code::OwnCode;
use crate::replay::{Replay, WhatIf, is_allocation_call, is_blocking_call, is_copy_call};
use crate::step_split::StepClass;
use crate::top_operators::CodePlace;
use crate::work::Work;
use by_name::ByName;

/// The surroundings of an event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    /// The step that it is in, counted from one; zero outside of steps. Device work is in the step
    /// that launched it.
    pub(crate) step: u32,
    /// Whether the loop gets its next batch.
    pub(crate) is_loading: bool,
    /// Whether an optimizer makes a step.
    pub(crate) is_optimizer: bool,
    /// Whether an operator is around it.
    pub(crate) is_in_operator: bool,
}

/// The least number of steps that tell whether something happens in each of them, and the part of a
/// time that is nearly all of it.
const SEVERAL_STEPS: usize = 4;
const ONE_STEP: f64 = 0.8;

/// A call of a device's runtime that takes this long, and this many times as long as the usual one,
/// loads code. One that takes memory starts the device if it takes longer still.
const LOADING_TIME: Nanos = Nanos(1_000_000);
const UNUSUAL: u64 = 100;
const STARTING_TIME: Nanos = Nanos(100_000_000);

/// The facts about a profile that rules look at. Lists of events hold those in steps, in time order.
pub(crate) struct Facts<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) profile: &'a Profile,
    pub(crate) own: &'a OwnCode,
    pub(crate) replay: &'a Replay,
    /// The time of all steps without a profiler.
    pub(crate) base: Nanos,
    /// The time that savings are parts of: that of all steps, or that of a program without steps apart
    /// from its imports.
    pub(crate) whole: Nanos,
    /// The time of all steps in which the busiest device works, whatever the CPU does.
    pub(crate) busy: Nanos,
    /// By event, the innermost frame of the user's own code that led to it.
    pub(crate) frames: Vec<Option<StringId>>,
    pub(crate) has_device: bool,
    /// The completeness of the profile.
    pub(crate) completeness: Completeness,
    /// All events in steps.
    pub(crate) events: Vec<EventId>,
    /// Operators, those inside of others too.
    pub(crate) operators: Vec<EventId>,
    /// Device work: kernels, copies and fills.
    pub(crate) kernels: Vec<EventId>,
    /// Calls of a device's runtime.
    pub(crate) runtime: Vec<EventId>,
    /// Calls of Python functions.
    pub(crate) calls: Vec<EventId>,
    /// Ranges of the user's and of the framework's.
    pub(crate) ranges: Vec<EventId>,
    around: Vec<Around>,
    by_name: ByName,
    /// By name, the first name of the same function of the user's. Sampled stacks have a frame for
    /// each line.
    functions: Vec<Option<StringId>>,
    /// The calls in which the device's runtime starts or loads code, once in a process.
    start_up: Vec<EventId>,
    /// The calls of models, which several rules ask for.
    pub(super) passes: OnceLock<Vec<(EventId, Pass)>>,
    /// The loops of small operators, which several rules ask for.
    pub(super) loops: OnceLock<Vec<Loop>>,
}

impl<'a> Facts<'a> {
    pub(crate) fn build(
        analysis: &'a Analysis,
        own: &'a OwnCode,
        replay: &'a Replay,
        frames: Vec<Option<StringId>>,
    ) -> Self {
        let profile = analysis.profile();
        let (around, (base, completeness)) = beside(
            || around(analysis, replay),
            || (replay.unrecorded().total(), Completeness::of_one(profile)),
        );
        let mut facts = Self {
            analysis,
            profile,
            own,
            replay,
            base,
            whole: base,
            busy: Nanos::ZERO,
            frames,
            has_device: analysis.accelerator().is_some(),
            completeness,
            events: Vec::new(),
            operators: Vec::new(),
            kernels: Vec::new(),
            runtime: Vec::new(),
            calls: Vec::new(),
            ranges: Vec::new(),
            around,
            by_name: ByName::default(),
            functions: functions(analysis, own),
            start_up: Vec::new(),
            passes: OnceLock::new(),
            loops: OnceLock::new(),
        };
        for (index, event) in profile.events().iter().enumerate() {
            if facts.around[index].step == 0 {
                continue;
            }
            let id = EventId::from_index(index);
            facts.events.push(id);
            match event.category {
                Category::Operator => facts.operators.push(id),
                Category::Kernel if facts.is_kernel(id) => facts.kernels.push(id),
                Category::Runtime => facts.runtime.push(id),
                Category::PythonFunction => facts.calls.push(id),
                Category::Annotation => facts.ranges.push(id),
                Category::Kernel | Category::DeviceAnnotation | Category::Other => {}
            }
        }
        facts.by_name = ByName::build(profile, &facts.events);
        facts.busy = facts.busy_time();
        facts.start_up = facts.find_start_up();
        if !replay.has_steps() {
            facts.whole = base.saturating_sub(facts.import_time());
        }
        facts
    }

    /// Returns the time in which modules are imported.
    fn import_time(&self) -> Nanos {
        let mut time = Nanos::ZERO;
        let mut end = Nanos::ZERO;
        for id in self.named(&self.events, is_import) {
            let event = self.profile.event(id);
            time = time + event.end().saturating_sub(event.start.max(end));
            end = end.max(event.end());
        }
        time
    }

    /// Returns the calls in which the device's runtime starts or loads code: those that take far longer
    /// than others. Taking and freeing memory and waiting may take long in each step.
    fn find_start_up(&self) -> Vec<EventId> {
        let mut times: Vec<Nanos> = self.runtime.iter().map(|&id| self.duration(id)).collect();
        if times.is_empty() {
            return Vec::new();
        }
        let middle = times.len() / 2;
        let (_, &mut usual, _) = times.select_nth_unstable(middle);
        let least = Nanos(LOADING_TIME.0.max(usual.0.saturating_mul(UNUSUAL)));
        let is_long = |id: &EventId| {
            let name = self.name(*id);
            let least = if is_allocation_call(name) {
                least.max(STARTING_TIME)
            } else {
                least
            };
            let waits = is_copy_call(name) || is_blocking_call(name) && !is_allocation_call(name);
            !waits && self.duration(*id) >= least
        };
        self.runtime.iter().copied().filter(is_long).collect()
    }

    /// Returns the time in which at least one kernel, copy or fill of the steps runs on the busiest
    /// device. A collective may just wait for a rank that is late, so that it does not count.
    fn busy_time(&self) -> Nanos {
        let communicates =
            self.names(|name| StepClass::of_device_work(name) == StepClass::Communication);
        // By device, the busy time and the last end so far.
        let mut devices: FxHashMap<u64, (Nanos, Nanos)> = FxHashMap::default();
        // In start order, as all events.
        for &id in &self.kernels {
            let work = self.profile.event(id);
            if communicates[work.name.index()] {
                continue;
            }
            let number = self.profile.threads()[work.thread.index()].process;
            let (busy, end) = devices.entry(number).or_default();
            let from = work.start.max(*end);
            *end = work.end().max(*end);
            *busy = *busy + end.saturating_sub(from);
        }
        let busy = devices.into_values().map(|(busy, _)| busy);
        busy.max().unwrap_or_default()
    }

    pub(crate) fn name(&self, id: EventId) -> &'a str {
        self.profile.name(self.profile.event(id))
    }

    pub(crate) fn duration(&self, id: EventId) -> Nanos {
        self.profile.event(id).duration
    }

    pub(crate) fn around(&self, id: EventId) -> Around {
        self.around[id.index()]
    }

    pub(crate) fn parent(&self, id: EventId) -> Option<EventId> {
        self.analysis.tree().parent(id)
    }

    /// Returns the function of the user's that led to an event, whatever the line.
    pub(crate) fn function(&self, id: EventId) -> Option<StringId> {
        self.function_of(self.frames[id.index()]?)
    }

    /// Returns the function of a frame.
    pub(crate) fn function_of(&self, frame: StringId) -> Option<StringId> {
        self.functions[frame.index()]
    }

    pub(crate) fn is_kernel(&self, id: EventId) -> bool {
        self.profile.event(id).category == Category::Kernel
            && self.analysis.device(id) != DeviceKind::Cpu
    }

    /// Returns whether an event is a call of a function of the user's.
    pub(crate) fn is_own_call(&self, id: EventId) -> bool {
        let event = self.profile.event(id);
        event.category == Category::PythonFunction
            && self.own.place(self.profile.name(event)).is_some()
    }

    /// Returns, by the number of a name, whether it meets a condition. Names are far fewer than
    /// events, so conditions on names are evaluated once for each name.
    pub(crate) fn names(&self, condition: impl Fn(&str) -> bool) -> Vec<bool> {
        self.profile.strings().iter().map(condition).collect()
    }

    /// Returns the events of a list whose names meet a condition.
    pub(crate) fn named(
        &self,
        events: &[EventId],
        condition: impl Fn(&str) -> bool,
    ) -> Vec<EventId> {
        let names = self.names(condition);
        if let Some(found) = self.by_name.find(&names, events) {
            return found;
        }
        let is_named = |id: &&EventId| names[self.profile.event(**id).name.index()];
        events.iter().filter(is_named).copied().collect()
    }

    /// Returns, by event, whether it is one of those given, inside of one, or device work that such
    /// an event launched.
    pub(crate) fn inside(&self, events: &[EventId]) -> Vec<bool> {
        let mut is_inside = vec![false; self.profile.events().len()];
        for &id in events {
            is_inside[id.index()] = true;
        }
        // Parents precede their children.
        for index in 0..is_inside.len() {
            let parent = self.parent(EventId::from_index(index));
            is_inside[index] |= parent.is_some_and(|parent| is_inside[parent.index()]);
        }
        for &id in &self.kernels {
            let owner = self.analysis.correlation().owner(id);
            is_inside[id.index()] |= owner.is_some_and(|owner| is_inside[owner.index()]);
        }
        is_inside
    }

    /// Returns the events in steps that [`inside`](Self::inside) marks.
    pub(crate) fn all_inside(&self, events: &[EventId]) -> Vec<EventId> {
        let is_inside = self.inside(events);
        let events = self.events.iter();
        events.filter(|id| is_inside[id.index()]).copied().collect()
    }

    /// Returns the events of a list that are inside no other of them.
    pub(crate) fn outermost(&self, events: &[EventId]) -> Vec<EventId> {
        let mut is_listed = vec![false; self.profile.events().len()];
        for &id in events {
            is_listed[id.index()] = true;
        }
        let is_outermost = |id: &&EventId| {
            let mut around = std::iter::successors(self.parent(**id), |&at| self.parent(at));
            !around.any(|outer| is_listed[outer.index()])
        };
        events.iter().filter(is_outermost).copied().collect()
    }

    /// Returns a change that removes events with everything inside them, waits included.
    pub(crate) fn without(&self, events: &[EventId]) -> Mending {
        let mut mending = Mending::default();
        for id in self.all_inside(events) {
            mending.scale(id, 0.0);
            mending.unblock(id);
        }
        mending
    }

    /// Returns the recorded time of some events as a part of the whole. Removing
    /// events that do not overlap saves at most this much.
    pub(crate) fn share(&self, events: &[EventId]) -> f64 {
        let time: u64 = events.iter().map(|&id| self.duration(id).0).sum();
        time as f64 / self.whole.0.max(1) as f64
    }

    /// Returns the number of steps that have some of these events.
    pub(crate) fn steps_with(&self, events: &[EventId]) -> usize {
        let mut steps: Vec<u32> = events.iter().map(|&id| self.around(id).step).collect();
        steps.sort_unstable();
        steps.dedup();
        steps.len()
    }

    /// Returns whether some of these events are in at least half of the steps.
    pub(crate) fn is_usual(&self, events: &[EventId]) -> bool {
        !events.is_empty() && self.steps_with(events) * 2 >= self.replay.steps().len()
    }

    /// Returns whether nearly all time of these events is in one of several steps. An operator that
    /// another program interrupts once is no cause that every step has.
    pub(crate) fn is_in_one_step(&self, events: &[EventId]) -> bool {
        let mut by_step: FxHashMap<u32, u64> = FxHashMap::default();
        for &id in events {
            *by_step.entry(self.around(id).step).or_default() += self.duration(id).0;
        }
        let all: u64 = by_step.values().sum();
        let most = by_step.into_values().max().unwrap_or_default();
        self.replay.steps().len() >= SEVERAL_STEPS && most as f64 > ONE_STEP * all as f64
    }

    /// Returns whether the shapes and types of inputs were recorded.
    pub(crate) fn has_shapes(&self) -> bool {
        !self.profile.inputs().is_empty()
    }

    /// Returns the inputs of an operator.
    pub(crate) fn inputs(&self, id: EventId) -> impl Iterator<Item = Input<'a>> {
        self.profile.inputs().inputs(self.profile.event(id).inputs)
    }

    /// Returns the types and sizes of the tensors that an operator takes, up to the first that is
    /// no tensor.
    pub(crate) fn tensors(&self, id: EventId) -> Vec<(DType, &'a [u64])> {
        let tensors = self.inputs(id).map_while(|input| match input {
            Input::Tensor { dtype, dims, .. } => Some((dtype, dims)),
            _ => None,
        });
        tensors.collect()
    }

    /// Returns a number that a trace tells about an event beside its times, such as `bytes`.
    pub(crate) fn argument(&self, id: EventId, key: &str) -> Option<f64> {
        let passthrough = self.profile.passthrough();
        let text = passthrough.of(PassthroughKind::Arguments, id.index())?;
        let pattern = passthrough.texts.pattern_of(text);
        let begin = value_of(pattern.1, key)?;
        let piece = TextPiece::find(pattern, begin, is_in_number);
        let mut value = String::new();
        passthrough.texts.push_piece_to(text, &piece, &mut value);
        let end = value.find(|c| !is_in_number(c)).unwrap_or(value.len());
        value[..end].parse().ok()
    }

    /// Returns a text that a trace tells about an event beside its times, such as `Task Type`.
    pub(crate) fn argument_text(&self, id: EventId, key: &str) -> Option<String> {
        let passthrough = self.profile.passthrough();
        let text = passthrough.of(PassthroughKind::Arguments, id.index())?;
        let pattern = passthrough.texts.pattern_of(text);
        let begin = value_of(pattern.1, key)?;
        if !pattern.1[begin..].starts_with('"') {
            return None;
        }
        let piece = TextPiece::find(pattern, begin + 1, |c| c != '"');
        let mut value = String::new();
        passthrough.texts.push_piece_to(text, &piece, &mut value);
        let end = value.find('"').unwrap_or(value.len());
        value.truncate(end);
        Some(value)
    }

    /// Returns the outermost operator that an event is in, or that device work belongs to.
    pub(crate) fn outermost_operator(&self, id: EventId) -> Option<EventId> {
        let host = self.analysis.correlation().owner(id).unwrap_or(id);
        let is_part = |at: &EventId| {
            let category = self.profile.event(*at).category;
            matches!(category, Category::Operator | Category::Runtime)
        };
        let around = std::iter::successors(Some(host), |&at| self.parent(at));
        let outermost = around.take_while(is_part).last()?;
        let is_operator = self.profile.event(outermost).category == Category::Operator;
        is_operator.then_some(outermost)
    }

    /// Returns the outermost operators that events are in, each once, in time order.
    pub(crate) fn outermost_operators(&self, events: &[EventId]) -> Vec<EventId> {
        let outermost = events.iter().map(|&id| self.outermost_operator(id));
        let mut found: Vec<EventId> = outermost.flatten().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the operators outside of others, in time order.
    pub(crate) fn outer_operators(&self) -> Vec<EventId> {
        let is_outer = |id: &&EventId| !self.around(**id).is_in_operator;
        self.operators.iter().filter(is_outer).copied().collect()
    }

    /// Returns the time that an operator takes: of the kernels that it and the operators inside it
    /// launch, or its own time on the CPU if there is no device.
    pub(crate) fn work(&self, id: EventId) -> Nanos {
        if self.has_device {
            self.analysis.device_times().total(id)
        } else {
            self.duration(id)
        }
    }

    /// Returns a replay's change with nothing in it. The device starts all the same.
    pub(crate) fn what_if(&self) -> WhatIf {
        let mut change = WhatIf::none(self.analysis);
        for &id in &self.start_up {
            change.keep(id);
        }
        change
    }

    /// Returns the time of all steps after causes are mended.
    pub(crate) fn mended(&self, causes: &[&Evidence]) -> Nanos {
        let mut change = self.what_if();
        for cause in causes {
            cause.mending.apply(&mut change);
        }
        self.replay.with(&change).total()
    }

    /// Returns the difference between two times of all steps as a part of the whole.
    pub(crate) fn saving(&self, before: Nanos, after: Nanos) -> f64 {
        (before.saturating_sub(after).0 as f64 / self.whole.0.max(1) as f64).min(1.0)
    }

    /// Returns the number per step.
    pub(crate) fn per_step(&self, count: usize) -> f64 {
        count as f64 / self.replay.steps().len().max(1) as f64
    }

    /// Returns the name that more than half of the time of some events belongs to.
    pub(crate) fn common_name(&self, events: &[EventId]) -> Option<String> {
        let mut sums: FxHashMap<StringId, u64> = FxHashMap::default();
        for &id in events {
            *sums.entry(self.profile.event(id).name).or_default() += self.duration(id).0.max(1);
        }
        let all: u64 = sums.values().sum();
        let most = sums.into_iter().max_by_key(|&(name, time)| (time, name));
        let (name, _) = most.filter(|&(_, time)| time * 2 > all)?;
        Some(self.profile.strings().text(name).to_owned())
    }

    /// Returns the innermost module that most of some events, the longest first, happen in.
    pub(crate) fn module(&self, events: &[EventId]) -> Option<String> {
        /// As many events as are looked at: the longest ones tell enough.
        const LOOKED_AT: usize = 200;
        let is_module = |id: &EventId| self.name(*id).starts_with(MODULE);
        let mut sums: FxHashMap<&str, u64> = FxHashMap::default();
        let mut all = 0;
        for &id in events.iter().take(LOOKED_AT) {
            let host = self.analysis.correlation().owner(id).unwrap_or(id);
            let mut around = std::iter::successors(Some(host), |&at| self.parent(at));
            all += self.duration(id).0.max(1);
            if let Some(module) = around.find(is_module) {
                *sums.entry(self.name(module)).or_default() += self.duration(id).0.max(1);
            }
        }
        let most = sums.into_iter().max_by_key(|&(name, time)| (time, name));
        let (name, _) = most.filter(|&(_, time)| time * 2 > all)?;
        Some(name[MODULE.len()..].to_owned())
    }

    /// Returns the frame of the user's own code that most of some time belongs to.
    pub(crate) fn blamed(&self, times: impl Iterator<Item = (EventId, Nanos)>) -> Option<StringId> {
        let mut sums: FxHashMap<StringId, u64> = FxHashMap::default();
        for (id, time) in times {
            if let Some(frame) = self.frames[id.index()] {
                *sums.entry(frame).or_default() += time.0.max(1);
            }
        }
        // Lines of one function count together.
        let mut by_function: FxHashMap<StringId, (u64, u64, StringId)> = FxHashMap::default();
        for (&frame, &time) in &sums {
            let Some(function) = self.function_of(frame) else {
                continue;
            };
            let entry = by_function.entry(function).or_insert((0, 0, frame));
            entry.0 += time;
            if (time, frame) > (entry.1, entry.2) || entry.1 == 0 {
                (entry.1, entry.2) = (time, frame);
            }
        }
        let most = by_function
            .into_values()
            .max_by_key(|&(all, _, frame)| (all, frame));
        most.map(|(_, _, frame)| frame)
    }

    pub(crate) fn place(&self, frame: Option<StringId>) -> Option<CodePlace> {
        let place = self.own.place(self.profile.strings().text(frame?))?;
        Some(CodePlace::new(&place))
    }
}

/// Returns, by name, the first name of the same function of the user's.
fn functions(analysis: &Analysis, own: &OwnCode) -> Vec<Option<StringId>> {
    let profile = analysis.profile();
    let calls = CallNames::build(analysis, &Work::of(analysis));
    let definitions = Definitions::build(profile, own, &calls);
    let mut first: FxHashMap<(&str, &str, Option<u32>), StringId> = FxHashMap::default();
    let names = (0..profile.strings().len()).map(StringId::from_index);
    let function = names.map(|name| {
        let place = definitions.place(name)?;
        let (function, line) = definitions.function(&place);
        Some(*first.entry((place.file, function, line)).or_insert(name))
    });
    function.collect()
}

/// The beginning of the names of calls of modules.
pub(crate) const MODULE: &str = "nn.Module: ";

/// Returns whether an event of this name is an import: a range of the launcher's, or Python's own code
/// for it.
pub(crate) fn is_import(name: &str) -> bool {
    name.starts_with("import ") || name.starts_with("<frozen importlib.")
}

/// Returns whether a call of this name waits for another thread, whose work is not its own.
pub(crate) fn is_wait_for_thread(name: &str) -> bool {
    let is_waiting = || {
        let ends = [": join", ": wait", ": _wait_for_tstate_lock"];
        ends.iter().any(|end| name.ends_with(end))
    };
    name.starts_with("<built-in method acquire of _thread.")
        || name.starts_with("threading.py(") && is_waiting()
}

/// The ranges in which an optimizer makes a step.
const OPTIMIZER: &str = "Optimizer.step#";

/// The ranges in which a loop gets its next batch.
const LOADING: [&str; 2] = ["enumerate(DataLoader)#", "enumerate(DataPipe)#"];

fn around(analysis: &Analysis, replay: &Replay) -> Vec<Around> {
    let profile = analysis.profile();
    let names: Vec<(bool, bool)> = (profile.strings().iter())
        .map(|name| {
            let is_loading = LOADING.iter().any(|prefix| name.starts_with(prefix));
            (is_loading, name.starts_with(OPTIMIZER))
        })
        .collect();
    let steps = replay.steps();
    // Events and steps are both in start order.
    let mut begun = 0;
    let mut step_at = |time: Nanos| {
        while steps.get(begun).is_some_and(|step| step.start <= time) {
            begun += 1;
        }
        match begun.checked_sub(1) {
            Some(step) if time < steps[step].end() => begun as u32,
            Some(_) | None => 0,
        }
    };
    let mut found: Vec<Around> = Vec::with_capacity(profile.events().len());
    // Parents precede their children.
    for (index, event) in profile.events().iter().enumerate() {
        let id = EventId::from_index(index);
        let parent = analysis.tree().parent(id);
        let outer = parent.map(|parent| (found[parent.index()], profile.event(parent).category));
        let (is_loading, is_optimizer) = names[event.name.index()];
        let mut around = Around {
            step: step_at(event.start),
            is_loading,
            is_optimizer,
            is_in_operator: false,
        };
        if let Some((outer, category)) = outer {
            around.is_loading |= outer.is_loading;
            around.is_optimizer |= outer.is_optimizer;
            around.is_in_operator = outer.is_in_operator || category == Category::Operator;
        }
        found.push(around);
    }
    place_device_work(analysis, &mut found);
    found
}

/// Puts device work into the step of the operator that launched it, which may come later in the list.
/// Work whose launch was not recorded belongs to the launch before it on its stream. If there is
/// none, it was launched before the recording, and is in no step.
///
/// ```text
/// CPU          |step 1: launch a |step 2: launch b |
/// stream    |x|==x==||==a==|        |==b==|          x is in no step
/// ```
fn place_device_work(analysis: &Analysis, found: &mut [Around]) {
    let profile = analysis.profile();
    let correlation = analysis.correlation();
    let launch = |id: EventId| {
        correlation
            .owner(id)
            .or_else(|| correlation.launch(profile, id))
    };
    let works = profile.events().iter().enumerate();
    let works = works.filter(|(_, event)| event.category == Category::Kernel);
    let works = works.map(|(index, event)| (EventId::from_index(index), event.thread.index()));
    let mut has_launches = vec![false; profile.threads().len()];
    for (id, stream) in works.clone() {
        has_launches[stream] = has_launches[stream] || launch(id).is_some();
    }
    let mut last: Vec<Around> = vec![Around::default(); profile.threads().len()];
    // A stream without any launches tells no more than its times.
    for (id, stream) in works.filter(|&(_, stream)| has_launches[stream]) {
        if let Some(launch) = launch(id) {
            last[stream] = found[launch.index()];
        }
        found[id.index()] = last[stream];
    }
}

/// Functions without a name of their own, which only the function around them calls. A lambda may be
/// called from anywhere.
const INNER: [&str; 4] = ["<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"];

/// Returns the innermost frame of the user's own code that led to each event. The call of a function
/// of the user's belongs to that function itself.
pub(super) fn frames(analysis: &Analysis, own: &OwnCode) -> Vec<Option<StringId>> {
    let profile = analysis.profile();
    let is_own: Vec<bool> = (profile.strings().iter())
        .map(|text| own.place(text).is_some())
        .collect();
    // A comprehension belongs to the function that it is written in.
    let is_inner: Vec<bool> = (profile.strings().iter())
        .map(|text| {
            own.place(text)
                .is_some_and(|place| INNER.contains(&place.function))
        })
        .collect();
    let mut by_stack: Vec<Option<StringId>> = vec![None];
    for (caller, frame) in profile.stacks().nodes() {
        let outer = by_stack[caller.index()];
        let own = is_own[frame.index()].then_some(frame);
        by_stack.push(match (own, outer) {
            (Some(frame), Some(outer)) if is_inner[frame.index()] => Some(outer),
            (Some(frame), _) => Some(frame),
            (None, outer) => outer,
        });
    }
    (profile.events().iter().enumerate())
        .map(|(index, event)| {
            let is_call = event.category == Category::PythonFunction;
            let outer = by_stack[analysis.charged_stack(EventId::from_index(index)).index()];
            let is_own = is_call && is_own[event.name.index()];
            match outer {
                Some(outer) if is_inner[event.name.index()] => Some(outer),
                _ if is_own => Some(event.name),
                outer => outer,
            }
        })
        .collect()
}
