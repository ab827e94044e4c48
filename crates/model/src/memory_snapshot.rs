//! A snapshot of torch's caching allocator: what it holds of each device, and what it did lately.
//!
//! `mindprof-trace` reads it from the pickle that `torch.cuda.memory._dump_snapshot` writes, and
//! `mindprof-answers` replays it. It is no profile: it has neither events nor threads.

use crate::{StackId, StackTable, StringTable};

/// A snapshot of a caching allocator. Frames are texts such as `train.py(12): step`, as in profiles,
/// so that the same code decides which of them are the user's own.
#[derive(Clone, Debug, Default)]
pub struct MemorySnapshot {
    /// The devices that have memory or a history, by their number.
    pub devices: Vec<SnapshotDevice>,
    /// The texts of frames.
    pub strings: StringTable,
    /// The stacks of blocks and entries.
    pub stacks: StackTable,
    /// The settings of the allocator.
    pub settings: AllocatorSettings,
    /// Whether the file also has memory of the CPU that is pinned for devices, which is not read.
    pub has_pinned: bool,
}

/// The memory of one device. The history ends where the snapshot was taken, so that the blocks are
/// what its entries lead to.
#[derive(Clone, Debug, Default)]
pub struct SnapshotDevice {
    /// The number of the device.
    pub device: u32,
    /// The memory that the allocator holds of the device.
    pub segments: Vec<SnapshotSegment>,
    /// The history, oldest entry first. It is a ring: older entries may have been overwritten.
    pub entries: Vec<AllocatorEntry>,
}

/// Memory that the allocator took from the driver at once, and its division into blocks.
#[derive(Clone, Debug)]
pub struct SnapshotSegment {
    /// The address of its first byte.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// The stream that it belongs to: blocks serve requests of this stream only.
    pub stream: u64,
    /// The pool that it belongs to. Private pools, such as those of CUDA graphs, are not zero.
    pub pool: (u64, u64),
    /// Whether it serves requests of more than 1 MiB. Small requests have segments of their own.
    pub is_large: bool,
    /// Whether it can grow in place.
    pub is_expandable: bool,
    /// Its blocks by address. Together they are the segment.
    pub blocks: Vec<SnapshotBlock>,
}

/// A part of a segment that is in use or free as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotBlock {
    /// The address of its first byte.
    pub address: u64,
    /// Its size, which is rounded up.
    pub bytes: u64,
    /// The bytes that the program asked for; stale if the block is free.
    pub requested: u64,
    /// Whether it is in use.
    pub state: BlockState,
    /// The stack that allocated it.
    pub stack: StackId,
}

/// Whether a block is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// A tensor uses it.
    Allocated,
    /// Its tensor is gone, but another stream may still use it.
    AwaitingFree,
    /// The allocator keeps it for later requests.
    Free,
}

/// One entry of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatorEntry {
    /// The action.
    pub action: AllocatorAction,
    /// The address; for [`AllocatorAction::OutOfMemory`] the bytes that were free on the device.
    pub address: u64,
    /// The bytes that were asked for, or those of the segment.
    pub bytes: u64,
    /// The time in microseconds since 1970, or zero if the file has none.
    pub time_us: u64,
    /// The stream that asked.
    pub stream: u64,
    /// The stack that asked, if stacks of this action were recorded.
    pub stack: StackId,
}

/// An action of the allocator, as its history names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocatorAction {
    /// It gave memory to the program.
    Alloc,
    /// The program returned memory.
    FreeRequested,
    /// No stream uses the returned memory any more, so that it can be given away again.
    FreeCompleted,
    /// It took a segment from the driver, or mapped more memory into one.
    SegmentAlloc,
    /// It returned a segment to the driver, or unmapped memory of one.
    SegmentFree,
    /// It refused a request.
    OutOfMemory,
    /// Somebody took a snapshot, or marked or annotated the history.
    Mark,
    /// An action that this version does not know.
    Unknown,
}

/// Settings of the allocator that matter for fragmentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatorSettings {
    /// The text of `PYTORCH_ALLOC_CONF`, if the file has it.
    pub text: Option<String>,
    /// Whether segments grow in place, if the file says so.
    pub expandable_segments: Option<bool>,
}
