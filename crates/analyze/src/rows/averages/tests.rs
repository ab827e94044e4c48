use mindprof_model::{
    DType, Event, InputsEncoder, Links, MemoryRecord, Part, Profile, StringTable, Thread, ThreadId,
    Timeline,
};
use proptest::prelude::*;

use super::*;

fn of(profile: &Profile, group_by: GroupBy) -> Averages {
    averages(&Analysis::build(profile.clone()), group_by)
}

fn describe(averages: &Averages) -> Vec<String> {
    averages
        .rows
        .iter()
        .map(|row| {
            format!(
                "{} x{} total {} self {}",
                row.key, row.sums.count, row.sums.cpu_total.0, row.sums.self_cpu_total.0
            )
        })
        .collect()
}

fn builder_with_thread(device: DeviceKind) -> (Part, ThreadId) {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device,
    });
    (builder, thread)
}

// ProfilerStep#1 |------|                 0..30
// op               |-|                   10..20
// ProfilerStep#2          |------|       30..50
// op                        |-|          30..35
#[test]
fn events_of_one_key_are_summed_in_order_of_first_occurrence() {
    let profile = Timeline::draw(|time| {
        time.annotation("ProfilerStep#1", |time| {
            time.idle(10);
            time.op("op", 10);
            time.idle(10);
        });
        time.annotation("ProfilerStep#2", |time| {
            time.op("op", 5);
            time.idle(15);
        });
    });
    let averages = of(&profile, GroupBy::default());
    assert_eq!(
        describe(&averages),
        [
            "ProfilerStep* x2 total 50 self 35",
            "op x2 total 15 self 15"
        ]
    );
    assert_eq!(averages.self_cpu_total(), Nanos(50));
    let total = averages.total();
    assert_eq!(
        (total.key.as_str(), total.sums.count, total.sums.cpu_total),
        ("Total", 4, Nanos(65))
    );
}

// note (annotation)  |-----|        0..10
// note (operator)          |-|     10..12
#[test]
fn an_annotation_and_an_operator_of_one_name_are_two_rows() {
    let profile = Timeline::draw(|time| {
        time.annotation("note", |time| time.idle(10));
        time.op("note", 2);
    });
    assert_eq!(
        describe(&of(&profile, GroupBy::default())),
        ["note x1 total 10 self 10", "note x1 total 2 self 2"]
    );
}

// f (Python)  |-----|    0..10
// op            |-|      3..5
#[test]
fn python_functions_are_left_out_unless_asked_for() {
    let profile = Timeline::draw(|time| {
        time.event(Category::PythonFunction, "f", |time| {
            time.idle(3);
            time.op("op", 2);
            time.idle(5);
        });
    });
    assert_eq!(
        describe(&of(&profile, GroupBy::default())),
        ["op x1 total 2 self 2"]
    );
    let with_python = GroupBy {
        python_functions: true,
        ..GroupBy::default()
    };
    assert_eq!(
        describe(&of(&profile, with_python)),
        ["f x1 total 10 self 8", "op x1 total 2 self 2"]
    );
}

#[test]
fn a_device_event_takes_no_cpu_time() {
    let (mut builder, stream) = builder_with_thread(DeviceKind::Cuda);
    let name = builder.strings.intern("kernel");
    builder.add_event(Event::new(
        Category::Kernel,
        name,
        stream,
        Nanos(0),
        Nanos(9),
    ));
    let profile = builder.into_profile().unwrap();
    assert_eq!(
        describe(&of(&profile, GroupBy::default())),
        ["kernel x1 total 0 self 0"]
    );
}

// host    op      |---------|            0..20    external id 7
//         inner      |---|              5..10    external id 8
// device  kernel            |----|     12..22    for op
//         kernel                  |--| 30..33    for inner
#[test]
fn device_time_is_summed_over_children() {
    let (mut builder, thread) = builder_with_thread(DeviceKind::Cpu);
    let stream = builder.add_thread(Thread {
        process: 0,
        native: 7,
        name: StringTable::EMPTY,
        device: DeviceKind::Cuda,
    });
    for (name, category, thread, start, end, external) in [
        ("op", Category::Operator, thread, 0, 20, 7),
        ("inner", Category::Operator, thread, 5, 10, 8),
        ("kernel", Category::Kernel, stream, 12, 22, 7),
        ("kernel", Category::Kernel, stream, 30, 33, 8),
    ] {
        let name = builder.strings.intern(name);
        let event = Event::new(category, name, thread, Nanos(start), Nanos(end - start));
        builder.add_linked_event(event, Links::new(external, 0));
    }
    let rows = of(&builder.into_profile().unwrap(), GroupBy::default()).rows;
    let times: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.key.as_str(),
                row.sums.device_total.0,
                row.sums.self_device_total.0,
            )
        })
        .collect();
    assert_eq!(times, [("op", 13, 10), ("inner", 3, 3), ("kernel", 13, 13)]);
}

// a |---|          0..10
//         x        15      a memory record outside all events
// b          |--|  20..30
#[test]
fn memory_that_no_event_claims_is_a_row() {
    let (mut builder, thread) = builder_with_thread(DeviceKind::Cpu);
    for (name, start) in [("a", 0), ("b", 20)] {
        let name = builder.strings.intern(name);
        builder.add_event(Event::new(
            Category::Operator,
            name,
            thread,
            Nanos(start),
            Nanos(10),
        ));
    }
    builder.add_memory(MemoryRecord {
        time: Nanos(15),
        address: 1,
        bytes: 64,
        total_allocated: 64,
        total_reserved: 0,
        thread,
        stack: StackId::NONE,
        device: DeviceKind::Cpu,
        device_index: -1,
    });
    let rows = of(&builder.into_profile().unwrap(), GroupBy::default()).rows;
    let keys: Vec<_> = rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["a", "[memory]", "b"]);
    assert_eq!((rows[1].sums.count, rows[1].sums.self_memory.host), (1, 64));
}

// op |--|     0..1
// op |----|   4..7 and so on: durations 1 to 100
#[test]
fn percentiles_are_times_that_occur() {
    let profile = Timeline::draw(|time| {
        for duration in 1..=100 {
            time.op("op", duration);
        }
        time.op("once", 5);
    });
    let found = percentiles(&Analysis::build(profile), GroupBy::default());
    let [many, once] = found.as_slice() else {
        panic!("two rows: {found:?}")
    };
    let times = [many.p50, many.p90, many.p99, many.max].map(|time| time.0);
    assert_eq!(times, [50, 90, 99, 100]);
    assert_eq!((once.p50, once.max), (Nanos(5), Nanos(5)));
    assert_eq!(Percentiles::of(&mut []), Percentiles::default());
}

#[test]
fn a_percentile_is_told_if_two_times_lie_beyond() {
    for told in Percentiles::TOLD {
        let beyond = |count: usize| count - (count * told.percent as usize).div_ceil(100);
        assert_eq!((beyond(told.least), beyond(told.least - 1)), (2, 1));
        assert_eq!(told.name, format!("p{}", told.percent));
    }
    let names = |count| -> Vec<_> {
        let told = Percentiles::default().told(count);
        told.map(|(name, _)| name).collect()
    };
    assert!(names(19).is_empty());
    assert_eq!(names(20), ["p90"]);
    assert_eq!(names(200), ["p90", "p99"]);
}

#[test]
fn shapes_tell_rows_apart_and_values_do_not() {
    let (mut builder, thread) = builder_with_thread(DeviceKind::Cpu);
    let name = builder.strings.intern("op");
    for (start, dims, dtype, value) in [
        (0, [2, 3], DType::F32, 1),
        (1, [2, 3], DType::F64, 7),
        (2, [3, 2], DType::F32, 1),
    ] {
        let mut encoder = InputsEncoder::default();
        encoder.tensor(dtype, &dims, &[1, 1]);
        encoder.int(value);
        let mut event = Event::new(Category::Operator, name, thread, Nanos(start), Nanos(1));
        event.inputs = builder.inputs.intern(encoder.words());
        builder.add_event(event);
    }
    let profile = builder.into_profile().unwrap();
    let by_shape = GroupBy {
        input_shapes: true,
        ..GroupBy::default()
    };
    assert_eq!(
        describe(&of(&profile, by_shape)),
        ["op x2 total 2 self 2", "op x1 total 1 self 1"]
    );
    assert_eq!(
        describe(&of(&profile, GroupBy::default())),
        ["op x3 total 3 self 3"]
    );
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let event = (0..4_u8, 0..2_u8, 0..3_usize, 0..40_u64, 0..20_u64);
    prop::collection::vec(event, 0..40).prop_map(|events| {
        let (mut builder, thread) = builder_with_thread(DeviceKind::Cpu);
        for (name, kind, dims, start, duration) in events {
            let name = builder.strings.intern(&format!("op{name}"));
            let category = [Category::Operator, Category::Annotation][usize::from(kind)];
            let mut event = Event::new(category, name, thread, Nanos(start), Nanos(duration));
            let mut encoder = InputsEncoder::default();
            encoder.tensor(DType::F32, &vec![2; dims], &vec![1; dims]);
            event.inputs = builder.inputs.intern(encoder.words());
            builder.add_event(event);
        }
        builder.into_profile().unwrap()
    })
}

proptest! {
    #[test]
    fn rows_partition_the_events(profile in any_profile(), input_shapes: bool) {
        let analysis = Analysis::build(profile);
        let (profile, tree) = (analysis.profile(), analysis.tree());
        let rows = averages(&analysis, GroupBy { input_shapes, ..GroupBy::default() });
        let kept = || (0..profile.events().len())
            .map(EventId::from_index)
            .filter(|&id| !tree.is_merged(id));
        let durations: u64 = kept().map(|id| profile.event(id).duration.0).sum();
        let own: u64 = kept().map(|id| tree.self_time(id).0).sum();
        let count = kept().count() as u64;
        let total = rows.total();
        prop_assert_eq!(total.sums.count, count);
        prop_assert_eq!(total.sums.cpu_total.0, durations);
        prop_assert_eq!(total.sums.self_cpu_total.0, own);
        let mut firsts: Vec<_> = rows.rows.iter().map(|row| row.first).collect();
        prop_assert!(firsts.is_sorted());
        firsts.dedup();
        prop_assert_eq!(firsts.len(), rows.rows.len());
    }
}

/// Columns are computed for each single event; a list of threads each time would take quadratic time.
#[test]
fn the_columns_of_a_profile_need_no_list_of_threads() {
    fn needs_no_memory<T: Copy>() {}
    needs_no_memory::<Columns>();
}

// f |--------------------|      0..40
// f   |--------------|          5..35   the only child, of the same name
// f      |-----|                10..20
// g               |--|          25..30
// f                        |-|  40..45
#[test]
fn a_python_function_that_calls_itself_counts_each_call_and_its_time_once() {
    let call = Category::PythonFunction;
    let profile = Timeline::draw(|time| {
        time.event(call, "f", |time| {
            time.idle(5);
            time.event(call, "f", |time| {
                time.idle(5);
                time.event(call, "f", |time| time.idle(10));
                time.idle(5);
                time.event(call, "g", |time| time.idle(5));
                time.idle(5);
            });
            time.idle(5);
        });
        time.event(call, "f", |time| time.idle(5));
    });
    let group_by = GroupBy {
        python_functions: true,
        ..GroupBy::default()
    };
    assert_eq!(
        describe(&of(&profile, group_by)),
        ["f x4 total 45 self 40", "g x1 total 5 self 5"]
    );
}

// stream  kernel |-----|        0..10
//         wait     |---------|  5..25   of the host, for the stream
#[test]
fn a_wait_for_a_device_takes_no_device_time() {
    let (mut builder, stream) = builder_with_thread(DeviceKind::Cuda);
    for (name, category, start, end) in [
        ("kernel", Category::Kernel, 0, 10),
        ("wait", Category::Other, 5, 25),
    ] {
        let name = builder.strings.intern(name);
        let event = Event::new(category, name, stream, Nanos(start), Nanos(end - start));
        builder.add_event(event);
    }
    let profile = builder.into_profile().unwrap();
    let rows = of(&profile, GroupBy::default()).rows;
    let times: Vec<_> = rows
        .iter()
        .map(|row| (row.sums.count, row.sums.self_device_total.0))
        .collect();
    assert_eq!(times, [(1, 10), (1, 0)]);
}
