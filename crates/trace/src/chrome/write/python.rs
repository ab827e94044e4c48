//! The numbers that identify a Python call, its caller and its module.

use mindprof_model::Event;

use super::Writer;
use super::passthrough::EventPassthrough;
use crate::chrome::keys::ArgumentKey;

impl Writer<'_> {
    /// Writes the line of a call, its number, and the numbers of its caller and module, each
    /// followed by a comma. Returns whether the caller's number implies the whole stack.
    pub(super) fn push_python_numbers(
        &mut self,
        event: &Event,
        passthrough: EventPassthrough,
    ) -> bool {
        let call = self.python.next(self.profile, event);
        let is_free = |key: ArgumentKey| !passthrough.keys.contains(key);
        if call.has_line && is_free(ArgumentKey::CallFrom) {
            self.text.push(self.json.call_place(event.stack));
        }
        if let Some(caller) = call.caller.filter(|_| is_free(ArgumentKey::PythonParent)) {
            self.text.push_argument("Python parent id", caller);
        }
        self.text.push_argument("Python id", call.number);
        if let Some(module) = call.module.filter(|_| is_free(ArgumentKey::PythonModule)) {
            self.text.push_argument("Python module id", module);
        }
        call.caller.is_some() && !call.has_line && is_free(ArgumentKey::PythonParent)
    }
}
