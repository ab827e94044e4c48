//! How the memory that an allocator holds of a device is divided: in use, rounded up, and free in
//! pieces of which kind.

use mindprof_model::{BlockState, SnapshotBlock, SnapshotDevice, SnapshotSegment};
use serde::Serialize;

/// The granularity at which segments that grow in place are mapped and unmapped.
const SMALL_PAGE: u64 = 2 << 20;
const LARGE_PAGE: u64 = 20 << 20;

/// The division of the reserved memory of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Space {
    /// All segments.
    pub reserved_bytes: u64,
    /// Blocks in use, as large as they are.
    pub allocated_bytes: u64,
    /// The part of blocks in use that nobody asked for: sizes are rounded up.
    pub rounding_bytes: u64,
    /// Blocks whose tensors are gone but that another stream may still use.
    pub awaiting_free_bytes: u64,
    /// Segments that are free as a whole, and free pages of segments that grow in place:
    /// `torch.cuda.empty_cache()` returns them to the device.
    pub cached_bytes: u64,
    /// Free blocks in private pools. They are returned only once nothing refers to the pool, which
    /// the snapshot does not tell.
    pub private_free_bytes: u64,
    /// Other free blocks, of segments or pages that are partly in use: nobody else can use them.
    pub split_bytes: u64,
    /// The number of such blocks.
    pub split_blocks: u64,
    /// The largest free block.
    pub largest_free_bytes: u64,
    /// Segments of private pools, such as those of CUDA graphs.
    pub private_bytes: u64,
}

impl Space {
    /// Returns all free bytes.
    pub const fn free_bytes(&self) -> u64 {
        self.cached_bytes
            .saturating_add(self.private_free_bytes)
            .saturating_add(self.split_bytes)
    }

    pub(super) fn of(device: &SnapshotDevice) -> Self {
        let mut space = Self::default();
        for segment in &device.segments {
            space.add(segment);
        }
        space
    }

    fn add(&mut self, segment: &SnapshotSegment) {
        let add = |sum: &mut u64, bytes: u64| *sum = sum.saturating_add(bytes);
        add(&mut self.reserved_bytes, segment.bytes);
        let is_private = segment.pool != (0, 0);
        if is_private {
            add(&mut self.private_bytes, segment.bytes);
        }
        let mut blocks = segment.blocks.iter();
        let is_whole = blocks.all(|block| block.state == BlockState::Free);
        for block in &segment.blocks {
            match block.state {
                BlockState::Allocated => {
                    add(&mut self.allocated_bytes, block.bytes);
                    let rounding = block.bytes.saturating_sub(block.requested);
                    add(&mut self.rounding_bytes, rounding);
                }
                BlockState::AwaitingFree => add(&mut self.awaiting_free_bytes, block.bytes),
                BlockState::Free => {
                    self.largest_free_bytes = self.largest_free_bytes.max(block.bytes);
                    if is_private {
                        add(&mut self.private_free_bytes, block.bytes);
                        continue;
                    }
                    let cached = if segment.is_expandable {
                        whole_pages(segment, block)
                    } else if is_whole {
                        block.bytes
                    } else {
                        0
                    };
                    add(&mut self.cached_bytes, cached);
                    if cached < block.bytes {
                        add(&mut self.split_bytes, block.bytes - cached);
                        self.split_blocks += 1;
                    }
                }
            }
        }
    }
}

/// Returns the bytes of the pages that lie in a block as a whole. Only these can be unmapped.
///
/// ```text
/// pages     |         |         |         |
/// block         |------------------|
/// returned            |---------|
/// ```
const fn whole_pages(segment: &SnapshotSegment, block: &SnapshotBlock) -> u64 {
    let page = if segment.is_large {
        LARGE_PAGE
    } else {
        SMALL_PAGE
    };
    let start = block.address.saturating_sub(segment.address);
    let first = start.div_ceil(page);
    let end = start.saturating_add(block.bytes) / page;
    end.saturating_sub(first) * page
}
