//! Allocations and frees that a framework reports.

use std::collections::HashSet;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use mindprof_model::MemoryRecord;
use mindprof_record::{Name, NameKind, Options, Session, Site, memory, open, scope};
use proptest::prelude::*;

use super::{names, record};

static OP: Site = Site::operator("op");

fn with_memory() -> Options {
    Options {
        memory: true,
        ..Options::default()
    }
}

#[test]
fn blocks_are_told_with_their_bytes_and_totals() {
    let profile = record(with_memory(), || {
        let _op = scope(&OP);
        memory(0x1000, 64, || 64);
        memory(0x1000, -64, || 0);
    });
    let found: Vec<_> = profile
        .memory()
        .iter()
        .map(|record| (record.address, record.bytes, record.total_allocated))
        .collect();
    assert_eq!(found, [(0x1000, 64, 64), (0x1000, -64, 0)]);
    assert_eq!(names(&profile), ["op"]);
    let op = profile.events()[0];
    assert!(
        profile
            .memory()
            .iter()
            .all(|record| op.start <= record.time && record.time <= op.end())
    );
}

#[test]
fn a_range_takes_nothing_when_it_begins_on_any_of_many_threads() {
    const THREADS: usize = 150;
    let name = Name::intern("range", NameKind::Annotation);
    let profile = record(with_memory(), || {
        let barrier = Barrier::new(THREADS);
        thread::scope(|threads| {
            for _ in 0..THREADS {
                threads.spawn(|| {
                    // All threads live at the same time, more than any table holds.
                    barrier.wait();
                    let range = open(name);
                    wait();
                    memory(1, 8, || 8);
                    range.unwrap().close();
                    barrier.wait();
                });
            }
        });
    });
    let events = profile.events().iter();
    let begins: HashSet<_> = events.map(|event| (event.thread, event.start)).collect();
    let at_begin = |record: &MemoryRecord| begins.contains(&(record.thread, record.time));
    assert_eq!(profile.memory().iter().filter(at_begin).count(), 0);
    assert_eq!(profile.memory().len(), THREADS);
}

#[test]
fn the_first_block_of_an_operator_is_taken_when_it_begins() {
    let profile = record(with_memory(), || {
        let range = open(Name::intern("range", NameKind::Annotation));
        wait();
        memory(1, 8, || 8);
        let op = scope(&OP);
        wait();
        memory(2, 8, || 16);
        wait();
        memory(3, 8, || 24);
        drop(op);
        wait();
        memory(4, 8, || 32);
        range.unwrap().close();
    });
    let [range, op] = [profile.events()[0], profile.events()[1]];
    let at_start: Vec<_> = profile
        .memory()
        .iter()
        .map(|record| {
            (
                record.address,
                [range.start, op.start].contains(&record.time),
            )
        })
        .collect();
    assert_eq!(at_start, [(1, false), (2, true), (3, false), (4, false)]);
    assert!(profile.memory().time(3) >= op.end());
}

#[test]
fn a_window_that_opens_within_a_scope_has_the_memory_that_follows() {
    for options in [Options::default(), with_memory()] {
        let outer = Session::start(options);
        let range = open(Name::intern("range", NameKind::Annotation));
        let inner = Session::start(with_memory());
        memory(1, 8, || 8);
        assert_eq!(inner.stop().assemble().memory().len(), 1);
        range.unwrap().close();
        let op = scope(&OP);
        let inner = Session::start(with_memory());
        memory(2, 8, || 16);
        assert_eq!(inner.stop().assemble().memory().len(), 1);
        drop(op);
        outer.stop();
    }
}

#[test]
fn a_recording_that_begins_within_a_scope_has_the_memory_that_follows() {
    let first = Session::start(with_memory());
    let op = scope(&OP);
    first.stop();
    let second = Session::start(with_memory());
    memory(1, 8, || 8);
    memory(2, 8, || 16);
    drop(op);
    assert_eq!(second.stop().assemble().memory().len(), 2);
}

/// Waits until the clock has advanced.
fn wait() {
    let before = Instant::now();
    while before.elapsed().as_nanos() < 100 {}
}

#[test]
fn only_a_window_that_wants_memory_has_it() {
    let plain = Session::start(Options::default());
    let wanting = Session::start(with_memory());
    memory(8, 8, || 8);
    assert_eq!(wanting.stop().assemble().memory().len(), 1);
    memory(8, -8, || 0);
    assert!(plain.stop().assemble().memory().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_there_is_no_room_for_is_counted_and_the_rest_is_whole(
        budget_bytes in 0_usize..4_000,
        blocks in 0_i64..100,
    ) {
        let options = Options { budget_bytes, ..with_memory() };
        let profile = record(options, || {
            for block in 0..blocks {
                drop(scope(&OP));
                memory(block as u64, block, || block as u64);
            }
        });
        let kept = profile.memory().len() + profile.events().len();
        prop_assert_eq!(kept as u64 + profile.loss().total(), 2 * blocks as u64);
        for record in profile.memory() {
            prop_assert_eq!(record.address as i64, record.bytes);
            prop_assert_eq!(record.address, record.total_allocated);
        }
    }
}
