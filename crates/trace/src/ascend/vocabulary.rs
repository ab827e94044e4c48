//! The names that msprof and `torch_npu` give to processes, tasks and ranges.

use mindprof_model::is_step_event;

/// The part of an NPU's profile that a track shows.
///
/// msprof draws each one as a process of its own, although all of them describe one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// The threads of the program.
    Program,
    /// The calls of CANN, the runtime of the NPU, by the threads of the program.
    Cann,
    /// The streams of the NPU.
    Device,
    /// The collectives of HCCL, one track for each group of ranks.
    Collectives,
    /// The copies and waits that a collective consists of.
    CollectiveParts,
    /// Sums that msprof derives from the other tracks, such as the time without work.
    Analysis,
}

impl Layer {
    /// Returns the layer of a process with this name. `None` if it is not a name of msprof's.
    pub(crate) fn of_process(name: &str) -> Option<Self> {
        match name {
            "CANN" => Some(Self::Cann),
            "Overlap Analysis" => Some(Self::Analysis),
            _ if name.starts_with("Ascend Hardware") => Some(Self::Device),
            _ => None,
        }
    }

    /// Returns the layer of a track that [`Self::of_process`] does not know, in a trace in which it
    /// knows others.
    pub(crate) fn beside(process: &str, thread: &str) -> Self {
        match process {
            "HCCL" | "Communication" if thread.starts_with("Group") => Self::Collectives,
            "HCCL" | "Communication" => Self::CollectiveParts,
            _ => Self::Program,
        }
    }
}

/// The tasks in which a stream waits, or marks a place for others to wait for.
const WAITS: [&str; 13] = [
    "CAPTURE_RECORD",
    "CAPTURE_WAIT",
    "EVENT_RECORD",
    "EVENT_RESET",
    "EVENT_WAIT",
    "MODEL_EXECUTE",
    "MODEL_MAINTAINCE",
    "MODEL_MAINTENANCE",
    "NOTIFY",
    "NOTIFY_RECORD",
    "NOTIFY_WAIT",
    "PLACE_HOLDER_SQE",
    "STREAM_ACTIVE",
];

/// Returns whether a task of this type does no work. A task that is no kernel is named by its type.
pub(crate) fn is_wait(task_type: &str) -> bool {
    let upper = task_type.to_ascii_uppercase();
    let bare = upper.strip_suffix("_SQE").unwrap_or(&upper);
    WAITS.contains(&upper.as_str()) || WAITS.contains(&bare)
}

/// Returns the name of a collective without the numbers of its group and call:
/// `hcom_allReduce__428_0_1` is one of `hcom_allReduce_`.
pub(crate) fn collective_name(name: &str) -> &str {
    let is_number = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    match name.find("__") {
        Some(end) if name.starts_with("hcom_") && is_number(&name[end + 2..]) => &name[..=end],
        _ => name,
    }
}

/// Returns whether a range that `torch_npu` records as an operator is one that torch records as a
/// user's range.
pub(crate) fn is_user_range(name: &str) -> bool {
    is_step_event(name)
        || name.starts_with("enumerate(DataLoader)#")
        || name.starts_with("enumerate(DataPipe)#")
        || name.starts_with("Optimizer.step#")
        || name.starts_with("Optimizer.zero_grad#")
}

/// Returns the index of the device that a process stands for. msprof composes the number of a
/// process from that of the program, its sort position and the device: in decimal digits until
/// 2024, in bits since.
pub(crate) fn device_of_process(number: i64, sort_index: Option<i64>) -> u64 {
    let sort_index = sort_index.unwrap_or(-1);
    let device = if (number >> 5) & 31 == sort_index {
        number & 31
    } else if number / 100 % 100 == sort_index {
        number % 100
    } else if (0..32).contains(&number) {
        // It is the device already, in a trace that was written again.
        number
    } else {
        0
    };
    device.unsigned_abs()
}

/// Returns the program among `programs` that a process of msprof's belongs to.
pub(crate) fn process_of(number: i64, programs: &[i64]) -> Option<i64> {
    let composed = [number >> 10, number / 100, number / 10_000];
    let found = composed.into_iter().find(|own| programs.contains(own));
    match programs {
        _ if found.is_some() => found,
        [only] => Some(*only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_processes_contain_devices_and_programs() {
        assert_eq!(device_of_process(800, Some(8)), 0);
        assert_eq!(device_of_process(807, Some(8)), 7);
        let composed = 437_675 << 10 | 13 << 5 | 3;
        assert_eq!(device_of_process(composed, Some(13)), 3);
        assert_eq!(device_of_process(5, Some(13)), 5);
        assert_eq!(device_of_process(composed, None), 0);
        assert_eq!(process_of(43_767_502, &[12, 437_675]), Some(437_675));
        assert_eq!(process_of(composed, &[12, 437_675]), Some(437_675));
        assert_eq!(process_of(7, &[12]), Some(12));
        assert_eq!(process_of(7, &[12, 13]), None);
    }

    #[test]
    fn collectives_lose_their_numbers() {
        assert_eq!(
            collective_name("hcom_allReduce__428_0_1"),
            "hcom_allReduce_"
        );
        for name in ["hcom_allReduce_", "hcom_send__x", "aclnnMm__1", "MatMulV2"] {
            assert_eq!(collective_name(name), name);
        }
    }

    #[test]
    fn waits_are_told_from_work() {
        for wait in [
            "EVENT_WAIT",
            "Notify_Wait",
            "NOTIFY_WAIT_SQE",
            "PLACE_HOLDER_SQE",
        ] {
            assert!(is_wait(wait), "{wait}");
        }
        for work in ["MEMCPY_ASYNC", "AI_CORE", "Other", "MatMulV2", "SDMA_SQE"] {
            assert!(!is_wait(work), "{work}");
        }
    }
}
