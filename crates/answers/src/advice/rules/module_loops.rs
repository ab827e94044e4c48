//! Loops in the user's own code that call a module again and again.

use mindprof_model::{Category, EventId, StackId, StringId};
use rustc_hash::FxHashMap;

use crate::advice::facts::{Facts, MODULE};

/// A module that is called at least this often from one function in each step is in a loop.
pub(super) const MANY: f64 = 12.0;

/// A loop over calls of one module.
pub(super) struct ModuleLoop {
    /// The frame that calls the module.
    pub(super) frame: StringId,
    pub(super) calls: Vec<EventId>,
}

impl ModuleLoop {
    /// Returns the loop that takes longest among those of modules with certain names.
    pub(super) fn find(facts: &Facts<'_>, is_meant: impl Fn(&str) -> bool) -> Option<Self> {
        // The calls of each module from each function of the user's.
        let mut loops: FxHashMap<(StringId, StringId), Vec<EventId>> = FxHashMap::default();
        let is_module = |name: &str| name.strip_prefix(MODULE).is_some_and(&is_meant);
        for id in facts.named(&facts.calls, is_module) {
            let is_outer = facts.parent(id).is_none_or(|caller| {
                facts.is_own_call(caller) || !facts.name(caller).starts_with(MODULE)
            });
            if let Some(frame) = facts.frames[id.index()].filter(|_| is_outer) {
                let name = facts.profile.event(id).name;
                loops.entry((frame, name)).or_default().push(id);
            }
        }
        let total = |calls: &[EventId]| calls.iter().map(|&id| facts.duration(id).0).sum::<u64>();
        let many = loops
            .into_iter()
            .filter(|(_, calls)| facts.per_step(calls.len()) >= MANY)
            .max_by_key(|(key, calls)| (total(calls), *key));
        let ((frame, _), calls) = many?;
        Some(Self { frame, calls })
    }

    /// Returns the events of the loop: the calls, all inside them and their backward work; with a
    /// function, what else it calls, too.
    pub(super) fn events(&self, facts: &Facts<'_>, function: Option<StringId>) -> Vec<EventId> {
        let is_inside = facts.inside(&self.calls);
        // Backward work has the stack of its forward operator.
        let mut is_called = vec![false; facts.profile.stacks().len()];
        for &id in facts.operators.iter().filter(|id| is_inside[id.index()]) {
            is_called[facts.analysis.charged_stack(id).index()] = true;
        }
        is_called[StackId::NONE.index()] = false;
        let belongs = |id: &EventId| {
            let is_of_function = function.is_some()
                && facts.function(*id) == function
                && facts.profile.event(*id).category != Category::PythonFunction;
            let stack = facts.analysis.charged_stack(*id).index();
            is_inside[id.index()] || is_of_function || is_called[stack]
        };
        facts.events.iter().copied().filter(belongs).collect()
    }
}
