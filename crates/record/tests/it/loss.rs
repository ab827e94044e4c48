//! Lost events are counted: events in = events out + events lost.

use std::thread;

use mindprof_model::LossCause;
use mindprof_record::{
    Calls, Name, NameKind, Options, Scope, Session, Site, Stack, count_unseen_calls, memory,
    open_call, open_with, scope,
};
use proptest::prelude::*;

use super::record;

static OP: Site = Site::operator("op");

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn events_in_are_events_out_and_lost(
        budget_bytes in prop_oneof![0_usize..200, 0_usize..100_000, Just(1 << 20)],
        per_thread in 1_usize..3_000,
        threads in 1_usize..=8,
    ) {
        let profile = record(Options { budget_bytes, ..Options::default() }, || {
            thread::scope(|scope_of_threads| {
                for _ in 0..threads {
                    scope_of_threads.spawn(|| (0..per_thread).for_each(|_| drop(scope(&OP))));
                }
            });
        });
        let (kept, lost) = (profile.events().len(), profile.loss().total() as usize);
        prop_assert_eq!(kept + lost, per_thread * threads);
        prop_assert!(kept * 32 <= budget_bytes, "{kept} events are over {budget_bytes} bytes");
        if budget_bytes == 1 << 20 {
            prop_assert!(kept > 0);
        }
    }
}

#[test]
fn inputs_are_within_the_budget_too() {
    let events = 2_000;
    let options = Options {
        inputs: true,
        budget_bytes: 10_000,
        ..Options::default()
    };
    let profile = record(options, || {
        let name = Name::intern("op", NameKind::Operator);
        for value in 0..events {
            if let Some(open) = open_with(name, |inputs| inputs.int(value)) {
                open.close();
            }
        }
    });
    assert_eq!(
        profile.events().len() as u64 + profile.loss().total(),
        events as u64
    );
    assert!(profile.inputs().len() * 2 * 16 + profile.events().len() * 32 <= 10_000 + 64);
    assert!(profile.loss().count(LossCause::Budget) > 0);
}

#[test]
fn a_window_counts_only_what_was_lost_while_it_was_open() {
    let tiny = Options {
        budget_bytes: 0,
        ..Options::default()
    };
    let outer = Session::start(tiny);
    (0..5).for_each(|_| drop(scope(&OP)));
    let inner = Session::start(tiny);
    (0..3).for_each(|_| drop(scope(&OP)));
    assert_eq!(inner.stop().assemble().loss().total(), 3);
    assert_eq!(outer.stop().assemble().loss().total(), 8);
}

#[test]
fn the_next_recording_begins_with_a_whole_budget() {
    let small = Options {
        budget_bytes: 320,
        ..Options::default()
    };
    for _ in 0..3 {
        let profile = record(small, || (0..12).for_each(|_| drop(scope(&OP))));
        assert_eq!((profile.events().len(), profile.loss().total()), (10, 2));
    }
}

#[test]
fn scopes_open_at_the_end_beyond_what_the_budget_follows_are_counted() {
    let session = Session::start(Options {
        budget_bytes: 0,
        ..Options::default()
    });
    let open: Vec<Scope> = (0..1_100).map(|_| scope(&OP)).collect();
    let profile = session.stop().assemble();
    let lost = profile.loss().count(LossCause::Depth);
    assert_eq!((profile.events().len(), lost), (1_024, 76));
    open.into_iter().rev().for_each(drop);
}

#[test]
fn a_window_does_not_count_what_only_its_neighbour_wanted() {
    let tiny = Options {
        budget_bytes: 0,
        ..Options::default()
    };
    let plain = Session::start(tiny);
    let whole = Session::start(Options {
        calls: Calls::All,
        memory: true,
        ..tiny
    });
    drop(scope(&OP));
    let frame = Name::intern("f", NameKind::Function);
    for _ in 0..5 {
        if let Some(call) = open_call(frame, Stack::NONE) {
            call.close();
        }
    }
    (0..3).for_each(|address| memory(address, 64, || 64));
    count_unseen_calls(2);
    let (plain, whole) = (plain.stop().assemble(), whole.stop().assemble());
    assert_eq!((plain.loss().total(), whole.loss().total()), (1, 11));
}

// outer window   |-------------------------|
// long scope       |-------------|           lost where it ends
// inner window           |-------------|     did not want it
#[test]
fn a_scope_from_before_a_window_is_not_its_loss() {
    let tiny = Options {
        budget_bytes: 0,
        ..Options::default()
    };
    let outer = Session::start(tiny);
    let long = scope(&OP);
    let inner = Session::start(tiny);
    drop(long);
    drop(scope(&OP));
    let (inner, outer) = (inner.stop().assemble(), outer.stop().assemble());
    assert_eq!((inner.loss().total(), outer.loss().total()), (1, 2));
}

// window   |---|  pause  |--------|
// first      |-------|                 began in the window, ends in the pause: its loss
// second            |--------|         began in the pause: not wanted
#[test]
fn a_pause_excuses_the_scopes_that_begin_in_it() {
    let tiny = Options {
        budget_bytes: 0,
        ..Options::default()
    };
    let other = Session::start(tiny);
    let paused = Session::start(tiny);
    let first = scope(&OP);
    paused.pause();
    let second = scope(&OP);
    drop(second);
    drop(first);
    let third = scope(&OP);
    paused.resume();
    drop(third);
    let (paused, other) = (paused.stop().assemble(), other.stop().assemble());
    assert_eq!((paused.loss().total(), other.loss().total()), (1, 3));
}
