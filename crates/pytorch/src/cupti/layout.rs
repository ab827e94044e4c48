//! The layouts of CUPTI's records: the position of each field, by the version of CUPTI.
//!
//! A record grows with the versions, and its fields stay where they are: from CUDA 12.0 to 13.4
//! every position is the same. Records of other versions are not read.

/// The kinds of records that are read.
pub(super) mod kind {
    pub(in super::super) const COPY: u32 = 1;
    pub(in super::super) const FILL: u32 = 2;
    pub(in super::super) const DRIVER: u32 = 4;
    pub(in super::super) const RUNTIME: u32 = 5;
    pub(in super::super) const KERNEL: u32 = 10;
    pub(in super::super) const OVERHEAD: u32 = 17;
    /// A copy between two devices.
    pub(in super::super) const PEER_COPY: u32 = 22;
    pub(in super::super) const CUDA_EVENT: u32 = 36;
    pub(in super::super) const SYNCHRONIZATION: u32 = 38;
}

/// A kernel.
pub(super) mod kernel {
    pub(in super::super) const REGISTERS: usize = 6;
    pub(in super::super) const START: usize = 16;
    pub(in super::super) const END: usize = 24;
    pub(in super::super) const DEVICE: usize = 40;
    pub(in super::super) const CONTEXT: usize = 44;
    pub(in super::super) const STREAM: usize = 48;
    pub(in super::super) const GRID: usize = 52;
    pub(in super::super) const BLOCK: usize = 64;
    pub(in super::super) const STATIC_SHARED: usize = 76;
    pub(in super::super) const DYNAMIC_SHARED: usize = 80;
    pub(in super::super) const CORRELATION: usize = 92;
    pub(in super::super) const NAME: usize = 104;
    pub(in super::super) const QUEUED: usize = 120;
    pub(in super::super) const GRAPH_NODE: usize = 144;
    pub(in super::super) const GRAPH: usize = 156;
    /// From CUDA 13.1 on.
    pub(in super::super) const PRIORITY: usize = 216;
}

/// A copy of memory on one device, and what it has in common with one between two devices.
pub(super) mod copy {
    pub(in super::super) const DIRECTION: usize = 4;
    pub(in super::super) const SOURCE: usize = 5;
    pub(in super::super) const TARGET: usize = 6;
    pub(in super::super) const BYTES: usize = 8;
    pub(in super::super) const START: usize = 16;
    pub(in super::super) const END: usize = 24;
    pub(in super::super) const DEVICE: usize = 32;
    pub(in super::super) const CONTEXT: usize = 36;
    pub(in super::super) const STREAM: usize = 40;
    pub(in super::super) const CORRELATION: usize = 44;
    pub(in super::super) const GRAPH_NODE: usize = 64;
    pub(in super::super) const GRAPH: usize = 72;
}

/// A copy between two devices, as far as it differs.
pub(super) mod peer_copy {
    pub(in super::super) const SOURCE_DEVICE: usize = 44;
    pub(in super::super) const SOURCE_CONTEXT: usize = 48;
    pub(in super::super) const TARGET_DEVICE: usize = 52;
    pub(in super::super) const TARGET_CONTEXT: usize = 56;
    pub(in super::super) const CORRELATION: usize = 60;
    pub(in super::super) const GRAPH_NODE: usize = 72;
    pub(in super::super) const GRAPH: usize = 80;
}

/// A fill of memory, which has the fields of a copy, except its direction and memories.
pub(super) mod fill {
    pub(in super::super) const MEMORY: usize = 50;
}

/// A call of the runtime or the driver.
pub(super) mod call {
    pub(in super::super) const NUMBER: usize = 4;
    pub(in super::super) const START: usize = 8;
    pub(in super::super) const END: usize = 16;
    /// The number of the process in records of CUPTI's own.
    pub(in super::super) const THREAD_HIGH: usize = 24;
    pub(in super::super) const THREAD: usize = 28;
    pub(in super::super) const CORRELATION: usize = 32;
}

/// A synchronization.
pub(super) mod synchronization {
    pub(in super::super) const TYPE: usize = 4;
    pub(in super::super) const START: usize = 8;
    pub(in super::super) const END: usize = 16;
    pub(in super::super) const CORRELATION: usize = 24;
    pub(in super::super) const CONTEXT: usize = 28;
    pub(in super::super) const STREAM: usize = 32;
    pub(in super::super) const EVENT: usize = 36;
}

/// An event that was recorded on a stream.
pub(super) mod cuda_event {
    pub(in super::super) const CORRELATION: usize = 4;
    pub(in super::super) const CONTEXT: usize = 8;
    pub(in super::super) const STREAM: usize = 12;
    pub(in super::super) const EVENT: usize = 16;
}

/// The work of CUPTI itself.
pub(super) mod overhead {
    pub(in super::super) const TYPE: usize = 4;
    pub(in super::super) const START: usize = 24;
    pub(in super::super) const END: usize = 32;
}

/// The differences between the versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Whether kernels have a priority.
    pub(super) has_priority: bool,
}

impl Layout {
    /// Returns the layout of a version of CUPTI, as `cuptiGetVersion` numbers it, if it is known.
    pub(super) fn of_version(version: u32) -> Option<Self> {
        match version {
            // CUDA 12.0 to 12.9.
            18..=28 => Some(Self {
                has_priority: false,
            }),
            // CUDA 13.0 to 13.4.
            130_000..=130_499 => Some(Self {
                has_priority: version >= 130_100,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The versions whose headers were compared.
    const VERSIONS: [u32; 13] = [
        18, 20, 21, 22, 23, 24, 26, 28, 130_001, 130_101, 130_202, 130_301, 130_401,
    ];

    // The numbers on the right are those that `offsetof` gives with the headers of each of the
    // versions, for the newest structure of each kind.
    #[test]
    fn positions_are_those_of_the_headers() {
        use {copy as c, kernel as k, peer_copy as p, synchronization as s};
        let kernel = [k::REGISTERS, k::START, k::END, k::DEVICE, k::CONTEXT];
        assert_eq!(kernel, [6, 16, 24, 40, 44]);
        let kernel = [k::STREAM, k::GRID, k::BLOCK, k::STATIC_SHARED];
        assert_eq!(kernel, [48, 52, 64, 76]);
        let kernel = [k::DYNAMIC_SHARED, k::CORRELATION, k::NAME, k::QUEUED];
        assert_eq!(kernel, [80, 92, 104, 120]);
        assert_eq!([k::GRAPH_NODE, k::GRAPH, k::PRIORITY], [144, 156, 216]);
        let copy = [c::DIRECTION, c::SOURCE, c::TARGET, c::BYTES, c::START];
        assert_eq!(copy, [4, 5, 6, 8, 16]);
        let copy = [c::END, c::DEVICE, c::CONTEXT, c::STREAM, c::CORRELATION];
        assert_eq!(copy, [24, 32, 36, 40, 44]);
        assert_eq!([c::GRAPH_NODE, c::GRAPH, fill::MEMORY], [64, 72, 50]);
        let peer = [p::SOURCE_DEVICE, p::SOURCE_CONTEXT, p::TARGET_DEVICE];
        assert_eq!(peer, [44, 48, 52]);
        let peer = [p::TARGET_CONTEXT, p::CORRELATION, p::GRAPH_NODE, p::GRAPH];
        assert_eq!(peer, [56, 60, 72, 80]);
        let call = [call::NUMBER, call::START, call::END, call::THREAD];
        assert_eq!(call, [4, 8, 16, 28]);
        assert_eq!(call::CORRELATION, 32);
        let synchronization = [s::TYPE, s::START, s::END, s::CORRELATION];
        assert_eq!(synchronization, [4, 8, 16, 24]);
        assert_eq!([s::CONTEXT, s::STREAM, s::EVENT], [28, 32, 36]);
        let event = [
            cuda_event::CORRELATION,
            cuda_event::CONTEXT,
            cuda_event::STREAM,
            cuda_event::EVENT,
        ];
        assert_eq!(event, [4, 8, 12, 16]);
        assert_eq!(
            [overhead::TYPE, overhead::START, overhead::END],
            [4, 24, 32]
        );
    }

    // Kernels have 208 bytes with CUDA 12, 216 with 13.0, and at least 224 from 13.1 on.
    #[test]
    fn a_kernel_has_a_priority_from_cuda_13_1_on() {
        for version in VERSIONS {
            let layout = Layout::of_version(version).unwrap();
            assert_eq!(layout.has_priority, version >= 130_101, "{version}");
        }
    }

    #[test]
    fn unknown_versions_are_refused() {
        for version in [0, 17, 29, 129_999, 130_500, 140_000] {
            assert_eq!(Layout::of_version(version), None, "{version}");
        }
    }
}
