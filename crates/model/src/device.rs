//! Kinds of devices: where an event ran or a block of memory lies.
//!
//! The numbers and names are those of torch's `DeviceType`. torch has a different list of kinds for
//! each question about devices (time, kernels, memory); each list is a method here.

/// A kind of device, numbered as in torch's `DeviceType`.
///
/// Traces and raw results identify devices by this number, Python and tables by its names.
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
    /// The CPU, through the predecessor of oneDNN.
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
    /// A device of a third-party backend.
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

    /// Returns the kind with a number, or `None` if there is none.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the number of the kind.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the kind with a name of torch's Python, such as `cuda`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the kind with the name of a member of torch's `DeviceType`, such as `CUDA`.
    pub fn from_type_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.type_name() == name)
    }

    /// Returns the name that torch's Python uses in device strings, such as `cuda`.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns the name of the member of torch's `DeviceType`, such as `CUDA`.
    pub const fn type_name(self) -> &'static str {
        self.names().1
    }

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Cpu => ("cpu", "CPU"),
            Self::Cuda => ("cuda", "CUDA"),
            Self::Mkldnn => ("mkldnn", "MKLDNN"),
            Self::OpenGl => ("opengl", "OPENGL"),
            Self::OpenCl => ("opencl", "OPENCL"),
            Self::Ideep => ("ideep", "IDEEP"),
            Self::Hip => ("hip", "HIP"),
            Self::Fpga => ("fpga", "FPGA"),
            Self::Maia => ("maia", "MAIA"),
            Self::Xla => ("xla", "XLA"),
            Self::Vulkan => ("vulkan", "Vulkan"),
            Self::Metal => ("metal", "Metal"),
            Self::Xpu => ("xpu", "XPU"),
            Self::Mps => ("mps", "MPS"),
            Self::Meta => ("meta", "Meta"),
            Self::Hpu => ("hpu", "HPU"),
            Self::Ve => ("ve", "VE"),
            Self::Lazy => ("lazy", "Lazy"),
            Self::Ipu => ("ipu", "IPU"),
            Self::Mtia => ("mtia", "MTIA"),
            Self::PrivateUse1 => ("privateuseone", "PrivateUse1"),
        }
    }

    /// Returns whether the time of events on this kind of device is part of the total device time
    /// of a table.
    pub const fn is_device_work(self) -> bool {
        matches!(
            self,
            Self::Cuda | Self::PrivateUse1 | Self::Mtia | Self::Xpu
        )
    }

    /// Returns whether torch lists events on this kind of device as the `kernels` of the operator
    /// that launched them. Unlike [`DeviceKind::is_device_work`], this leaves out MTIA.
    pub const fn is_listed_kernel(self) -> bool {
        matches!(self, Self::Cuda | Self::PrivateUse1 | Self::Xpu)
    }

    /// Returns whether torch counts blocks on this kind of device as CPU memory or as device
    /// memory, or `None` if it counts them as neither.
    pub const fn memory_side(self) -> Option<MemorySide> {
        match self {
            Self::Cpu | Self::Mkldnn | Self::Ideep => Some(MemorySide::Cpu),
            Self::Cuda | Self::Hip | Self::Xpu | Self::PrivateUse1 => Some(MemorySide::Device),
            Self::OpenGl
            | Self::OpenCl
            | Self::Fpga
            | Self::Maia
            | Self::Xla
            | Self::Vulkan
            | Self::Metal
            | Self::Mps
            | Self::Meta
            | Self::Hpu
            | Self::Ve
            | Self::Lazy
            | Self::Ipu
            | Self::Mtia => None,
        }
    }
}

/// The two sums that torch keeps of memory: `cpu_memory_usage` and `device_memory_usage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySide {
    /// Memory of the CPU.
    Cpu,
    /// Memory of a device.
    Device,
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

    #[test]
    fn names_lead_back_to_their_kinds() {
        for kind in DeviceKind::ALL {
            assert_eq!(DeviceKind::from_name(kind.name()), Some(kind));
            assert_eq!(DeviceKind::from_type_name(kind.type_name()), Some(kind));
        }
        assert_eq!(DeviceKind::from_name("CUDA"), None);
        assert_eq!(DeviceKind::from_type_name("cuda"), None);
    }

    #[test]
    fn each_question_about_devices_has_torchs_list() {
        let kinds = |is_in: fn(DeviceKind) -> bool| {
            let kinds = DeviceKind::ALL.into_iter().filter(|kind| is_in(*kind));
            kinds.map(DeviceKind::name).collect::<Vec<_>>()
        };
        let work = kinds(DeviceKind::is_device_work);
        assert_eq!(work, ["cuda", "xpu", "mtia", "privateuseone"]);
        let kernels = kinds(DeviceKind::is_listed_kernel);
        assert_eq!(kernels, ["cuda", "xpu", "privateuseone"]);
        let on_devices = kinds(|kind| kind.memory_side() == Some(MemorySide::Device));
        assert_eq!(on_devices, ["cuda", "hip", "xpu", "privateuseone"]);
        let on_cpu = kinds(|kind| kind.memory_side() == Some(MemorySide::Cpu));
        assert_eq!(on_cpu, ["cpu", "mkldnn", "ideep"]);
    }
}
