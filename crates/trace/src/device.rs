//! The names that torch gives to kinds of devices: `cpu`, `cuda`.

use mindprof_model::DeviceKind;

/// The kinds of devices, each with its name in torch's Python and its name in torch's `DeviceType`,
/// in the order in which error messages list them.
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

/// torch accepts no device of this name; it is the last one.
const UNLISTED: DeviceKind = DeviceKind::Metal;

fn names(device: DeviceKind) -> (&'static str, &'static str) {
    let found = NAMES.iter().find(|(kind, ..)| *kind == device);
    let (_, name, member) = found.expect("every kind is listed");
    (name, member)
}

/// Returns the name of a kind of device in torch's Python.
///
/// # Panics
/// Never: every kind has a name.
pub fn device_name(device: DeviceKind) -> &'static str {
    names(device).0
}

/// Returns the name of a kind of device in torch's `DeviceType`.
pub fn device_type_name(device: DeviceKind) -> &'static str {
    names(device).1
}

/// Returns whether events on a device of this kind count towards the total device time.
pub fn is_device_work(device: DeviceKind) -> bool {
    matches!(
        device,
        DeviceKind::Cuda | DeviceKind::PrivateUse1 | DeviceKind::Mtia | DeviceKind::Xpu
    )
}

/// Returns the kinds of devices that a device string may name, with their names, in the order in
/// which error messages list them.
pub fn device_names() -> impl Iterator<Item = (DeviceKind, &'static str)> + Clone {
    let listed = NAMES.iter().filter(|(kind, ..)| *kind != UNLISTED);
    listed.map(|&(kind, name, _)| (kind, name))
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
}
