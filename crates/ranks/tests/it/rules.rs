//! Rules about a job: found, and alike but not found.

use mindprof_answers::StepClass;
use mindprof_model::Nanos;
use mindprof_ranks::{
    Collective, CollectiveKind, Group, JobAnswer, JobFinding, RankStep, RankSummary,
};

use crate::job::{Job, answer};

const MICRO: u64 = 1_000;

fn finding<'a>(answer: &'a JobAnswer, rule: &str) -> Option<&'a JobFinding> {
    answer
        .findings
        .found
        .iter()
        .find(|found| found.rule == rule)
}

/// Adds collectives of 100 us, times `slower`, one after the other, before each of the rank's own ones.
/// They take the place of computing.
fn add(summary: &mut RankSummary, count: u64, of: &Collective, slower: u64) {
    let own = summary.collectives.clone();
    let length = Nanos(100 * MICRO * slower);
    for (place, found) in (0..).zip(&own) {
        let mut end = found.end;
        for repeated in 0..count {
            summary.collectives.push(Collective {
                start: end - length,
                end,
                exposed: length,
                sequence: Some(1_000_000 + 100 * place + repeated),
                step: found.step,
                ..of.clone()
            });
            end = end - length;
        }
        let step = summary
            .steps
            .iter_mut()
            .find(|step| Some(step.number) == found.step);
        communicate(step.unwrap(), count * length.0);
    }
    summary.collectives.sort();
}

/// Turns computing of a step into communication.
fn communicate(step: &mut RankStep, time: u64) {
    let (kernel, communication) = (
        StepClass::Kernel as usize,
        StepClass::Communication as usize,
    );
    step.classes[kernel] = step.classes[kernel].saturating_sub(Nanos(time));
    step.classes[communication] = step.classes[communication].saturating_add(Nanos(time));
}

fn collective(summary: &RankSummary) -> Collective {
    summary.collectives[0].clone()
}

#[test]
fn many_small_messages_are_priced_without_the_longest() {
    let with = |bytes: u64, count: u64| {
        let mut summaries = Job::new(4, 10).summaries();
        for summary in &mut summaries {
            let of = Collective {
                bytes,
                kind: CollectiveKind::AllGather,
                ..collective(summary)
            };
            add(summary, count, &of, 1);
        }
        answer(summaries)
    };
    let small = with(4_096, 4);
    let found = finding(&small, "small-messages").expect("eight small messages in each step");
    // Seven of eight messages of 100 us, of a step of 10.2 ms.
    assert!((found.share - 0.068).abs() < 0.005, "{}", found.share);
    assert_eq!(found.collectives, 80);
    assert!(finding(&with(4 << 20, 4), "small-messages").is_none());
    assert!(
        finding(&with(4_096, 1), "small-messages").is_none(),
        "two are not many"
    );
    // Messages of unknown sizes may be small.
    let unknown = with(0, 4);
    assert!(finding(&unknown, "small-messages").is_none());
    let why = unknown.findings.unknown.iter();
    let why: Vec<_> = why.map(|unknown| (unknown.rule, unknown.missing)).collect();
    assert!(
        matches!(why[..], [("small-messages", missing)] if missing.contains("sizes of messages")),
        "{why:?}"
    );
}

#[test]
fn a_group_that_is_slower_than_its_like_has_a_slow_link() {
    let with = |slower: u64| {
        let mut summaries = Job::new(8, 10).summaries();
        for (rank, summary) in (0..).zip(&mut summaries) {
            let first: u32 = rank / 2 * 2;
            summary.groups.push(Group {
                name: "pair".into(),
                ranks: format!("{first}-{}", first + 1).into(),
                description: "".into(),
            });
            let of = Collective {
                group: Some(1),
                ..collective(summary)
            };
            add(summary, 1, &of, if first == 4 { slower } else { 4 });
        }
        answer(summaries)
    };
    let slow = with(8);
    let found = finding(&slow, "slow-link").expect("a pair takes twice the time");
    assert_eq!(found.group.as_deref(), Some("4-5"));
    assert!(found.share > 0.02 && found.high >= found.share);
    assert!(finding(&with(4), "slow-link").is_none());
}

#[test]
fn transfers_that_take_longer_beside_computing_are_told() {
    let with = |slower: u64| {
        let mut summaries = Job::new(4, 12).summaries();
        for summary in &mut summaries {
            let of = Collective {
                kind: CollectiveKind::ReduceScatter,
                ..collective(summary)
            };
            add(summary, 1, &of, 5);
            let added = summary
                .collectives
                .iter_mut()
                .filter(|found| found.kind == of.kind);
            // In every other step, most of it is hidden behind computing.
            for found in added.filter(|found| found.step.is_some_and(|step| step % 2 == 0)) {
                found.start = found.end - Nanos(500 * MICRO * slower);
                found.exposed = Nanos(found.duration().0 / 6);
            }
        }
        answer(summaries)
    };
    let slowed = with(3);
    let found = finding(&slowed, "slowed-by-compute").expect("three times the time");
    assert_eq!(found.collectives, 12);
    assert!(finding(&with(1), "slowed-by-compute").is_none());
}

#[test]
fn receiving_without_computing_is_a_bubble() {
    let with = |micros: u64| {
        let mut summaries = Job::new(4, 10).summaries();
        for summary in &mut summaries[1..] {
            let of = Collective {
                kind: CollectiveKind::Receive,
                ..collective(summary)
            };
            add(summary, 1, &of, micros / 100);
        }
        answer(summaries)
    };
    let stalled = with(1_000);
    assert_eq!(stalled.bubbles.len(), 3);
    let found = finding(&stalled, "pipeline-bubble").expect("two waits of 1 ms in each step");
    // Half of 2 ms, of a step of 10.2 ms.
    assert!((found.share - 0.098).abs() < 0.005, "{}", found.share);
    let short = with(100);
    assert!(short.bubbles.len() == 3 && finding(&short, "pipeline-bubble").is_none());
}

#[test]
fn collectives_that_end_apart_are_told_without_a_price() {
    let mut summaries = Job::new(4, 10).summaries();
    for found in &mut summaries[2].collectives {
        // Early, later and late in turn: no clock explains it.
        let late = found.sequence.map_or(0, |sequence| sequence % 3);
        let ahead = Nanos(300 * MICRO * late);
        found.end = found.end + ahead;
    }
    let apart = answer(summaries);
    let found = finding(&apart, "ends-differ").expect("ends are up to 600 us apart");
    assert!(found.share == 0.0 && found.collectives == 20);
    assert!(finding(&Job::new(4, 10).answer(), "ends-differ").is_none());
}
