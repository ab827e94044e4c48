//! Memory that was taken or given back.

use crate::{DeviceKind, Nanos, StackId, ThreadId};

/// One allocation or release of a block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRecord {
    /// When it happened, since the profile's reference time.
    pub time: Nanos,
    /// Where the block lies.
    pub address: u64,
    /// How large it is; negative when it was given back.
    pub bytes: i64,
    /// How much the device's allocator had handed out after it.
    pub total_allocated: u64,
    /// How much the device's allocator held after it.
    pub total_reserved: u64,
    /// The thread that asked.
    pub thread: ThreadId,
    /// Who called.
    pub stack: StackId,
    /// The kind of device the block lies on.
    pub device: DeviceKind,
    /// Which of the devices of that kind; -1 where there is only one.
    pub device_index: i16,
}

/// A record is held once per allocation and once per release, so its size is a promise.
const _: () = assert!(size_of::<MemoryRecord>() <= 56);
