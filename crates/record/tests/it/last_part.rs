//! A window that keeps its last events sums up those that make room for them.

use std::thread;

use mindprof_model::{Profile, Sampling, WholeRun};
use mindprof_record::{
    Calls, Keep, Name, NameKind, Options, Session, Site, add_sample, memory, scope,
};
use proptest::prelude::*;

use super::record;

static EARLY: Site = Site::operator("early");
static LATE: Site = Site::operator("late");
static INNER: Site = Site::operator("inner");

fn keeping_last(budget_bytes: usize) -> Options {
    Options {
        budget_bytes,
        keep: Keep::Last,
        ..Options::default()
    }
}

fn run(site: &'static Site, times: usize) {
    (0..times).for_each(|_| drop(scope(site)));
}

/// Returns a number of the sums, the first behind a text; zero if there are none.
fn number_behind(profile: &Profile, text: &str) -> usize {
    let sums = profile.metadata().get(WholeRun::KEY).unwrap_or_default();
    let Some((_, rest)) = sums.split_once(text) else {
        return 0;
    };
    let end = rest.find(|letter: char| !letter.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().expect("digits")
}

fn only_in_sums(profile: &Profile) -> usize {
    number_behind(profile, "\"only_in_sums\":")
}

fn calls_of(profile: &Profile, name: &str) -> usize {
    number_behind(profile, &format!("\"name\":\"{name}\",\"calls\":"))
}

fn kept_of(profile: &Profile, name: &str) -> usize {
    let events = profile.events().iter();
    let names = events.map(|event| profile.name(event));
    names.filter(|found| *found == name).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn events_in_are_events_out_lost_and_summed(
        budget_bytes in prop_oneof![0_usize..200, 0_usize..100_000, Just(1 << 20)],
        per_thread in 1_usize..6_000,
        threads in 1_usize..=8,
    ) {
        let profile = record(keeping_last(budget_bytes), || {
            thread::scope(|scope_of_threads| {
                for _ in 0..threads {
                    scope_of_threads.spawn(|| {
                        for _ in 0..per_thread / 2 {
                            let _outer = scope(&EARLY);
                            drop(scope(&INNER));
                        }
                    });
                }
            });
        });
        let (kept, lost) = (profile.events().len(), profile.loss().total() as usize);
        let all = per_thread / 2 * 2 * threads;
        prop_assert_eq!(kept + lost + only_in_sums(&profile), all);
        prop_assert!(kept * 32 <= budget_bytes, "{kept} events are over {budget_bytes} bytes");
        if only_in_sums(&profile) > 0 {
            let summed = calls_of(&profile, "early") + calls_of(&profile, "inner");
            prop_assert_eq!(summed + lost, all);
        }
    }
}

#[test]
fn the_last_events_are_kept_and_the_first_are_sums() {
    let profile = record(keeping_last(1 << 20), || {
        run(&EARLY, 200_000);
        run(&LATE, 500);
    });
    assert_eq!(kept_of(&profile, "late"), 500);
    assert_eq!(profile.loss().total(), 0);
    assert_eq!(calls_of(&profile, "early"), 200_000);
    assert_eq!(calls_of(&profile, "late"), 500);
    assert_eq!(only_in_sums(&profile), 200_000 - kept_of(&profile, "early"));
    let times = ["duration", "kept"].map(|key| number_behind(&profile, &format!("\"{key}_us\":")));
    assert!(times[0] > times[1], "{times:?}");
}

#[test]
fn a_thread_takes_the_room_of_another_that_is_done() {
    let profile = record(keeping_last(1 << 20), || {
        run(&EARLY, 100_000);
        thread::spawn(|| run(&LATE, 10_000)).join().unwrap();
    });
    assert_eq!(kept_of(&profile, "late"), 10_000);
    assert_eq!(calls_of(&profile, "early"), 100_000);
}

#[test]
fn a_window_that_keeps_its_first_events_loses_none_to_one_that_does_not() {
    let outer = Session::start(keeping_last(1 << 20));
    run(&EARLY, 100_000);
    let inner = Session::start(Options {
        budget_bytes: 1 << 20,
        ..Options::default()
    });
    run(&INNER, 100_000);
    let inner = inner.stop().assemble();
    let kept = kept_of(&inner, "inner");
    assert_eq!(kept + inner.loss().total() as usize, 100_000);
    assert!(kept > 10_000, "the room of earlier events: {kept}");
    let first = inner.events()[0].start;
    assert!(first.0 < inner.span().0 / 100, "the first events are kept");
    run(&LATE, 500);
    let outer = outer.stop().assemble();
    assert_eq!(kept_of(&outer, "late"), 500);
    let summed = ["early", "inner", "late"].map(|name| calls_of(&outer, name));
    let lost = outer.loss().total() as usize;
    assert_eq!(summed.iter().sum::<usize>() + lost, 200_500);
}

#[test]
fn the_sums_of_a_window_are_its_own() {
    let first = Session::start(keeping_last(1 << 20));
    run(&EARLY, 100_000);
    // Keeps the recording going from one window to the next.
    let between = Session::start(Options::default());
    let first = first.stop().assemble();
    assert_eq!(calls_of(&first, "early"), 100_000);
    let second = Session::start(keeping_last(1 << 20));
    drop(between);
    run(&LATE, 100_000);
    let second = second.stop().assemble();
    assert_eq!(kept_of(&second, "early"), 0);
    assert_eq!(calls_of(&second, "early"), 0);
    assert_eq!(calls_of(&second, "late"), 100_000);
    assert_eq!(only_in_sums(&second), 100_000 - kept_of(&second, "late"));
}

#[test]
fn the_last_samples_are_kept_too() {
    let options = Options {
        calls: Calls::Sampled,
        ..keeping_last(20_000)
    };
    let profile = record(options, || {
        let [early, late] = ["early", "late"].map(|name| Name::intern(name, NameKind::Function));
        (0..5_000).for_each(|_| add_sample(7, [early]));
        add_sample(7, [late]);
    });
    let sampling = Sampling::read(profile.metadata()).unwrap();
    assert_eq!(sampling.samples + sampling.dropped, 5_001);
    assert!(sampling.samples > 100);
    assert_eq!(kept_of(&profile, "late"), 1);
}

#[test]
fn memory_that_makes_room_is_in_no_sum() {
    let options = Options {
        memory: true,
        ..keeping_last(1 << 20)
    };
    let profile = record(options, || {
        for _ in 0..100_000 {
            memory(7, 64, || 64);
            drop(scope(&EARLY));
        }
    });
    assert_eq!(calls_of(&profile, "early"), 100_000);
    assert_eq!(only_in_sums(&profile), 100_000 - kept_of(&profile, "early"));
    let given_up = number_behind(&profile, "\"in_no_sum\":");
    assert_eq!(given_up, 100_000 - profile.memory().len());
    assert!(given_up > 0);
}

#[test]
fn samples_of_the_main_thread_are_counted_apart() {
    let options = Options {
        calls: Calls::Sampled,
        ..keeping_last(1 << 20)
    };
    let profile = record(options, || {
        let name = Name::intern("wait", NameKind::Function);
        let main = u64::from(std::process::id());
        for _ in 0..10 {
            (1..=64).for_each(|idle| add_sample(main + idle, [name]));
            add_sample(main, [name]);
        }
    });
    let sampling = Sampling::read(profile.metadata()).unwrap();
    assert_eq!((sampling.samples, sampling.main_samples), (650, 10));
}

#[test]
fn everything_is_kept_if_it_fits() {
    let profile = record(keeping_last(1 << 20), || run(&EARLY, 500));
    assert_eq!(kept_of(&profile, "early"), 500);
    assert_eq!(profile.metadata().get(WholeRun::KEY), None);
}
