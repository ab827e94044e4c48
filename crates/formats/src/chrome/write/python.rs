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

    /// Returns the number of the next call, from one, and that of its caller: the innermost call around it that
    /// leads to its stack, else the innermost one.
    fn next(&mut self, profile: &Profile, event: &Event) -> (u32, Option<u32>) {
        let open = &mut self.open[event.thread.index()];
        while open.pop_if(|call| call.end < event.start).is_some() {}
        let caller = if event.stack == StackId::NONE {
            None
        } else {
            let mut calls = open.iter().rev();
            let leading = calls.find(|call| call.inside == Some(event.stack));
            leading.or_else(|| open.iter().rfind(|call| event.end() <= call.end))
        };
        let caller = caller.map(|call| call.number);
        self.last += 1;
        open.push(OpenCall {
            end: event.end(),
            number: self.last,
            inside: profile.stacks().find(event.stack, event.name),
        });
        (self.last, caller)
    }
}

impl Writer<'_> {
    /// Writes the number of a call, of its caller and of its module, each with a comma after it.
    pub(super) fn push_python_numbers(&mut self, event: &Event) {
        let (number, caller) = self.python.next(self.profile, event);
        if let Some(caller) = caller {
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
