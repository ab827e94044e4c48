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

    /// Returns whether the stack of a call ends in the line that it was made from, and not just in
    /// the name of its caller. Of a call that came before its caller it is not known.
    pub(super) fn is_line(&mut self, call: Call, stack: StackId) -> bool {
        call.caller == 0
            || self
                .inside
                .get(call.caller)
                .is_some_and(|inside| inside != stack)
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

/// How many numbers share a page.
const PAGE: u64 = 32;

/// The stack inside of each call, by the call's number. Numbers mostly count up, in runs.
#[derive(Default)]
struct ByNumber {
    places: FxHashMap<u64, u32>,
    pages: Vec<[StackId; PAGE as usize]>,
    /// The page that was looked for last, and where it is.
    last: Option<(u64, u32)>,
}

impl ByNumber {
    fn get(&mut self, number: u64) -> Option<StackId> {
        let place = self.place(number / PAGE)?;
        let stack = self.pages[place as usize][(number % PAGE) as usize];
        Some(stack).filter(|&stack| stack != StackId::NONE)
    }

    /// Keeps the stack of a number, of zero none.
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
