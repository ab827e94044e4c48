//! The names that torch and its collector, Kineto, give to events.
//!
//! Kineto's activity types (`cpu_op`, `kernel`, `cuda_runtime`, …) are the `cat` field of a trace
//! and the `activity_type()` of a raw event. Readers, writers and the live results all translate
//! between these names and [`Category`] here; names of devices are in [`DeviceKind`], names of
//! element types in [`DType`](crate::DType).

use crate::{Category, DeviceKind};

/// The name of a memory record, both as a trace event and as a row of a table.
pub const MEMORY_EVENT: &str = "[memory]";

/// The name of the event that marks a failed allocation.
pub const OUT_OF_MEMORY_EVENT: &str = "[OutOfMemory]";

/// The activity type of instant events, such as memory records.
pub const INSTANT_ACTIVITY: &str = "cpu_instant_event";

/// The activity type of the span that shows how long the profiler recorded.
pub const WINDOW_ACTIVITY: &str = "Trace";

/// The activity type of CPU waits for a stream, an event or a device.
const WAIT_ACTIVITY: &str = "cuda_sync";

/// The prefix of the names of step ranges; the number of the step follows.
const STEP_PREFIX: &str = "ProfilerStep#";

/// The name of the scope that torch opens around a backward node; the node's own name follows.
const BACKWARD_WRAPPER: &str = "autograd::engine::evaluate_function";

/// The beginning of the name of a call of a module: `nn.Module: Linear_0`.
const MODULE: &str = "nn.Module: ";

/// The activity types whose category and device do not follow from a vendor's prefix.
const ACTIVITIES: [(&str, Category, DeviceKind); 12] = [
    ("cpu_op", Category::Operator, DeviceKind::Cpu),
    ("user_annotation", Category::Annotation, DeviceKind::Cpu),
    ("python_function", Category::PythonFunction, DeviceKind::Cpu),
    ("cuda_runtime", Category::Runtime, DeviceKind::Cpu),
    ("cuda_driver", Category::Runtime, DeviceKind::Cpu),
    // An NPU's queue of tasks: a thread adds one, and another thread launches it.
    ("enqueue", Category::Runtime, DeviceKind::Cpu),
    ("dequeue", Category::Runtime, DeviceKind::Cpu),
    ("kernel", Category::Kernel, DeviceKind::Cuda),
    ("gpu_memcpy", Category::Kernel, DeviceKind::Cuda),
    ("gpu_memset", Category::Kernel, DeviceKind::Cuda),
    // The CPU waits for a stream: the event is drawn on the stream's track, but is not its work.
    (WAIT_ACTIVITY, Category::Other, DeviceKind::Cuda),
    (
        "gpu_user_annotation",
        Category::DeviceAnnotation,
        DeviceKind::Cuda,
    ),
];

/// Activity types that are understood although they have no category of their own.
const UNCATEGORIZED_ACTIVITIES: [&str; 10] = [
    "",
    WAIT_ACTIVITY,
    WINDOW_ACTIVITY,
    INSTANT_ACTIVITY,
    "other",
    "overhead",
    "collective_comm",
    "external_correlation",
    "mtia_workloadd",
    "mtia_counters",
];

/// The names of events that the profiler itself leaves behind and that no analysis shows.
const HIDDEN_EVENTS: [&str; 7] = [
    MEMORY_EVENT,
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
];

/// Returns the category and the kind of device that an activity type stands for.
///
/// Unknown types are [`Category::Other`] on the CPU.
pub fn activity_meaning(activity: &str) -> (Category, DeviceKind) {
    let found = ACTIVITIES.iter().find(|(name, ..)| *name == activity);
    found
        .map(|&(_, category, device)| (category, device))
        .or_else(|| vendor_meaning(activity))
        .unwrap_or((Category::Other, DeviceKind::Cpu))
}

/// Returns the category that an activity type stands for.
pub fn activity_category(activity: &str) -> Category {
    activity_meaning(activity).0
}

/// Returns the meaning of an activity type that starts with a vendor's prefix: a call into that
/// vendor's runtime, or the work of its devices.
fn vendor_meaning(activity: &str) -> Option<(Category, DeviceKind)> {
    let (vendor, what) = activity.split_once('_')?;
    let device = match vendor {
        // PyTorch reports AMD's devices as CUDA devices.
        "hip" => DeviceKind::Cuda,
        _ => activity_device(activity)?,
    };
    match what {
        "runtime" | "driver" => Some((Category::Runtime, DeviceKind::Cpu)),
        // A daemon on the CPU, and counters.
        "workloadd" | "counters" => None,
        _ => Some((Category::Kernel, device)),
    }
}

/// Returns the kind of device whose prefix an activity type has, or `None` for CUDA, because
/// `kernel` and its like do not tell the kind.
pub fn activity_device(activity: &str) -> Option<DeviceKind> {
    let (vendor, _) = activity.split_once('_')?;
    match vendor {
        "xpu" => Some(DeviceKind::Xpu),
        "mtia" => Some(DeviceKind::Mtia),
        "hpu" => Some(DeviceKind::Hpu),
        "privateuse1" => Some(DeviceKind::PrivateUse1),
        _ => None,
    }
}

/// Returns today's name of an activity type that Kineto named differently in 2021. Returns all
/// other names unchanged.
pub fn current_activity(activity: &str) -> &str {
    match activity {
        "Operator" => "cpu_op",
        "Runtime" => "cuda_runtime",
        "Kernel" => "kernel",
        "Memcpy" => "gpu_memcpy",
        "Memset" => "gpu_memset",
        name => name,
    }
}

/// Returns whether an activity type is one that Kineto is not known to write.
pub fn is_unknown_activity(activity: &str) -> bool {
    activity_category(activity) == Category::Other && !UNCATEGORIZED_ACTIVITIES.contains(&activity)
}

/// Returns the activity type if [`activity_name`] can produce it from a category, an event name
/// and a kind of device, else an empty text.
pub fn derivable_activity(activity: &str) -> &'static str {
    const DERIVABLE: [&str; 12] = [
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
    let found = DERIVABLE.into_iter().find(|known| *known == activity);
    found.unwrap_or("")
}

/// Returns the activity type that Kineto gives to an event of this category and name.
pub fn activity_name(
    category: Category,
    event_name: &str,
    device: Option<DeviceKind>,
) -> &'static str {
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

/// Returns whether a name is that of a call into CUDA's driver.
fn is_driver_call(name: &str) -> bool {
    name.starts_with("cu") && !name.starts_with("cuda")
}

/// Returns whether a name looks like a call into the runtime or driver of a device, for events
/// that do not tell their activity type.
pub fn is_runtime_call(name: &str) -> bool {
    // CUDA's, ROCm's, and those of XPUs: Unified Runtime and Level Zero.
    ["cuda", "cu", "hip", "ur", "ze"].iter().any(|prefix| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    })
}

/// Returns whether events of this name are left out of every analysis.
pub fn is_hidden_event(name: &str) -> bool {
    HIDDEN_EVENTS.contains(&name)
}

/// Returns whether a name is that of a range around a step of the profiler.
pub fn is_step_event(name: &str) -> bool {
    name.starts_with(STEP_PREFIX)
}

/// Returns the number of the step that a range around it has in its name, or `None` if the name is
/// not that of a step.
pub fn step_number(name: &str) -> Option<u64> {
    name.strip_prefix(STEP_PREFIX)?.parse().ok()
}

/// Returns whether a name is that of an instant event at which the recorded window begins or ends.
pub fn is_window_mark(name: &str) -> bool {
    name == "Record Window End" || name.starts_with("Iteration Start: ")
}

/// Returns whether a scope of this name wraps a node of the backward graph.
pub fn is_backward_wrapper(name: &str) -> bool {
    name.starts_with(BACKWARD_WRAPPER)
}

/// Returns the name of the backward node that a wrapper of this name contains.
pub fn wrapped_node(name: &str) -> Option<&str> {
    name.strip_prefix(BACKWARD_WRAPPER)?.strip_prefix(": ")
}

/// Returns the number of the instance that a call of this name belongs to, if it calls a module.
pub fn module_number(name: &str) -> Option<u32> {
    let (_, number) = name.strip_prefix(MODULE)?.rsplit_once('_')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivable_activities_lead_back_to_themselves() {
        let derived = [
            ("aten::add", None, "cpu_op"),
            ("a range", None, "user_annotation"),
            ("f.py(1): f", None, "python_function"),
            ("cudaLaunchKernel", None, "cuda_runtime"),
            ("cuLaunchKernel", None, "cuda_driver"),
            (
                "urEnqueueKernelLaunch",
                Some(DeviceKind::Xpu),
                "xpu_runtime",
            ),
            ("launch", Some(DeviceKind::Mtia), "mtia_runtime"),
            (
                "launch",
                Some(DeviceKind::PrivateUse1),
                "privateuse1_runtime",
            ),
            ("gemm", None, "kernel"),
            ("Memcpy HtoD (Pageable -> Device)", None, "gpu_memcpy"),
            ("Memset (Device)", None, "gpu_memset"),
            ("[OutOfMemory]", None, "other"),
        ];
        for (event, device, activity) in derived {
            let category = activity_category(activity);
            assert_eq!(activity_name(category, event, device), activity);
            assert_eq!(derivable_activity(activity), activity);
            assert!(!is_unknown_activity(activity), "{activity}");
        }
        assert_eq!(derivable_activity("overhead"), "");
    }

    #[test]
    fn vendors_name_calls_and_work_by_their_prefix() {
        let work = |device| (Category::Kernel, device);
        let call = (Category::Runtime, DeviceKind::Cpu);
        let nothing = (Category::Other, DeviceKind::Cpu);
        for (activity, meaning) in [
            ("xpu_runtime", call),
            ("hip_runtime", call),
            ("mtia_insight", work(DeviceKind::Mtia)),
            ("hpu_op", work(DeviceKind::Hpu)),
            ("hip_ops", work(DeviceKind::Cuda)),
            ("mtia_counters", nothing),
            ("npu_op", nothing),
            ("cuda_sync", (Category::Other, DeviceKind::Cuda)),
        ] {
            assert_eq!(activity_meaning(activity), meaning, "{activity}");
        }
        assert!(is_unknown_activity("npu_op"));
        assert!(!is_unknown_activity("cuda_sync"));
        assert_eq!(
            activity_category(current_activity("Memcpy")),
            Category::Kernel
        );
    }

    #[test]
    fn runtime_calls_are_told_by_their_prefix() {
        for name in [
            "cudaMalloc",
            "cuInit",
            "hipFree",
            "urEnqueueUSMFill",
            "zeInit",
        ] {
            assert!(is_runtime_call(name), "{name}");
        }
        for name in ["custom", "cuda::launch", "urgent", "zero", "aten::add"] {
            assert!(!is_runtime_call(name), "{name}");
        }
    }

    #[test]
    fn a_module_is_numbered_by_the_end_of_its_name() {
        assert_eq!(module_number("nn.Module: Linear_12"), Some(12));
        assert_eq!(module_number("nn.Module: My_Block_0"), Some(0));
        assert_eq!(module_number("train.py(3): step_1"), None);
        assert_eq!(module_number("nn.Module: Linear"), None);
    }
}
