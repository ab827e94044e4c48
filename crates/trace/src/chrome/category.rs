//! The names of categories and causes of loss in a trace, and the names of events that are hidden.

use mindprof_model::{Category, DeviceKind, LossCause, TensorRole};

/// The name and category of the instant event that represents a memory record.
pub(crate) const MEMORY: &str = "[memory]";
pub(crate) const INSTANT: &str = "cpu_instant_event";

/// The category of the span that shows the recorded window.
pub(super) const WINDOW: &str = "Trace";
/// The process and thread of that span as JSON: the current ones, and those of Kineto in 2021.
pub(super) const WINDOW_TRACKS: [(&[u8], &[u8]); 2] = [
    (b"\"Spans\"", b"\"PyTorch Profiler\""),
    (b"\"Traces\"", b"\"PyTorch Profiler\""),
];

/// The category of CPU waits for a stream, an event or a device.
const WAIT: &str = "cuda_sync";

/// The number of nanoseconds by which a device annotation is extended on each side, so that viewers
/// draw it around its first and last kernels.
pub(super) const DEVICE_ANNOTATION_MARGIN: u64 = 1;

/// Events of the profiler or the framework that no analysis shows.
const HIDDEN: [&str; 7] = [
    "[memory]",
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
];

/// Returns the category and kind of device for a category name.
pub(super) fn from_name(name: &str) -> (Category, DeviceKind) {
    match name {
        "cpu_op" => (Category::Operator, DeviceKind::Cpu),
        "user_annotation" => (Category::Annotation, DeviceKind::Cpu),
        "python_function" => (Category::PythonFunction, DeviceKind::Cpu),
        "cuda_runtime" | "cuda_driver" => (Category::Runtime, DeviceKind::Cpu),
        "kernel" | "gpu_memcpy" | "gpu_memset" => (Category::Kernel, DeviceKind::Cuda),
        // The CPU waits for a stream: it is drawn on the stream's track, but is not device work.
        WAIT => (Category::Other, DeviceKind::Cuda),
        "gpu_user_annotation" => (Category::DeviceAnnotation, DeviceKind::Cuda),
        _ => of_maker(name).unwrap_or((Category::Other, DeviceKind::Cpu)),
    }
}

/// Returns the meaning of a category named after a vendor's runtime: runtime calls or device work.
fn of_maker(name: &str) -> Option<(Category, DeviceKind)> {
    let (maker, what) = name.split_once('_')?;
    let device = match maker {
        // torch treats AMD devices as CUDA devices.
        "hip" => DeviceKind::Cuda,
        _ => other_device(name)?,
    };
    match what {
        "runtime" | "driver" => Some((Category::Runtime, DeviceKind::Cpu)),
        // A CPU process, and counters.
        "workloadd" | "counters" => None,
        _ => Some((Category::Kernel, device)),
    }
}

/// Returns the current name of a category from Kineto's 2021 vocabulary. Other names are returned
/// unchanged.
pub(super) fn present(name: &str) -> &str {
    match name {
        "Operator" => "cpu_op",
        "Runtime" => "cuda_runtime",
        "Kernel" => "kernel",
        "Memcpy" => "gpu_memcpy",
        "Memset" => "gpu_memset",
        name => name,
    }
}

/// Returns whether this is the name of a profiler step.
pub(super) fn is_step(name: &str) -> bool {
    name.starts_with("ProfilerStep#")
}

/// Returns whether a category name is not understood.
pub(super) fn is_unknown(name: &str) -> bool {
    const NEITHER: [&str; 10] = [
        "",
        WAIT,
        WINDOW,
        INSTANT,
        "other",
        "overhead",
        "collective_comm",
        "external_correlation",
        "mtia_workloadd",
        "mtia_counters",
    ];
    of_name(name) == Category::Other && !NEITHER.contains(&name)
}

/// Returns the category for a category name.
pub fn of_name(name: &str) -> Category {
    from_name(name).0
}

/// Returns the name itself if a profile can reproduce it from category and event name, else an
/// empty name.
pub(super) fn known(name: &str) -> &'static str {
    const KNOWN: [&str; 12] = [
        "cpu_op",
        "user_annotation",
        "python_function",
        "cuda_runtime",
        "cuda_driver",
        "xpu_runtime",
        "mtia_runtime",
        "privateuse1_runtime",
        "kernel",
        "gpu_memcpy",
        "gpu_memset",
        "other",
    ];
    KNOWN.into_iter().find(|known| *known == name).unwrap_or("")
}

/// Returns the kind of device that a category name states, if it is not CUDA.
///
/// Names such as `kernel` do not state it.
pub(super) fn other_device(name: &str) -> Option<DeviceKind> {
    let (device, _) = name.split_once('_')?;
    match device {
        "xpu" => Some(DeviceKind::Xpu),
        "mtia" => Some(DeviceKind::Mtia),
        "hpu" => Some(DeviceKind::Hpu),
        "privateuse1" => Some(DeviceKind::PrivateUse1),
        _ => None,
    }
}

/// Returns the category name that a trace shows for an event.
pub fn to_name(category: Category, event_name: &str, device: Option<DeviceKind>) -> &'static str {
    match category {
        Category::Operator => "cpu_op",
        Category::Annotation => "user_annotation",
        Category::PythonFunction => "python_function",
        Category::Runtime if device == Some(DeviceKind::Xpu) => "xpu_runtime",
        Category::Runtime if device == Some(DeviceKind::Mtia) => "mtia_runtime",
        Category::Runtime if device == Some(DeviceKind::PrivateUse1) => "privateuse1_runtime",
        Category::Runtime if is_driver_call(event_name) => "cuda_driver",
        Category::Runtime => "cuda_runtime",
        Category::Kernel if event_name.starts_with("Memcpy") => "gpu_memcpy",
        Category::Kernel if event_name.starts_with("Memset") => "gpu_memset",
        Category::Kernel => "kernel",
        Category::DeviceAnnotation => "gpu_user_annotation",
        Category::Other => "other",
    }
}

fn is_driver_call(name: &str) -> bool {
    name.starts_with("cu") && !name.starts_with("cuda")
}

/// Returns whether an instant event of this name marks the start or end of the window.
pub(super) fn is_mark(name: &str) -> bool {
    name == "Record Window End" || name.starts_with("Iteration Start: ")
}

/// Returns whether events of this name are left out of every analysis.
pub fn is_hidden(name: &str) -> bool {
    HIDDEN.contains(&name)
}

/// Returns the metadata key for a cause of loss.
pub const fn loss_key(cause: LossCause) -> &'static str {
    match cause {
        LossCause::Budget => "budget",
        LossCause::Names => "names",
        LossCause::Depth => "depth",
        LossCause::Unseen => "unseen",
        LossCause::Unreported => "unreported",
        LossCause::Damaged => "damaged",
        LossCause::Workers => "workers",
        LossCause::Collections => "collections",
    }
}

/// Returns the name of a tensor role.
pub(super) const fn role_key(role: TensorRole) -> &'static str {
    match role {
        TensorRole::Parameter => "parameter",
        TensorRole::Gradient => "gradient",
        TensorRole::OptimizerState => "optimizer_state",
    }
}

/// Returns the tensor role of a name.
pub(super) fn role_of(key: &str) -> Option<TensorRole> {
    let mut roles = TensorRole::ALL.into_iter();
    roles.find(|role| role_key(*role) == key)
}
