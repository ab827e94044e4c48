//! Ranges that overlap, like requests in flight: none is lost, and those that are open at the end
//! are reported as unfinished.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use mindprof_model::{Flags, LossCause, Profile};
use mindprof_record::{Name, NameKind, OpenScope, Options, Session, Site, open, scope};
use proptest::prelude::*;

use super::record;

static OP: Site = Site::operator("op");

fn request() -> OpenScope {
    open(Name::intern("request", NameKind::Annotation)).expect("a window is open")
}

fn unfinished(profile: &Profile) -> usize {
    let events = profile.events().iter();
    let unfinished = events.filter(|event| event.flags == Flags::UNFINISHED);
    unfinished.count()
}

/// Opens requests and closes each once so many younger ones are in flight. Returns those still in
/// flight.
///
/// ```text
/// |------------|
///     |------------|
///         |------------|
/// ```
fn serve(requests: usize, in_flight: usize) -> VecDeque<OpenScope> {
    let mut open = VecDeque::new();
    for _ in 0..requests {
        open.push_back(request());
        drop(scope(&OP));
        if open.len() > in_flight
            && let Some(oldest) = open.pop_front()
        {
            oldest.close();
        }
    }
    open
}

/// Serves requests in a window and checks that it contains all of them.
fn expect_all(requests: usize, in_flight: usize) {
    let session = Session::start(Options::default());
    let open = serve(requests, in_flight);
    let profile = session.stop().assemble();
    assert_eq!(unfinished(&profile), in_flight);
    assert_eq!(profile.events().len(), 2 * requests);
    assert_eq!(profile.loss().total(), 0);
    open.into_iter().for_each(OpenScope::close);
}

#[test]
fn twenty_requests_in_flight_are_all_there() {
    expect_all(6_000, 20);
}

#[test]
fn five_thousand_requests_in_flight_are_all_there() {
    expect_all(30_000, 5_000);
}

#[test]
fn the_next_recording_has_its_own_requests_only() {
    expect_all(6_000, 5_000);
    expect_all(3_000, 2_000);
    expect_all(100, 3);
}

#[test]
fn scopes_nested_deep_are_all_there() {
    let session = Session::start(Options::default());
    let open: Vec<_> = (0..20_000).map(|_| request()).collect();
    let profile = session.stop().assemble();
    assert_eq!(
        (profile.events().len(), profile.loss().total()),
        (20_000, 0)
    );
    open.into_iter().rev().for_each(OpenScope::close);
}

#[test]
fn requests_that_end_on_another_thread_leave_their_slots() {
    let profile = record(Options::default(), || {
        let mut younger = request();
        for _ in 0..40 {
            let open: Vec<_> = (0..100).map(|_| request()).collect();
            let next = request();
            std::mem::replace(&mut younger, next).close();
            let close = move || open.into_iter().for_each(OpenScope::close);
            thread::spawn(close).join().expect("closing does not panic");
        }
        younger.close();
    });
    assert_eq!(profile.events().len(), 40 * 101 + 1);
    assert_eq!(profile.loss().total(), 0);
}

#[test]
fn a_window_that_closes_under_load_has_what_is_in_flight() {
    const IN_FLIGHT: usize = 2_000;
    let outer = Session::start(Options::default());
    let (served, is_done) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|threads| {
        threads.spawn(|| {
            let mut open: VecDeque<_> = (0..IN_FLIGHT).map(|_| request()).collect();
            while !is_done.load(Ordering::Relaxed) {
                open.push_back(request());
                open.pop_front().into_iter().for_each(OpenScope::close);
                served.fetch_add(1, Ordering::Relaxed);
            }
        });
        let profiles: Vec<Profile> = (0..20)
            .map(|_| {
                let session = Session::start(Options::default());
                let before = served.load(Ordering::Relaxed);
                while served.load(Ordering::Relaxed) <= before + IN_FLIGHT {
                    thread::yield_now();
                }
                session.stop().assemble()
            })
            .collect();
        is_done.store(true, Ordering::Relaxed);
        for profile in profiles {
            let starts: HashSet<_> = profile.events().iter().map(|event| event.start).collect();
            assert_eq!(starts.len(), profile.events().len(), "each is told once");
            // One more: a request is opened before the oldest ends.
            let unfinished = unfinished(&profile);
            assert!(
                (IN_FLIGHT..=IN_FLIGHT + 1).contains(&unfinished),
                "{unfinished}"
            );
            assert_eq!(profile.loss().total(), 0);
        }
    });
    drop(outer);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn requests_in_are_requests_out_and_lost(
        budget_bytes in prop_oneof![0_usize..200, 0_usize..100_000],
        requests in 1_usize..5_000,
        in_flight in 1_usize..3_000,
    ) {
        let session = Session::start(Options { budget_bytes, ..Options::default() });
        let open = serve(requests, in_flight);
        let profile = session.stop().assemble();
        open.into_iter().for_each(OpenScope::close);
        let (kept, lost) = (profile.events().len(), profile.loss().total() as usize);
        prop_assert_eq!(kept + lost, 2 * requests);
        if in_flight < 1_000 {
            prop_assert_eq!(profile.loss().count(LossCause::Depth), 0);
        }
    }
}
