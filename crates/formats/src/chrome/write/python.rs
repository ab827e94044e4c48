//! Numbers by which a trace says which Python function called which.

use mindprof_model::{Category, EventId, Profile, StackId};
use rustc_hash::FxHashMap;

use super::Writer;

/// The number of each call of a Python function, and its caller's.
#[derive(Debug, Default)]
pub(super) struct PythonNumbers {
    numbers: FxHashMap<EventId, (u32, Option<u32>)>,
}

impl PythonNumbers {
    /// Numbers the calls from one in start order; the caller is the last call before that its stack leads to.
    pub(super) fn build(profile: &Profile) -> Self {
        let mut numbers = FxHashMap::default();
        let mut last_inside: FxHashMap<StackId, u32> = FxHashMap::default();
        let mut next = 1;
        for (index, event) in profile.events().iter().enumerate() {
            if event.category != Category::PythonFunction {
                continue;
            }
            let caller = last_inside.get(&event.stack).copied();
            numbers.insert(EventId::from_index(index), (next, caller));
            if let Some(inside) = profile.stacks().find(event.stack, event.name) {
                last_inside.insert(inside, next);
            }
            next += 1;
        }
        Self { numbers }
    }
}

impl Writer<'_> {
    /// Writes the number of a call and of its caller, each with a comma after it.
    pub(super) fn push_python_numbers(&mut self, id: EventId) {
        let Some(&(number, caller)) = self.python.numbers.get(&id) else {
            return;
        };
        if let Some(caller) = caller {
            self.push_argument("Python parent id", caller);
        }
        self.push_argument("Python id", number);
    }
}
