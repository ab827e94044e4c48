use mindprof_model::{Category, Event, Part, Profile, StringTable, Thread, Timeline};
use mindprof_model::{DeviceKind, Links, ThreadId};
use proptest::prelude::*;

use super::drawing::{Drawing, events, whole_ms};
use super::plain::PlainReplay;
use super::*;

const LAUNCH: &str = "cudaLaunchKernel";
const SYNCHRONIZE: &str = "cudaDeviceSynchronize";

fn replay(analysis: &Analysis) -> Replay {
    Replay::build(analysis).expect("there is host work")
}

/// Returns the pieces of the critical path, in order of time.
fn pieces(replay: &Replay, timing: Timing) -> Vec<Piece> {
    let mut pieces = Vec::new();
    replay.path(timing).visit_back(|piece| pieces.push(piece));
    pieces.reverse();
    pieces
}

/// Replays without the events of a name.
fn without(analysis: &Analysis, name: &str) -> Vec<u64> {
    let mut change = WhatIf::none(analysis);
    for event in events(analysis.profile(), name) {
        change.scale(event, 0.0);
    }
    whole_ms(&replay(analysis).with(&change))
}

// step    |-----------------------------------|   0..20
// launch    |-|                                   1..2
// kernel      |----------------|                  2..12
// synchronize   |--------------|                  3..12
fn synchronized() -> Analysis {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 20);
    let stream = drawing.stream(1);
    drawing.launch((LAUNCH, 1, 2), stream, ("gemm", 2, 12));
    drawing.host(Category::Runtime, SYNCHRONIZE, 3, 12);
    drawing.analysis()
}

#[test]
fn a_replay_without_a_change_gives_the_recorded_times() {
    let analysis = synchronized();
    assert_eq!(whole_ms(&replay(&analysis).recorded()), [20]);
    assert_eq!(whole_ms(&replay(&analysis).unrecorded()), [20]);
}

#[test]
fn a_synchronization_ends_with_what_it_waits_for() {
    let analysis = synchronized();
    assert_eq!(without(&analysis, "gemm"), [11]);
    let mut change = WhatIf::none(&analysis);
    for event in events(analysis.profile(), "gemm") {
        change.scale(event, 2.0);
    }
    assert_eq!(whole_ms(&replay(&analysis).with(&change)), [30]);
}

#[test]
fn a_call_that_no_longer_waits_lets_the_device_run_on() {
    let analysis = synchronized();
    let mut change = WhatIf::none(&analysis);
    for event in events(analysis.profile(), SYNCHRONIZE) {
        change.unblock(event);
    }
    // The host ends after 11, the kernel after 12.
    assert_eq!(whole_ms(&replay(&analysis).with(&change)), [12]);
    assert_eq!(without(&analysis, SYNCHRONIZE), [12]);
}

// step    |-----------------------------------|   0..20
// launch    |-|                                   1..2
// kernel      |------------------------------|    2..19
// mm               |---------|                    5..12
#[test]
fn work_beside_the_path_saves_only_until_the_path_ends() {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 20);
    let stream = drawing.stream(1);
    drawing.launch((LAUNCH, 1, 2), stream, ("gemm", 2, 19));
    drawing.host(Category::Operator, "aten::mm", 5, 12);
    let analysis = drawing.analysis();
    assert_eq!(without(&analysis, "aten::mm"), [19]);
    assert_eq!(without(&analysis, "gemm"), [20]);
}

// step    |-----------------------------------|   0..20
// memcpy    |------------|                        1..11   waits for its copy
// copy        |---------|                         2..11
#[test]
fn a_blocking_copy_holds_the_host() {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 20);
    let stream = drawing.stream(1);
    drawing.launch(
        ("cudaMemcpyAsync", 1, 11),
        stream,
        ("Memcpy HtoD (Pageable -> Device)", 2, 11),
    );
    let analysis = drawing.analysis();
    let mut change = WhatIf::none(&analysis);
    for event in events(analysis.profile(), "cudaMemcpyAsync") {
        change.unblock(event);
    }
    let changed = replay(&analysis).with(&change);
    assert_eq!(whole_ms(&changed), [11], "the copy ends after the host");
}

// step     |-----------------------------------|   0..20
// launch     |-|                                   1..2
// gemm         |---------|                         2..10
// memcpy         |-----------|                     3..14.95   waits for both
// copy                   |----|                   10..15
//
// The driver copies the last piece from its own buffer, so that the call returns a little earlier.
#[test]
fn a_pageable_copy_waits_for_the_work_before_it() {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 20);
    let stream = drawing.stream(1);
    drawing.launch((LAUNCH, 1, 2), stream, ("gemm", 2, 10));
    let copy = ("Memcpy HtoD (Pageable -> Device)", 10, 15);
    let (correlation, call) = (9, drawing.part.strings.intern("cudaMemcpyAsync"));
    let (start, duration) = (Nanos(3_000_000), Nanos(11_950_000));
    let call = Event::new(Category::Runtime, call, drawing.host, start, duration);
    drawing
        .part
        .add_linked_event(call, Links::new(0, correlation));
    drawing.event(
        stream,
        Category::Kernel,
        copy.0,
        (copy.1, copy.2),
        correlation,
    );
    let analysis = drawing.analysis();
    assert_eq!(whole_ms(&replay(&analysis).recorded()), [20]);
    // The copy begins at its call, after the usual latency of 1.
    assert_eq!(without(&analysis, "gemm"), [14]);
    let bound = pieces(&replay(&analysis), Timing::Recorded);
    let is_of = |name: &str| {
        let events = events(analysis.profile(), name);
        bound.iter().any(|piece| piece.event == Some(events[0]))
    };
    assert!(is_of("gemm") && is_of(copy.0), "{bound:?}");
}

// launches  |-||-|                              1..2, 2..3
// stream 1     |-------------|                  2..10
// stream 2                   |------|           10..15   waits for the other stream
#[test]
fn a_kernel_that_begins_when_another_stream_is_done_waited_for_it() {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 4);
    let (first, second) = (drawing.stream(1), drawing.stream(2));
    drawing.launch((LAUNCH, 1, 2), first, ("gemm", 2, 10));
    drawing.launch((LAUNCH, 2, 3), second, ("reduce", 10, 15));
    let analysis = drawing.analysis();
    assert_eq!(whole_ms(&replay(&analysis).recorded()), [15]);
    assert_eq!(without(&analysis, "gemm"), [8]);
}

// loop      |backward-------------------|step|   0..12..15
// engine      |node 1 |  |node 2        |        1..5, 6..12
#[test]
fn the_loop_waits_for_backward_work_on_another_thread() {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 15);
    drawing.host(Category::PythonFunction, "backward", 0, 12);
    let engine = drawing.thread(8);
    drawing.node(engine, "AddmmBackward0", 1, 5);
    drawing.node(engine, "MulBackward0", 6, 12);
    let analysis = drawing.analysis();
    assert_eq!(whole_ms(&replay(&analysis).recorded()), [15]);
    assert_eq!(without(&analysis, "AddmmBackward0"), [11]);
    // The time before a node belongs to the node.
    assert_eq!(without(&analysis, "MulBackward0"), [8]);
}

// loop      |step            |   0..10
// other       |aten::mm|         1..9
#[test]
fn threads_that_nobody_waits_for_do_not_matter() {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 10);
    let other = drawing.thread(8);
    drawing.event(other, Category::Operator, "aten::mm", (1, 9), 0);
    assert_eq!(without(&drawing.analysis(), "aten::mm"), [10]);
}

// steps    |----|----|----|               0..4..8..12
// stream    |--------||--------||-----|   1..9, 9..17, 17..23
#[test]
fn a_step_ends_with_the_device_work_that_it_launched() {
    let mut drawing = Drawing::new();
    let stream = drawing.stream(1);
    for (number, (begin, end)) in [(1, 9), (9, 17), (17, 23)].into_iter().enumerate() {
        let at = 4 * number as u64;
        drawing.step(number as u64, at, at + 4);
        drawing.launch((LAUNCH, at, at + 1), stream, ("gemm", begin, end));
    }
    let analysis = drawing.analysis();
    let replayed = replay(&analysis).recorded();
    assert_eq!(whole_ms(&replayed), [9, 8, 6]);
    assert_eq!(replayed.median(), replayed.steps[1]);
    assert_eq!(without(&analysis, "gemm"), [4, 4, 4]);
}

// launches   |-|        |-|              1..2, 7..8
// stream         |--|        |--|        4..6, 10..12   three after each launch
#[test]
fn kernels_of_a_graph_begin_at_once() {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 8);
    let stream = drawing.stream(1);
    drawing.launch((LAUNCH, 1, 2), stream, ("gemm", 4, 6));
    drawing.launch((LAUNCH, 7, 8), stream, ("gemm", 10, 12));
    let analysis = drawing.analysis();
    assert_eq!(whole_ms(&replay(&analysis).recorded()), [12]);
    let mut change = WhatIf::none(&analysis);
    change.capture_launches();
    assert_eq!(whole_ms(&replay(&analysis).with(&change)), [9]);
}

#[test]
fn several_removals_at_once_equal_those_one_by_one() {
    let analysis = synchronized();
    let replay = replay(&analysis);
    let names = ["gemm", LAUNCH, SYNCHRONIZE];
    let mut removals = Removals::new(analysis.profile().events().len());
    for set in 0..12 {
        for event in events(analysis.profile(), names[set % names.len()]) {
            removals.remove(set, event);
        }
    }
    let replayed = replay.without(&removals, 12, Timing::Unrecorded);
    assert_eq!(replayed.len(), 12);
    for (set, replayed) in replayed.iter().enumerate() {
        let alone = without(&analysis, names[set % names.len()]);
        assert_eq!(whole_ms(replayed), alone);
    }
}

#[test]
fn the_profilers_own_cost_is_left_out() {
    // 1,000 calls of 3 us each, of which torch's profiler takes about one.
    let profile = Timeline::draw(|time| {
        time.annotation("ProfilerStep#0", |time| {
            for _ in 0..1_000 {
                let call = Category::PythonFunction;
                time.event(call, "train.py(1): f", |time| time.idle(2_000));
                time.idle(1_000);
            }
        });
    });
    let analysis = Analysis::build(profile);
    let replay = replay(&analysis);
    assert_eq!(replay.recorded().total(), Nanos(3_000_000));
    let unrecorded = replay.unrecorded().total();
    assert!(
        (1_900_000..2_100_000).contains(&unrecorded.0),
        "{unrecorded}"
    );
    assert_eq!(replay.recording(), Nanos(3_000_000) - unrecorded);
}

#[test]
fn a_call_that_steps_the_profiler_is_all_its_own_cost() {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 10);
    let step = "torch/profiler/profiler.py(900): step";
    drawing.host(Category::PythonFunction, step, 6, 9);
    drawing.host(Category::Operator, "aten::mm", 7, 8);
    let analysis = drawing.analysis();
    assert_eq!(whole_ms(&replay(&analysis).unrecorded()), [7]);
}

#[test]
fn a_profile_without_host_work_cannot_be_replayed() {
    let profile = Part::new().into_profile().expect("nothing was added");
    assert!(Replay::build(&Analysis::build(profile)).is_none());
}

/// Any events on two threads and five streams, in any order, with any links.
fn odd_profiles() -> impl Strategy<Value = Profile> {
    let categories = prop::sample::select(vec![
        Category::Operator,
        Category::Annotation,
        Category::PythonFunction,
        Category::Runtime,
        Category::Kernel,
        Category::Other,
    ]);
    let names = prop::sample::select(vec![
        "aten::mm",
        "ProfilerStep#0",
        "ProfilerStep#1",
        LAUNCH,
        SYNCHRONIZE,
        "cudaMemcpyAsync",
        "cudaMalloc",
        "Memcpy DtoH (Device -> Pageable)",
        "AddmmBackward0",
        "train.py(3): step",
    ]);
    let event = (
        categories,
        names,
        0..7_u32,
        0..60_000_u64,
        0..40_000_u64,
        0..6_u32,
        any::<bool>(),
    );
    prop::collection::vec(event, 0..60).prop_map(|events| {
        let mut part = Part::new();
        for (native, device) in [
            (7, DeviceKind::Cpu),
            (8, DeviceKind::Cpu),
            (1, DeviceKind::Cuda),
            (2, DeviceKind::Cuda),
            (3, DeviceKind::Cuda),
            (4, DeviceKind::Cuda),
            (5, DeviceKind::Cuda),
        ] {
            part.add_thread(Thread {
                process: 7,
                native,
                name: StringTable::EMPTY,
                device,
            });
        }
        for (category, name, thread, start, duration, correlation, is_backward) in events {
            let name = part.strings.intern(name);
            let thread = ThreadId::from_raw(thread);
            let mut event = Event::new(category, name, thread, Nanos(start), Nanos(duration));
            if is_backward {
                event.scope = mindprof_model::ScopeKind::Backward;
            }
            let mut links = Links::default();
            links.correlation = correlation;
            part.add_linked_event(event, links);
        }
        part.into_profile().expect("ids are in range")
    })
}

proptest! {
    #[test]
    fn less_work_never_takes_longer(profile in odd_profiles(), removed in any::<u64>()) {
        let analysis = Analysis::build(profile);
        let Some(replay) = Replay::build(&analysis) else {
            return Ok(());
        };
        let mut change = WhatIf::none(&analysis);
        for index in 0..analysis.profile().events().len() {
            if removed >> (index % 64) & 1 == 1 {
                change.scale(EventId::from_index(index), 0.0);
            }
        }
        let before = replay.ends(&Unchanged, Timing::Unrecorded);
        let after = replay.ends(&change, Timing::Unrecorded);
        let recorded = replay.ends(&Unchanged, Timing::Recorded);
        for (stage, end) in before.iter().enumerate() {
            prop_assert!(after[stage] <= *end && *end <= recorded[stage]);
        }
        prop_assert_eq!(replay.with(&change).steps.len(), replay.steps().len());
    }

    #[test]
    fn each_stage_comes_after_those_that_it_depends_on(profile in odd_profiles()) {
        let analysis = Analysis::build(profile);
        let Some(replay) = Replay::build(&analysis) else {
            return Ok(());
        };
        for (index, stage) in replay.stages.all.iter().enumerate() {
            for other in [stage.before, stage.released_by, stage.waits_for] {
                prop_assert!(other == NONE || (other as usize) < index);
            }
        }
    }

    #[test]
    fn stages_give_the_same_times_as_tasks_one_by_one(
        profile in odd_profiles(),
        scales in prop::collection::vec(prop::sample::select(vec![0.0, 0.3, 1.0, 2.0]), 60),
        unblocked in any::<u64>(),
        is_captured in any::<bool>(),
    ) {
        let analysis = Analysis::build(profile);
        let Some(replay) = Replay::build(&analysis) else {
            return Ok(());
        };
        let plain = PlainReplay::build(&analysis, &replay);
        prop_assert_eq!(replay.len(), plain.len());
        prop_assert_eq!(replay.recording(), plain.recording());
        let unchanged = WhatIf::none(&analysis);
        let mut change = unchanged.clone();
        let mut removals = Removals::new(analysis.profile().events().len());
        for index in 0..analysis.profile().events().len() {
            let event = EventId::from_index(index);
            change.scale(event, scales[index % scales.len()]);
            if unblocked >> (index % 64) & 1 == 1 {
                change.unblock(event);
                removals.remove(9, event);
            }
        }
        if is_captured {
            change.capture_launches();
        }
        prop_assert_eq!(replay.with(&change).steps, plain.steps(&change, Timing::Unrecorded));
        let mut removed = unchanged.clone();
        for index in (0..analysis.profile().events().len()).filter(|at| unblocked >> (at % 64) & 1 == 1) {
            removed.scale(EventId::from_index(index), 0.0);
        }
        for timing in [Timing::Recorded, Timing::Unrecorded] {
            prop_assert_eq!(replay.replayed(timing).steps, plain.steps(&unchanged, timing));
            prop_assert_eq!(pieces(&replay, timing), plain.path(&unchanged, timing));
            let without = replay.without(&removals, 10, timing);
            prop_assert_eq!(&without[9].steps, &plain.steps(&removed, timing));
        }
    }

    #[test]
    fn the_path_is_as_long_as_the_steps(profile in odd_profiles()) {
        let analysis = Analysis::build(profile);
        let Some(replay) = Replay::build(&analysis) else {
            return Ok(());
        };
        for timing in [Timing::Recorded, Timing::Unrecorded] {
            let pieces = pieces(&replay, timing);
            let length: u64 = pieces.iter().map(|piece| (piece.end - piece.begin).0).sum();
            for pair in pieces.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].begin);
            }
            // The first task may begin after the first step does.
            prop_assert!(length <= replay.replayed(timing).total().0);
        }
    }
}

// launch    |-|-|-|...|-|------|------|------|...   the first ones return at once, the others wait
// stream      |gemm  |gemm  |gemm  |...             10 ms each
fn throttled(launches: u64, queue: u64) -> Analysis {
    let mut drawing = Drawing::new();
    let stream = drawing.stream(1);
    // The loop is done when the last work is in the queue.
    drawing.step(0, 0, 10 * (launches - 1) + 1 - 10 * queue);
    let mut now = 0;
    for number in 0..launches {
        let room = (10 * number + 1).saturating_sub(10 * queue);
        let end = (now + 1).max(room);
        let begins = 10 * number + 1;
        drawing.launch((LAUNCH, now, end), stream, ("gemm", begins, begins + 10));
        now = end;
    }
    drawing.analysis()
}

#[test]
fn a_launch_that_waits_for_room_in_the_queue_is_faster_when_the_device_is() {
    let analysis = throttled(900, 500);
    let halved = |name: &str| {
        let mut change = WhatIf::none(&analysis);
        for event in events(analysis.profile(), name) {
            change.scale(event, 0.5);
        }
        whole_ms(&replay(&analysis).with(&change))[0]
    };
    assert!(
        (4_450..4_600).contains(&halved("gemm")),
        "{}",
        halved("gemm")
    );
    // The device is busy all the time, so launches cost nothing.
    assert!(
        (8_950..9_050).contains(&halved(LAUNCH)),
        "{}",
        halved(LAUNCH)
    );
}

// A launch may take long for other reasons, such as loading the code of a kernel.
#[test]
fn a_long_launch_with_a_short_queue_waits_for_nothing() {
    let analysis = throttled(100, 50);
    let mut change = WhatIf::none(&analysis);
    for event in events(analysis.profile(), "gemm") {
        change.scale(event, 0.0);
    }
    let [step] = whole_ms(&replay(&analysis).with(&change))[..] else {
        panic!("there is one step");
    };
    assert!(step > 400, "{step}");
}

// launch    |-|       |-|       |-|         10 ms apart
// stream                   ... |gemm|gemm|  from 3,000 on, without a gap
#[test]
fn a_device_that_is_behind_all_the_time_tells_no_latency_of_launches() {
    let mut drawing = Drawing::new();
    let stream = drawing.stream(1);
    drawing.step(0, 0, 1_000);
    for number in 0..100 {
        let (call, work) = (10 * number + 5, 3_000 + 10 * number);
        drawing.launch((LAUNCH, call, call + 1), stream, ("gemm", work, work + 10));
    }
    let analysis = drawing.analysis();
    let mut change = WhatIf::none(&analysis);
    for event in events(analysis.profile(), "gemm") {
        change.scale(event, 0.1);
    }
    let [step] = whole_ms(&replay(&analysis).with(&change))[..] else {
        panic!("there is one step");
    };
    assert!(step < 1_010, "{step}");
}
