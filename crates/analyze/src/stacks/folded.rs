//! Stacks weighted by time, from which folded stacks, flame graphs and speedscope files are made.
//!
//! torch's `export_stacks` weighs the callers of single events ([`stack_weights`]); a flame graph
//! needs whole paths, each of them once ([`Folded`]). torch's rule finds the callers of backward work
//! by its sequence number; in a flame graph they are those to which tables charge the work.

use std::borrow::Cow;

use mindprof_model::{
    Category, DeviceKind, EventId, Nanos, ScopeKind, StackId, StackTable, StringId, StringTable,
};
use rustc_hash::FxHashMap;

use crate::analysis::{Analysis, Item};
use crate::stacks::source::is_shown_frame;

mod roots;
#[cfg(test)]
mod tests;

/// The number of levels of a path that are written; time below counts at the last level.
///
/// Each line of a folded file spells out a whole path, so that without a limit the size of the file
/// would grow with the square of the depth.
pub const PATH_LEVELS: usize = 500;

/// The metric by which stacks are weighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StackMetric {
    /// The self CPU time.
    #[default]
    SelfCpuTime,
    /// The self device time.
    SelfDeviceTime,
}

impl StackMetric {
    /// Returns the weight of an event.
    pub fn of(self, analysis: &Analysis, id: EventId) -> Nanos {
        let on_cpu = analysis.device(id) == DeviceKind::Cpu;
        match self {
            Self::SelfCpuTime => analysis.tree().self_time(id),
            Self::SelfDeviceTime if on_cpu => analysis.device_times().own(id),
            Self::SelfDeviceTime => analysis.profile().event(id).duration,
        }
    }
}

/// Iterates over the events that have a stack, in the order in which they are shown, and yields the
/// stack and the weight of each.
pub fn stack_weights(
    analysis: &Analysis,
    metric: StackMetric,
) -> impl Iterator<Item = (StackId, Nanos)> {
    let stacks = move |id| analysis.stack(id);
    stack_events(analysis, metric, stacks).map(|(_, stack, weight)| (stack, weight))
}

/// Iterates over the events that have a stack by the given rule, as [`stack_weights`] does.
fn stack_events(
    analysis: &Analysis,
    metric: StackMetric,
    stacks: impl Fn(EventId) -> StackId,
) -> impl Iterator<Item = (EventId, StackId, Nanos)> {
    analysis.items().filter_map(move |item| match item {
        Item::Event(id) => {
            let stack = stacks(id);
            (stack != StackId::NONE).then(|| (id, stack, metric.of(analysis, id)))
        }
        Item::Memory(_) => None,
    })
}

/// The distinct paths of a profile's events, with the time that was spent at the end of each.
///
/// A path consists of the Python callers, the nested scopes, and the event itself; without stacks
/// it is the scopes alone. If there are several processes or threads, it begins with their names.
/// Folded stacks, flame graphs and speedscope files are all written from this one tree, so that
/// they show the same times.
///
/// ```text
/// train.py(7): main ── aten::linear ── aten::addmm     3 us
///                 └─── aten::relu                      1 us
/// ```
#[derive(Clone, Debug)]
pub struct Folded<'a> {
    /// The strings of the profile, followed by the names of processes and threads.
    strings: Cow<'a, StringTable>,
    paths: StackTable,
    weights: Vec<Nanos>,
}

impl<'a> Folded<'a> {
    /// Folds a profile in time linear in the number of its events.
    ///
    /// The device time of a kernel counts at the scope that launched it, or at the kernel itself if
    /// no scope did.
    pub fn build(analysis: &'a Analysis, metric: StackMetric) -> Self {
        let mut paths = Paths::with_roots(analysis);
        let mut weights: Vec<Nanos> = Vec::new();
        for index in 0..analysis.profile().events().len() {
            let id = EventId::from_index(index);
            let path = paths.of_event(id);
            if weights.len() < paths.table.len() {
                weights.resize(paths.table.len(), Nanos::ZERO);
            }
            let is_counted = analysis.is_shown(id)
                && (metric == StackMetric::SelfCpuTime || !is_counted_elsewhere(analysis, id));
            if is_counted {
                let weight = &mut weights[path.index()];
                *weight = *weight + metric.of(analysis, id);
            }
        }
        paths.into_folded(weights)
    }

    /// Folds only the callers of events, without scopes and without the names of processes and
    /// threads.
    pub fn of_callers(analysis: &'a Analysis, metric: StackMetric) -> Self {
        Self::of_callers_where(analysis, metric, |_| true)
    }

    /// Folds the Python callers of some events, as [`Self::of_callers`] does.
    pub fn of_callers_where(
        analysis: &'a Analysis,
        metric: StackMetric,
        is_counted: impl Fn(EventId) -> bool,
    ) -> Self {
        let mut paths = Paths::new(analysis);
        let mut weights = vec![Nanos::ZERO];
        let charged = |id| analysis.charged_stack(id);
        let events = stack_events(analysis, metric, charged);
        for (_, stack, weight) in events.filter(|&(id, ..)| is_counted(id)) {
            let path = paths.of_stack(StackId::NONE, stack);
            if weights.len() < paths.table.len() {
                weights.resize(paths.table.len(), Nanos::ZERO);
            }
            weights[path.index()] = weights[path.index()] + weight;
        }
        // A stack without frames to show has no path.
        weights[StackId::NONE.index()] = Nanos::ZERO;
        paths.into_folded(weights)
    }

    /// Returns the paths with names of their own, independent of the analysis.
    pub fn into_owned(self) -> Folded<'static> {
        Folded {
            strings: Cow::Owned(self.strings.into_owned()),
            paths: self.paths,
            weights: self.weights,
        }
    }

    /// Returns the table of the names along paths.
    pub fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// Iterates over the paths that have a weight, in the order in which they first appeared.
    pub fn iter(&self) -> impl Iterator<Item = (StackId, Nanos)> {
        let weights = self.weights.iter().enumerate();
        let spent = weights.filter(|(_, weight)| **weight > Nanos::ZERO);
        spent.map(|(index, weight)| (StackId::from_index(index), *weight))
    }

    /// Returns the names along a path, outermost first.
    ///
    /// # Panics
    /// If `path` belongs to another profile.
    pub fn frames(&self, path: StackId) -> Vec<StringId> {
        let mut frames: Vec<StringId> = self.paths.frames(path).collect();
        frames.reverse();
        frames
    }

    /// Returns the number of names of the longest path.
    pub fn depth(&self) -> usize {
        self.depths().into_iter().max().unwrap_or(0)
    }

    /// Removes paths of more than `levels` names, and paths below the first level whose weight,
    /// including everything below them, is less than `least`. The weight of a removed path is added
    /// to its caller. Takes time linear in the number of paths.
    ///
    /// ```text
    /// main 5 ── f 3 ── g 1          cut to two levels    main 5 ── f 4
    /// ```
    #[must_use]
    pub fn cut(&self, levels: usize, least: Nanos) -> Self {
        let depths = self.depths();
        let mut wholes = self.weights.clone();
        let callers: Vec<(StackId, StringId)> = self.paths.nodes().collect();
        // Callers precede their callees, so going backwards each sum is complete when it is added.
        for (index, (caller, _)) in callers.iter().enumerate().rev() {
            let whole = wholes[index + 1];
            wholes[caller.index()] = wholes[caller.index()] + whole;
        }
        let mut paths = StackTable::new();
        let mut kept = vec![StackId::NONE; self.weights.len()];
        let mut weights = vec![Nanos::ZERO];
        for (index, &(caller, frame)) in callers.iter().enumerate() {
            let (path, caller) = (index + 1, kept[caller.index()]);
            let is_drawn = depths[path] == 1 || wholes[path] >= least;
            kept[path] = if is_drawn && depths[path] <= levels {
                paths.push(caller, frame)
            } else {
                caller
            };
            weights.resize(paths.len(), Nanos::ZERO);
            let weight = &mut weights[kept[path].index()];
            *weight = *weight + self.weights[path];
        }
        Self {
            strings: self.strings.clone(),
            paths,
            weights,
        }
    }

    /// Separates the paths through some names from all others, and passes over names that say
    /// nothing. Returns the others first. Takes time linear in the number of paths.
    ///
    /// ```text
    /// main 5 ── wrapper 1 ── f 3      passes over `wrapper`, separates `import`
    ///      └─── import ── g 7         main 6 ── f 3    and    main ── import ── g 7
    /// ```
    #[must_use]
    pub fn parted(&self, part: impl Fn(&str) -> PathPart) -> (Self, Self) {
        let parts: Vec<PathPart> = self.strings.iter().map(part).collect();
        let mut tables = [StackTable::new(), StackTable::new()];
        let mut weights = [vec![Nanos::ZERO], vec![Nanos::ZERO]];
        let mut kept = vec![(0, [StackId::NONE; 2], false)];
        for (index, (caller, frame)) in self.paths.nodes().enumerate() {
            let (mut side, mut at, mut is_dropped) = kept[caller.index()];
            match parts[frame.index()] {
                PathPart::Kept | PathPart::PassedOver => {}
                PathPart::Separate => side = 1,
                PathPart::Dropped => is_dropped = true,
                PathPart::Resumed => is_dropped = false,
            }
            let is_named = matches!(parts[frame.index()], PathPart::Kept | PathPart::Separate);
            // A separate path needs its callers too, so these are on both sides.
            if is_named && !is_dropped {
                for side in side..2 {
                    at[side] = tables[side].push(at[side], frame);
                }
            }
            kept.push((side, at, is_dropped));
            for (table, weights) in tables.iter().zip(&mut weights) {
                weights.resize(table.len(), Nanos::ZERO);
            }
            if !is_dropped {
                let weight = &mut weights[side][at[side].index()];
                *weight = *weight + self.weights[index + 1];
            }
        }
        let [mut work, mut separate] = weights.map(|weights| Self {
            strings: self.strings.clone(),
            paths: StackTable::new(),
            weights,
        });
        [work.paths, separate.paths] = tables;
        // What was spent in names passed over at the very beginning has no path left.
        work.weights[StackId::NONE.index()] = Nanos::ZERO;
        separate.weights[StackId::NONE.index()] = Nanos::ZERO;
        (work, separate)
    }

    /// Takes out the weight of the paths, outermost name first, that `is_left_out` holds for, and
    /// returns how much that was.
    #[must_use]
    pub fn without(mut self, is_left_out: impl Fn(&[StringId]) -> bool) -> (Self, Nanos) {
        let paths: Vec<(StackId, Nanos)> = self.iter().collect();
        let mut left_out = Nanos::ZERO;
        for (path, weight) in paths {
            if is_left_out(&self.frames(path)) {
                left_out = left_out + weight;
                self.weights[path.index()] = Nanos::ZERO;
            }
        }
        (self, left_out)
    }

    /// Returns the number of names of each path.
    fn depths(&self) -> Vec<usize> {
        let mut depths = vec![0];
        for (caller, _) in self.paths.nodes() {
            depths.push(depths[caller.index()] + 1);
        }
        depths
    }

    /// Returns the sum of all weights.
    pub fn total(&self) -> Nanos {
        Nanos(self.weights.iter().map(|weight| weight.0).sum())
    }
}

/// The treatment of a name of a path by [`Folded::parted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPart {
    /// The name stays in its path.
    Kept,
    /// The name is taken out of its path; its time counts at its caller.
    PassedOver,
    /// The path and all below it are separated from the others.
    Separate,
    /// The path and all below it are left out, up to a name that resumes.
    Dropped,
    /// The name is taken out of its path, and what is below it is kept again.
    Resumed,
}

/// Returns whether the device time of an event is counted at other events: that of a kernel at its
/// scope, that of a device annotation at the kernels under it.
fn is_counted_elsewhere(analysis: &Analysis, id: EventId) -> bool {
    match analysis.profile().event(id).category {
        Category::DeviceAnnotation => true,
        Category::Kernel => analysis.correlation().owner(id).is_some(),
        Category::Operator
        | Category::Annotation
        | Category::PythonFunction
        | Category::Runtime
        | Category::Other => false,
    }
}

/// Finds the path of each event. Events arrive in order, so parents precede their children.
struct Paths<'a> {
    analysis: &'a Analysis,
    strings: Cow<'a, StringTable>,
    table: StackTable,
    /// By thread, the path that all its paths begin with.
    roots: Vec<StackId>,
    of_events: Vec<StackId>,
    /// By root and stack, the path of the stack's shown frames, as far as it was needed.
    of_stacks: FxHashMap<(StackId, StackId), StackId>,
}

impl<'a> Paths<'a> {
    fn new(analysis: &'a Analysis) -> Self {
        let profile = analysis.profile();
        Self {
            analysis,
            strings: Cow::Borrowed(profile.strings()),
            table: StackTable::new(),
            roots: vec![StackId::NONE; profile.threads().len()],
            of_events: Vec::with_capacity(profile.events().len()),
            of_stacks: FxHashMap::default(),
        }
    }

    fn with_roots(analysis: &'a Analysis) -> Self {
        let mut paths = Self::new(analysis);
        paths.roots = roots::roots(analysis.profile(), &mut paths.strings, &mut paths.table);
        paths
    }

    fn into_folded(self, weights: Vec<Nanos>) -> Folded<'a> {
        Folded {
            strings: self.strings,
            paths: self.table,
            weights,
        }
    }

    /// Returns the path of the next event.
    fn of_event(&mut self, id: EventId) -> StackId {
        let event = self.analysis.profile().event(id);
        let parent = self.analysis.tree().parent(id);
        let stack = self.analysis.charged_stack(id);
        let caller = match parent {
            Some(parent)
                if stack == StackId::NONE
                    || !self.is_call(parent) && !self.is_python_of_node(parent, stack) =>
            {
                self.of_events[parent.index()]
            }
            Some(_) | None => self.of_stack(self.roots[event.thread.index()], stack),
        };
        let path = self.table.push(caller, event.name);
        self.of_events.push(path);
        path
    }

    /// Returns whether an event in a backward node, which has this stack, is called by Python code of
    /// the node: the `backward` of an `autograd.Function`. The node itself has the stack of its forward
    /// operator.
    fn is_python_of_node(&self, parent: EventId, stack: StackId) -> bool {
        self.analysis.profile().event(parent).scope == ScopeKind::Backward
            && stack != self.analysis.charged_stack(parent)
    }

    fn is_call(&self, id: EventId) -> bool {
        self.analysis.profile().event(id).category == Category::PythonFunction
    }

    fn of_stack(&mut self, root: StackId, stack: StackId) -> StackId {
        let profile = self.analysis.profile();
        let mut callers = Vec::new();
        let mut at = stack;
        // Stop at the first caller that is already known, so that each caller is visited once.
        let mut path = loop {
            if let Some(&known) = self.of_stacks.get(&(root, at)) {
                break known;
            }
            let Some((caller, frame)) = profile.stacks().node(at) else {
                break root;
            };
            callers.push((at, frame));
            at = caller;
        };
        for (at, frame) in callers.into_iter().rev() {
            if is_shown_frame(profile.strings().text(frame)) {
                path = self.table.push(path, frame);
            }
            self.of_stacks.insert((root, at), path);
        }
        path
    }
}
