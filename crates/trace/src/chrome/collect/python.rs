//! Callers of Python functions: a trace gives them by number, a profile by stacks.

use mindprof_model::{Event, StackId, StackTable};
use rustc_hash::FxHashMap;

/// The Python calls so far, with their stacks by call number.
#[derive(Default)]
pub(super) struct PythonCalls {
    inside: ByNumber,
    /// Calls that came before their callers.
    late: Vec<Call>,
}

/// One call: its event, its number and its caller's number. Zero means none.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) event: u32,
    pub(super) number: u64,
    pub(super) caller: u64,
}

impl PythonCalls {
    /// Sets the stack of a call to that of its caller, if the caller is known and the call has
    /// none.
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

    /// Returns whether the stack of a call ends in the line of the call and not just in the name of
    /// its caller. `false` for a call that came before its caller.
    pub(super) fn is_line(&mut self, call: Call, stack: StackId) -> bool {
        call.caller == 0
            || self
                .inside
                .get(call.caller)
                .is_some_and(|inside| inside != stack)
    }

    /// Resolves the calls that came before their callers. Calls are numbered by start, so callers
    /// have lower numbers.
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

/// The number of call numbers in a page.
const PAGE: u64 = 32;

/// The stack inside each call, by call number. Numbers mostly count up, in runs.
#[derive(Default)]
struct ByNumber {
    places: FxHashMap<u64, u32>,
    pages: Vec<[StackId; PAGE as usize]>,
    /// The page looked up last, and its index.
    last: Option<(u64, u32)>,
}

impl ByNumber {
    fn get(&mut self, number: u64) -> Option<StackId> {
        let place = self.place(number / PAGE)?;
        let stack = self.pages[place as usize][(number % PAGE) as usize];
        Some(stack).filter(|&stack| stack != StackId::NONE)
    }

    /// Stores the stack for a number. Zero is ignored.
    fn set(&mut self, number: u64, stack: StackId) {
        if number == 0 {
            return;
        }
        let place = self.place(number / PAGE).unwrap_or_else(|| {
            let place = self.pages.len() as u32;
            self.pages.push([StackId::NONE; PAGE as usize]);
            self.places.insert(number / PAGE, place);
            place
        });
        self.pages[place as usize][(number % PAGE) as usize] = stack;
    }

    fn place(&mut self, page: u64) -> Option<u32> {
        if let Some((last, place)) = self.last
            && last == page
        {
            return Some(place);
        }
        let place = *self.places.get(&page)?;
        self.last = Some((page, place));
        Some(place)
    }
}
