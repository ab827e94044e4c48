//! Stacks with what was spent in them: what folded stacks, flame graphs and their kin are drawn
//! from.
//!
//! torch weighs the callers of single events ([`stack_weights`]); a picture wants whole paths, each
//! once ([`Folded`]).

use std::borrow::Cow;

use mindprof_model::{
    Category, DeviceKind, EventId, Nanos, StackId, StackTable, StringId, StringTable,
};
use rustc_hash::FxHashMap;

use crate::analysis::{Analysis, Item};
use crate::stacks::source::is_shown_frame;

mod roots;
#[cfg(test)]
mod tests;

/// How many levels of a path are written; what is below counts where they end. A line names a whole
/// path, so that without an end they take room by the square of the depth.
pub const PATH_LEVELS: usize = 500;

/// What a stack is weighed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StackMetric {
    /// The time on the host without the children.
    #[default]
    SelfCpuTime,
    /// The time on devices without the children's.
    SelfDeviceTime,
}

impl StackMetric {
    /// Returns the weight of an event.
    pub fn of(self, analysis: &Analysis, id: EventId) -> Nanos {
        let on_host = analysis.device(id) == DeviceKind::Cpu;
        match self {
            Self::SelfCpuTime => analysis.tree().self_time(id),
            Self::SelfDeviceTime if on_host => analysis.device_times().own(id),
            Self::SelfDeviceTime => analysis.profile().event(id).duration,
        }
    }
}

/// Walks the events that have callers, in the order in which they are shown, with the stack of the
/// callers and the weight.
pub fn stack_weights(
    analysis: &Analysis,
    metric: StackMetric,
) -> impl Iterator<Item = (StackId, Nanos)> {
    analysis.items().filter_map(move |item| match item {
        Item::Event(id) => {
            let stack = analysis.stack(id);
            (stack != StackId::NONE).then(|| (stack, metric.of(analysis, id)))
        }
        Item::Memory(_) => None,
    })
}

/// The paths of a profile's events, each once, with what was spent at their ends.
///
/// A path is who called, then the scopes inside of each other, then the event. Without stacks it is
/// the scopes alone. Where there are several processes or threads, it begins with their names.
///
/// ```text
/// train.py(7): main ── aten::linear ── aten::addmm     3 us
///                 └─── aten::relu                      1 us
/// ```
#[derive(Clone, Debug)]
pub struct Folded<'a> {
    /// Those of the profile, and behind them the names of processes and threads.
    strings: Cow<'a, StringTable>,
    paths: StackTable,
    weights: Vec<Nanos>,
}

impl<'a> Folded<'a> {
    /// Folds a profile in time linear in the number of its events.
    ///
    /// Of device time, what devices did by themselves counts where no scope asked for it; the rest
    /// is its scope's.
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

    /// Folds the callers of events alone, without the scopes that they are in and without the names
    /// of processes and threads.
    pub fn of_callers(analysis: &'a Analysis, metric: StackMetric) -> Self {
        let mut paths = Paths::new(analysis);
        let mut weights = vec![Nanos::ZERO];
        for (stack, weight) in stack_weights(analysis, metric) {
            let path = paths.of_stack(StackId::NONE, stack);
            if weights.len() < paths.table.len() {
                weights.resize(paths.table.len(), Nanos::ZERO);
            }
            weights[path.index()] = weights[path.index()] + weight;
        }
        // Of a stack without frames to show there is no path.
        weights[StackId::NONE.index()] = Nanos::ZERO;
        paths.into_folded(weights)
    }

    /// Returns the texts of the names along paths.
    pub fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// Walks the paths that something was spent at the ends of, in the order in which they were
    /// first met.
    pub fn iter(&self) -> impl Iterator<Item = (StackId, Nanos)> {
        let weights = self.weights.iter().enumerate();
        let spent = weights.filter(|(_, weight)| **weight > Nanos::ZERO);
        spent.map(|(index, weight)| (StackId::from_index(index), *weight))
    }

    /// Returns the names along a path, outermost first.
    ///
    /// # Panics
    /// When `path` is of another profile.
    pub fn frames(&self, path: StackId) -> Vec<StringId> {
        let mut frames: Vec<StringId> = self.paths.frames(path).collect();
        frames.reverse();
        frames
    }

    /// Returns how many names the longest path has.
    pub fn depth(&self) -> usize {
        self.depths().into_iter().max().unwrap_or(0)
    }

    /// Returns the paths of at most `levels` names, and of those beyond the first level the ones
    /// that at least `least` was spent on with all below them. What is left out counts where it was
    /// called from. Takes time linear in the number of paths.
    ///
    /// ```text
    /// main 5 ── f 3 ── g 1          of two levels    main 5 ── f 4
    /// ```
    #[must_use]
    pub fn cut(&self, levels: usize, least: Nanos) -> Self {
        let depths = self.depths();
        let mut wholes = self.weights.clone();
        let callers: Vec<(StackId, StringId)> = self.paths.nodes().collect();
        // Callers come first, so from the end each whole is complete when it is handed on.
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

    /// Returns the number of names of each path.
    fn depths(&self) -> Vec<usize> {
        let mut depths = vec![0];
        for (caller, _) in self.paths.nodes() {
            depths.push(depths[caller.index()] + 1);
        }
        depths
    }

    /// Returns everything that was spent.
    pub fn total(&self) -> Nanos {
        Nanos(self.weights.iter().map(|weight| weight.0).sum())
    }
}

/// Returns whether the device time of an event is that of others: a kernel's is its scope's, an
/// annotation's is that of the kernels under it.
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

/// Finds the path of each event. Parents come before their children.
struct Paths<'a> {
    analysis: &'a Analysis,
    strings: Cow<'a, StringTable>,
    table: StackTable,
    /// What the paths of each thread begin with.
    roots: Vec<StackId>,
    of_events: Vec<StackId>,
    /// The path of each stack's shown frames below a root, where it was asked for.
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
        let stack = self.analysis.stack(id);
        let caller = match parent {
            Some(parent) if !self.is_call(parent) || stack == StackId::NONE => {
                self.of_events[parent.index()]
            }
            Some(_) | None => self.of_stack(self.roots[event.thread.index()], stack),
        };
        let path = self.table.push(caller, event.name);
        self.of_events.push(path);
        path
    }

    fn is_call(&self, id: EventId) -> bool {
        self.analysis.profile().event(id).category == Category::PythonFunction
    }

    fn of_stack(&mut self, root: StackId, stack: StackId) -> StackId {
        let profile = self.analysis.profile();
        let mut callers = Vec::new();
        let mut at = stack;
        // Only as far as no other stack went, so that each caller is looked at once.
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
