//! Devices by the names that torch gives them: `cpu`, `cuda:0`.

use mindprof_analyze::MemoryDevice;
use mindprof_model::DeviceKind;

use crate::{Error, Result};

/// The kinds of devices with their names, in the order in which an error lists them.
const NAMES: [(DeviceKind, &str); 20] = [
    (DeviceKind::Cpu, "cpu"),
    (DeviceKind::Cuda, "cuda"),
    (DeviceKind::Ipu, "ipu"),
    (DeviceKind::Xpu, "xpu"),
    (DeviceKind::Mkldnn, "mkldnn"),
    (DeviceKind::OpenGl, "opengl"),
    (DeviceKind::OpenCl, "opencl"),
    (DeviceKind::Ideep, "ideep"),
    (DeviceKind::Hip, "hip"),
    (DeviceKind::Ve, "ve"),
    (DeviceKind::Fpga, "fpga"),
    (DeviceKind::Maia, "maia"),
    (DeviceKind::Xla, "xla"),
    (DeviceKind::Lazy, "lazy"),
    (DeviceKind::Vulkan, "vulkan"),
    (DeviceKind::Mps, "mps"),
    (DeviceKind::Meta, "meta"),
    (DeviceKind::Hpu, "hpu"),
    (DeviceKind::Mtia, "mtia"),
    (DeviceKind::PrivateUse1, "privateuseone"),
];

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
    let Some((kind, _)) = NAMES.iter().find(|(_, known)| *known == name) else {
        let known: Vec<_> = NAMES.iter().map(|(_, name)| *name).collect();
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
    let known = NAMES.iter().find(|(kind, _)| *kind == device.kind);
    let name = known.map_or("metal", |(_, name)| name);
    if device.index < 0 {
        name.into()
    } else {
        format!("{name}:{}", device.index)
    }
}
