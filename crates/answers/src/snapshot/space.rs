//! How the memory that an allocator holds of a device is divided: in use, rounded up, and free in
//! pieces of which kind.

use mindprof_model::{BlockState, SnapshotDevice, SnapshotSegment};
use serde::Serialize;

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
    /// Segments that are free as a whole: `torch.cuda.empty_cache()` returns them to the device.
    pub cached_bytes: u64,
    /// Free blocks of segments that are partly in use: nobody else can use them.
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
        self.cached_bytes.saturating_add(self.split_bytes)
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
        if segment.pool != (0, 0) {
            add(&mut self.private_bytes, segment.bytes);
        }
        // A segment that grows in place can return any part that is free.
        let is_whole = |state| state == BlockState::Free;
        let is_cached =
            segment.is_expandable || segment.blocks.iter().all(|block| is_whole(block.state));
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
                    if is_cached {
                        add(&mut self.cached_bytes, block.bytes);
                    } else {
                        add(&mut self.split_bytes, block.bytes);
                        self.split_blocks += 1;
                    }
                }
            }
        }
    }
}
