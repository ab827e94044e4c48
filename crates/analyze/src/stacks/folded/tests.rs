use mindprof_model::{
    Category, Event, ForwardThread, Links, Nanos, Part, StringTable, Thread, Timeline,
};
use proptest::prelude::*;

use super::*;

fn lines(analysis: &Analysis) -> Vec<(String, u64)> {
    let folded = Folded::build(analysis, StackMetric::SelfCpuTime);
    let strings = folded.strings();
    let text = |path| {
        let frames = folded.frames(path);
        let names: Vec<&str> = frames.iter().map(|&frame| strings.text(frame)).collect();
        names.join(";")
    };
    folded
        .iter()
        .map(|(path, weight)| (text(path), weight.0))
        .collect()
}

// step     |--------------------|   0..100
// linear     |-----|  |-----|       10..40, 50..80
// addmm        |-|                  20..30
#[test]
fn equal_paths_are_summed_and_without_stacks_scopes_make_them() {
    let profile = Timeline::draw(|time| {
        time.annotation("step", |time| {
            time.idle(10);
            time.scope("linear", |time| {
                time.idle(10);
                time.op("addmm", 10);
                time.idle(10);
            });
            time.idle(10);
            time.op("linear", 30);
            time.idle(20);
        });
    });
    let found = lines(&Analysis::build(profile));
    let expected = [("step", 40), ("step;linear", 50), ("step;linear;addmm", 10)];
    assert_eq!(found, expected.map(|(path, weight)| (path.into(), weight)));
}

/// A Python function call, an operator with a stack inside it, and an operator inside that one.
fn with_stacks() -> Analysis {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    let [call, linear, addmm] =
        ["a.py(1): main", "linear", "addmm"].map(|name| builder.strings.intern(name));
    let inside = builder.stacks.push(StackId::NONE, call);
    let mut add = |category, name, start, duration, stack| {
        let mut event = Event::new(category, name, thread, Nanos(start), Nanos(duration));
        event.stack = stack;
        builder.add_event(event);
    };
    add(Category::PythonFunction, call, 0, 100, StackId::NONE);
    add(Category::Operator, linear, 10, 50, inside);
    add(Category::Operator, addmm, 20, 20, inside);
    Analysis::build(builder.into_profile().unwrap())
}

#[test]
fn callers_come_before_scopes() {
    let expected = [
        ("a.py(1): main", 50),
        ("a.py(1): main;linear", 30),
        ("a.py(1): main;linear;addmm", 20),
    ];
    assert_eq!(
        lines(&with_stacks()),
        expected.map(|(path, weight)| (path.into(), weight))
    );
}

/// A profile of threads (process, number, name), each of which spends 10 in `op`, called by `main`.
fn of_threads(threads: &[(u64, u64, &str, DeviceKind)]) -> Analysis {
    let mut part = Part::new();
    let [main, op] = ["a.py(1): main", "op"].map(|name| part.strings.intern(name));
    let inside = part.stacks.push(StackId::NONE, main);
    for (start, &(process, native, name, device)) in threads.iter().enumerate() {
        let name = part.strings.intern(name);
        let thread = part.add_thread(Thread {
            process,
            native,
            name,
            device,
        });
        let start = Nanos(20 * start as u64);
        let mut event = Event::new(Category::Operator, op, thread, start, Nanos(10));
        event.stack = inside;
        part.add_event(event);
    }
    Analysis::build(part.into_profile().unwrap())
}

#[test]
fn each_process_and_thread_has_its_own_root() {
    let cpu = DeviceKind::Cpu;
    let found = lines(&of_threads(&[
        (1, 1, "python", cpu),
        (1, 5, "feeder", cpu),
        (1, 6, "feeder", cpu),
        (2, 2, "worker 0", cpu),
        (3, 3, "worker 0", cpu),
    ]));
    let expected = [
        "python;main thread",
        "python;feeder 5",
        "python;feeder 6",
        "worker 0 2",
        "worker 0 3",
    ];
    let expected = expected.map(|root| (format!("{root};a.py(1): main;op"), 10));
    assert_eq!(found, expected);
}

#[test]
fn a_single_cpu_thread_has_no_root_even_with_devices() {
    let analysis = of_threads(&[
        (1, 1, "python", DeviceKind::Cpu),
        (0, 7, "stream 7", DeviceKind::Cuda),
    ]);
    let found = lines(&analysis);
    assert_eq!(found, [("a.py(1): main;op".to_owned(), 10)]);
}

#[test]
fn callers_alone_are_not_split_by_thread() {
    let cpu = DeviceKind::Cpu;
    let analysis = of_threads(&[(1, 1, "python", cpu), (2, 2, "python", cpu)]);
    let folded = Folded::of_callers(&analysis, StackMetric::SelfCpuTime);
    assert_eq!(
        folded
            .iter()
            .map(|(_, weight)| weight.0)
            .collect::<Vec<_>>(),
        [20]
    );
}

#[test]
fn weights_are_those_of_events_that_have_callers() {
    let analysis = with_stacks();
    let found: Vec<u64> = stack_weights(&analysis, StackMetric::SelfCpuTime)
        .map(|(_, weight)| weight.0)
        .collect();
    assert_eq!(found, [30, 20]);
    assert_eq!(
        stack_weights(&analysis, StackMetric::SelfDeviceTime).count(),
        2
    );
    assert_eq!(
        Folded::build(&analysis, StackMetric::SelfDeviceTime).total(),
        Nanos::ZERO
    );
}

proptest! {
    #[test]
    fn nothing_is_lost_in_the_fold(
        intervals in prop::collection::vec((0_u64..60, 0_u64..20, 0_usize..3), 0..60),
    ) {
        let mut builder = Part::new();
        let thread = builder.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        for (start, duration, name) in intervals {
            let name = builder.strings.intern(["a", "b", "c"][name]);
            let times = (Nanos(start), Nanos(duration));
            builder.add_event(Event::new(Category::Operator, name, thread, times.0, times.1));
        }
        let analysis = Analysis::build(builder.into_profile().unwrap());
        let events = (0..analysis.profile().events().len()).map(EventId::from_index);
        let spent: u64 = events.map(|id| analysis.tree().self_time(id).0).sum();
        let folded = Folded::build(&analysis, StackMetric::SelfCpuTime);
        prop_assert_eq!(folded.total(), Nanos(spent));
        prop_assert_eq!(folded.iter().map(|(_, weight)| weight.0).sum::<u64>(), spent);
    }
}

// main |---------------|   0..16
// f      |--------|        2..11
// g        |----|          4..9
// h                  |-|  12..14
#[test]
fn the_time_of_removed_paths_counts_at_their_callers() {
    let profile = Timeline::draw(|time| {
        time.scope("main", |time| {
            time.idle(2);
            time.scope("f", |time| {
                time.idle(2);
                time.op("g", 5);
                time.idle(2);
            });
            time.idle(1);
            time.op("h", 2);
            time.idle(2);
        });
    });
    let analysis = Analysis::build(profile);
    let folded = Folded::build(&analysis, StackMetric::SelfCpuTime);
    assert_eq!((folded.depth(), folded.total()), (3, Nanos(16)));
    let weights = |folded: &Folded| -> Vec<u64> { folded.iter().map(|(_, w)| w.0).collect() };
    assert_eq!(weights(&folded), [5, 4, 5, 2]);
    assert_eq!(weights(&folded.cut(2, Nanos(1))), [5, 9, 2], "two levels");
    assert_eq!(
        weights(&folded.cut(9, Nanos(3))),
        [7, 4, 5],
        "h is too small"
    );
    assert_eq!(
        weights(&folded.cut(9, Nanos(99))),
        [16],
        "the first level stays"
    );
    assert_eq!(folded.cut(1, Nanos::ZERO).total(), folded.total());
}

// score         |--|                                        sequence 7, no node of its own
// clip                |--|                                  sequence 7
// ClipBackward                |----------------|            sequence 7, backward
//   aten::mul                   |--|                        called by the engine
//   aten::gt                         |--|                   called by the `backward` of the user's
#[test]
fn backward_work_is_shown_where_tables_charge_it() {
    type Row<'a> = (&'a str, u64, u64, ScopeKind, Option<u32>, &'a [&'a str]);
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    let backward = ScopeKind::Backward;
    let apply = "torch/autograd/function.py(315): apply";
    let rows: [Row<'_>; 5] = [
        (
            "score",
            0,
            10,
            ScopeKind::Function,
            Some(7),
            &["a.py(2): rate"],
        ),
        (
            "clip",
            20,
            30,
            ScopeKind::Function,
            Some(7),
            &["a.py(3): train"],
        ),
        (
            "ClipBackward",
            40,
            90,
            backward,
            Some(7),
            &["a.py(4): main"],
        ),
        (
            "aten::mul",
            50,
            60,
            ScopeKind::Function,
            None,
            &["a.py(4): main"],
        ),
        (
            "aten::gt",
            70,
            80,
            ScopeKind::Function,
            None,
            &["a.py(4): main", apply, "a.py(9): backward"],
        ),
    ];
    for (name, start, end, scope, sequence, frames) in rows {
        let name = part.strings.intern(name);
        let mut event = Event::new(
            Category::Operator,
            name,
            thread,
            Nanos(start),
            Nanos(end - start),
        );
        for frame in frames {
            let frame = part.strings.intern(frame);
            event.stack = part.stacks.push(event.stack, frame);
        }
        event.set_sequence(sequence);
        event.scope = scope;
        let mut links = Links::new(1, 0);
        if scope == backward {
            links.set_forward_thread(ForwardThread::At(thread));
        }
        part.add_linked_event(event, links);
    }
    let analysis = Analysis::build(part.into_profile().unwrap());
    let expected = [
        ("a.py(2): rate;score", 10),
        ("a.py(3): train;clip", 10),
        ("a.py(3): train;ClipBackward", 30),
        ("a.py(3): train;ClipBackward;aten::mul", 10),
        (
            "a.py(4): main;torch/autograd/function.py(315): apply;a.py(9): backward;aten::gt",
            10,
        ),
    ];
    assert_eq!(
        lines(&analysis),
        expected.map(|(path, weight)| (path.into(), weight))
    );
    // torch's own export takes the first operator with the number.
    let rate = analysis.stack(EventId::from_index(0));
    assert_eq!(analysis.stack(EventId::from_index(2)), rate);
}
