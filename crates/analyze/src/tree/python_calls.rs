//! Numbers of Python function calls, as trace files need them: the call's own number, that of its
//! caller, and that of the `nn.Module` instance that is called.

use mindprof_model::{Category, Event, EventId, Nanos, Profile, StackId, module_number};
use rustc_hash::FxHashMap;

/// The numbers of one Python function call.
///
/// torch's traces identify calls by number (`Python id`, `Python parent id`, `Python module id`).
/// Profiles do not store the numbers; [`PythonCalls`] derives them from the nesting of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonCall {
    /// The number of the call, counted from one in start order.
    pub number: u32,
    /// The number of the calling function's call, if it was recorded.
    pub caller: Option<u32>,
    /// The number of the module instance among those of its class, if the call is of a module.
    pub module: Option<u32>,
    /// Whether the innermost frame of its stack is the calling line, and not only the name of its
    /// caller.
    pub has_line: bool,
}

/// Assigns numbers to Python function calls, which are passed in start order.
///
/// It tracks the calls that are open on each thread. Writers of trace files use it in a single pass
/// over the events; [`Self::collect`] numbers all calls at once.
#[derive(Clone, Debug)]
pub struct PythonCalls {
    last: u32,
    /// By thread, the calls that have not ended, outermost first.
    open: Vec<Vec<OpenCall>>,
}

#[derive(Clone, Debug)]
struct OpenCall {
    end: Nanos,
    number: u32,
    /// The stack of its callees, if the profile contains it.
    inside: Option<StackId>,
}

impl PythonCalls {
    /// Starts before the first event of a profile.
    pub fn new(profile: &Profile) -> Self {
        Self {
            last: 0,
            open: vec![Vec::new(); profile.threads().len()],
        }
    }

    /// Returns the numbers of all calls of a profile.
    pub fn collect(profile: &Profile) -> FxHashMap<EventId, PythonCall> {
        let mut calls = Self::new(profile);
        let events = profile.events().iter().enumerate();
        let events = events.filter(|(_, event)| event.category == Category::PythonFunction);
        events
            .map(|(index, event)| (EventId::from_index(index), calls.next(profile, event)))
            .collect()
    }

    /// Returns the numbers of the next call.
    ///
    /// The caller is the innermost open call whose callees have the call's stack, or else the
    /// innermost call around it. A call without a stack has no caller.
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
