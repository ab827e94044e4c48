//! Categories of older traces and other vendors: device work belongs to a device, and categories
//! that are not understood are reported.

use mindprof_analyze::{Analysis, GroupBy, averages};
use mindprof_answers::Steps;
use mindprof_model::{Category, DeviceKind};
use mindprof_trace::{ReadOptions, Reading, read_trace_with, write_trace};

fn read(text: &[u8]) -> Reading {
    read_trace_with(text, &ReadOptions::default()).unwrap()
}

fn facts(reading: &Reading) -> Vec<(Category, DeviceKind)> {
    let profile = &reading.profile;
    let device = |thread: mindprof_model::ThreadId| profile.threads()[thread.index()].device;
    let events = profile.events().iter();
    events
        .map(|event| (event.category, device(event.thread)))
        .collect()
}

/// The window, a step, an operator, a launch and three kinds of device work, as Kineto wrote them
/// in 2021.
const OLD: &[u8] = br#"{"traceEvents": [
  {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Traces", "tid": "PyTorch Profiler", "ts": 0, "dur": 99, "args": {"Op count": 0}},
  {"ph": "X", "cat": "Operator", "name": "ProfilerStep#5", "pid": 9, "tid": "9", "ts": 0, "dur": 90, "args": {"External id": 1}},
  {"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 9, "tid": "9", "ts": 10, "dur": 20, "args": {"External id": 2}},
  {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": "9", "ts": 12, "dur": 5, "args": {"correlation": 7, "external id": 2}},
  {"ph": "X", "cat": "Kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": 40, "dur": 8, "args": {"stream": 7, "correlation": 7, "external id": 2}},
  {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": "stream 7", "ts": 50, "dur": 3, "args": {"external id": 1}},
  {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 0, "tid": "stream 7", "ts": 55, "dur": 2, "args": {"external id": 1}}]}"#;

#[test]
fn categories_of_2021_are_read_as_what_they_are() {
    let reading = read(OLD);
    let (cpu, cuda) = (DeviceKind::Cpu, DeviceKind::Cuda);
    let expected = [
        (Category::Annotation, cpu),
        (Category::Operator, cpu),
        (Category::Runtime, cpu),
        (Category::Kernel, cuda),
        (Category::Kernel, cuda),
        (Category::Kernel, cuda),
    ];
    assert_eq!(facts(&reading), expected);
    assert!(reading.unknown_categories.is_empty());
    assert_eq!(Steps::build(&reading.profile).complete()[0].number, 5);
    let analysis = Analysis::build(reading.profile);
    let rows = averages(&analysis, GroupBy::default()).rows;
    let operator = rows.iter().find(|row| row.key == "aten::mm").unwrap();
    assert_eq!(operator.sums.device_total.0, 8_000, "its kernel is found");
    let mut written = Vec::new();
    write_trace(analysis.profile(), "trace.json", &mut written).unwrap();
    assert_eq!(facts(&read(&written)), expected);
    let written = String::from_utf8(written).unwrap();
    for category in [
        "cpu_op",
        "user_annotation",
        "cuda_runtime",
        "kernel",
        "gpu_memcpy",
        "gpu_memset",
    ] {
        let found = written.contains(&format!("\"cat\":\"{category}\""))
            || written.contains(&format!("\"cat\": \"{category}\""));
        assert!(found, "{category}: {written}");
    }
}

#[test]
fn work_of_any_maker_is_a_devices() {
    for (category, expected) in [
        ("mtia_ccp_events", (Category::Kernel, DeviceKind::Mtia)),
        ("mtia_runtime", (Category::Runtime, DeviceKind::Cpu)),
        ("mtia_workloadd", (Category::Other, DeviceKind::Cpu)),
        ("hpu_op", (Category::Kernel, DeviceKind::Hpu)),
        ("xpu_kernel", (Category::Kernel, DeviceKind::Xpu)),
        ("xpu_driver", (Category::Runtime, DeviceKind::Cpu)),
        (
            "privateuse1_kernel",
            (Category::Kernel, DeviceKind::PrivateUse1),
        ),
        ("hip_kernel", (Category::Kernel, DeviceKind::Cuda)),
        ("hip_runtime", (Category::Runtime, DeviceKind::Cpu)),
    ] {
        let event = format!(
            r#"{{"ph": "X", "cat": "{category}", "name": "a", "pid": 1, "tid": 2, "ts": 1, "dur": 1}}"#
        );
        let reading = read(format!("[{event}]").as_bytes());
        assert_eq!(facts(&reading), [expected], "{category}");
        assert!(reading.unknown_categories.is_empty(), "{category}");
        let mut written = Vec::new();
        write_trace(&reading.profile, "trace.json", &mut written).unwrap();
        assert_eq!(
            facts(&read(&written)),
            [expected],
            "{category}, written again"
        );
    }
}

#[test]
fn categories_that_are_not_understood_are_counted() {
    let event = |category: &str, start: u32| {
        format!(
            r#"{{"ph": "X", {category} "name": "a", "pid": 1, "tid": 2, "ts": {start}, "dur": 1}}"#
        )
    };
    let events = [
        event(r#""cat": "npu_op","#, 1),
        event(r#""cat": "overhead","#, 2),
        event("", 3),
        event(r#""cat": "npu_op","#, 4),
    ];
    let reading = read(format!("[{}]", events.join(",")).as_bytes());
    assert_eq!(reading.unknown_categories, [("npu_op".to_owned(), 2)]);
}
