//! Numbers by which a trace says which Python function called which.

use mindprof_model::{Category, EventId, Nanos, Profile, StackId};
use rustc_hash::FxHashMap;

use super::Writer;

/// What the name of a module's call begins with, before its class and its number.
const MODULE: &str = "nn.Module: ";

/// The number of each call of a Python function, and its caller's.
#[derive(Debug, Default)]
pub(super) struct PythonNumbers {
    numbers: FxHashMap<EventId, (u32, Option<u32>)>,
}

impl PythonNumbers {
    /// Numbers the calls from one in start order; the caller is the innermost call of the thread that is still running.
    /// One that is called by nobody has no stack.
    ///
    /// ```text
    /// 1 |------------------|      caller of 2: 1, of 3: 2, of 4: 1
    /// 2   |-------|
    /// 3     |--|    4 |-|
    /// ```
    pub(super) fn build(profile: &Profile) -> Self {
        let mut numbers = FxHashMap::default();
        let mut running: Vec<Vec<(Nanos, u32)>> = vec![Vec::new(); profile.threads().len()];
        let calls = profile.events().iter().enumerate();
        let calls = calls.filter(|(_, event)| event.category == Category::PythonFunction);
        for ((index, event), number) in calls.zip(1..) {
            let running = &mut running[event.thread.index()];
            while running.pop_if(|(end, _)| *end < event.end()).is_some() {}
            let caller = running.last().filter(|_| event.stack != StackId::NONE);
            let caller = caller.map(|(_, caller)| *caller);
            numbers.insert(EventId::from_index(index), (number, caller));
            running.push((event.end(), number));
        }
        Self { numbers }
    }
}

/// Returns the number of the module that an event is a call of, which its name ends in.
fn module_number(name: &str) -> Option<u32> {
    let (_, number) = name.strip_prefix(MODULE)?.rsplit_once('_')?;
    number.parse().ok()
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
        let name = self.profile.name(self.profile.event(id));
        if let Some(module) = module_number(name) {
            self.push_argument("Python module id", module);
        }
    }
}
