//! Where an event ran or a block of memory lies.

/// The kind of device an event ran on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceKind {
    /// The host processor.
    #[default]
    Cpu,
    /// An accelerator: events there run beside the host's threads, in streams.
    Accelerator,
}
