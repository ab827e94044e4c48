//! Who called a Python function: a trace says it by numbers, a profile by stacks.

use mindprof_model::{Event, StackId, StackTable};
use rustc_hash::FxHashMap;

use crate::chrome::event::{RawArguments, number_of};

/// The calls of Python functions so far.
#[derive(Default)]
pub(super) struct PythonCalls {
    calls: Vec<Call>,
}

/// One call: which event it is, its number and its caller's, zero where there is none.
#[derive(Clone, Copy)]
struct Call {
    event: usize,
    number: u64,
    caller: u64,
}

impl PythonCalls {
    /// Takes the numbers of one call.
    pub(super) fn add(&mut self, event: usize, arguments: &RawArguments<'_>) {
        self.calls.push(Call {
            event,
            number: number_of(arguments.python),
            caller: number_of(arguments.python_parent),
        });
    }

    /// Gives each call that does not say it the stack of its callers. Calls are numbered in start order, so callers come
    /// first.
    pub(super) fn fill_stacks<'a>(
        &mut self,
        events: impl Iterator<Item = &'a mut Event>,
        stacks: &mut StackTable,
    ) {
        let mut events: Vec<&mut Event> = events.collect();
        self.calls.sort_by_key(|call| call.number);
        let mut inside: FxHashMap<u64, StackId> = FxHashMap::default();
        for call in &self.calls {
            let event = &mut *events[call.event];
            if event.stack == StackId::NONE {
                event.stack = inside.get(&call.caller).copied().unwrap_or(StackId::NONE);
            }
            let calls = stacks.push(event.stack, event.name);
            if call.number > 0 {
                inside.insert(call.number, calls);
            }
        }
    }
}
