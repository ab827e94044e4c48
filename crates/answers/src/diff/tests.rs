use mindprof_model::{
    Category, DType, Event, InputsEncoder, Part, StringTable, Thread, ThreadId, Timeline,
};
use proptest::prelude::*;

use super::*;

fn diff(before: &Profile, after: &Profile, options: DiffOptions) -> Diff {
    Diff::build(
        &Analysis::build(before.clone()),
        &Analysis::build(after.clone()),
        options,
    )
}

fn describe(diff: &Diff) -> Vec<String> {
    let rows = diff.rows.iter();
    rows.map(|row| {
        let (before, after) = row.values(diff.measure);
        format!("{} {before} -> {after}", row.key)
    })
    .collect()
}

/// Draws operators one after the other.
fn drawn(operators: &[(&str, u64)]) -> Profile {
    Timeline::draw(|time| {
        for (name, nanoseconds) in operators {
            time.op(name, *nanoseconds);
        }
    })
}

/// Adds operators of a name that are given one tensor of some rows each.
fn shaped(operators: &[(&str, u64, usize)]) -> Profile {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    let mut start = 0;
    for &(name, duration, rows) in operators {
        let name = builder.strings.intern(name);
        let mut encoder = InputsEncoder::default();
        encoder.tensor(DType::F32, &[rows, 2], &[2, 1]);
        let mut event = Event::new(
            Category::Operator,
            name,
            thread,
            Nanos(start),
            Nanos(duration),
        );
        event.inputs = builder.inputs.intern(encoder.words());
        builder.add_event(event);
        start += duration;
    }
    builder.into_profile().unwrap()
}

#[test]
fn rows_are_sorted_by_the_size_of_their_change() {
    let before = drawn(&[("same", 50), ("slower", 10), ("faster", 40), ("gone", 5)]);
    let after = drawn(&[("slower", 30), ("same", 50), ("new", 7), ("faster", 10)]);
    let diff = diff(&before, &after, DiffOptions::default());
    assert_eq!(
        describe(&diff),
        [
            "faster 40 -> 10",
            "slower 10 -> 30",
            "new 0 -> 7",
            "gone 5 -> 0",
            "same 50 -> 50",
        ]
    );
    assert!(diff.rows[2].before.is_none() && diff.rows[3].after.is_none());
    assert_eq!(diff.worst().unwrap().key, "slower");
    assert!((diff.growth() - -8.0 / 105.0).abs() < 1e-12);
    assert!((diff.row_growth(&diff.rows[1]) - 20.0 / 105.0).abs() < 1e-12);
}

#[test]
fn shapes_tell_rows_apart_where_both_have_them() {
    let before = shaped(&[("mm", 10, 3), ("mm", 20, 4)]);
    let after = shaped(&[("mm", 10, 3), ("mm", 90, 4)]);
    let by_shapes = diff(&before, &after, DiffOptions::default());
    assert_eq!(describe(&by_shapes), ["mm 20 -> 90", "mm 10 -> 10"]);
    assert_eq!(by_shapes.rows[0].shapes, Some(vec![vec![4, 2]]));
    let by_key = DiffOptions {
        input_shapes: false,
        ..DiffOptions::default()
    };
    assert_eq!(describe(&diff(&before, &after, by_key)), ["mm 30 -> 100"]);
    let without = diff(&before, &drawn(&[("mm", 30)]), DiffOptions::default());
    assert_eq!(describe(&without), ["mm 30 -> 30"]);
    assert!(!without.by_shapes);
}

#[test]
fn self_and_total_time_and_counts_are_measures() {
    let nested = |inner| {
        Timeline::draw(|time| {
            time.scope("outer", |time| {
                time.idle(10);
                time.op("inner", inner);
            });
        })
    };
    let by = |measure| {
        let options = DiffOptions {
            measure,
            ..DiffOptions::default()
        };
        describe(&diff(&nested(5), &nested(9), options))
    };
    assert_eq!(by(Measure::SelfTime), ["inner 5 -> 9", "outer 10 -> 10"]);
    assert_eq!(by(Measure::TotalTime), ["outer 15 -> 19", "inner 5 -> 9"]);
    assert_eq!(by(Measure::Count), ["inner 1 -> 1", "outer 1 -> 1"]);
}

#[test]
fn from_nothing_to_something_is_infinite_growth() {
    let nothing = drawn(&[]);
    let something = drawn(&[("op", 3)]);
    let options = DiffOptions::default();
    assert!(diff(&nothing, &something, options).growth().is_infinite());
    assert!((diff(&something, &nothing, options).growth() + 1.0).abs() < 1e-12);
    assert!(diff(&nothing, &nothing, options).is_none());
}

#[test]
fn annotations_and_operators_of_one_name_are_two_rows() {
    let both = Timeline::draw(|time| {
        time.annotation("step", |time| time.idle(4));
        time.op("step", 4);
    });
    assert_eq!(diff(&both, &both, DiffOptions::default()).rows.len(), 2);
}

fn any_profile() -> impl Strategy<Value = Profile> {
    prop::collection::vec((0..4_usize, 0..50_u64, 1..3_usize), 0..20).prop_map(|operators| {
        let known = ["a", "b", "c", "d"];
        let named: Vec<_> = operators
            .into_iter()
            .map(|(name, duration, rows)| (known[name], duration, rows))
            .collect();
        shaped(&named)
    })
}

fn any_measure() -> impl Strategy<Value = Measure> {
    prop::sample::select(vec![Measure::SelfTime, Measure::TotalTime, Measure::Count])
}

proptest! {
    #[test]
    fn the_other_way_round_it_is_the_negation(
        a in any_profile(), b in any_profile(), measure in any_measure(),
    ) {
        let options = DiffOptions { measure, ..DiffOptions::default() };
        let (there, back) = (diff(&a, &b, options), diff(&b, &a, options));
        prop_assert_eq!((there.before, there.after), (back.after, back.before));
        prop_assert_eq!(there.rows.len(), back.rows.len());
        for (row, other) in there.rows.iter().zip(&back.rows) {
            prop_assert_eq!((&row.key, &row.shapes), (&other.key, &other.shapes));
            prop_assert_eq!((row.before, row.after), (other.after, other.before));
            prop_assert_eq!(row.difference(measure), -other.difference(measure));
        }
    }

    #[test]
    fn nothing_changed_between_a_profile_and_itself(a in any_profile()) {
        let same = diff(&a, &a, DiffOptions::default());
        prop_assert!(same.is_none());
        prop_assert!(same.worst().is_none());
        prop_assert!(same.growth() == 0.0);
    }

    #[test]
    fn rows_sum_to_the_whole(a in any_profile(), b in any_profile()) {
        let diff = diff(&a, &b, DiffOptions::default());
        let sum = |measure| diff.rows.iter().map(|row| row.difference(measure)).sum::<i64>();
        prop_assert_eq!(sum(Measure::Count), diff.after.count as i64 - diff.before.count as i64);
        prop_assert_eq!(sum(Measure::SelfTime), diff.after.host.0 as i64 - diff.before.host.0 as i64);
    }
}

#[test]
fn a_users_range_on_a_device_is_no_work_of_the_device() {
    let mut builder = Part::new();
    let stream = Thread {
        process: 0,
        native: 7,
        name: StringTable::EMPTY,
        device: DeviceKind::Cuda,
    };
    let stream: ThreadId = builder.add_thread(stream);
    for (category, name) in [
        (Category::DeviceAnnotation, "step"),
        (Category::Kernel, "gemm"),
    ] {
        let name = builder.strings.intern(name);
        builder.add_event(Event::new(category, name, stream, Nanos(0), Nanos(8)));
    }
    let profile = builder.into_profile().unwrap();
    let same = diff(&profile, &profile, DiffOptions::default());
    assert_eq!((same.before.device, same.before.host), (Nanos(8), Nanos(0)));
}

#[test]
fn addresses_of_objects_do_not_keep_python_functions_apart() {
    let called = |names: &[&str]| {
        Timeline::draw(|time| {
            for name in names {
                time.event(Category::PythonFunction, name, |time| time.idle(10));
            }
        })
    };
    let before = called(&[
        "<built-in method mm of Tensor object at 0x7f12aB>",
        "<built-in method mm of Tensor object at 0x7f13>",
        "train.py(3): f",
    ]);
    let after = called(&[
        "<built-in method mm of Tensor object at 0x55>",
        "train.py(3): f",
    ]);
    let options = DiffOptions {
        python_functions: true,
        ..DiffOptions::default()
    };
    assert_eq!(
        describe(&diff(&before, &after, options)),
        [
            "<built-in method mm of Tensor object> 20 -> 10",
            "train.py(3): f 10 -> 10",
        ]
    );
    // An operator is named by whoever wrote it.
    let operators = diff(
        &drawn(&[("x at 0x1", 1)]),
        &drawn(&[("x at 0x2", 1)]),
        options,
    );
    assert_eq!(operators.rows.len(), 2);
}

#[test]
fn the_side_that_grew_most_is_found() {
    let (before, after) = (drawn(&[("mm", 10)]), drawn(&[("mm", 15)]));
    let growth = |measure| {
        let options = DiffOptions {
            measure,
            ..DiffOptions::default()
        };
        diff(&before, &after, options).most_grown()
    };
    assert_eq!(growth(Measure::SelfTime), (Side::Host, 0.5));
    assert_eq!(growth(Measure::Count), (Side::Events, 0.0));
}
