//! Blocks of memory and the changes to them: the data that the timeline consists of.

use mindprof_model::{DeviceKind, EventId, MemoryRecord, Nanos, Profile, StackId};

/// What memory is for. The order is that in which files list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MemoryCategory {
    /// What is trained.
    Parameter,
    /// What an optimizer keeps from one step to the next.
    OptimizerState,
    /// What a program is given from outside.
    Input,
    /// What an operator made and dropped again.
    Temporary,
    /// What forward operators made of inputs and parameters.
    Activation,
    /// The gradients of parameters.
    Gradient,
    /// What the backward pass made on its way.
    AutogradDetail,
    /// What nothing is known of.
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

    /// Returns the place of the category among all.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What happened to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MemoryAction {
    /// It was there before the window opened.
    Preexisting = 1,
    /// It was taken.
    Create,
    /// It was written to, and may be for something else from then on.
    IncrementVersion,
    /// It was given back.
    Destroy,
}

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryDevice {
    /// The kind of device.
    pub kind: DeviceKind,
    /// Which of the devices of that kind; -1 where there is only one.
    pub index: i16,
}

impl MemoryDevice {
    /// The host.
    pub const HOST: Self = Self {
        kind: DeviceKind::Cpu,
        index: -1,
    };
}

/// The memory of one process on one device. Processes have addresses of their own, and workers that
/// were forked often the same ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryPlace {
    /// The process, by the system's number.
    pub process: u64,
    /// The device.
    pub device: MemoryDevice,
}

impl MemoryPlace {
    /// Returns where the block of a record lies.
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

/// A piece of memory from its allocation to its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBlock {
    /// Its address there.
    pub address: u64,
    /// In whose memory it lies, on which device.
    pub place: MemoryPlace,
    /// How large it is.
    pub bytes: u64,
    /// When it was taken; none if that was before the window.
    pub created: Option<Nanos>,
    /// When it was given back; none if it outlives the window.
    pub destroyed: Option<Nanos>,
    /// Whether the profile tells these times. Otherwise a thread whose memory nobody recorded may
    /// have taken it or given it back, and it was certainly there only where it was seen.
    pub are_times_known: bool,
    /// The outermost operator that took it, or else the innermost range that it was taken in.
    pub owner: Option<EventId>,
    /// Who called for it.
    pub stack: StackId,
}

/// One step of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryChange {
    /// When it happened; none before the window.
    pub time: Option<Nanos>,
    /// What happened.
    pub action: MemoryAction,
    /// To which block.
    pub block: u32,
    /// How often the block had been written to before.
    pub version: u32,
    /// How large the block is.
    pub bytes: u64,
    /// What the block was for up to here, or from here on if it begins here.
    pub category: MemoryCategory,
    /// What it is for afterwards: another category only when it was written to.
    pub after: MemoryCategory,
}

/// Bytes by category.
pub type CategoryBytes = [i64; MemoryCategory::ALL.len()];

impl MemoryChange {
    /// Adds to `bytes` what the change does to them.
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
