//! Device strings as torch writes and parses them: `cpu`, `cuda:0`.

use mindprof_analyze::{Analysis, MemoryDevice, MemoryPlace};
use mindprof_model::DeviceKind;

use crate::error::{Error, Result};

/// The kinds of devices that torch accepts in a device string, in the order in which its error
/// message lists them. `metal` is not one of them.
const ACCEPTED: [DeviceKind; 20] = [
    DeviceKind::Cpu,
    DeviceKind::Cuda,
    DeviceKind::Ipu,
    DeviceKind::Xpu,
    DeviceKind::Mkldnn,
    DeviceKind::OpenGl,
    DeviceKind::OpenCl,
    DeviceKind::Ideep,
    DeviceKind::Hip,
    DeviceKind::Ve,
    DeviceKind::Fpga,
    DeviceKind::Maia,
    DeviceKind::Xla,
    DeviceKind::Lazy,
    DeviceKind::Vulkan,
    DeviceKind::Mps,
    DeviceKind::Meta,
    DeviceKind::Hpu,
    DeviceKind::Mtia,
    DeviceKind::PrivateUse1,
];

/// Parses a device string. Without an index it stands for the CPU, or for the first device of its
/// kind.
///
/// # Errors
/// If torch accepts no such kind of device, or the index is not a number.
pub fn memory_device(text: &str) -> Result<MemoryDevice> {
    let (name, number) = match text.split_once(':') {
        Some((name, number)) => (name, Some(number)),
        None => (text, None),
    };
    if text.is_empty() {
        return Err(Error::NoDeviceName);
    }
    let Some(kind) = ACCEPTED.into_iter().find(|kind| kind.name() == name) else {
        let known = ACCEPTED.map(DeviceKind::name);
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
        None if kind == DeviceKind::Cpu => MemoryDevice::HOST.index,
        None => 0,
    };
    Ok(MemoryDevice { kind, index })
}

/// Returns the device string of a device.
pub fn memory_device_name(device: MemoryDevice) -> String {
    let name = device.kind.name();
    if device.index < 0 {
        name.into()
    } else {
        format!("{name}:{}", device.index)
    }
}

/// Returns the name of a process's memory on a device, as the profile calls it: `npu:0`. The process
/// is left out if no other process has memory.
pub fn memory_place_name(analysis: &Analysis, place: MemoryPlace) -> String {
    let kind = analysis.profile().device_name(place.device.kind);
    let name = match place.device.index {
        index if index < 0 => kind.to_owned(),
        index => format!("{kind}:{index}"),
    };
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
