//! Kinds of devices, on which events run and memory lies.

/// A kind of device. The numbers are torch's `DeviceType`, which trace files use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DeviceKind {
    /// The CPU.
    #[default]
    Cpu,
    /// A GPU behind CUDA.
    Cuda,
    /// The CPU, through oneDNN.
    Mkldnn,
    /// A GPU behind OpenGL.
    OpenGl,
    /// A device behind `OpenCL`.
    OpenCl,
    /// The CPU, through an older oneDNN.
    Ideep,
    /// A GPU behind HIP.
    Hip,
    /// A field-programmable gate array.
    Fpga,
    /// A MAIA accelerator.
    Maia,
    /// A device behind XLA.
    Xla,
    /// A GPU behind Vulkan.
    Vulkan,
    /// A GPU behind Metal.
    Metal,
    /// A GPU behind SYCL.
    Xpu,
    /// A GPU behind Metal's performance shaders.
    Mps,
    /// No device: shapes without memory.
    Meta,
    /// A Gaudi accelerator.
    Hpu,
    /// A vector engine.
    Ve,
    /// A device behind a lazy backend.
    Lazy,
    /// An intelligence processing unit.
    Ipu,
    /// A training and inference accelerator.
    Mtia,
    /// A device that a third party brings along.
    PrivateUse1,
}

impl DeviceKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 21] = [
        Self::Cpu,
        Self::Cuda,
        Self::Mkldnn,
        Self::OpenGl,
        Self::OpenCl,
        Self::Ideep,
        Self::Hip,
        Self::Fpga,
        Self::Maia,
        Self::Xla,
        Self::Vulkan,
        Self::Metal,
        Self::Xpu,
        Self::Mps,
        Self::Meta,
        Self::Hpu,
        Self::Ve,
        Self::Lazy,
        Self::Ipu,
        Self::Mtia,
        Self::PrivateUse1,
    ];

    /// Returns the kind with this number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the number of the kind.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_kinds() {
        for kind in DeviceKind::ALL {
            assert_eq!(
                DeviceKind::from_number(u64::from(kind.number())),
                Some(kind)
            );
        }
        assert_eq!(DeviceKind::from_number(21), None);
    }
}
