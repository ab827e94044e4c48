//! torch's own trace in, torch's own rows and tables out.

use mindprof_analyze::{Average, Averages, GroupBy, Tree, averages};
use mindprof_formats::{SortBy, TableOptions, read_trace_file, shapes_text, table};
use mindprof_model::{Category, DeviceKind, Profile, ProfileBuilder};
use serde_json::Value;

use crate::corpus::Session;

fn rows(profile: &Profile, group_by: GroupBy) -> Averages {
    averages(profile, &Tree::build(profile), group_by)
}

/// torch 2.11 leaves Python functions out before it builds its tree; later ones leave out their rows.
fn as_torch_saw_it(session: Session) -> Profile {
    let profile = read_trace_file(&session.trace_path()).unwrap();
    if session.host != "h200-torch2.11" {
        return profile;
    }
    let mut builder = ProfileBuilder::new();
    builder.strings = profile.strings().clone();
    builder.inputs = profile.inputs().clone();
    for &thread in profile.threads() {
        builder.add_thread(thread);
    }
    for &event in profile.events() {
        if event.category != Category::PythonFunction {
            builder.add_event(event);
        }
    }
    builder.build().unwrap()
}

fn check_rows(session: Session, profile: &Profile, found: &[Average], expected: &[Value]) {
    assert_eq!(found.len(), expected.len(), "{session:?}");
    for (found, expected) in found.iter().zip(expected) {
        let said = format!("{session:?}\nours:  {found:?}\ntorch: {expected}");
        assert_eq!(expected["key"], found.key, "{said}");
        let device = expected["device_type"] != "DeviceType.CPU";
        assert_eq!(device, found.device == DeviceKind::Accelerator, "{said}");
        let annotation = matches!(
            found.category,
            Category::Annotation | Category::DeviceAnnotation
        );
        assert_eq!(expected["is_user_annotation"], annotation, "{said}");
        if let Some(inputs) = found.inputs {
            let shapes = shapes_text(profile.inputs(), inputs).replace(' ', "");
            assert_eq!(expected["input_shapes"].to_string(), shapes, "{said}");
        }
        if device || !has_strangers(session) {
            let (total, own) = (found.cpu_total.0, found.self_cpu_total.0);
            assert_eq!(expected["count"], found.count, "{said}");
            assert_time(&expected["cpu_time_total"], total, found.count, &said);
            assert_time(&expected["self_cpu_time_total"], own, found.count, &said);
        }
    }
}

/// In this session runtime calls came from threads that torch did not follow. It hangs them onto the
/// starting thread, into whatever ran there, and merges and subtracts accordingly; here they stay on
/// their own threads, so rows of the host cannot agree.
fn has_strangers(session: Session) -> bool {
    session.name == "threads-full"
}

/// torch sums floating-point microseconds: a nanosecond per event is what that may cost.
fn assert_time(expected: &Value, found_ns: u64, count: u64, said: &str) {
    let expected_ns = expected.as_f64().unwrap() * 1e3;
    let difference = (expected_ns - found_ns as f64).abs();
    assert!(difference <= count as f64, "{difference} ns apart\n{said}");
}

#[test]
fn rows_are_torchs_rows() {
    for session in Session::ALL {
        let profile = as_torch_saw_it(session);
        let says = session.says();
        let found = rows(&profile, GroupBy::default()).rows;
        check_rows(
            session,
            &profile,
            &found,
            says["default"].as_array().unwrap(),
        );
    }
}

#[test]
fn rows_by_input_shape_are_torchs_rows() {
    let by_shape = GroupBy {
        input_shapes: true,
        ..GroupBy::default()
    };
    let mut checked = 0;
    for session in Session::ALL {
        let says = session.says();
        let Some(expected) = says["by_input_shape"].as_array() else {
            continue;
        };
        if has_strangers(session) {
            continue;
        }
        let profile = as_torch_saw_it(session);
        check_rows(session, &profile, &rows(&profile, by_shape).rows, expected);
        checked += 1;
    }
    assert_eq!(checked, 3);
}

#[test]
fn tables_are_torchs_tables() {
    let session = Session::ALL[0];
    let profile = read_trace_file(&session.trace_path()).unwrap();
    let averages = rows(&profile, GroupBy::default());
    let says = session.says();
    let sorted = |sort_by, row_limit| TableOptions {
        sort_by: Some(sort_by),
        row_limit,
        ..TableOptions::default()
    };
    for (name, options) in [
        ("default", TableOptions::default()),
        (
            "sort:self_cpu_time_total",
            sorted(SortBy::SelfCpuTimeTotal, None),
        ),
        ("sort:count,limit5", sorted(SortBy::Count, Some(5))),
    ] {
        let expected = says["tables"][name].as_str().unwrap();
        let found = table(&profile, &averages, &options);
        assert_eq!(found.lines().count(), expected.lines().count(), "{name}");
        for (found, expected) in found.lines().zip(expected.lines()) {
            let name_cell = found.trim_start().split("  ").next();
            let mut rows = averages.rows.iter();
            let row = rows.find(|row| Some(row.key.as_str()) == name_cell);
            if row.is_some_and(mean_is_halfway) {
                assert_eq!(without_mean(found), without_mean(expected), "{name}");
            } else {
                assert_eq!(found, expected, "{name}");
            }
        }
    }
}

/// Half a nanosecond is rounded up or down by the noise in torch's sum of floating-point numbers.
fn mean_is_halfway(row: &Average) -> bool {
    row.cpu_total.0 % row.count * 2 == row.count
}

/// Cuts the average, the last but one of the columns, out of a line.
fn without_mean(line: &str) -> (&str, &str) {
    let mean_and_calls = 2 * (12 + 2);
    let calls = 12 + 2;
    (
        &line[..line.len() - mean_and_calls],
        &line[line.len() - calls..],
    )
}
