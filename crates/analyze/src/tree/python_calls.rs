//! Numbers for the calls of Python functions: which call is which, which one made it, and of which
//! module it is.

use mindprof_model::{Category, Event, EventId, Nanos, Profile, StackId, module_number};
use rustc_hash::FxHashMap;

/// The numbers of one call of a Python function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonCall {
    /// The number of the call, from one in start order.
    pub number: u32,
    /// The number of the call that it was made from.
    pub caller: Option<u32>,
    /// Which instance of its class the module is, of a call of one.
    pub module: Option<u32>,
    /// Whether the innermost frame of its stack is the line that it was made from, and not just
    /// the name of its caller.
    pub has_line: bool,
}

/// The calls of Python functions that are going on while the events go by in start order.
#[derive(Clone, Debug)]
pub struct PythonCalls {
    last: u32,
    /// By thread, the calls that have not ended, the outermost first.
    open: Vec<Vec<OpenCall>>,
}

#[derive(Clone, Debug)]
struct OpenCall {
    end: Nanos,
    number: u32,
    /// The stack that whatever it calls has, where the profile holds it.
    inside: Option<StackId>,
}

impl PythonCalls {
    /// Makes the numbers of a profile, before its first event.
    pub fn new(profile: &Profile) -> Self {
        Self {
            last: 0,
            open: vec![Vec::new(); profile.threads().len()],
        }
    }

    /// Returns the numbers of all calls.
    pub fn collect(profile: &Profile) -> FxHashMap<EventId, PythonCall> {
        let mut calls = Self::new(profile);
        let events = profile.events().iter().enumerate();
        let events = events.filter(|(_, event)| event.category == Category::PythonFunction);
        events
            .map(|(index, event)| (EventId::from_index(index), calls.next(profile, event)))
            .collect()
    }

    /// Returns the numbers of the next call: its caller is the innermost call around it that leads
    /// to its stack, else the innermost one. A call without a stack is called by nobody.
    ///
    /// ```text
    /// 1 |------------------|      caller of 2: 1, of 3: 2, of 4: 1
    /// 2   |-------|
    /// 3     |--|    4 |-|
    /// ```
    pub fn next(&mut self, profile: &Profile, event: &Event) -> PythonCall {
        let open = &mut self.open[event.thread.index()];
        while open.pop_if(|call| call.end < event.start).is_some() {}
        let has_stack = event.stack != StackId::NONE;
        let mut calls = open.iter().rev().filter(|_| has_stack);
        let leading = calls.find(|call| call.inside == Some(event.stack));
        let around = || open.iter().rfind(|call| event.end() <= call.end);
        let has_line = has_stack && leading.is_none();
        let caller = if has_line { around() } else { leading };
        let caller = caller.map(|call| call.number);
        self.last += 1;
        open.push(OpenCall {
            end: event.end(),
            number: self.last,
            inside: profile.stacks().find(event.stack, event.name),
        });
        PythonCall {
            number: self.last,
            caller,
            module: module_number(profile.name(event)),
            has_line,
        }
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Event, Part, StringTable, Thread};

    use super::*;

    #[test]
    fn the_caller_is_the_innermost_call_that_is_still_running() {
        // 1 |---------------------|   0..20
        // 2    |------|               2..10
        // 3      |--|                 4..7      4 |--|  12..15
        let mut builder = Part::new();
        let thread = builder.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device: mindprof_model::DeviceKind::Cpu,
        });
        let name = builder.strings.intern("f");
        let line = builder.strings.intern("f.py(3): f");
        let stack = builder.stacks.push(StackId::NONE, line);
        for (start, end) in [(0, 20), (2, 10), (4, 7), (12, 15)] {
            let category = Category::PythonFunction;
            let mut event = Event::new(category, name, thread, Nanos(start), Nanos(end - start));
            event.stack = if start == 0 { StackId::NONE } else { stack };
            builder.add_event(event);
        }
        let calls = PythonCalls::collect(&builder.into_profile().unwrap());
        let numbers = [0, 1, 2, 3]
            .map(|index| calls[&EventId::from_index(index)])
            .map(|call| (call.number, call.caller));
        assert_eq!(
            numbers,
            [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(1))]
        );
        let lines = [0, 1, 2, 3].map(|index| calls[&EventId::from_index(index)].has_line);
        assert_eq!(lines, [false, true, true, true]);
    }
}
