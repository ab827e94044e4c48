//! Reads made-up results; times are in nanoseconds after `START`.

use std::ops::ControlFlow;

use mindprof_model::{
    Category, DeviceKind, EventId, Flags, ForwardThread, InputsEncoder, InputsIter, Links,
    LossCause, Nanos, Part, PassthroughKind, Profile, ScopeKind, StackId, StringId, StringTable,
};

use super::*;
use crate::error::{Error, Result};
use crate::kineto_inputs::KnownValue;

const START: i128 = 1_000_000;
/// The system's ids of two CPU threads, which torch counts as 1 and 2.
const MAIN: i128 = 7001;
const OTHER: i128 = 7002;

/// Results that exist only in a test.
#[derive(Default)]
struct MadeUp {
    events: Vec<MadeUpEvent>,
}

struct MadeUpEvent {
    name: &'static str,
    raw: RawEvent,
    bytes: i64,
    stack: Vec<&'static str>,
    inputs: Vec<i64>,
}

impl MadeUp {
    fn add(&mut self, name: &'static str, times: (i128, i128), raw: RawEvent) -> &mut MadeUpEvent {
        let raw = RawEvent {
            start_ns: START + times.0,
            end_ns: START + times.1,
            ..raw
        };
        self.events.push(MadeUpEvent {
            name,
            raw,
            bytes: 0,
            stack: Vec::new(),
            inputs: Vec::new(),
        });
        self.events.last_mut().expect("it was just added")
    }

    fn read(&self, threads: ThreadIdentity) -> Result<RawResults> {
        let options = ReadOptions {
            time_zero: START,
            inputs: true,
            stacks: true,
            threads,
            known_loss: 0,
        };
        read_raw_results(self, options, |_| Ok(ControlFlow::Continue(())))
    }

    fn profile(&self, threads: ThreadIdentity) -> Profile {
        let results = self.read(threads).unwrap();
        results.part.into_profile().unwrap()
    }
}

impl RawEvents for MadeUp {
    type Error = Error;

    fn len(&self) -> usize {
        self.events.len()
    }

    fn names(&self, strings: &mut StringTable) -> Result<Vec<StringId>> {
        let names = self.events.iter();
        Ok(names.map(|event| strings.intern(event.name)).collect())
    }

    fn event(&self, position: usize) -> Result<RawEvent> {
        Ok(self.events[position].raw)
    }

    fn bytes(&self, position: usize) -> Result<i64> {
        Ok(self.events[position].bytes)
    }

    fn stack(&self, position: usize, part: &mut Part) -> Result<StackId> {
        let frames = self.events[position].stack.iter();
        Ok(frames.fold(StackId::NONE, |stack, frame| {
            let frame = part.strings.intern(frame);
            part.stacks.push(stack, frame)
        }))
    }

    fn arguments(&self, position: usize) -> Result<Option<String>> {
        let is_told = self.events[position].name == "gemm";
        Ok(is_told.then(|| format!("\"grid\":[{position},1,1]")))
    }

    fn inputs(&self, position: usize, inputs: &mut InputsEncoder) -> Result<()> {
        for &number in &self.events[position].inputs {
            inputs.int(number);
        }
        Ok(())
    }
}

impl ReferenceEvents for MadeUp {
    fn known_values(&self) -> Result<Vec<(usize, usize, KnownValue)>> {
        Ok(Vec::new())
    }
}

/// Returns a scope of the main thread with a correlation id.
fn scope(correlation: i128) -> RawEvent {
    RawEvent {
        start_ns: 0,
        end_ns: 0,
        start_thread: 1,
        end_thread: 1,
        forward_thread: 0,
        scope: 0,
        sequence: -1,
        device: DeviceKind::Cpu,
        device_index: 42,
        resource: MAIN,
        correlation,
        linked: 0,
        external: Some(correlation),
        is_async: false,
        is_hidden: false,
        is_annotation: false,
        is_python: false,
        activity: Some(Category::Operator),
    }
}

/// Returns a runtime call on the main thread, inside the scope `linked`, or outside any if zero.
fn call(correlation: i128, linked: i128) -> RawEvent {
    RawEvent {
        linked,
        external: Some(0),
        activity: Some(Category::Runtime),
        ..scope(correlation)
    }
}

/// Returns work on stream 3 of the first GPU.
fn kernel(correlation: i128, linked: i128) -> RawEvent {
    RawEvent {
        device: DeviceKind::Cuda,
        device_index: 0,
        resource: 3,
        activity: Some(Category::Kernel),
        ..call(correlation, linked)
    }
}

fn on_other_thread(raw: RawEvent) -> RawEvent {
    RawEvent {
        start_thread: 2,
        end_thread: 2,
        resource: OTHER,
        ..raw
    }
}

/// Returns the names and categories of a profile's events.
fn categories(profile: &Profile) -> Vec<(&str, Category)> {
    let events = profile.events().iter();
    events
        .map(|event| (profile.name(event), event.category))
        .collect()
}

/// Returns the system's ids of the threads of a profile's events.
fn threads(profile: &Profile) -> Vec<u64> {
    let events = profile.events().iter();
    events
        .map(|event| profile.threads()[event.thread.index()].native)
        .collect()
}

/// ```text
/// thread 1    |-----aten::mm-----|            scope 5
///               |-launch-|                    correlation 90, linked to 5
/// stream 3              |----gemm----|        correlation 90, linked to 5
/// ```
#[test]
fn a_launch_and_its_kernel_are_linked_to_their_operator() {
    let mut results = MadeUp::default();
    results.add("aten::mm", (10, 60), scope(5));
    results.add("cudaLaunchKernel", (20, 40), call(90, 5));
    results.add("gemm", (50, 80), kernel(90, 5));
    let profile = results.profile(ThreadIdentity::System);
    let expected = [
        ("aten::mm", Category::Operator),
        ("cudaLaunchKernel", Category::Runtime),
        ("gemm", Category::Kernel),
    ];
    assert_eq!(categories(&profile), expected);
    let links = [0, 1, 2].map(|index| profile.links(EventId::from_index(index)));
    let expected = [Links::new(5, 0), Links::new(5, 90), Links::new(5, 90)];
    assert_eq!(links, expected.map(Some));
    let gemm = &profile.events()[2];
    assert_eq!((gemm.start, gemm.duration), (Nanos(50), Nanos(30)));
    let stream = profile.threads()[gemm.thread.index()];
    assert_eq!((stream.device, stream.native), (DeviceKind::Cuda, 3));
    assert_eq!(profile.loss().total(), 0);
}

#[test]
fn work_keeps_its_arguments_or_at_least_its_device_and_stream() {
    let mut results = MadeUp::default();
    results.add("gemm", (50, 80), kernel(91, 0));
    results.add("add", (20, 30), kernel(90, 0));
    results.add("aten::mm", (10, 60), scope(5));
    let profile = results.profile(ThreadIdentity::System);
    let passthrough = profile.passthrough();
    let arguments = |index| {
        let text = passthrough.of(PassthroughKind::Arguments, index)?;
        Some(passthrough.texts.text(text))
    };
    assert_eq!(arguments(0), None);
    assert_eq!(arguments(1).unwrap(), r#""device":0,"stream":3"#);
    assert_eq!(arguments(2).unwrap(), r#""grid":[0,1,1]"#);
}

#[test]
fn launches_without_a_kernel_are_lost_unless_a_graph_was_captured() {
    let mut results = MadeUp::default();
    results.add("aten::mm", (10, 60), scope(5));
    results.add("cudaLaunchKernel", (20, 30), call(90, 5));
    results.add("cuLaunchKernelEx", (30, 40), call(91, 5));
    results.add("cudaMemcpyAsync", (40, 50), call(92, 5));
    results.add("gemm", (50, 80), kernel(91, 5));
    let profile = results.profile(ThreadIdentity::System);
    assert_eq!(profile.loss().count(LossCause::Unreported), 1);
    results.add("cudaStreamBeginCapture", (5, 6), call(89, 0));
    let profile = results.profile(ThreadIdentity::System);
    assert_eq!(profile.loss().total(), 0);
}

#[test]
fn correlation_ids_beyond_32_bits_stay_equal() {
    let wide = 1 << 40;
    let mut results = MadeUp::default();
    results.add("aten::mm", (10, 60), scope(5));
    results.add("cudaLaunchKernel", (20, 40), call(wide, 5));
    results.add("gemm", (50, 80), kernel(wide, 5));
    results.add("copy", (90, 95), kernel(wide + 1, 5));
    let profile = results.profile(ThreadIdentity::System);
    let number = |index| {
        let links = profile.links(EventId::from_index(index));
        links.map(|links| links.correlation)
    };
    assert_eq!(number(1), number(2));
    assert_ne!(number(2), number(3));
}

#[test]
fn hidden_events_are_kept_and_flagged_but_not_visited() {
    let mut results = MadeUp::default();
    results.add("aten::add", (10, 20), scope(5));
    results.add("aten::is_leaf", (30, 40), scope(6));
    let by_torch = RawEvent {
        is_hidden: true,
        ..scope(7)
    };
    results.add("aten::mul", (50, 60), by_torch);
    let mut visited = Vec::new();
    let options = ReadOptions {
        time_zero: START,
        inputs: false,
        stacks: false,
        threads: ThreadIdentity::Counted,
        known_loss: 0,
    };
    let read = read_raw_results(&results, options, |position| {
        visited.push(position);
        Ok(ControlFlow::Continue(()))
    });
    let read = read.unwrap();
    assert_eq!(visited, [0]);
    assert_eq!(read.last_number, 5);
    let profile = read.part.into_profile().unwrap();
    let hidden = profile.events().iter();
    let hidden: Vec<bool> = hidden
        .map(|event| event.flags.contains(Flags::HIDDEN))
        .collect();
    assert_eq!(hidden, [false, true, true]);
}

#[test]
fn a_visitor_that_breaks_leaves_what_was_read_and_all_memory() {
    let mut results = MadeUp::default();
    results.add("aten::add", (10, 20), scope(5));
    results.add("aten::mul", (30, 40), scope(6));
    results.add("[memory]", (50, 50), scope(0)).bytes = 64;
    let options = ReadOptions {
        time_zero: START,
        inputs: false,
        stacks: false,
        threads: ThreadIdentity::Counted,
        known_loss: 0,
    };
    let read = read_raw_results(&results, options, |position| match position {
        0 => Ok(ControlFlow::Continue(())),
        _ => Ok(ControlFlow::Break(())),
    });
    let read = read.unwrap();
    assert_eq!(read.events, [0]);
    assert_eq!(read.memory, [2]);
}

#[test]
fn memory_is_recorded_and_failed_allocations_are_instants() {
    let mut results = MadeUp::default();
    results.add("aten::empty", (10, 20), scope(5));
    let on_gpu = |raw: RawEvent| RawEvent {
        device: DeviceKind::Cuda,
        device_index: 1,
        ..raw
    };
    results.add("[memory]", (15, 15), on_gpu(scope(0))).bytes = -512;
    results.add("[memory]", (12, 12), scope(0)).bytes = 64;
    results
        .add("[OutOfMemory]", (18, 18), on_gpu(scope(0)))
        .bytes = 1 << 40;
    // A range of the user that merely has this name.
    let range = RawEvent {
        is_annotation: true,
        scope: 7,
        ..scope(8)
    };
    results.add("[memory]", (30, 40), range);
    let read = results.read(ThreadIdentity::System).unwrap();
    assert_eq!(read.memory, [2, 1]);
    assert_eq!(read.events, [0, 3, 4]);
    let [(position, failed)] = read.failed[..] else {
        panic!("one allocation failed")
    };
    assert_eq!(
        (position, failed.bytes, failed.time),
        (3, 1 << 40, Nanos(18))
    );
    let profile = read.part.into_profile().unwrap();
    let records: Vec<_> = profile.memory().iter().collect();
    let found = records
        .iter()
        .map(|record| (record.time.0, record.bytes, record.device));
    let expected = [(12, 64, DeviceKind::Cpu), (15, -512, DeviceKind::Cuda)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let expected = [
        ("aten::empty", Category::Operator),
        ("[OutOfMemory]", Category::Other),
        ("[memory]", Category::Annotation),
    ];
    assert_eq!(categories(&profile), expected);
    assert!(profile.events()[1].flags.contains(Flags::INSTANT));
    // All of it ran on the main thread, also memory of the device.
    assert_eq!(threads(&profile), [MAIN as u64; 3]);
    let thread = profile.threads()[records[1].thread.index()];
    assert_eq!(thread.native, MAIN as u64);
}

#[test]
fn python_calls_annotations_and_the_rest_have_their_categories() {
    let mut results = MadeUp::default();
    let python = RawEvent {
        is_python: true,
        ..scope(5)
    };
    results.add("train.py(3): step", (0, 90), python);
    let range = RawEvent {
        is_annotation: true,
        scope: 7,
        ..scope(6)
    };
    results.add("forward", (10, 80), range);
    let range_on_gpu = RawEvent {
        device: DeviceKind::Cuda,
        device_index: 0,
        resource: 3,
        ..range
    };
    results.add("forward", (20, 70), range_on_gpu);
    let overhead = RawEvent {
        device_index: -1,
        resource: 0,
        external: Some(0),
        activity: Some(Category::Other),
        ..scope(0)
    };
    results.add("Buffer Flush", (30, 40), overhead);
    let profile = results.profile(ThreadIdentity::System);
    let expected = [
        ("train.py(3): step", Category::PythonFunction),
        ("forward", Category::Annotation),
        ("forward", Category::DeviceAnnotation),
        ("Buffer Flush", Category::Other),
    ];
    assert_eq!(categories(&profile), expected);
    assert_eq!(profile.events()[1].scope, ScopeKind::User);
    let flush = profile.threads()[profile.events()[3].thread.index()];
    assert_eq!(profile.strings().text(flush.name), "collector of torch");
}

#[test]
fn a_torch_without_external_ids_and_activities_is_understood_by_names() {
    let old = |raw: RawEvent| RawEvent {
        external: None,
        activity: None,
        ..raw
    };
    let mut results = MadeUp::default();
    results.add("aten::mm", (10, 60), old(scope(5)));
    results.add("cudaMalloc", (70, 80), old(call(5, 0)));
    // Kineto's name of calls that are newer than its list.
    results.add("INVALID", (82, 85), old(call(6, 0)));
    let overhead = RawEvent {
        device_index: -1,
        ..old(scope(0))
    };
    results.add("Lazy Function Loading", (90, 95), overhead);
    let profile = results.profile(ThreadIdentity::System);
    let expected = [
        ("aten::mm", Category::Operator),
        ("cudaMalloc", Category::Runtime),
        ("INVALID", Category::Runtime),
        ("Lazy Function Loading", Category::Other),
    ];
    assert_eq!(categories(&profile), expected);
}

/// ```text
/// thread 1, id 7001    |--aten::mm--|          ^ cudaFree reports 7001
/// thread 2, id 7002                  |--mul--|
/// ```
#[test]
fn calls_outside_scopes_go_to_the_thread_whose_number_they_report() {
    let mut results = MadeUp::default();
    results.add("aten::mm", (10, 60), scope(5));
    results.add("aten::mul", (60, 90), on_other_thread(scope(6)));
    // torch assigns it to thread 2, which started the collection.
    let unlinked = RawEvent {
        start_thread: 2,
        end_thread: 2,
        ..call(70, 0)
    };
    results.add("cudaFree", (95, 98), unlinked);
    let stranger = RawEvent {
        resource: 7003,
        ..unlinked
    };
    results.add("cudaMalloc", (99, 100), stranger);
    let profile = results.profile(ThreadIdentity::System);
    assert_eq!(threads(&profile), [7001, 7002, 7001, 7003]);
    let process = u64::from(std::process::id());
    assert!(
        profile
            .threads()
            .iter()
            .all(|thread| thread.process == process)
    );
    // By torch's count, nothing is inferred.
    let counted = results.profile(ThreadIdentity::Counted);
    assert_eq!(threads(&counted), [1, 2, 2, 2]);
}

#[test]
fn events_that_end_elsewhere_are_asynchronous() {
    let mut results = MadeUp::default();
    let moved = RawEvent {
        end_thread: 2,
        ..scope(5)
    };
    results.add("future", (10, 60), moved);
    let told = RawEvent {
        is_async: true,
        ..scope(6)
    };
    results.add("rpc", (70, 80), told);
    results.add("aten::add", (90, 95), scope(7));
    let profile = results.profile(ThreadIdentity::Counted);
    let events = profile.events().iter();
    let flags: Vec<bool> = events
        .map(|event| event.flags.contains(Flags::ASYNC))
        .collect();
    assert_eq!(flags, [true, true, false]);
}

#[test]
fn backward_nodes_know_the_thread_of_their_forward_operator() {
    let mut results = MadeUp::default();
    let forward = RawEvent {
        sequence: 3,
        ..scope(5)
    };
    results.add("aten::mul", (10, 20), forward);
    let node = |correlation, thread| RawEvent {
        sequence: 3,
        scope: 1,
        forward_thread: thread,
        ..on_other_thread(scope(correlation))
    };
    results.add("MulBackward0", (30, 40), node(6, 1));
    results.add("AddBackward0", (50, 60), node(7, 9));
    let profile = results.profile(ThreadIdentity::System);
    let [mul, backward, stray] = profile.events() else {
        panic!("three events were added")
    };
    assert_eq!((mul.sequence(), backward.sequence()), (Some(3), Some(3)));
    assert_eq!(backward.scope, ScopeKind::Backward);
    assert_eq!(stray.scope, ScopeKind::Backward);
    let thread = |index| {
        let links = profile.links(EventId::from_index(index));
        links.map(|links| links.forward_thread())
    };
    assert_eq!(thread(1), Some(ForwardThread::At(mul.thread)));
    assert_eq!(thread(2), Some(ForwardThread::Elsewhere));
}

#[test]
fn stacks_and_inputs_are_read_for_operators_alone_if_asked_for() {
    let mut results = MadeUp::default();
    let add = results.add("aten::add", (10, 60), scope(5));
    add.stack = vec!["main", "step"];
    add.inputs = vec![4, 2];
    let launch = results.add("cudaLaunchKernel", (20, 40), call(90, 5));
    launch.inputs = vec![1];
    let profile = results.profile(ThreadIdentity::System);
    let [add, launch] = profile.events() else {
        panic!("two events were added")
    };
    assert_ne!(add.stack, StackId::NONE);
    let given = |event: &mindprof_model::Event| profile.inputs().inputs(event.inputs).count();
    assert_eq!((given(add), given(launch)), (2, 0));
}

/// ```text
/// time zero           |
/// aten::early   |--|
/// aten::late                |--|
/// ```
#[test]
fn events_before_time_zero_move_it_and_order_is_by_time() {
    let mut results = MadeUp::default();
    results.add("aten::late", (30, 40), scope(6));
    results.add("aten::early", (-50, -20), scope(5));
    let read = results.read(ThreadIdentity::System).unwrap();
    assert_eq!(read.events, [1, 0]);
    let profile = read.part.into_profile().unwrap();
    assert_eq!(i128::from(profile.reference_unix_ns()), START - 50);
    let starts: Vec<_> = profile.events().iter().map(|event| event.start.0).collect();
    assert_eq!(starts, [0, 80]);
}

#[test]
fn a_negative_link_is_an_error_in_torchs_words() {
    let mut results = MadeUp::default();
    results.add("gemm", (0, 10), kernel(90, -1));
    let error = results.read(ThreadIdentity::Counted).err().unwrap();
    assert_eq!(
        error.to_string(),
        "Got negative correlation id -1 in profiler post processing"
    );
}

#[cfg(target_os = "linux")]
mod in_memory {
    use super::*;
    use crate::kineto::KinetoLayout;
    use crate::kineto_stand_in::{StandInEvent, StandInResult, symbols};

    const NAMES: [&str; 2] = [
        "aten::add",
        "a name of more letters than a text has room for",
    ];

    /// Returns events as the accessors of `kineto_stand_in` answer.
    fn reference() -> MadeUp {
        let mut results = MadeUp::default();
        for (position, name) in (1..).zip(NAMES) {
            let raw = RawEvent {
                start_thread: 0,
                end_thread: 0,
                sequence: 1,
                device_index: 0,
                resource: 1,
                external: Some(1),
                is_annotation: true,
                ..scope(START + position)
            };
            results.add(name, (position, position), raw).bytes = 1;
        }
        results
    }

    fn learn(reference: &MadeUp) -> Result<NativeLayout> {
        with_result(|result| {
            let layout = KinetoLayout::find_with(symbols(), result.place(), 2)?;
            NativeLayout::learn_with(layout, reference, result.place())
        })
    }

    fn with_result<R>(run: impl FnOnce(&StandInResult<'_>) -> R) -> R {
        let events =
            [0, 1].map(|index| StandInEvent::new(START as u64 + 1 + index as u64, NAMES[index]));
        run(&StandInResult::new(START as u64, &events))
    }

    #[test]
    fn memory_that_agrees_with_its_accessors_is_read_without_them() {
        let layout = learn(&reference()).unwrap();
        with_result(|result| {
            // No value is known, so inputs are left to the fallback.
            let with_inputs = layout.with_inputs(&reference(), result.place());
            assert!(with_inputs.is_err());
            let other_inputs = |position: usize, inputs: &mut InputsEncoder| {
                inputs.int(position as i64);
                Ok::<_, Error>(())
            };
            let native = NativeEvents::open(&layout, result.place(), other_inputs);
            let options = ReadOptions {
                time_zero: START,
                inputs: true,
                stacks: true,
                threads: ThreadIdentity::System,
                known_loss: 0,
            };
            let read_all = |_| Ok(ControlFlow::Continue(()));
            let read = read_raw_results(&native.unwrap(), options, read_all).unwrap();
            let profile = read.part.into_profile().unwrap();
            let names: Vec<_> = profile
                .events()
                .iter()
                .map(|event| profile.name(event))
                .collect();
            assert_eq!(names, NAMES);
            let given = profile.events().iter().map(|event| {
                let inputs: InputsIter<'_> = profile.inputs().inputs(event.inputs);
                inputs.count()
            });
            assert_eq!(given.collect::<Vec<_>>(), [1, 1]);
        });
    }

    #[test]
    fn memory_that_differs_from_its_accessors_is_refused() {
        type Change = fn(&mut MadeUpEvent);
        let changes: [(Change, &str); 4] = [
            (|event| event.name = "aten::sub", "names"),
            (|event| event.raw.resource = 2, "facts"),
            (|event| event.bytes = 2, "bytes"),
            (|event| event.stack = vec!["main"], "stacks"),
        ];
        for (change, what) in changes {
            let mut reference = reference();
            change(&mut reference.events[1]);
            let error = learn(&reference).err().unwrap();
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
