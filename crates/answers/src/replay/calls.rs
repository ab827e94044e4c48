//! The calls of a device's runtime that wait, copy or take memory, told by their names.

use mindprof_model::{Nanos, Profile};

use super::device_tasks::CLOCK_ERROR;

/// The calls that wait for device work, by the beginnings of their names. Taking and freeing memory
/// waits as well.
const BLOCKING: [&str; 17] = [
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaFree",
    "cudaMalloc",
    "cudaHostAlloc",
    "cuStreamSynchronize",
    "cuCtxSynchronize",
    "cuEventSynchronize",
    "hipDeviceSynchronize",
    "hipStreamSynchronize",
    "hipEventSynchronize",
    "hipFree",
    "hipMalloc",
    "AscendCL@aclrtSynchronize",
    "AscendCL@aclrtFree",
    "AscendCL@aclrtMalloc",
];

/// Returns whether a call of a device's runtime copies memory.
pub(crate) fn is_copy_call(name: &str) -> bool {
    name.contains("Memcpy")
}

/// Returns whether a call of a device's runtime waits for device work.
pub(crate) fn is_blocking_call(name: &str) -> bool {
    BLOCKING.iter().any(|known| name.starts_with(known))
}

/// Returns whether a call waits for all work of a stream or device. Taking memory does not, although
/// device work may end meanwhile.
pub(super) fn waits_for_all(name: &str) -> bool {
    is_blocking_call(name) && !name.contains("Malloc") && !name.contains("HostAlloc")
}

/// Returns whether a call of a device's runtime takes memory from the driver or returns it.
pub(crate) fn is_allocation_call(name: &str) -> bool {
    let allocates = ["Malloc", "Free", "HostAlloc"];
    allocates.iter().any(|part| name.contains(part)) && !name.contains("Async")
}

/// The last piece of a copy from pageable memory is on its way when the call returns: the driver
/// copies it from a buffer of its own. This is the longest that it takes.
const LONGEST_TAIL: Nanos = Nanos(100_000);

/// Returns whether a copy is from or to memory that the device cannot reach by itself, so that the
/// call has to wait for the work before it on the stream and for the copy.
pub(crate) fn is_pageable_copy(name: &str) -> bool {
    name.contains("Pageable")
}

/// Returns whether a call that ended at a time waited for a copy, which it launched.
///
/// ```text
/// call      |--waits for the stream--|--copies--|
/// stream    |======kernel===========||===copy=====|
///                                               '-' at most half of the copy, or the error of a clock
/// ```
pub(crate) fn waited_for_copy(call_end: Nanos, copy: (Nanos, Nanos), is_pageable: bool) -> bool {
    let (begin, end) = copy;
    let tail = if is_pageable {
        LONGEST_TAIL.min(Nanos(end.saturating_sub(begin).0 / 2))
    } else {
        Nanos::ZERO
    };
    end <= call_end.saturating_add(tail.max(CLOCK_ERROR))
}

/// The device work that a call of the runtime waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallWait {
    /// None.
    Nothing,
    /// The copy that it launches.
    Copy,
    /// All work that ends before it returns.
    All,
}

impl CallWait {
    /// Returns the waits of calls by name.
    pub(super) fn of_names(profile: &Profile) -> Vec<Self> {
        profile.strings().iter().map(Self::of).collect()
    }

    fn of(name: &str) -> Self {
        if is_copy_call(name) {
            Self::Copy
        } else if waits_for_all(name) {
            Self::All
        } else {
            Self::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_an_npus_runtime_wait_copy_and_allocate() {
        for name in [
            "AscendCL@aclrtSynchronizeStream",
            "AscendCL@aclrtSynchronizeDevice",
        ] {
            assert!(is_blocking_call(name) && waits_for_all(name), "{name}");
        }
        assert!(is_copy_call("AscendCL@aclrtMemcpy"));
        assert!(is_allocation_call("AscendCL@aclrtMalloc"));
        assert!(!waits_for_all("AscendCL@aclrtMalloc"));
        assert!(!is_blocking_call("AscendCL@aclnnMm"));
    }
}
