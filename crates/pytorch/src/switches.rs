//! torch's process-wide switches for the contents of traces, read from the libtorch of this process.
//!
//! Programs set them by functions of `torch._C._profiler`, which has none that return them.

#![expect(
    unsafe_code,
    reason = "a function is called by an address that was looked up by name"
)]

use crate::error::Result;
use crate::symbols::{function, libraries};

/// Returns whether torch's traces have flow events from forward operators to their backward nodes.
/// Returns true, torch's default, if there is no torch or if it lacks the switch.
pub fn has_forward_arrows() -> bool {
    ask().unwrap_or(true)
}

fn ask() -> Result<bool> {
    let libraries = libraries()?;
    let look_up = |name: &_| libraries.iter().find_map(|library| library.get(name));
    // SAFETY: the mangled name states that the function takes no argument, and its result is a
    // boolean in all versions that have the name. It only reads the switch.
    unsafe {
        let is_enabled: unsafe extern "C" fn() -> bool =
            function(&look_up, c"_ZN5torch8profiler4impl19get_fwd_bwd_enabledEv")?;
        Ok(is_enabled())
    }
}
