//! Who called a Python function: a trace says it by numbers, a profile by stacks.

use mindprof_model::{Event, StackId, StackTable};
use rustc_hash::FxHashMap;

/// The calls of Python functions so far.
#[derive(Default)]
pub(super) struct PythonCalls {
    inside: ByNumber,
    /// Calls that came before their callers.
    late: Vec<Call>,
}

/// One call: which event it is, its number and its caller's, zero where there is none.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) event: u32,
    pub(super) number: u64,
    pub(super) caller: u64,
}

impl PythonCalls {
    /// Gives a call that does not say it the stack of its callers, if they are known.
    pub(super) fn add(&mut self, call: Call, event: &mut Event, stacks: &mut StackTable) {
        if event.stack == StackId::NONE && call.caller > 0 {
            let Some(stack) = self.inside.get(call.caller) else {
                self.late.push(call);
                return;
            };
            event.stack = stack;
        }
        let inside = stacks.push(event.stack, event.name);
        self.inside.set(call.number, inside);
    }

    /// Does the same for the calls whose callers came later. Calls are numbered in start order, so
    /// callers have the lower numbers.
    pub(super) fn finish(&mut self, events: &mut [Event], stacks: &mut StackTable) {
        let mut late = std::mem::take(&mut self.late);
        late.sort_by_key(|call| call.number);
        for call in late {
            let event = &mut events[call.event as usize];
            event.stack = self.inside.get(call.caller).unwrap_or(StackId::NONE);
            let inside = stacks.push(event.stack, event.name);
            self.inside.set(call.number, inside);
        }
        self.inside = ByNumber::default();
    }
}

/// The stack inside of each call, by the call's number. Numbers mostly count up from one.
#[derive(Default)]
struct ByNumber {
    dense: Vec<StackId>,
    sparse: FxHashMap<u64, StackId>,
}

impl ByNumber {
    fn get(&self, number: u64) -> Option<StackId> {
        let dense = usize::try_from(number)
            .ok()
            .and_then(|index| self.dense.get(index));
        match dense {
            Some(&stack) if stack != StackId::NONE => Some(stack),
            Some(_) | None => self.sparse.get(&number).copied(),
        }
    }

    /// Keeps the stack of a number, of zero none.
    fn set(&mut self, number: u64, stack: StackId) {
        // Room for the number itself and those that may have been left out below it.
        let most = 2 * self.dense.len() + 1024;
        match usize::try_from(number) {
            Ok(0) => {}
            Ok(index) if index < most => {
                if self.dense.len() <= index {
                    self.dense.resize(index + 1, StackId::NONE);
                }
                self.dense[index] = stack;
            }
            Ok(_) | Err(_) => {
                self.sparse.insert(number, stack);
            }
        }
    }
}
