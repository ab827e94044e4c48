//! Numbers for the calls of Python functions: which call is which, which one made it, and of which module it is.

use mindprof_model::{Category, EventId, Nanos, Profile, StackId};
use rustc_hash::FxHashMap;

/// What the name of a module's call begins with, before its class and its number.
const MODULE: &str = "nn.Module: ";

/// The number of each call of a Python function, and its caller's.
#[derive(Clone, Debug, Default)]
pub struct PythonCalls {
    numbers: FxHashMap<EventId, (u32, Option<u32>)>,
}

impl PythonCalls {
    /// Numbers the calls from one in start order; the caller is the innermost call of the thread that is still running.
    /// One without a stack is called by nobody.
    ///
    /// ```text
    /// 1 |------------------|      caller of 2: 1, of 3: 2, of 4: 1
    /// 2   |-------|
    /// 3     |--|    4 |-|
    /// ```
    pub fn build(profile: &Profile) -> Self {
        let mut numbers = FxHashMap::default();
        let mut running: Vec<Vec<(Nanos, u32)>> = vec![Vec::new(); profile.threads().len()];
        let events = profile.events().iter().enumerate();
        let calls = events.filter(|(_, event)| event.category == Category::PythonFunction);
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

    /// Returns the number of a call; none of what is no call.
    pub fn number(&self, id: EventId) -> Option<u32> {
        self.numbers.get(&id).map(|(number, _)| *number)
    }

    /// Returns the number of the call that made a call.
    pub fn caller(&self, id: EventId) -> Option<u32> {
        self.numbers.get(&id).and_then(|(_, caller)| *caller)
    }
}

/// Returns the number of the module that a call of this name is of, which the name ends in.
pub fn module_number(name: &str) -> Option<u32> {
    let (_, number) = name.strip_prefix(MODULE)?.rsplit_once('_')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Event, ProfileBuilder, StringTable, Thread};

    use super::*;

    #[test]
    fn the_caller_is_the_innermost_call_that_is_still_running() {
        // 1 |---------------------|   0..20
        // 2    |------|               2..10
        // 3      |--|                 4..7      4 |--|  12..15
        let mut builder = ProfileBuilder::new();
        let thread = builder.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device: mindprof_model::DeviceKind::Cpu,
        });
        let name = builder.strings.intern("f");
        let stack = builder.stacks.push(StackId::NONE, name);
        for (start, end) in [(0, 20), (2, 10), (4, 7), (12, 15)] {
            let category = Category::PythonFunction;
            let mut event = Event::new(category, name, thread, Nanos(start), Nanos(end - start));
            event.stack = if start == 0 { StackId::NONE } else { stack };
            builder.add_event(event);
        }
        let calls = PythonCalls::build(&builder.build().unwrap());
        let numbers = [0, 1, 2, 3]
            .map(EventId::from_index)
            .map(|id| (calls.number(id), calls.caller(id)));
        let expected = [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(1))];
        assert_eq!(
            numbers,
            expected.map(|(number, caller)| (Some(number), caller))
        );
    }

    #[test]
    fn a_module_is_numbered_by_the_end_of_its_name() {
        assert_eq!(module_number("nn.Module: Linear_12"), Some(12));
        assert_eq!(module_number("nn.Module: My_Block_0"), Some(0));
        assert_eq!(module_number("train.py(3): step_1"), None);
        assert_eq!(module_number("nn.Module: Linear"), None);
    }
}
