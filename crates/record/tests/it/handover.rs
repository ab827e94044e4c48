//! Ranges that end on a thread other than the one they began on.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use mindprof_model::{Event, Flags, Input, Profile};
use mindprof_record::{
    Calls, Name, NameKind, OpenScope, Options, Session, Site, open, open_with, scope,
};
use proptest::prelude::*;

use super::stacks::within;
use super::{names, record};

static OP: Site = Site::operator("op");

fn range(text: &str) -> OpenScope {
    open(Name::intern(text, NameKind::Annotation)).expect("a window is open")
}

/// Closes a range on a new thread.
fn close_elsewhere(range: OpenScope) {
    thread::spawn(move || range.close())
        .join()
        .expect("closing does not panic");
}

fn thread_name<'a>(profile: &'a Profile, event: &Event) -> &'a str {
    let thread = &profile.threads()[event.thread.index()];
    profile.strings().text(thread.name)
}

#[test]
fn a_range_is_of_the_thread_it_began_on_with_its_stack_and_inputs() {
    let frame = Name::intern("train.py(7): step", NameKind::Function);
    let options = Options {
        inputs: true,
        calls: Calls::All,
        ..Options::default()
    };
    let profile = record(options, || {
        let begin = move || {
            let name = Name::intern("range", NameKind::Annotation);
            within(frame, || open_with(name, |inputs| inputs.int(5)).unwrap())
        };
        let first = thread::Builder::new().name("first".into());
        let range = first.spawn(begin).unwrap().join().unwrap();
        let second = thread::Builder::new().name("second".into());
        let end = move || {
            // Gives this thread stack and input numbers that differ from those of the first thread.
            within(frame, || drop(scope(&OP)));
            range.close();
        };
        second.spawn(end).unwrap().join().unwrap();
    });
    let event = &profile.events()[0];
    assert_eq!(profile.name(event), "range");
    assert_eq!(thread_name(&profile, event), "first");
    assert_eq!(event.flags, Flags::ASYNC);
    let inputs: Vec<Input<'_>> = profile.inputs().inputs(event.inputs).collect();
    assert!(matches!(inputs[..], [Input::Int(5)]));
    let frames: Vec<&str> = profile
        .stacks()
        .frames(event.stack)
        .map(|frame| profile.strings().text(frame))
        .collect();
    assert_eq!(frames, ["train.py(7): step"]);
}

#[test]
fn a_thread_that_only_ends_ranges_is_not_in_the_profile() {
    let profile = record(Options::default(), || close_elsewhere(range("range")));
    assert_eq!(names(&profile), ["range"]);
    assert_eq!(profile.threads().len(), 1);
}

#[test]
fn a_range_of_an_earlier_recording_ends_without_a_trace() {
    let session = Session::start(Options::default());
    let old = range("old");
    let first = session.stop().assemble();
    assert_eq!(first.events()[0].flags, Flags::UNFINISHED);
    // The new range reuses the slot of the old one.
    let session = Session::start(Options::default());
    let new = range("new");
    close_elsewhere(old);
    let second = session.stop().assemble();
    new.close();
    assert_eq!(names(&second), ["new"]);
    assert_eq!(second.events()[0].flags, Flags::UNFINISHED);
    assert_eq!(second.loss().total(), 0);
}

#[test]
fn windows_that_open_and_close_between_have_what_began_in_them() {
    // outer  |  across |-------------|   |
    // inner  |      | inside |----|---|  |
    let outer = Session::start(Options::default());
    let across = range("across");
    let inner = Session::start(Options::default());
    let inside = range("inside");
    close_elsewhere(across);
    let inner = inner.stop().assemble();
    close_elsewhere(inside);
    let outer = outer.stop().assemble();
    assert_eq!(names(&inner), ["inside"]);
    assert_eq!(inner.events()[0].flags, Flags::UNFINISHED);
    assert_eq!(names(&outer), ["across", "inside"]);
    for event in outer.events() {
        assert_eq!(event.flags, Flags::ASYNC);
        assert_eq!(event.thread, outer.events()[0].thread);
    }
}

#[test]
fn each_range_is_told_once_while_windows_come_and_go() {
    const RANGES: usize = 20_000;
    let outer = Session::start(Options::default());
    let is_done = AtomicBool::new(false);
    let (send, receive) = mpsc::channel::<OpenScope>();
    thread::scope(|threads| {
        threads.spawn(move || {
            for number in 0..RANGES {
                let name = Name::intern(&format!("range {}", number % 1_000), NameKind::Annotation);
                send.send(open(name).unwrap()).unwrap();
            }
        });
        threads.spawn(|| {
            receive.into_iter().for_each(OpenScope::close);
            is_done.store(true, Ordering::Relaxed);
        });
        while !is_done.load(Ordering::Relaxed) {
            let profile = Session::start(Options::default()).stop().assemble();
            let starts: HashSet<_> = profile.events().iter().map(|event| event.start).collect();
            assert_eq!(starts.len(), profile.events().len());
        }
    });
    let outer = outer.stop().assemble();
    let finished = outer.events().iter();
    let finished = finished.filter(|event| event.flags == Flags::ASYNC).count();
    assert_eq!((finished, outer.events().len()), (RANGES, RANGES));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn ranges_in_are_ranges_out_and_lost(
        budget_bytes in prop_oneof![0_usize..200, 0_usize..100_000],
        ranges in 1_usize..900,
        threads in 1_usize..4,
    ) {
        let profile = record(Options { budget_bytes, ..Options::default() }, || {
            let mut open: Vec<OpenScope> = (0..ranges).map(|_| range("range")).collect();
            let per_thread = ranges.div_ceil(threads);
            thread::scope(|scope_of_threads| {
                while !open.is_empty() {
                    let some = open.split_off(open.len().saturating_sub(per_thread));
                    scope_of_threads.spawn(|| some.into_iter().for_each(OpenScope::close));
                }
            });
        });
        let (kept, lost) = (profile.events().len(), profile.loss().total() as usize);
        prop_assert_eq!(kept + lost, ranges);
        prop_assert!(kept * 32 <= budget_bytes);
        prop_assert!(profile.events().iter().all(|event| event.flags == Flags::ASYNC));
    }
}
