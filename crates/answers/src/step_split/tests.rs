use mindprof_model::{Part, StringTable, Thread, Timeline};
use proptest::prelude::*;

use super::*;
use crate::steps::Steps;

fn splits(profile: Profile) -> Vec<(Step, StepSplit)> {
    let analysis = Analysis::build(profile);
    let steps = Steps::build(analysis.profile());
    let thread = ThreadId::from_raw(0);
    let splits = split(&analysis, steps.complete(), thread);
    steps.complete().iter().copied().zip(splits).collect()
}

fn shown(split: &StepSplit) -> Vec<(&'static str, u64)> {
    let times = split.iter().filter(|(_, time)| *time > Nanos::ZERO);
    times.map(|(class, time)| (class.name(), time.0)).collect()
}

// step      |-----------------------------------|   0..100
// main         |-------------------------------|    5..95   Python
// batch          |------|                          10..30   with an operator in it
// mm                      |----|                   35..50
// sleep                           |----|           60..75
#[test]
fn a_moment_counts_for_the_first_class_that_runs() {
    check_classes("<built-in method sleep of module object at 0x7f>");
}

#[test]
fn a_sampled_wait_is_idle_time() {
    check_classes("<waiting>");
}

fn check_classes(sleep: &str) {
    let profile = Timeline::draw(|time| {
        time.annotation("ProfilerStep#0", |time| {
            time.idle(5);
            time.event(Category::PythonFunction, "train.py(1): main", |time| {
                time.idle(5);
                time.annotation("enumerate(DataLoader)#_SingleProcess", |time| {
                    time.op("aten::stack", 20);
                });
                time.idle(5);
                time.op("aten::mm", 15);
                time.idle(10);
                time.event(Category::PythonFunction, sleep, |time| time.idle(15));
                time.idle(20);
            });
            time.idle(5);
        });
    });
    let splits = splits(profile);
    let expected = [
        ("data loading", 20),
        ("operators", 15),
        ("Python", 40),
        ("idle", 25),
    ];
    assert_eq!(shown(&splits[0].1), expected);
}

// step      |---------------|---------------|   0..100, 100..200
// kernel       |-----|   |------|               20..60, 90..120
// copy           |------|                       40..80
// launch  |--|                                   0..30
#[test]
fn device_work_comes_first_and_is_shared_among_steps() {
    let mut part = Part::new();
    let thread = |native, device| Thread {
        process: 1,
        native,
        name: StringTable::EMPTY,
        device,
    };
    let cpu = part.add_thread(thread(1, DeviceKind::Cpu));
    let stream = part.add_thread(Thread {
        process: 0,
        ..thread(7, DeviceKind::Cuda)
    });
    for (category, name, thread, begin, end) in [
        (Category::Annotation, "ProfilerStep#0", cpu, 0, 100),
        (Category::Annotation, "ProfilerStep#1", cpu, 100, 200),
        (Category::Runtime, "cudaLaunchKernel", cpu, 0, 30),
        (Category::Kernel, "gemm", stream, 20, 60),
        (
            Category::Kernel,
            "Memcpy HtoD (Pinned -> Device)",
            stream,
            40,
            80,
        ),
        (Category::Kernel, "gemm", stream, 90, 120),
        (
            Category::Kernel,
            "ncclDevKernel_AllReduce",
            stream,
            150,
            160,
        ),
    ] {
        let name = part.strings.intern(name);
        part.add_event(Event::new(
            category,
            name,
            thread,
            Nanos(begin),
            Nanos(end - begin),
        ));
    }
    let splits = splits(part.into_profile().unwrap());
    let first = [("kernel", 50), ("copy", 20), ("runtime", 20), ("idle", 10)];
    assert_eq!(shown(&splits[0].1), first);
    let second = [("kernel", 20), ("communication", 10), ("idle", 70)];
    assert_eq!(shown(&splits[1].1), second);
}

// main        |------------------|    0..100
// worker           |----|             aten::mm on another thread: beside the step
// backward              |----|        backward work on another thread: the step waits for it
#[test]
fn other_threads_count_only_for_backward_work() {
    let profile = |scope| {
        let mut part = Part::new();
        let thread = |native| Thread {
            process: 1,
            native,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        };
        let (main, other) = (part.add_thread(thread(1)), part.add_thread(thread(2)));
        let step = part.strings.intern("ProfilerStep#0");
        let name = part.strings.intern("aten::mm");
        let (start, all) = (Nanos(0), Nanos(100));
        part.add_event(Event::new(Category::Annotation, step, main, start, all));
        let mut event = Event::new(Category::Operator, name, other, Nanos(20), Nanos(30));
        event.scope = scope;
        part.add_event(event);
        part.into_profile().unwrap()
    };
    assert_eq!(
        shown(&splits(profile(ScopeKind::Function))[0].1),
        [("idle", 100)]
    );
    let backward = [("operators", 30), ("idle", 70)];
    assert_eq!(shown(&splits(profile(ScopeKind::Backward))[0].1), backward);
}

proptest! {
    /// Whatever runs, and however steps overlap, the classes of a step sum to its duration.
    #[test]
    fn classes_sum_to_the_step(
        steps in prop::collection::vec((0_u64..300, 0_u64..80), 1..6),
        events in prop::collection::vec((0_usize..7, 0_u64..300, 0_u64..60), 0..60),
    ) {
        let mut part = Part::new();
        let thread = |native, device| Thread {
            process: 1,
            native,
            name: StringTable::EMPTY,
            device,
        };
        let cpu = part.add_thread(thread(1, DeviceKind::Cpu));
        let stream = part.add_thread(thread(7, DeviceKind::Cuda));
        for (number, (start, duration)) in steps.into_iter().enumerate() {
            let name = part.strings.intern(&format!("ProfilerStep#{number}"));
            let (start, duration) = (Nanos(start), Nanos(duration));
            part.add_event(Event::new(Category::Annotation, name, cpu, start, duration));
        }
        for (kind, start, duration) in events {
            let (category, name, thread) = [
                (Category::Kernel, "gemm", stream),
                (Category::Kernel, "Memset (Device)", stream),
                (Category::Operator, "gloo:all_reduce", cpu),
                (Category::Runtime, "cudaLaunchKernel", cpu),
                (Category::Operator, "aten::mm", cpu),
                (Category::PythonFunction, "train.py(1): main", cpu),
                (Category::PythonFunction, "<built-in function sleep>", cpu),
            ][kind];
            let name = part.strings.intern(name);
            let (start, duration) = (Nanos(start), Nanos(duration));
            part.add_event(Event::new(category, name, thread, start, duration));
        }
        for (step, split) in splits(part.into_profile().unwrap()) {
            prop_assert_eq!(split.total(), step.duration);
        }
    }
}
