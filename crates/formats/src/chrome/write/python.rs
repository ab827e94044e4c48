//! Numbers by which a trace says which Python function called which, and of which module.

use mindprof_model::{Event, Nanos, Profile, StackId};

use super::Writer;

/// How calls of a module are named: the class, and which of its instances it is.
const MODULE: &str = "nn.Module: ";

/// The calls of Python functions that are going on while the events go by in start order.
#[derive(Debug)]
pub(super) struct PythonNumbers {
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

impl PythonNumbers {
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            last: 0,
            open: vec![Vec::new(); profile.threads().len()],
        }
    }

    /// Returns the number of the next call, from one, and its caller.
    fn next(&mut self, profile: &Profile, event: &Event) -> (u32, Caller) {
        let open = &mut self.open[event.thread.index()];
        while open.pop_if(|call| call.end < event.start).is_some() {}
        let caller = Caller::find(open, event);
        self.last += 1;
        open.push(OpenCall {
            end: event.end(),
            number: self.last,
            inside: profile.stacks().find(event.stack, event.name),
        });
        (self.last, caller)
    }
}

/// Which call a call was made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// None that was seen.
    Unknown,
    /// The frames of stacks are the names of calls, and this call's lead to the stack.
    Named(u32),
    /// The frames of stacks are the lines that calls were made from; this is the innermost call around it.
    Around(Option<u32>),
}

impl Caller {
    fn find(open: &[OpenCall], event: &Event) -> Self {
        if event.stack == StackId::NONE {
            return Self::Unknown;
        }
        let mut calls = open.iter().rev();
        if let Some(call) = calls.find(|call| call.inside == Some(event.stack)) {
            return Self::Named(call.number);
        }
        let around = open.iter().rfind(|call| event.end() <= call.end);
        Self::Around(around.map(|call| call.number))
    }

    fn number(self) -> Option<u32> {
        match self {
            Self::Unknown => None,
            Self::Named(number) => Some(number),
            Self::Around(number) => number,
        }
    }
}

impl Writer<'_> {
    /// Writes where a call was made, its number, those of its caller and of its module, each with a comma after it.
    pub(super) fn push_python_numbers(&mut self, event: &Event) {
        let (number, caller) = self.python.next(self.profile, event);
        if let Caller::Around(_) = caller {
            self.text.push(self.pieces.call_place(event.stack));
        }
        if let Some(caller) = caller.number() {
            self.text.push_argument("Python parent id", caller);
        }
        self.text.push_argument("Python id", number);
        if let Some(module) = module_number(self.profile.name(event)) {
            self.text.push_argument("Python module id", module);
        }
    }
}

/// Returns which instance of its class a call of a module is of.
fn module_number(name: &str) -> Option<u32> {
    let (_, number) = name.strip_prefix(MODULE)?.rsplit_once('_')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_known_by_their_names() {
        assert_eq!(module_number("nn.Module: Linear_12"), Some(12));
        assert_eq!(module_number("nn.Module: Linear"), None);
        assert_eq!(module_number("model.py(3): step_4"), None);
    }
}
