//! Whether torch's own collector is prepared or collecting, for anybody in this process.
//!
//! torch tells it of the calling thread only, and not before a collection has begun.

#![expect(
    unsafe_code,
    reason = "functions are called by addresses that were looked up by name"
)]

use std::ffi::c_void;
use std::sync::OnceLock;

use mindprof_frames::read_words;

use crate::error::Result;
use crate::symbols::{LookUp, function, libraries};

/// Kineto's functions, and the class of its profiler.
struct Kineto {
    /// Returns the interface of Kineto, which lives as long as the process.
    interface: unsafe extern "C" fn() -> *const c_void,
    /// A method of the profiler.
    is_active: unsafe extern "C" fn(*const c_void) -> u8,
    /// The word that an object of the profiler's class begins with.
    class: u64,
}

impl Kineto {
    fn find() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Kineto>> = OnceLock::new();
        FOUND.get_or_init(|| Self::resolve().ok()).as_ref()
    }

    fn resolve() -> Result<Self> {
        /// The first function of a class follows the offset of its object and its type.
        const HEAD: u64 = 2 * size_of::<u64>() as u64;
        let libraries = libraries()?;
        let look_up: LookUp<'_> = &|name| libraries.iter().find_map(|library| library.get(name));
        // SAFETY: the mangled names tell the class and the arguments, and torch is never unloaded. The
        // class is not called, only its address is taken.
        unsafe {
            let class: unsafe extern "C" fn() =
                function(look_up, c"_ZTVN9libkineto21ActivityProfilerProxyE")?;
            Ok(Self {
                interface: function(look_up, c"_ZN9libkineto3apiEv")?,
                is_active: function(look_up, c"_ZN9libkineto21ActivityProfilerProxy8isActiveEv")?,
                class: class as usize as u64 + HEAD,
            })
        }
    }
}

/// Returns whether Kineto is prepared or collecting. `None` if this torch does not tell.
pub fn kineto_is_active() -> Option<bool> {
    let kineto = Kineto::find()?;
    // SAFETY: the function takes no arguments.
    let interface = unsafe { (kineto.interface)() };
    // Its second word is the address of the profiler, which is null before Kineto is used.
    let [_, profiler] = read_words(interface as u64)?;
    if profiler == 0 {
        return Some(false);
    }
    let [class] = read_words(profiler)?;
    // SAFETY: the object is of the class that has the method, and lives as long as the process.
    (class == kineto.class).then(|| unsafe { (kineto.is_active)(profiler as *const c_void) } != 0)
}
