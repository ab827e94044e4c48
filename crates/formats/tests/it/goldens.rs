//! Compares the rows of torch's own traces with the rows that torch computed for them.

use mindprof_analyze::{Analysis, Average, GroupBy, Metric, averages};
use mindprof_formats::{average_rows, event_rows, shapes_text};
use mindprof_model::DeviceKind;
use mindprof_trace::{ReadOptions, read_trace_file_with};
use serde_json::Value;

use crate::corpus::Session;
use crate::torchs_view::{as_torch_saw_it, torchs_self_times};

const BY_SHAPE: GroupBy = GroupBy {
    input_shapes: true,
    stack_frames: 0,
    python_functions: false,
};
const BY_STACK: GroupBy = GroupBy {
    input_shapes: false,
    stack_frames: 5,
    python_functions: false,
};

fn check_row(
    session: Session,
    analysis: &Analysis,
    found: &Average,
    torchs_self: i64,
    expected: &Value,
) {
    let said = &format!("{session:?}\nours:  {found:?}\ntorch: {expected}");
    assert_eq!(expected["key"], found.key, "{said}");
    assert_eq!(device_of(expected), found.device, "{said}");
    assert_eq!(
        expected["is_user_annotation"],
        found.is_annotation(),
        "{said}"
    );
    let sums = &found.sums;
    assert_eq!(expected["count"], sums.count, "{said}");
    assert_time(
        &expected["self_cpu_time_total"],
        torchs_self,
        sums.count,
        said,
    );
    if !session.has_overlaps() {
        assert_eq!(torchs_self, sums.self_cpu_total.0 as i64, "{said}");
    }
    for (key, time) in [
        ("cpu_time_total", sums.cpu_total),
        ("device_time_total", sums.device_total),
        ("self_device_time_total", sums.self_device_total),
    ] {
        assert_time(
            &expected[key],
            time.0 as i64,
            sums.count,
            &format!("{key}: {said}"),
        );
    }
    for (key, number) in [
        ("cpu_memory_usage", sums.memory.host),
        ("self_cpu_memory_usage", sums.self_memory.host),
        ("device_memory_usage", sums.memory.device),
        ("self_device_memory_usage", sums.self_memory.device),
        ("flops", sums.flops as i64),
    ] {
        assert_eq!(expected[key], number, "{key}: {said}");
    }
    if let Some(inputs) = found.inputs {
        let shapes = shapes_text(analysis.profile().inputs(), inputs).replace(' ', "");
        assert_eq!(expected["input_shapes"].to_string(), shapes, "{said}");
    }
}

/// torch sums floating-point microseconds, which may be off by a nanosecond per event.
fn assert_time(expected: &Value, found_ns: i64, count: u64, said: &str) {
    let expected_ns = expected.as_f64().unwrap() * 1e3;
    let difference = (expected_ns - found_ns as f64).abs();
    assert!(difference <= count as f64, "{difference} ns apart\n{said}");
}

fn device_of(row: &Value) -> DeviceKind {
    if row["device_type"] == "DeviceType.CPU" {
        DeviceKind::Cpu
    } else {
        DeviceKind::Cuda
    }
}

fn rows_agree(grouping: &str, group_by: GroupBy) -> usize {
    let mut checked = 0;
    for session in Session::ALL {
        let says = session.says();
        let Some(expected) = says[grouping].as_array() else {
            continue;
        };
        let analysis = Analysis::build(as_torch_saw_it(session));
        let averages = averages(&analysis, group_by);
        let texts = average_rows(&analysis, &averages, group_by);
        let own = torchs_self_times(&analysis, group_by);
        assert_eq!(own.len(), texts.len(), "{session:?}");
        let found = averages.rows.iter().zip(&texts).zip(own);
        assert_eq!(found.len(), expected.len(), "{session:?}");
        for (((found, texts), own), expected) in found.zip(expected) {
            let said = format!("{session:?}\n{expected}");
            check_row(session, &analysis, found, own, expected);
            let frames: Vec<Value> = texts.stack.iter().map(|frame| (&**frame).into()).collect();
            assert_eq!(expected["stack"], Value::from(frames), "{said}");
        }
        checked += 1;
    }
    checked
}

#[test]
fn recorded_traces_are_read_without_a_complaint() {
    for session in Session::ALL {
        let reading = read_trace_file_with(&session.trace_path(), &ReadOptions::default()).unwrap();
        let told: Vec<_> = reading.repairs.iter().collect();
        assert_eq!(told, [], "{session:?}");
        assert!(reading.left_out.is_empty(), "{session:?}");
        assert_eq!(reading.profile.loss().total(), 0, "{session:?}");
    }
}

#[test]
fn rows_are_torchs_rows() {
    assert_eq!(rows_agree("default", GroupBy::default()), 6);
}

#[test]
fn rows_by_input_shape_are_torchs_rows() {
    assert_eq!(rows_agree("by_input_shape", BY_SHAPE), 4);
}

#[test]
fn rows_by_stack_are_torchs_rows() {
    assert_eq!(rows_agree("by_stack_5", BY_STACK), 4);
}

/// Self times differ because overlapping children count once here, and twice in torch.
#[test]
fn events_are_torchs_events() {
    for session in Session::ALL {
        let analysis = Analysis::build(as_torch_saw_it(session));
        let says = session.says();
        let expected = says["event_list"].as_array().unwrap();
        let found = event_rows(&analysis);
        assert_eq!(found.len(), expected.len(), "{session:?}");
        for (found, expected) in found.iter().zip(expected) {
            let said = format!("{session:?}\nours:  {found:?}\ntorch: {expected}");
            assert_eq!(expected["name"], *found.name, "{said}");
            let close =
                |key: &str, found: f64| (expected[key].as_f64().unwrap() - found).abs() < 0.002;
            for metric in [Metric::CpuTimeTotal, Metric::DeviceTimeTotal] {
                assert!(close(metric.name(), found.float(metric)), "{said}");
            }
            for metric in [Metric::CpuMemoryUsage, Metric::SelfDeviceMemoryUsage] {
                let bytes = found.amounts[metric].whole();
                assert_eq!(expected[metric.name()], bytes, "{said}");
            }
            assert_eq!(expected["parent"].is_null(), !found.has_parent, "{said}");
            let frames: Vec<Value> = found.stack.iter().map(|frame| (&**frame).into()).collect();
            let shown = frames.len().min(6);
            assert_eq!(expected["stack"], Value::from(&frames[..shown]), "{said}");
        }
    }
}
