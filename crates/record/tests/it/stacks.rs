//! The call stacks of scopes, and the scopes of calls.

use std::cell::Cell;

use mindprof_model::{Category, Flags, LossCause, Profile, StackId};
use mindprof_record::{
    Calls, Name, NameKind, Options, Session, Site, Stack, count_deep_calls, count_unseen_calls,
    open_call, scope, set_stack_source, wants_calls, wants_stacks,
};
use proptest::prelude::*;

use super::{names, record};

static OP: Site = Site::operator("op");

thread_local! {
    static CURRENT: Cell<Stack> = const { Cell::new(Stack::NONE) };
}

fn with_stacks() -> Options {
    Options {
        calls: Calls::All,
        ..Options::default()
    }
}

fn with_modules() -> Options {
    Options {
        calls: Calls::Modules,
        ..Options::default()
    }
}

fn frame(text: &str) -> Name {
    Name::intern(text, NameKind::Function)
}

/// Runs `inside` within a function of this name in the current stack. The stack provider is set
/// once per process, so all tests set the same one.
pub(crate) fn within<T>(name: Name, inside: impl FnOnce() -> T) -> T {
    set_stack_source(|| CURRENT.get());
    let stack = CURRENT.get();
    CURRENT.set(stack.push(name));
    let result = inside();
    CURRENT.set(stack);
    result
}

/// Records a call of a function of this name in the current stack, and runs `inside` within it.
fn call(name: Name, inside: impl FnOnce()) {
    let open = open_call(name, CURRENT.get());
    within(name, inside);
    if let Some(open) = open {
        open.close();
    }
}

fn stack(profile: &Profile, stack: StackId) -> Vec<&str> {
    let frames = profile.stacks().frames(stack);
    frames.map(|frame| profile.strings().text(frame)).collect()
}

fn stack_of<'p>(profile: &'p Profile, name: &str) -> Vec<&'p str> {
    let mut events = profile.events().iter();
    let found = events.find(|event| profile.name(event) == name);
    stack(profile, found.expect("the event is there").stack)
}

#[test]
fn scopes_know_their_stacks_and_calls_are_events() {
    let profile = record(with_stacks(), || {
        call(frame("main"), || call(frame("step"), || drop(scope(&OP))));
    });
    assert_eq!(names(&profile), ["main", "step", "op"]);
    assert_eq!(stack_of(&profile, "op"), ["step", "main"]);
    assert_eq!(stack_of(&profile, "step"), ["main"]);
    assert_eq!(stack_of(&profile, "main"), [] as [&str; 0]);
    let categories: Vec<_> = profile.events().iter().map(|e| e.category).collect();
    let function = Category::PythonFunction;
    assert_eq!(categories, [function, function, Category::Operator]);
}

#[test]
fn only_a_window_that_wants_stacks_has_them() {
    let plain = Session::start(Options::default());
    let wanting = Session::start(with_stacks());
    call(frame("main"), || drop(scope(&OP)));
    let wanting = wanting.stop().assemble();
    assert!(!wants_stacks() && !wants_calls());
    call(frame("later"), || drop(scope(&OP)));
    let plain = plain.stop().assemble();
    assert_eq!(names(&plain), ["op", "op"]);
    assert!(plain.stacks().is_empty());
    assert_eq!(names(&wanting), ["main", "op"]);
}

#[test]
fn a_window_that_wants_modules_has_those_calls_only() {
    let modules = Session::start(with_modules());
    let stacks = Session::start(with_stacks());
    let module = Name::intern("module", NameKind::Module);
    call(frame("main"), || call(module, || drop(scope(&OP))));
    assert_eq!(names(&stacks.stop().assemble()), ["main", "module", "op"]);
    let modules = modules.stop().assemble();
    assert_eq!(names(&modules), ["module", "op"]);
    assert!(modules.stacks().is_empty());
}

#[test]
fn calls_go_on_while_scopes_are_paused() {
    let session = Session::start(with_stacks());
    session.pause();
    call(frame("main"), || drop(scope(&OP)));
    session.resume();
    assert_eq!(names(&session.stop().assemble()), ["main"]);
}

// outer window   |------------------------------|
// gone            |--|
// main, step          |----------------------|
// inner window            |--------------|
// op, later                  |-|  |--------|
#[test]
fn a_window_begins_with_the_calls_that_are_open() {
    let mut inner = None;
    let mut profile = None;
    let outer = Session::start(with_stacks());
    call(frame("gone"), || ());
    call(frame("main"), || {
        call(frame("step"), || {
            inner = Some(Session::start(with_stacks()));
            drop(scope(&OP));
            call(frame("later"), || {
                profile = inner.take().map(|inner| inner.stop().assemble());
            });
        });
    });
    let profile = profile.expect("the window was closed");
    assert_eq!(names(&profile), ["main", "step", "op", "later"]);
    assert_eq!(stack_of(&profile, "step"), ["main"]);
    let starts: Vec<_> = profile.events().iter().map(|e| e.start.0).collect();
    assert_eq!(starts[..2], [0, 0]);
    let outer = outer.stop().assemble();
    assert_eq!(names(&outer), ["gone", "main", "step", "op", "later"]);
}

// outer window   |---------------------|
// main            |------------------|
// inner window        |--|
#[test]
fn a_call_that_ends_after_its_window_is_told_as_open() {
    let outer = Session::start(with_stacks());
    let mut inner = None;
    call(frame("main"), || {
        inner = Some(Session::start(with_stacks()).stop());
    });
    drop(outer.stop());
    let profile = inner.expect("the window was closed").assemble();
    assert_eq!(names(&profile), ["main"]);
    assert!(profile.events()[0].flags.contains(Flags::UNFINISHED));
}

#[test]
fn a_window_that_wants_modules_has_only_those_that_begin_in_it() {
    let outer = Session::start(with_stacks());
    let module = Name::intern("module", NameKind::Module);
    let mut inner = None;
    call(module, || {
        let session = Session::start(with_modules());
        call(module, || ());
        inner = Some(session.stop());
    });
    drop(outer.stop());
    let profile = inner.expect("the window was closed").assemble();
    assert_eq!(names(&profile), ["module"]);
}

#[test]
fn calls_that_are_open_at_the_end_are_told_with_their_stacks() {
    let mut profile = None;
    let session = Session::start(with_stacks());
    call(frame("main"), || {
        call(frame("step"), || profile = Some(session.stop().assemble()));
    });
    let profile = profile.expect("the call ran");
    assert_eq!(names(&profile), ["main", "step"]);
    assert_eq!(stack_of(&profile, "step"), ["main"]);
    let all_open = |flags: Flags| flags.contains(Flags::UNFINISHED);
    assert!(profile.events().iter().all(|event| all_open(event.flags)));
}

#[test]
fn threads_have_trees_of_their_own() {
    let profile = record(with_stacks(), || {
        call(frame("first"), || drop(scope(&OP)));
        let other = std::thread::spawn(|| call(frame("other"), || drop(scope(&OP))));
        other.join().expect("the thread does not panic");
    });
    let stacks: Vec<_> = profile
        .events()
        .iter()
        .filter(|event| event.category == Category::Operator)
        .map(|event| stack(&profile, event.stack))
        .collect();
    assert_eq!(stacks, [["first"], ["other"]]);
}

#[test]
fn what_could_not_be_seen_is_counted_for_the_windows_it_was_in() {
    let outer = Session::start(with_stacks());
    count_unseen_calls(2);
    let inner = Session::start(with_stacks());
    count_unseen_calls(3);
    count_deep_calls(1);
    let loss = |session: Session| *session.stop().assemble().loss();
    let (inner, outer) = (loss(inner), loss(outer));
    let counts = |cause| (inner.count(cause), outer.count(cause));
    assert_eq!(counts(LossCause::Unseen), (3, 5));
    assert_eq!(counts(LossCause::Depth), (1, 1));
}

#[test]
fn many_scopes_of_few_call_sites_take_no_room_for_stacks() {
    let options = Options {
        budget_bytes: 32 * 10_000 + 4096,
        ..with_stacks()
    };
    let sites: Vec<Name> = (0..50)
        .map(|site| frame(&format!("f.py({site}): f")))
        .collect();
    let session = Session::start(options);
    for index in 0..9_900 {
        CURRENT.set(Stack::NONE.push(sites[index % sites.len()]));
        drop(scope(&OP));
    }
    let profile = session.stop().assemble();
    assert_eq!((profile.events().len(), profile.loss().total()), (9_900, 0));
    assert_eq!(profile.stacks().len(), 51);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn events_are_kept_with_their_whole_stacks_or_counted(
        budget_bytes in 0_usize..6_000,
        walk in prop::collection::vec(0_u8..3, 0..120),
    ) {
        let session = Session::start(Options { budget_bytes, ..with_stacks() });
        let (mut told, mut open) = (0, Vec::new());
        let frames: Vec<Name> = (0..130).map(|depth| frame(&depth.to_string())).collect();
        set_stack_source(|| CURRENT.get());
        CURRENT.set(Stack::NONE);
        for step in walk {
            if step == 0 {
                let name = frames[open.len()];
                let stack = CURRENT.get();
                open.push((open_call(name, stack), stack));
                CURRENT.set(stack.push(name));
                told += 1;
            } else if step == 1 && let Some((call, stack)) = open.pop() {
                CURRENT.set(stack);
                if let Some(call) = call { call.close() }
            } else {
                drop(scope(&OP));
                told += 1;
            }
        }
        let profile = session.stop().assemble();
        prop_assert_eq!(profile.events().len() as u64 + profile.loss().total(), told);
        for event in profile.events() {
            let frames = stack(&profile, event.stack);
            let expected: Vec<_> = (0..frames.len()).rev().map(|depth| depth.to_string()).collect();
            prop_assert_eq!(&frames, &expected);
            if event.category == Category::PythonFunction {
                prop_assert_eq!(profile.name(event), frames.len().to_string());
            }
        }
    }
}
