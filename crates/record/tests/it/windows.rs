//! Sessions are windows over one recording.

use std::sync::Barrier;
use std::thread;

use mindprof_model::Flags;
use mindprof_record::{Options, Session, Site, is_profiling, is_recording, scope, scope_with};

use super::names;

static BEFORE: Site = Site::operator("before");
static DURING: Site = Site::operator("during");
static AFTER: Site = Site::operator("after");

#[test]
fn nested_windows_each_hold_all_of_their_own_time() {
    let outer = Session::start(Options::default());
    drop(scope(&BEFORE));
    let inner = Session::start(Options::default());
    drop(scope(&DURING));
    let inner = inner.stop().assemble();
    drop(scope(&AFTER));
    let outer = outer.stop().assemble();
    assert_eq!(names(&inner), ["during"]);
    assert_eq!(names(&outer), ["before", "during", "after"]);
}

#[test]
fn overlapping_windows_each_hold_all_of_their_own_time() {
    let first = Session::start(Options::default());
    drop(scope(&BEFORE));
    let second = Session::start(Options::default());
    drop(scope(&DURING));
    let first = first.stop();
    drop(scope(&AFTER));
    let second = second.stop();
    assert_eq!(names(&first.assemble()), ["before", "during"]);
    assert_eq!(names(&second.assemble()), ["during", "after"]);
}

#[test]
fn only_the_window_that_asked_for_inputs_has_them() {
    let plain = Session::start(Options::default());
    let with_inputs = Session::start(Options {
        inputs: true,
        ..Options::default()
    });
    drop(scope_with(&DURING, |inputs| inputs.int(5)));
    let (plain, with_inputs) = (plain.stop().assemble(), with_inputs.stop().assemble());
    assert_eq!(plain.inputs().inputs(plain.events()[0].inputs).count(), 0);
    assert_eq!(
        with_inputs
            .inputs()
            .inputs(with_inputs.events()[0].inputs)
            .count(),
        1
    );
}

#[test]
fn all_threads_are_in_the_window_also_those_that_have_ended() {
    let session = Session::start(Options::default());
    thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| (0..100).for_each(|_| drop(scope(&DURING))));
        }
    });
    let profile = session.stop().assemble();
    assert_eq!(profile.events().len(), 800);
    assert_eq!(profile.threads().len(), 8);
    assert!(profile.events().is_sorted_by_key(|event| event.start));
}

#[test]
fn any_number_of_threads_record_at_the_same_time() {
    const THREADS: usize = 150;
    let session = Session::start(Options::default());
    let all_here = Barrier::new(THREADS);
    thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                drop(scope(&DURING));
                all_here.wait();
                drop(scope(&DURING));
            });
        }
    });
    let profile = session.stop().assemble();
    assert_eq!(profile.threads().len(), THREADS);
    for (thread, _) in profile.threads().iter().enumerate() {
        let of_thread = profile
            .events()
            .iter()
            .filter(|event| event.thread.index() == thread);
        assert_eq!(of_thread.count(), 2);
    }
}

#[test]
fn a_window_can_be_closed_by_another_thread() {
    let session = Session::start(Options::default());
    drop(scope(&DURING));
    let profile = thread::spawn(move || session.stop().assemble())
        .join()
        .unwrap();
    assert_eq!(names(&profile), ["during"]);
}

#[test]
fn a_dropped_session_stops_recording() {
    drop(Session::start(Options::default()));
    assert!(!is_recording());
}

#[test]
fn a_capture_keeps_its_events_while_later_windows_record() {
    let capture = {
        let session = Session::start(Options::default());
        (0..20_000).for_each(|_| drop(scope(&DURING)));
        session.stop()
    };
    for _ in 0..3 {
        let session = Session::start(Options::default());
        (0..20_000).for_each(|_| drop(scope(&AFTER)));
        assert_eq!(session.stop().assemble().events().len(), 20_000);
    }
    let profile = capture.assemble();
    assert_eq!(profile.events().len(), 20_000);
    assert!(names(&profile).iter().all(|name| *name == "during"));
}

#[test]
fn windows_that_open_and_close_under_load_lose_nothing_and_mix_nothing() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _outer = scope(&BEFORE);
                    drop(scope(&DURING));
                }
            });
        }
        for _ in 0..200 {
            let session = Session::start(Options::default());
            (0..50).for_each(|_| drop(scope(&AFTER)));
            let profile = session.stop().assemble();
            assert_eq!(
                names(&profile)
                    .iter()
                    .filter(|name| **name == "after")
                    .count(),
                50
            );
            assert!(
                profile
                    .events()
                    .iter()
                    .all(|event| event.end() <= profile.span())
            );
            assert_eq!(profile.loss().total(), 0);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_paused_window_takes_no_scopes_and_the_others_go_on() {
    // paused  |  before  |ppppppp|  after  |
    // other   |  before    during   after  |
    let paused = Session::start(Options::default());
    let other = Session::start(Options::default());
    drop(scope(&BEFORE));
    paused.pause();
    drop(scope(&DURING));
    paused.resume();
    drop(scope(&AFTER));
    assert_eq!(names(&paused.stop().assemble()), ["before", "after"]);
    assert_eq!(
        names(&other.stop().assemble()),
        ["before", "during", "after"]
    );
}

#[test]
fn while_every_window_is_paused_nothing_is_recorded() {
    let session = Session::start(Options::default());
    session.pause();
    session.pause();
    assert!(is_profiling() && !is_recording());
    drop(scope(&DURING));
    session.resume();
    session.resume();
    assert!(is_recording());
    drop(scope(&AFTER));
    assert_eq!(names(&session.stop().assemble()), ["after"]);
}

#[test]
fn a_scope_that_is_open_when_the_pause_begins_closes_as_usual() {
    // |  before |-----------|   |
    // |     ppp during pppp     |
    let session = Session::start(Options::default());
    let open = scope(&BEFORE);
    session.pause();
    drop(scope(&DURING));
    drop(open);
    let profile = session.stop().assemble();
    assert_eq!(names(&profile), ["before"]);
    assert_eq!(profile.events()[0].flags, Flags::NONE);
    assert!(profile.events()[0].end() <= profile.span());
}

#[test]
fn a_pause_ends_with_its_window() {
    let session = Session::start(Options::default());
    session.pause();
    drop(session.stop());
    let session = Session::start(Options::default());
    drop(scope(&DURING));
    assert_eq!(names(&session.stop().assemble()), ["during"]);
}

#[test]
fn what_is_lost_during_a_pause_is_not_lost_to_the_window() {
    let tiny = Options {
        budget_bytes: 0,
        ..Options::default()
    };
    let (paused, other) = (Session::start(tiny), Session::start(tiny));
    drop(scope(&BEFORE));
    paused.pause();
    (0..5).for_each(|_| drop(scope(&DURING)));
    paused.resume();
    drop(scope(&AFTER));
    assert_eq!(paused.stop().assemble().loss().total(), 2);
    assert_eq!(other.stop().assemble().loss().total(), 7);
}

#[test]
fn a_profile_of_several_windows_has_each_on_threads_of_its_own() {
    let mut captures = Vec::new();
    for _ in 0..3 {
        let session = Session::start(Options::default());
        let _outer = scope(&BEFORE);
        drop(scope(&DURING));
        captures.push(session.stop());
    }
    let mut last = captures.pop().unwrap();
    for earlier in captures {
        last.add_earlier(earlier);
    }
    let profile = last.assemble();
    assert_eq!(profile.events().len(), 6);
    assert_eq!(profile.threads().len(), 3);
    assert!(
        profile
            .events()
            .iter()
            .all(|event| event.end() <= profile.span())
    );
}
