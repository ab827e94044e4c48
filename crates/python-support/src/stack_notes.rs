//! A hook around calls that leave Python for long: operators in them run without the GIL and find
//! no frame to ask for their stack, so the caller's stack is noted before.
//!
//! The profiler follows Python's calls and registers the hook; the embedded runtime walks its
//! backward graph inside of it.

use std::sync::OnceLock;

/// Calls the action it is given exactly once, with the stack of the calling thread noted.
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
