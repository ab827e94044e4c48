//! Blocks of memory and the changes to them: the data that the timeline consists of.

use mindprof_model::{DeviceKind, EventId, MemoryRecord, Nanos, Profile, StackId};

/// The purpose of a block of memory.
///
/// The categories are those of torch's memory timeline. They are in the order in which files list
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MemoryCategory {
    /// A parameter of the model.
    Parameter,
    /// State that an optimizer keeps from one step to the next.
    OptimizerState,
    /// Data from outside that takes part in training.
    Input,
    /// Memory that was allocated and freed within one operation.
    Temporary,
    /// Results of forward operators, made from inputs and parameters.
    Activation,
    /// A gradient of a parameter.
    Gradient,
    /// Intermediate results of the backward pass.
    AutogradDetail,
    /// Memory of unknown purpose.
    Unknown,
}

impl MemoryCategory {
    /// Every category, in order.
    pub const ALL: [Self; 8] = [
        Self::Parameter,
        Self::OptimizerState,
        Self::Input,
        Self::Temporary,
        Self::Activation,
        Self::Gradient,
        Self::AutogradDetail,
        Self::Unknown,
    ];

    /// Returns the position of the category in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The kind of a change to a block.
///
/// The names and numbers are those of the actions in torch's memory profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MemoryAction {
    /// The block existed before the window opened.
    Preexisting = 1,
    /// The block was allocated.
    Create,
    /// The block was written to, which may change its category.
    IncrementVersion,
    /// The block was freed.
    Destroy,
}

/// The device that a block is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryDevice {
    /// The kind of device.
    pub kind: DeviceKind,
    /// The index among the devices of that kind, or -1 if there is only one.
    pub index: i16,
}

impl MemoryDevice {
    /// The CPU.
    pub const HOST: Self = Self {
        kind: DeviceKind::Cpu,
        index: -1,
    };
}

/// The memory of one process on one device.
///
/// Blocks are told apart by their addresses, which are unique only within such a place: processes
/// have separate address spaces, and forked workers often use the same addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryPlace {
    /// The id of the process.
    pub process: u64,
    /// The device.
    pub device: MemoryDevice,
}

impl MemoryPlace {
    /// Returns the place of a memory record's block.
    pub(super) fn of(profile: &Profile, record: &MemoryRecord) -> Self {
        Self {
            process: profile.threads()[record.thread.index()].process,
            device: MemoryDevice {
                kind: record.device,
                index: record.device_index,
            },
        }
    }
}

/// A block of memory from its allocation to its release.
///
/// Blocks are derived from memory records and from the addresses of tensors that operators used, so
/// either end of the lifetime may be missing. An address that is freed and allocated again is a new
/// block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBlock {
    /// The address of the block.
    pub address: u64,
    /// The process and device that it belongs to.
    pub place: MemoryPlace,
    /// The size of the block.
    pub bytes: u64,
    /// The time of its allocation, or `None` if that was before the window.
    pub created: Option<Nanos>,
    /// The time of its release, or `None` if it outlives the window.
    pub destroyed: Option<Nanos>,
    /// Whether these times are known. If not, a thread whose memory was not recorded may have
    /// allocated or freed the block, which certainly existed only while it was seen in use.
    pub are_times_known: bool,
    /// The outermost operator that allocated it, or else the innermost range around its allocation.
    pub owner: Option<EventId>,
    /// The stack of its allocation.
    pub stack: StackId,
}

impl MemoryBlock {
    /// Returns whether this is no block, but the part of an allocator's total that is in no known
    /// block. Each point of the total has one of its own.
    pub fn is_rest_of_total(&self) -> bool {
        self.address == 0 && self.place.device.kind == DeviceKind::PrivateUse1
    }
}

/// One change of the timeline: a block appears, is written to, or disappears.
///
/// A running sum of changes ([`Self::apply`]) is the memory of each category over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryChange {
    /// The time of the change, or `None` if it was before the window.
    pub time: Option<Nanos>,
    /// The kind of change.
    pub action: MemoryAction,
    /// The position of the block in the timeline's list of blocks.
    pub block: u32,
    /// The number of writes to the block before this change.
    pub version: u32,
    /// The size of the block.
    pub bytes: u64,
    /// The block's category up to this change, or from this change on if the block begins here.
    pub category: MemoryCategory,
    /// The block's category after this change. It differs from `category` only for writes.
    pub after: MemoryCategory,
}

/// Bytes by category.
pub type CategoryBytes = [i64; MemoryCategory::ALL.len()];

impl MemoryChange {
    /// Applies the change to a running sum.
    pub fn apply(&self, bytes: &mut CategoryBytes) {
        let size = self.bytes as i64;
        match self.action {
            MemoryAction::Preexisting | MemoryAction::Create => {
                bytes[self.category.index()] += size;
            }
            MemoryAction::IncrementVersion => {
                bytes[self.category.index()] -= size;
                bytes[self.after.index()] += size;
            }
            MemoryAction::Destroy => bytes[self.category.index()] -= size,
        }
    }
}
