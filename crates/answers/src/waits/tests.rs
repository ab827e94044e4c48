//! Times are microseconds unless they say otherwise.

use super::*;

/// How long a loop works between two waits.
const WORK: u64 = 100;

fn span(begin: u64, duration: u64) -> Span {
    Span {
        begin: Nanos(begin * 1000),
        end: Nanos((begin + duration) * 1000),
    }
}

/// Returns waits of these times, with work after each.
fn spans(times: &[u64], mut begin: u64) -> Vec<Span> {
    let mut found = Vec::new();
    for &time in times {
        found.push(span(begin, time));
        begin += time + WORK;
    }
    found
}

fn repeated(time: u64, count: usize) -> Vec<u64> {
    vec![time; count]
}

fn first_then(first: u64, time: u64, count: usize) -> Vec<u64> {
    [vec![first], repeated(time, count)].concat()
}

/// Returns a loop that makes a step after each wait and does nothing else.
fn around(waits: &[Span], rest: Option<u64>) -> LoopTimes {
    let ends = waits[1..].iter().map(|wait| wait.begin);
    let last = waits[waits.len() - 1].end + Nanos(WORK * 1000);
    let step_times: Vec<Nanos> = waits
        .iter()
        .zip(ends.chain([last]))
        .map(|(wait, end)| end.saturating_sub(wait.begin))
        .collect();
    let all = step_times.iter().map(|time| time.0).sum();
    LoopTimes {
        rest: rest.map_or(Nanos(all), |rest| Nanos(rest * 1000)),
        steps: Some(Span {
            begin: waits[0].begin,
            end: last,
        }),
        step_times,
    }
}

fn findings(waits: &[Span], found: &DataWaits) -> Vec<WaitFinding> {
    found.findings(&around(waits, None))
}

fn plain(waits: &[Span]) -> DataWaits {
    DataWaits::new(waits, &[], &[], false)
}

fn started(waits: &[Span], workers: usize) -> DataWaits {
    let start = WorkersStart {
        span: span(0, 500),
        workers,
    };
    DataWaits::new(waits, &[start], &[], true)
}

fn is_late(finding: &WaitFinding) -> bool {
    matches!(finding, WaitFinding::LateInSteps { .. })
}

#[test]
fn waiting_in_every_step_is_late_data() {
    let waits = spans(&repeated(900, 40), 0);
    let [
        WaitFinding::LateInSteps {
            per_step,
            step,
            data,
        },
    ] = findings(&waits, &plain(&waits))[..]
    else {
        panic!("expected late data")
    };
    assert_eq!((per_step.0, step.0), (900_000, 1_000_000));
    assert_eq!(data.mostly, None);
}

#[test]
fn workers_that_finish_in_turns_are_late_everywhere() {
    for workers in [2, 3, 4] {
        let times: Vec<u64> = (0..40)
            .map(|number| {
                if number % workers == 0 {
                    900 * workers
                } else {
                    0
                }
            })
            .collect();
        let waits = spans(&times, 0);
        let [WaitFinding::LateInSteps { data, .. }] = findings(&waits, &plain(&waits))[..] else {
            panic!("expected late data")
        };
        assert_eq!(data.mostly, None);
    }
}

#[test]
fn a_few_late_batches_are_counted() {
    let times = [repeated(10, 20), vec![60_000], repeated(10, 19)].concat();
    let waits = spans(&times, 0);
    let [WaitFinding::LateInSteps { per_step, data, .. }] = findings(&waits, &plain(&waits))[..]
    else {
        panic!("expected late data")
    };
    assert_eq!(data.mostly, Some((1, 40)));
    assert_eq!(per_step.0, 1_509_750);
}

#[test]
fn a_slow_first_batch_is_the_start_of_workers() {
    let waits = spans(&first_then(60_000, 10, 39), 501);
    assert_eq!(
        findings(&waits, &started(&waits, 1)),
        [WaitFinding::Workers(Nanos(60_000_000))]
    );
}

#[test]
fn each_epoch_pays_for_the_start() {
    let (mut starts, mut waits, mut begin) = (Vec::new(), Vec::new(), 0);
    for _ in 0..3 {
        starts.push(WorkersStart {
            span: span(begin, 500),
            workers: 1,
        });
        waits.extend(spans(&first_then(20_000, 10, 19), begin + 500));
        begin = waits[waits.len() - 1].end.0 / 1000 + WORK;
    }
    let found = DataWaits::new(&waits, &starts, &[], true);
    assert_eq!(
        findings(&waits, &found),
        [WaitFinding::Workers(Nanos(60_000_000))]
    );
}

#[test]
fn late_data_is_seen_beside_the_start_of_workers() {
    let waits = spans(&first_then(9_000, 900, 5), 501);
    let found = findings(&waits, &started(&waits, 1));
    assert!(matches!(found[..], [WaitFinding::Workers(_), late] if is_late(&late)));
    let waits = spans(&first_then(900, 9_000, 5), 501);
    let found = findings(&waits, &started(&waits, 1));
    assert!(matches!(found[..], [late] if is_late(&late)));
}

// Spawned workers take long, each for its first batch.
#[test]
fn each_worker_starts_with_a_batch() {
    let waits = spans(&[5_000_000, 3_000_000, 9, 9, 9, 9], 501);
    assert_eq!(
        findings(&waits, &started(&waits, 2)),
        [WaitFinding::Workers(Nanos(8_000_000_000))]
    );
    let late = [
        429_000, 4_000, 304_000, 3_900, 336_000, 2_900, 325_000, 2_600, 348_000, 3_700,
    ];
    let waits = spans(&late, 501);
    assert!(is_late(&findings(&waits, &started(&waits, 2))[0]));
    // Two batches of two workers may be late as well.
    let waits = spans(&[5_000, 3_000], 501);
    assert!(findings(&waits, &started(&waits, 2)).iter().any(is_late));
}

#[test]
fn workers_that_started_before_the_window_do_not_start_in_it() {
    let waits = spans(&[400, 291_700, 500], 0);
    let found = DataWaits::new(&waits, &[], &[], true);
    assert!(matches!(findings(&waits, &found)[..], [late] if is_late(&late)));
}

#[test]
fn waits_before_and_after_the_steps_are_no_part_of_them() {
    let steps = spans(&repeated(10, 39), 61_000);
    for others in [spans(&[60_000], 0), spans(&repeated(5_000, 6), 70_000)] {
        let mut waits = [others, steps.clone()].concat();
        waits.sort_by_key(|wait| wait.begin);
        let found = plain(&waits).findings(&around(&steps, Some(100_000)));
        assert!(matches!(found[..], [WaitFinding::LateOutsideSteps(_)]));
    }
}

#[test]
fn data_in_time_has_no_finding() {
    let waits = spans(&repeated(10, 40), 0);
    assert_eq!(findings(&waits, &plain(&waits)), []);
    assert_eq!(findings(&waits, &plain(&[])), []);
}

// The share of the steps counts, not that of a run that mostly prepares.
#[test]
fn a_long_start_of_the_program_hides_no_late_data() {
    let waits = spans(&repeated(900, 10), 0);
    let found = plain(&waits).findings(&around(&waits, Some(1_000_000)));
    assert!(matches!(found[..], [late] if is_late(&late)));
}

#[test]
fn without_steps_the_whole_time_counts() {
    let found = plain(&spans(&repeated(900, 10), 0));
    let of = |rest: u64| {
        found.findings(&LoopTimes {
            rest: Nanos(rest * 1000),
            ..LoopTimes::default()
        })
    };
    assert!(matches!(of(10_000)[..], [WaitFinding::Late(_)]));
    assert_eq!(of(100_000), []);
}

// An epoch ends with a call that finds no batch; another one's first batch is as slow.
#[test]
fn the_end_of_workers_is_no_wait_for_data() {
    let times = [first_then(200_000, 100, 19), vec![180_100]].concat();
    let waits = spans(&times, 0);
    let inside = span(waits[20].begin.0 / 1000 + 50, 180_000);
    let found = DataWaits::new(&waits, &[], &[inside], true);
    assert_eq!(found.ending(), Nanos(180_000_000));
    let times = found.times();
    assert_eq!(times.iter().max(), Some(&Nanos(200_000_000)));
    assert_eq!(times.iter().map(|time| time.0).sum::<u64>(), 201_900_000);
}

#[test]
fn workers_that_end_elsewhere_end_in_no_wait_of_the_loop() {
    let waits = spans(&repeated(200, 5), 0);
    let elsewhere = span(waits[2].begin.0 / 1000, 5_000);
    let found = DataWaits::new(&waits, &[], &[elsewhere], false);
    assert_eq!(found.times().len(), 5);
}
