//! A hook around calls that release the GIL for long, such as a backward pass.
//!
//! Operators inside of such a call cannot read a Python frame, so the profiler notes the stack of
//! the call before it begins. The profiler registers the hook, and the embedded runtime calls it.

use std::sync::OnceLock;

/// A function that calls its action exactly once, after noting the stack of the calling thread.
pub type Around = fn(&mut dyn FnMut());

static AROUND: OnceLock<Around> = OnceLock::new();

/// Registers the hook. It is called at import, and later calls are ignored.
pub fn set_around(around: Around) {
    let _ = AROUND.set(around);
}

/// Calls `action`, which releases the GIL, so that operators in it get the stack of this call.
///
/// # Panics
/// Panics if the registered hook does not call its action.
pub fn note_stack_around<T>(action: impl FnOnce() -> T) -> T {
    let Some(around) = AROUND.get() else {
        return action();
    };
    let mut action = Some(action);
    let mut result = None;
    around(&mut || result = action.take().map(|action| action()));
    result.expect("the hook calls its action")
}
