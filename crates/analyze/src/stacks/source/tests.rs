use mindprof_model::{
    Category, DeviceKind, Event, ForwardThread, Links, Nanos, Part, StringTable, Thread,
};

use super::*;
use crate::rows::keys::Keys;

fn stack(builder: &mut Part, outermost_first: &[&str]) -> StackId {
    let mut at = StackId::NONE;
    for frame in outermost_first {
        let frame = builder.strings.intern(frame);
        at = builder.stacks.push(at, frame);
    }
    at
}

fn texts(profile: &Profile, stack: StackId) -> Vec<&str> {
    let frames = shown_frames(profile, stack);
    frames.map(|frame| profile.strings().text(frame)).collect()
}

// forward thread   linear      |----|              0..10   sequence 7
//                    t           |-|               2..5    sequence 7, not the first
// backward thread  TBackward0         |------|    20..40   sequence 7, backward
//                    aten::t            |--|      25..30
//                  AccumulateGrad              |  50..55   backward, no sequence
#[test]
fn backward_events_show_where_their_forward_was_called() {
    let mut builder = Part::new();
    let [forward, backward] = [1, 2].map(|native| {
        builder.add_thread(Thread {
            process: 1,
            native,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        })
    });
    let train = stack(&mut builder, &["main", "train.py(12)"]);
    let linear = stack(&mut builder, &["main", "train.py(12)", "linear.py(3)"]);
    let engine = stack(&mut builder, &["main", "run_backward"]);
    for (name, thread, start, end, sequence, scope, stack) in [
        (
            "linear",
            forward,
            0,
            10,
            Some(7),
            ScopeKind::Function,
            train,
        ),
        ("t", forward, 2, 5, Some(7), ScopeKind::Function, linear),
        (
            "TBackward0",
            backward,
            20,
            40,
            Some(7),
            ScopeKind::Backward,
            engine,
        ),
        (
            "aten::t",
            backward,
            25,
            30,
            None,
            ScopeKind::Function,
            engine,
        ),
        (
            "AccumulateGrad",
            backward,
            50,
            55,
            None,
            ScopeKind::Backward,
            engine,
        ),
    ] {
        let name = builder.strings.intern(name);
        let mut event = Event::new(
            Category::Operator,
            name,
            thread,
            Nanos(start),
            Nanos(end - start),
        );
        event.set_sequence(sequence);
        event.scope = scope;
        event.stack = stack;
        let mut links = Links::new(1, 0);
        if scope == ScopeKind::Backward {
            links.set_forward_thread(ForwardThread::At(forward));
        }
        builder.add_linked_event(event, links);
    }
    let profile = builder.into_profile().unwrap();
    let keys = Keys::build(profile.strings());
    let tree = Tree::build(&profile, &keys, &Correlation::default());
    let sources = Sources::build(&profile, &tree, &Correlation::default());
    let shown: Vec<_> = (0..5)
        .map(|index| {
            texts(
                &profile,
                sources.stack(&profile, EventId::from_index(index)),
            )
        })
        .collect();
    assert_eq!(shown[0], ["train.py(12)", "main"]);
    assert_eq!(shown[1], ["linear.py(3)", "train.py(12)", "main"]);
    assert_eq!(shown[2], shown[0]);
    assert_eq!(shown[3], shown[0]);
    assert!(shown[4].is_empty());
    // The gradient that `AccumulateGrad` adds comes from the node before it. The node's own maker is
    // the later of the two operators with its number.
    let makers = Sources::build_of_makers(&profile, &tree, &Correlation::default());
    let charged = |index| texts(&profile, makers.stack(&profile, EventId::from_index(index)));
    assert_eq!(charged(2), shown[1]);
    assert_eq!(charged(4), shown[1]);
}

// clip           |---|                    sequence 7, stack main
// ClipBackward             |-----------|  sequence 7, backward
//   aten::mul               |-|           the node's own work
//   aten::gt                    |--|      called by the backward function of the user's
//   hook                           |---|  Python code
//     aten::norm                     |-|  called by it
#[test]
fn python_code_of_a_backward_node_has_its_own_lines() {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    let main = stack(&mut builder, &["main"]);
    let engine = stack(
        &mut builder,
        &["main", "torch/autograd/graph.py(1): run_backward"],
    );
    let frames = [
        "main",
        "torch/autograd/graph.py(1): run_backward",
        "torch/autograd/function.py(315): apply",
        "train.py(12): backward",
    ];
    let own = stack(&mut builder, &frames);
    let hook = stack(&mut builder, &[frames[0], frames[1], "train.py(20): hook"]);
    for (name, start, end, scope, stack) in [
        ("clip", 0, 10, ScopeKind::Function, main),
        ("ClipBackward", 20, 40, ScopeKind::Backward, engine),
        ("aten::mul", 21, 23, ScopeKind::Function, engine),
        ("aten::gt", 25, 30, ScopeKind::Function, own),
        ("train.py(20): hook", 31, 36, ScopeKind::Function, engine),
        ("aten::norm", 32, 35, ScopeKind::Function, hook),
    ] {
        let category = match name {
            "train.py(20): hook" => Category::PythonFunction,
            _ => Category::Operator,
        };
        let name = builder.strings.intern(name);
        let (start, duration) = (Nanos(start), Nanos(end - start));
        let mut event = Event::new(category, name, thread, start, duration);
        event.set_sequence((start < Nanos(25)).then_some(7));
        event.scope = scope;
        event.stack = stack;
        let mut links = Links::new(1, 0);
        if scope == ScopeKind::Backward {
            links.set_forward_thread(ForwardThread::At(thread));
        }
        builder.add_linked_event(event, links);
    }
    let profile = builder.into_profile().unwrap();
    let keys = Keys::build(profile.strings());
    let tree = Tree::build(&profile, &keys, &Correlation::default());
    let makers = Sources::build_of_makers(&profile, &tree, &Correlation::default());
    let charged = |index| texts(&profile, makers.stack(&profile, EventId::from_index(index)));
    assert_eq!(charged(1), ["main"]);
    assert_eq!(charged(2), ["main"]);
    assert_eq!(charged(3)[0], "train.py(12): backward");
    assert_eq!(charged(4), [frames[1], "main"]);
    assert_eq!(charged(5)[0], "train.py(20): hook");
}

// clip           |---|                    sequence 7, stack main, on thread 1
// ClipBackward             |-----------|  sequence 7, backward, on a thread of the engine
//   aten::mul               |-|           the node's own work
//   aten::norm                       |-|  called by a hook
#[test]
fn hooks_on_a_thread_of_the_engine_have_their_own_lines() {
    let mut builder = Part::new();
    let threads = [1, 2].map(|native| {
        builder.add_thread(Thread {
            process: 1,
            native,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        })
    });
    let main = stack(&mut builder, &["main"]);
    let hook = stack(&mut builder, &["train.py(20): hook"]);
    for (name, thread, start, end, stack) in [
        ("clip", 0, 0, 10, main),
        ("ClipBackward", 1, 20, 40, StackId::NONE),
        ("aten::mul", 1, 21, 23, StackId::NONE),
        ("aten::norm", 1, 32, 35, hook),
    ] {
        let is_node = name == "ClipBackward";
        let name = builder.strings.intern(name);
        let (start, duration) = (Nanos(start), Nanos(end - start));
        let mut event = Event::new(Category::Operator, name, threads[thread], start, duration);
        event.set_sequence((thread == 0 || is_node).then_some(7));
        event.stack = stack;
        let mut links = Links::new(1, 0);
        if is_node {
            event.scope = ScopeKind::Backward;
            links.set_forward_thread(ForwardThread::At(threads[0]));
        }
        builder.add_linked_event(event, links);
    }
    let profile = builder.into_profile().unwrap();
    let keys = Keys::build(profile.strings());
    let tree = Tree::build(&profile, &keys, &Correlation::default());
    let makers = Sources::build_of_makers(&profile, &tree, &Correlation::default());
    let charged = |index| texts(&profile, makers.stack(&profile, EventId::from_index(index)));
    assert_eq!(charged(1), ["main"]);
    assert_eq!(charged(2), ["main"]);
    assert_eq!(charged(3), ["train.py(20): hook"]);
}

// f (Python)  |----------|    0..20   in main
// op             |----|       5..15   without a stack
//   inner          |-|        8..10   without a stack
#[test]
fn events_without_a_stack_take_that_of_the_function_they_ran_in() {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    let main = stack(&mut builder, &["main"]);
    stack(&mut builder, &["main", "f"]);
    for (name, category, start, end, stack) in [
        ("f", Category::PythonFunction, 0, 20, main),
        ("op", Category::Operator, 5, 15, StackId::NONE),
        ("inner", Category::Operator, 8, 10, StackId::NONE),
    ] {
        let name = builder.strings.intern(name);
        let mut event = Event::new(category, name, thread, Nanos(start), Nanos(end - start));
        event.stack = stack;
        builder.add_event(event);
    }
    let profile = builder.into_profile().unwrap();
    let keys = Keys::build(profile.strings());
    let tree = Tree::build(&profile, &keys, &Correlation::default());
    let sources = Sources::build(&profile, &tree, &Correlation::default());
    let shown = |index| {
        texts(
            &profile,
            sources.stack(&profile, EventId::from_index(index)),
        )
    };
    assert_eq!(shown(0), ["main"]);
    assert_eq!(shown(1), ["f", "main"]);
    assert_eq!(shown(2), ["f", "main"]);
}

// f (Python)       |-------------------|     0..40   in main
//   cuLaunchKernel    |--|                   5..10   correlation 9, of no scope
//   aten::mm                 |--------|     15..35   external id 7, stack train.py(3)
//     g (Python)              |------|      16..34   a hook
//       cudaLaunchKernel       |--|         18..22   external id 7
// device
//   triton kernel           |--|            12..14   correlation 9
//   gemm kernel                   |--|      24..28   external id 7
//   lost kernel                        |--| 36..38   correlation 11, of no call that is known
#[test]
fn device_work_shows_the_stack_of_its_launch() {
    use Category::{Kernel, Operator, PythonFunction, Runtime};

    let mut builder = Part::new();
    let [host, device] = [DeviceKind::Cpu, DeviceKind::Cuda].map(|device| {
        builder.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device,
        })
    });
    let main = stack(&mut builder, &["main"]);
    stack(&mut builder, &["main", "f"]);
    stack(&mut builder, &["main", "f", "g"]);
    let train = stack(&mut builder, &["main", "train.py(3)"]);
    let inside = stack(&mut builder, &["main", "f"]);
    for (name, category, thread, start, end, stack, links) in [
        ("f", PythonFunction, host, 0, 40, main, (0, 0)),
        (
            "cuLaunchKernel",
            Runtime,
            host,
            5,
            10,
            StackId::NONE,
            (0, 9),
        ),
        ("triton", Kernel, device, 12, 14, StackId::NONE, (0, 9)),
        ("aten::mm", Operator, host, 15, 35, train, (7, 0)),
        ("g", PythonFunction, host, 16, 34, inside, (0, 0)),
        (
            "cudaLaunchKernel",
            Runtime,
            host,
            18,
            22,
            StackId::NONE,
            (7, 10),
        ),
        ("gemm", Kernel, device, 24, 28, StackId::NONE, (7, 10)),
        ("lost", Kernel, device, 36, 38, StackId::NONE, (0, 11)),
    ] {
        let name = builder.strings.intern(name);
        let mut event = Event::new(category, name, thread, Nanos(start), Nanos(end - start));
        event.stack = stack;
        builder.add_linked_event(event, Links::new(links.0, links.1));
    }
    let profile = builder.into_profile().unwrap();
    let correlation = Correlation::build(&profile);
    let tree = Tree::build(&profile, &Keys::build(profile.strings()), &correlation);
    let sources = Sources::build(&profile, &tree, &correlation);
    let shown = |index| {
        texts(
            &profile,
            sources.stack(&profile, EventId::from_index(index)),
        )
    };
    assert_eq!(shown(1), ["f", "main"]);
    assert_eq!(shown(2), ["f", "main"]);
    assert_eq!(shown(5), ["train.py(3)", "main"]);
    assert_eq!(shown(6), ["train.py(3)", "main"]);
    assert!(shown(7).is_empty());
}

#[test]
fn frames_of_the_framework_are_not_shown() {
    assert!(!is_shown_frame("torch/autograd/__init__.py(9): backward"));
    assert!(!is_shown_frame("torch/tensor.py(9): backward"));
    assert!(is_shown_frame("torch/_tensor.py(566): backward"));
    assert!(is_shown_frame("train.py(1): <module>"));
}
