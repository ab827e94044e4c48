//! The calls of a device's runtime that wait, copy or take memory, told by their names.

use mindprof_model::Profile;

/// The calls that wait for device work, by the beginnings of their names. Taking and freeing memory
/// waits as well.
const BLOCKING: [&str; 14] = [
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
