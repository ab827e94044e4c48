//! Kinds of devices, and devices, by the names that torch gives them: `cpu`, `cuda:0`.

use mindprof_analyze::{Analysis, MemoryDevice, MemoryPlace};
use mindprof_model::DeviceKind;

use crate::error::{Error, Result};

/// The kinds of devices, each with its name in torch's Python and as a member of torch's
/// `DeviceType`, in the order in which an error lists them.
const NAMES: [(DeviceKind, &str, &str); 21] = [
    (DeviceKind::Cpu, "cpu", "CPU"),
    (DeviceKind::Cuda, "cuda", "CUDA"),
    (DeviceKind::Ipu, "ipu", "IPU"),
    (DeviceKind::Xpu, "xpu", "XPU"),
    (DeviceKind::Mkldnn, "mkldnn", "MKLDNN"),
    (DeviceKind::OpenGl, "opengl", "OPENGL"),
    (DeviceKind::OpenCl, "opencl", "OPENCL"),
    (DeviceKind::Ideep, "ideep", "IDEEP"),
    (DeviceKind::Hip, "hip", "HIP"),
    (DeviceKind::Ve, "ve", "VE"),
    (DeviceKind::Fpga, "fpga", "FPGA"),
    (DeviceKind::Maia, "maia", "MAIA"),
    (DeviceKind::Xla, "xla", "XLA"),
    (DeviceKind::Lazy, "lazy", "Lazy"),
    (DeviceKind::Vulkan, "vulkan", "Vulkan"),
    (DeviceKind::Mps, "mps", "MPS"),
    (DeviceKind::Meta, "meta", "Meta"),
    (DeviceKind::Hpu, "hpu", "HPU"),
    (DeviceKind::Mtia, "mtia", "MTIA"),
    (DeviceKind::PrivateUse1, "privateuseone", "PrivateUse1"),
    (DeviceKind::Metal, "metal", "Metal"),
];

/// torch takes no device of this name: it is the last.
const UNLISTED: DeviceKind = DeviceKind::Metal;

fn names(device: DeviceKind) -> (&'static str, &'static str) {
    let found = NAMES.iter().find(|(kind, ..)| *kind == device);
    let (_, name, member) = found.expect("every kind is listed");
    (name, member)
}

/// Returns the name that torch's Python knows a kind of device by.
///
/// # Panics
/// Never: every kind has a name.
pub fn device_name(device: DeviceKind) -> &'static str {
    names(device).0
}

/// Returns torch's name of the member of `DeviceType`.
pub(crate) fn device_type_name(device: DeviceKind) -> &'static str {
    names(device).1
}

/// Returns whether what runs on a device of this kind is part of the total of device time.
pub fn is_device_work(device: DeviceKind) -> bool {
    matches!(
        device,
        DeviceKind::Cuda | DeviceKind::PrivateUse1 | DeviceKind::Mtia | DeviceKind::Xpu
    )
}

/// Returns the device that a text names. Without a number it is the host, or the first device of
/// its kind.
///
/// # Errors
/// When there is no such kind of device, or the number is none.
pub fn memory_device(text: &str) -> Result<MemoryDevice> {
    let (name, number) = match text.split_once(':') {
        Some((name, number)) => (name, Some(number)),
        None => (text, None),
    };
    if text.is_empty() {
        return Err(Error::NoDeviceName);
    }
    let listed = NAMES.iter().filter(|(kind, ..)| *kind != UNLISTED);
    let Some((kind, ..)) = listed.clone().find(|(_, known, _)| *known == name) else {
        let known: Vec<_> = listed.map(|(_, name, _)| *name).collect();
        return Err(Error::UnknownDeviceKind {
            name: text.into(),
            expected: known.join(", "),
        });
    };
    let is_plain = |number: &&str| *number == "0" || !number.starts_with(['0', '+', '-']);
    let index = match number {
        Some(number) => Some(number)
            .filter(is_plain)
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| Error::BadDeviceNumber { name: text.into() })?,
        None if *kind == DeviceKind::Cpu => MemoryDevice::HOST.index,
        None => 0,
    };
    Ok(MemoryDevice { kind: *kind, index })
}

/// Returns the name of a device.
pub fn memory_device_name(device: MemoryDevice) -> String {
    let name = device_name(device.kind);
    if device.index < 0 {
        name.into()
    } else {
        format!("{name}:{}", device.index)
    }
}

/// Returns the name of a process's memory on a device: that of the device, where one process alone
/// has memory.
pub fn memory_place_name(analysis: &Analysis, place: MemoryPlace) -> String {
    let name = memory_device_name(place.device);
    let mut places = analysis.memory_timeline().places().into_iter();
    if places.any(|other| other.process != place.process) {
        format!("{name} of process {}", place.process)
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_device_has_its_names() {
        for number in 0..=u8::MAX {
            if let Some(kind) = DeviceKind::from_number(number.into()) {
                let (name, member) = names(kind);
                assert!(member.to_lowercase().starts_with(&name[..2]), "{name}");
            }
        }
    }

    #[test]
    fn devices_have_torchs_names() {
        for name in ["cpu", "cuda:0", "cuda:7", "xpu:1", "privateuseone:2"] {
            assert_eq!(memory_device_name(memory_device(name).unwrap()), name);
        }
        assert_eq!(memory_device_name(memory_device("cuda").unwrap()), "cuda:0");
        let error = |name| memory_device(name).unwrap_err().to_string();
        assert!(error("foo").starts_with("Expected one of cpu, cuda, ipu, xpu, mkldnn,"));
        assert!(error("foo").ends_with(" device type at start of device string: foo"));
        for name in ["cpu:x", "cuda:-1", "cuda:01", "cuda:", "cuda:99999"] {
            assert_eq!(error(name), format!("Invalid device string: '{name}'"));
        }
        assert_eq!(error(""), "Device string must not be empty");
    }
}
