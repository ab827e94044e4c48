//! The names of calls, copies and other work, and the calls that torch's traces leave out.
//!
//! The words are Kineto's, so that profiles of both ways have the same rows.

#![expect(
    unsafe_code,
    reason = "functions are called by addresses that were looked up by name"
)]

use std::ffi::c_void;

use super::interface::Interface;
use crate::symbols::{LookUp, function};

/// The library that a call is made to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Domain {
    Runtime,
    Driver,
}

impl Domain {
    /// Returns CUPTI's number for it.
    pub(super) const fn number(self) -> u32 {
        match self {
            Self::Driver => 1,
            Self::Runtime => 2,
        }
    }
}

/// Calls of the runtime that Kineto leaves out.
const LEFT_OUT: [&str; 6] = [
    "cudaGetDevice",
    "cudaSetDevice",
    "cudaGetLastError",
    "cudaEventCreate",
    "cudaEventCreateWithFlags",
    "cudaEventDestroy",
];

/// Calls of the driver that Kineto shows.
const SHOWN: [&str; 2] = ["cuLaunchKernel", "cuLaunchKernelEx"];

/// Kineto's rules about calls: its own registry if this torch has one.
pub(super) struct CallRules {
    registry: Option<Registry>,
}

/// Kineto's registry of calls, from torch 2.12 on.
struct Registry {
    instance: unsafe extern "C" fn() -> *mut c_void,
    is_left_out: IsSo,
    is_shown: IsSo,
}

/// A method of the registry: the domain (zero for the runtime, one for the driver) and the number of
/// a call.
type IsSo = unsafe extern "C" fn(*mut c_void, u8, u32) -> u8;

impl CallRules {
    pub(super) fn resolve(look_up: LookUp<'_>) -> Self {
        Self {
            registry: Registry::resolve(look_up),
        }
    }

    /// Returns the name of a call as torch shows it, or `None` if torch does not show it.
    pub(super) fn name(
        &self,
        interface: &Interface,
        domain: Domain,
        number: u32,
    ) -> Option<String> {
        let name = interface.call_name(domain.number(), number);
        let name = name.map_or("INVALID", without_version);
        let is_shown = match (&self.registry, domain) {
            (Some(registry), _) => registry.shows(domain, number),
            (None, Domain::Runtime) => !LEFT_OUT.contains(&name),
            (None, Domain::Driver) => SHOWN.contains(&name),
        };
        is_shown.then(|| name.to_owned())
    }

    /// Returns the calls that torch does not show.
    pub(super) fn left_out(&self, interface: &Interface) -> Vec<(Domain, u32)> {
        self.calls(interface, false)
    }

    /// Returns the calls that torch shows.
    pub(super) fn shown(&self, interface: &Interface) -> Vec<(Domain, u32)> {
        self.calls(interface, true)
    }

    fn calls(&self, interface: &Interface, is_shown: bool) -> Vec<(Domain, u32)> {
        /// There are fewer calls of each kind.
        const MOST_CALLS: u32 = 2_000;
        let domains = [Domain::Runtime, Domain::Driver];
        let calls = domains
            .into_iter()
            .flat_map(|domain| (1..MOST_CALLS).map(move |number| (domain, number)));
        let is_wanted = |&(domain, number): &(Domain, u32)| {
            interface.call_name(domain.number(), number).is_some()
                && self.name(interface, domain, number).is_some() == is_shown
        };
        calls.filter(is_wanted).collect()
    }
}

impl Registry {
    fn resolve(look_up: LookUp<'_>) -> Option<Self> {
        // SAFETY: the mangled names contain the arguments' types, and the results are a reference
        // and two booleans in all versions that have them.
        unsafe {
            Some(Self {
                instance: function(look_up, c"_ZN9libkineto17CuptiCbidRegistry8instanceEv").ok()?,
                is_left_out: function(
                    look_up,
                    c"_ZN9libkineto17CuptiCbidRegistry13isBlocklistedENS_14CallbackDomainEj",
                )
                .ok()?,
                is_shown: function(
                    look_up,
                    c"_ZN9libkineto17CuptiCbidRegistry12isRegisteredENS_14CallbackDomainEj",
                )
                .ok()?,
            })
        }
    }

    fn shows(&self, domain: Domain, number: u32) -> bool {
        // SAFETY: the registry is a singleton, which is filled when it is first asked for and not
        // changed afterwards.
        unsafe {
            let registry = (self.instance)();
            match domain {
                Domain::Runtime => (self.is_left_out)(registry, 0, number) == 0,
                Domain::Driver => (self.is_shown)(registry, 1, number) != 0,
            }
        }
    }
}

/// Removes the version of CUDA from the name of a call: `cudaLaunchKernel_v7000`. A version of the
/// call itself (`_v2`) stays; it has fewer digits.
fn without_version(name: &str) -> &str {
    const FEWEST_DIGITS: usize = 4;
    match name.rsplit_once("_v") {
        Some((call, version))
            if version.len() >= FEWEST_DIGITS && version.bytes().all(|it| it.is_ascii_digit()) =>
        {
            call
        }
        _ => name,
    }
}

/// Returns the name of a copy from its direction and its memories.
pub(super) fn copy_name(direction: u8, source: u8, target: u8) -> String {
    let direction = match direction {
        1 => "HtoD",
        2 => "DtoH",
        3 => "HtoA",
        4 => "AtoH",
        5 => "AtoA",
        6 => "AtoD",
        7 => "DtoA",
        8 => "DtoD",
        9 => "HtoH",
        10 => "PtoP",
        _ => "<unknown>",
    };
    let (source, target) = (memory_name(source), memory_name(target));
    format!("Memcpy {direction} ({source} -> {target})")
}

/// Returns the name of a fill of a memory.
pub(super) fn fill_name(memory: u8) -> String {
    format!("Memset ({})", memory_name(memory))
}

const fn memory_name(kind: u8) -> &'static str {
    match kind {
        0 => "Unknown",
        1 => "Pageable",
        2 => "Pinned",
        3 => "Device",
        4 => "Array",
        5 => "Managed",
        6 => "Device Static",
        7 => "Managed Static",
        _ => "Unrecognized",
    }
}

/// A kind of synchronization, by CUPTI's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Synchronization(pub(super) u32);

impl Synchronization {
    /// Returns its name.
    pub(super) const fn name(self) -> &'static str {
        match self.0 {
            1 => "Event Sync",
            2 => "Stream Wait Event",
            3 => "Stream Sync",
            4 => "Context Sync",
            _ => "Unknown Sync",
        }
    }

    /// Returns whether a stream waits for an event.
    pub(super) const fn is_stream_wait(self) -> bool {
        self.0 == 2
    }

    /// Returns whether something waits for an event.
    pub(super) const fn is_for_event(self) -> bool {
        matches!(self.0, 1 | 2)
    }
}

/// Returns the name of work of CUPTI itself.
pub(super) const fn overhead_name(kind: u32) -> &'static str {
    const STEP: u32 = 1 << 16;
    match kind {
        0 => "Unknown",
        1 => "Driver Compiler",
        STEP => "Buffer Flush",
        0x2_0000 => "Instrumentation",
        0x3_0000 => "Resource",
        0x4_0000 => "Runtime Triggered Module Loading",
        0x5_0000 => "Lazy Function Loading",
        0x6_0000 => "Command Buffer Full",
        0x7_0000 => "Activity Buffer Request",
        _ => "Unrecognized",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_cuda_is_no_part_of_a_name() {
        let names = [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync_ptsz"),
            ("cuMemAlloc_v2", "cuMemAlloc_v2"),
            ("cuLaunchKernel", "cuLaunchKernel"),
            ("a_version", "a_version"),
        ];
        for (name, expected) in names {
            assert_eq!(without_version(name), expected);
        }
    }
}
