//! Tests of the observer on a stand-in for libtorch, from the probe to a profile.

use std::thread;

use mindprof_model::{
    DType, DeviceKind, Event, EventId, Flags, InputsEncoder, Profile, ScopeKind, TensorRole,
};
use mindprof_record::{Options, Session};

use crate::error::Error;
use crate::memory::MemoryReport;
use crate::observer::{Observer, Wanted};
use crate::probe::{Facts, Probe};
use crate::stand_in::{self, LAYOUT, Record, Scope, THREAD, Tensor, Value};
use crate::tensor_samples::TensorSamples;

const TENSOR_LIST: u64 = LAYOUT.tensor_type;
const OTHER_LIST: u64 = 0x7ef0;

/// A tensor of 32-bit floats.
fn tensor(sizes: [i64; 2]) -> Tensor {
    Tensor::new(6, &sizes, &[sizes[1], 1], 0)
}

fn operator(name: &str, sequence: i64) -> Scope<'_> {
    Scope {
        name,
        kind: 0,
        sequence,
        forward: 0,
    }
}

fn backward(name: &str, sequence: i64) -> Scope<'_> {
    Scope {
        name,
        kind: 1,
        sequence,
        forward: THREAD,
    }
}

fn range(name: &str) -> Scope<'_> {
    Scope {
        name,
        kind: 7,
        sequence: -1,
        forward: 0,
    }
}

fn int(value: i64) -> Value {
    Value::new(value as u64, LAYOUT.tags.int)
}

fn half() -> Value {
    Value::new(0.5_f64.to_bits(), LAYOUT.tags.double)
}

/// Runs the operators of the probe.
fn run_probe(a: &Tensor, b: &Tensor) {
    let pair = || vec![Value::tensor(a), Value::tensor(b)];
    let with = |last: Value| pair().into_iter().chain([last]).collect::<Vec<_>>();
    Record::new(range("mindprof::probe"), Vec::new()).run();
    Record::new(operator("aten::add", 5), with(int(3))).run();
    Record::new(operator("aten::add", 6), with(half())).run();
    let tensors = Value::list(&pair(), TENSOR_LIST);
    Record::new(operator("aten::cat", 7), vec![tensors, int(1)]).run();
    let dims = Value::list(&[int(0), int(1)], OTHER_LIST);
    let keep = Value::new(1, LAYOUT.tags.bool);
    let sum = vec![Value::tensor(a), dims, keep, Value::none()];
    Record::new(operator("aten::sum", 8), sum).run();
    let optional = Value::list(&pair(), OTHER_LIST);
    Record::new(operator("aten::index", 9), vec![Value::tensor(a), optional]).run();
    let size = Value::list(&[int(1)], OTHER_LIST);
    Record::new(operator("aten::full", -1), vec![size, Value::complex()]).run();
    Record::new(operator("aten::neg", -1), vec![Value::tensor(a)]).run();
    for sequence in [6, 5] {
        Record::new(backward("AddBackward0", sequence), Vec::new()).run();
    }
}

fn probed(change: impl Fn(Facts<'_>) -> Facts<'_>) -> crate::Result<&'static Observer> {
    let (a, b) = (tensor([2, 3]), tensor([2, 3]));
    let (samples, further) = (stand_in::sample_tensors(), stand_in::further_tensors());
    let probe = Probe::begin(stand_in::symbols(|_| false)?);
    run_probe(&a, &b);
    let plain = stand_in::addresses(&samples);
    let facts = Facts {
        tensors: [&a, &b].map(|tensor| std::ptr::from_ref(tensor) as u64),
        sequences: [5, 6],
        samples: stand_in::samples(&plain, &further),
    };
    probe.finish(&change(facts))
}

fn observer() -> &'static Observer {
    probed(|facts| facts).expect("the stand-in is as the probe expects")
}

fn record(wanted: Wanted, work: impl FnOnce()) -> Profile {
    record_with(Options::default(), wanted, work)
}

fn record_with(options: Options, wanted: Wanted, work: impl FnOnce()) -> Profile {
    let session = Session::start(Options {
        inputs: wanted.inputs,
        memory: wanted.memory,
        ..options
    });
    let attachment = observer().attach(wanted).unwrap();
    work();
    let capture = session.stop();
    drop(attachment);
    capture.assemble()
}

fn names(profile: &Profile) -> Vec<&str> {
    let events = profile.events().iter();
    events.map(|event| profile.name(event)).collect()
}

#[test]
fn the_probe_finds_everything_where_it_lies() {
    assert_eq!(*observer().layout(), LAYOUT);
    assert!(stand_in::installed().is_empty());
}

#[test]
fn facts_that_are_wrong_are_found_nowhere() {
    let wrong_tensor = probed(|facts| Facts {
        tensors: [1, 2],
        ..facts
    });
    let wrong_sequence = probed(|facts| Facts {
        sequences: [1, 2],
        ..facts
    });
    for (found, what) in [
        (wrong_tensor, "the inputs"),
        (wrong_sequence, "the sequence number"),
    ] {
        let expected = Error::Layout(format!("{what} was not found"));
        assert_eq!(found.err(), Some(expected));
    }
    assert!(stand_in::installed().is_empty(), "the probe has gone");
}

#[test]
fn a_probe_that_saw_nothing_finds_nothing() {
    let probe = Probe::begin(stand_in::symbols(|_| false).unwrap());
    let facts = Facts {
        tensors: [1, 2],
        sequences: [1, 2],
        samples: TensorSamples {
            plain: &[],
            large: 0,
            others: [0; 4],
            wrapper: [0; 2],
        },
    };
    assert!(matches!(probe.finish(&facts), Err(Error::Layout(_))));
}

#[test]
fn a_symbol_that_is_missing_is_named() {
    let missing = stand_in::symbols(|name| name.contains("removeCallback"));
    assert_eq!(
        missing.err(),
        Some(Error::Symbol("_ZN2at14removeCallbackEm"))
    );
}

#[test]
fn scopes_come_with_names_kinds_numbers_and_nesting() {
    let profile = record(Wanted::default(), || {
        let outer = Record::new(range("step"), Vec::new()).begin();
        Record::new(operator("aten::mul", 7), vec![int(1)]).run();
        outer.end();
        let evaluation = "autograd::engine::evaluate_function: MulBackward0";
        let engine = Record::new(operator(evaluation, -1), Vec::new()).begin();
        Record::new(backward("MulBackward0", 7), Vec::new()).run();
        Record::new(backward("Other", 3), Vec::new()).run();
        engine.end();
        Record::new(backward("Late", 4), Vec::new()).run();
    });
    let events = profile.events().iter();
    let found: Vec<_> = events
        .map(|event| (profile.name(event), event.scope, event.sequence()))
        .collect();
    let expected = [
        ("step", ScopeKind::User, None),
        ("aten::mul", ScopeKind::Function, Some(7)),
        (
            "autograd::engine::evaluate_function: MulBackward0",
            ScopeKind::Function,
            Some(7),
        ),
        ("MulBackward0", ScopeKind::Backward, Some(7)),
        ("Other", ScopeKind::Backward, Some(3)),
        ("Late", ScopeKind::Backward, Some(4)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn inputs_are_told_apart_as_torchs_profiler_does() {
    let (a, b) = (tensor([4, 5]), tensor([6, 7]));
    let wanted = Wanted {
        inputs: true,
        ..Wanted::default()
    };
    let profile = record(wanted, || {
        let pair = [Value::tensor(&a), Value::tensor(&b)];
        let long: Vec<Value> = (0..31).map(int).collect();
        let values = vec![
            Value::tensor(&a),
            Value::list(&pair, TENSOR_LIST),
            int(-3),
            Value::new(2.5_f64.to_bits(), LAYOUT.tags.double),
            Value::new(0xff00, LAYOUT.tags.bool),
            Value::list(&[int(8), int(9)], OTHER_LIST),
            Value::complex(),
            Value::list(&[int(8), half(), Value::complex()], OTHER_LIST),
            Value::list(&[int(8), Value::none()], OTHER_LIST),
            Value::list(&long, OTHER_LIST),
            Value::list(&pair, OTHER_LIST),
            Value::none(),
        ];
        Record::new(operator("aten::all", -1), values).run();
    });
    let event = profile.events().iter().next().unwrap();
    let mut expected = InputsEncoder::default();
    let write_a = |inputs: &mut InputsEncoder| inputs.tensor(DType::F32, &[4, 5], &[5, 1]);
    write_a(&mut expected);
    expected.tensor_list(2);
    write_a(&mut expected);
    expected.tensor(DType::F32, &[6, 7], &[7, 1]);
    expected.int(-3);
    expected.float(2.5);
    expected.bool(false);
    expected.int_list(&[8, 9]);
    expected.complex(3.0, 4.0);
    expected.number_list(3);
    expected.int(8);
    expected.float(0.5);
    expected.complex(3.0, 4.0);
    // A list with an element that is not a number.
    expected.other();
    // A list that is too long, a list of optional tensors, and no value.
    for _ in 0..3 {
        expected.other();
    }
    assert_eq!(profile.inputs().words(event.inputs), expected.words());
}

#[test]
fn a_scope_has_the_handle_that_another_observer_needs() {
    let observer = observer();
    let profile = record(Wanted::default(), || {
        Record::new(operator("aten::mul", -1), vec![int(1)]).run();
        let other = stand_in::need_handles(&observer.symbols);
        Record::new(operator("aten::neg", -1), vec![int(1)]).run();
        observer.symbols.remove(other);
        Record::new(operator("aten::sub", -1), vec![int(1)]).run();
    });
    let ids = [0, 1, 2].map(|index| {
        let links = profile.links(EventId::from_raw(index)).unwrap();
        links.record_function
    });
    assert_eq!([ids[0], ids[2]], [0, 0]);
    assert_ne!(ids[1], 0);
}

#[test]
fn an_overload_is_told_to_those_who_ask() {
    let _observer = observer();
    let run = || Record::new(operator("aten::add", -1), vec![int(1)]).run();
    for (overloads, overload) in [(true, Some("Tensor")), (false, None)] {
        let profile = record_with(
            Options {
                overloads,
                ..Options::default()
            },
            Wanted::default(),
            run,
        );
        assert_eq!(names(&profile), ["aten::add"]);
        assert_eq!(profile.overload(EventId::from_raw(0)), overload);
    }
}

#[test]
fn a_sequence_number_without_room_is_none() {
    let most = i64::from(mindprof_record::MAX_SEQUENCE);
    let profile = record(Wanted::default(), || {
        for sequence in [most, most + 1, 1 << 31, (1 << 32) + 5] {
            Record::new(operator("aten::add", sequence), vec![int(1)])
                .begin()
                .end();
        }
    });
    let told = profile.events().iter().map(Event::sequence);
    let most = Some(mindprof_record::MAX_SEQUENCE);
    assert_eq!(told.collect::<Vec<_>>(), [most, None, None, None]);
}

#[test]
fn a_scope_may_end_on_another_thread_and_after_the_recording() {
    let mut late = None;
    let profile = record(Wanted::default(), || {
        let moved = Record::new(operator("aten::moved", -1), vec![int(1)]).begin();
        thread::spawn(move || moved.end()).join().unwrap();
        late = Some(Record::new(operator("aten::late", -1), vec![int(1)]).begin());
    });
    late.unwrap().end();
    assert_eq!(names(&profile), ["aten::moved", "aten::late"]);
    let flags: Vec<Flags> = profile.events().iter().map(|event| event.flags).collect();
    assert!(flags[0].contains(Flags::ASYNC));
    assert!(flags[1].contains(Flags::UNFINISHED));
}

#[test]
fn what_torch_calls_async_is_so_wherever_it_ends() {
    let profile = record(Wanted::default(), || {
        let collective = Record::new(range("gloo:all_reduce"), Vec::new());
        let collective = collective.set_async().begin();
        Record::new(operator("aten::meanwhile", -1), vec![int(1)]).run();
        collective.end();
    });
    assert_eq!(names(&profile), ["gloo:all_reduce", "aten::meanwhile"]);
    let flags: Vec<Flags> = profile.events().iter().map(|event| event.flags).collect();
    assert!(flags[0].contains(Flags::ASYNC));
    assert!(!flags[1].contains(Flags::ASYNC));
}

#[test]
fn contexts_are_used_again_by_other_threads() {
    let run = || {
        for _ in 0..1_000 {
            Record::new(operator("aten::again", -1), vec![int(1)]).run();
        }
    };
    let profile = record(Wanted::default(), || {
        for _ in 0..4 {
            thread::spawn(run).join().unwrap();
        }
    });
    assert_eq!(profile.events().len(), 4_000);
}

#[test]
fn torch_is_asked_for_inputs_while_someone_wants_them() {
    let observer = observer();
    let plain = observer.attach(Wanted::default()).unwrap();
    assert_eq!(stand_in::installed(), [false]);
    let inputs = true;
    let shaped = observer
        .attach(Wanted {
            inputs,
            ..Wanted::default()
        })
        .unwrap();
    assert_eq!(stand_in::installed(), [true]);
    drop(shaped);
    assert_eq!(stand_in::installed(), [false]);
    drop(plain);
    assert!(stand_in::installed().is_empty());
}

const MEMORY: Wanted = Wanted {
    operators: true,
    inputs: false,
    memory: true,
};

#[test]
fn memory_is_reported_while_a_session_wants_it() {
    const SECOND_GPU: u16 = 1 | 1 << 8;
    let profile = record(MEMORY, || {
        stand_in::allocate(0x1000, 64, 640, 0);
        stand_in::allocate(0x1000, -64, 576, 0);
        stand_in::allocate(0x2000, 32, 32, SECOND_GPU);
    });
    let told: Vec<_> = profile
        .memory()
        .iter()
        .map(|record| (record.address, record.bytes, record.total_allocated))
        .collect();
    let expected = [(0x1000, 64, 640), (0x1000, -64, 576), (0x2000, 32, 32)];
    assert_eq!(told, expected);
    let places = profile.memory().iter();
    let places: Vec<_> = places
        .map(|record| (record.device, record.device_index))
        .collect();
    let cpu = (DeviceKind::Cpu, -1);
    assert_eq!(places, [cpu, cpu, (DeviceKind::Cuda, 1)]);
    assert_eq!(stand_in::slots(), 0);
}

#[test]
fn a_slot_of_another_profiler_is_left_alone() {
    stand_in::take_slot();
    let attachment = observer().attach(MEMORY).unwrap();
    assert!(matches!(attachment.memory(), Some(MemoryReport::SlotTaken)));
    drop(attachment);
    assert_eq!(stand_in::slots(), 1);
    stand_in::clear_slots();
}

#[test]
fn an_empty_slot_is_left_alone_if_callbacks_of_a_profiler_are_left() {
    stand_in::HAS_CALLBACKS.set(true);
    let attachment = observer().attach(MEMORY).unwrap();
    assert!(matches!(attachment.memory(), Some(MemoryReport::SlotTaken)));
    assert_eq!(stand_in::slots(), 0);
}

#[test]
fn a_slot_is_emptied_by_the_last_session_also_below_another_entry() {
    let observer = observer();
    let [one, two] = [(), ()].map(|()| observer.attach(MEMORY).unwrap());
    drop(one);
    assert_eq!(stand_in::slots(), 1);
    stand_in::take_slot();
    drop(two);
    assert_eq!(stand_in::slots(), 2, "the other entry was pushed later");
    stand_in::drop_newest();
    assert!(stand_in::slot_is_empty());
    drop(observer.attach(MEMORY).unwrap());
    assert_eq!(stand_in::slots(), 0, "what was left is cleared away");
}

#[test]
fn a_recording_that_is_stopped_on_another_thread_leaves_an_empty_slot() {
    let attachment = observer().attach(MEMORY).unwrap();
    assert!(observer().hears_memory_here());
    let stop = thread::spawn(move || drop(attachment));
    stop.join().unwrap();
    assert!(stand_in::slot_is_empty());
    assert!(!observer().hears_memory_here());
    let next = observer().attach(MEMORY).unwrap();
    assert!(!stand_in::slot_is_empty());
    drop(next);
    assert_eq!(stand_in::slots(), 0);
}

#[test]
fn a_recording_that_is_stopped_inside_of_a_backward_pass_leaves_an_empty_slot() {
    let attachment = observer().attach(MEMORY).unwrap();
    let put_back = stand_in::swap_slots();
    drop(attachment);
    put_back();
    assert_eq!(stand_in::slots(), 1, "torch restores the entry");
    assert!(stand_in::slot_is_empty());
}

#[test]
fn torch_finds_an_empty_slot_while_it_is_hidden() {
    let attachment = observer().attach(MEMORY).unwrap();
    assert!(observer().without_slot(stand_in::slot_is_empty));
    assert!(!stand_in::slot_is_empty());
    assert_eq!(stand_in::slots(), 1);
    drop(attachment);
    observer().without_slot(|| assert_eq!(stand_in::slots(), 0, "there is nothing to hide"));
}

/// What is in the slot, with the oldest entry first:
///
/// ```text
/// ours │ empty │ theirs │ empty again │ ours
/// ```
#[test]
fn the_object_gives_way_to_a_profiler_that_starts_and_is_back_after_it() {
    let attachment = observer().attach(MEMORY).unwrap();
    observer().without_slot(stand_in::take_slot);
    assert_eq!(stand_in::slots(), 3);
    assert!(!observer().hears_memory_here());
    observer().without_slot(|| assert!(!stand_in::slot_is_empty(), "it finds its own"));
    assert_eq!(attachment.memory_gaps(), 1);
    observer().without_slot(stand_in::drop_newest);
    assert_eq!(stand_in::slots(), 1);
    assert!(observer().hears_memory_here());
    let later = observer().attach(MEMORY).unwrap();
    assert_eq!((attachment.memory_gaps(), later.memory_gaps()), (1, 0));
    drop((attachment, later));
    assert_eq!(stand_in::slots(), 0);
}

#[test]
fn the_object_stays_hidden_from_callbacks_that_a_profiler_left() {
    let attachment = observer().attach(MEMORY).unwrap();
    observer().without_slot(stand_in::take_slot);
    stand_in::HAS_CALLBACKS.set(true);
    observer().without_slot(stand_in::drop_newest);
    assert!(stand_in::slot_is_empty());
    assert_eq!(attachment.memory_gaps(), 1);
    stand_in::HAS_CALLBACKS.set(false);
    observer().without_slot(|| ());
    assert!(observer().hears_memory_here());
}

#[test]
fn a_recording_that_ends_before_the_profiler_that_it_gave_way_to_leaves_nothing() {
    let attachment = observer().attach(MEMORY).unwrap();
    observer().without_slot(stand_in::take_slot);
    drop(attachment);
    stand_in::drop_newest();
    assert!(stand_in::slot_is_empty());
    drop(observer().attach(MEMORY).unwrap());
    assert_eq!(stand_in::slots(), 0, "what was left is cleared away");
}

#[test]
fn an_action_inside_of_another_leaves_the_object_hidden() {
    let attachment = observer().attach(MEMORY).unwrap();
    observer().without_slot(|| {
        observer().without_slot(|| ());
        assert!(stand_in::slot_is_empty());
    });
    assert!(observer().hears_memory_here());
    assert_eq!(attachment.memory_gaps(), 0);
}

#[test]
fn memory_that_is_not_reported_is_an_error() {
    let observer = observer();
    assert_eq!(
        observer.check_memory(77, || stand_in::allocate(1, 77, 77, 0)),
        Ok(())
    );
    let silent = observer.check_memory(77, || {});
    assert!(matches!(silent, Err(Error::Layout(_))));
    assert_eq!(stand_in::slots(), 0);
}

#[test]
fn the_block_that_is_checked_is_in_no_recording() {
    let profile = record(MEMORY, || {
        let check = observer().check_memory(77, || {
            stand_in::allocate(1, 77, 77, 0);
            stand_in::allocate(2, 64, 141, 0);
            stand_in::allocate(1, -77, 64, 0);
        });
        assert_eq!(check, Ok(()));
        stand_in::allocate(3, 77, 141, 0);
    });
    let told = profile.memory().iter();
    let told: Vec<_> = told.map(|record| (record.address, record.bytes)).collect();
    assert_eq!(told, [(2, 64), (3, 77)]);
}

#[test]
fn roles_are_of_storages_in_cpu_memory() {
    let wanted = Wanted {
        inputs: true,
        memory: true,
        ..Wanted::default()
    };
    let (kept, elsewhere) = (tensor([2, 3]), tensor([2, 3]).on_device(1));
    let addresses = [&kept, &elsewhere].map(|tensor| std::ptr::from_ref(tensor) as u64);
    let profile = record(wanted, || {
        for address in addresses.into_iter().chain([0]) {
            stand_in::tell_role(observer(), TensorRole::OptimizerState, address);
        }
    });
    let found: Vec<_> = profile
        .roles()
        .iter()
        .map(|record| (record.role, record.address, record.bytes))
        .collect();
    assert_eq!(found, [(TensorRole::OptimizerState, kept.bytes(), 24)]);
}
