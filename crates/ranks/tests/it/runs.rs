//! Which files are of the same run, and which of them answers rest on.

use mindprof_ranks::{Fault, JobAnswer, RankLabel, RankSummary};

use crate::job::{Job, Work, answer};

const DAY_NS: u64 = 86_400_000_000_000;

fn ranks(labels: &[RankLabel]) -> Vec<Option<u32>> {
    labels.iter().map(|label| label.rank).collect()
}

fn slow(answer: &JobAnswer) -> Vec<Option<u32>> {
    answer
        .stragglers
        .ranks
        .iter()
        .map(|slow| slow.rank.rank)
        .collect()
}

/// Returns two runs of one job, a day apart: rank 5 is slow in the first, rank 2 in the second. Files
/// are named after processes.
fn two_runs() -> [Vec<RankSummary>; 2] {
    let first = Job::new(8, 10).with(5, None, Work::Computing, 2_000);
    let mut second = Job::new(8, 10).with(2, None, Work::Computing, 2_000);
    second.base_unix_ns += DAY_NS;
    second.seed = 2;
    [(first, 7_919), (second, 4_001)].map(|(job, step)| {
        let mut summaries = job.summaries();
        for (rank, summary) in (1..).zip(&mut summaries) {
            let process = rank * step % 10_007;
            summary.identity.file = format!("node0_{process}.pt.trace.json").into();
        }
        summaries
    })
}

#[test]
fn two_runs_in_one_folder_are_not_mixed() {
    let [first, second] = two_runs();
    let answer = answer([first, second].concat());
    assert_eq!(slow(&answer), [Some(2)], "the later run counts");
    assert_eq!(answer.roster.repeated.len(), 8);
    let farthest = answer
        .clocks
        .ranks
        .iter()
        .map(|clock| clock.offset_ns.abs())
        .max();
    assert!(farthest < Some(1_000_000_000));
}

#[test]
fn ranks_of_a_run_of_another_day_are_left_out() {
    let [first, second] = two_runs();
    let mixed = [&first[..3], &second[3..]].concat();
    let answer = answer(mixed);
    assert_eq!(ranks(&answer.roster.foreign), [Some(0), Some(1), Some(2)]);
    assert_eq!(answer.roster.missing, "0-2");
    assert!(
        answer
            .findings
            .found
            .iter()
            .all(|found| found.rule != "poor-overlap")
    );
}

#[test]
fn the_recordings_of_one_run_that_begin_together_are_chosen() {
    let cycle = |seconds: u64, slow: u64| {
        let mut job = Job::new(4, 10).with(slow, None, Work::Computing, 2_000);
        job.base_unix_ns += seconds * 1_000_000_000;
        job.summaries()
    };
    let answer = answer([cycle(0, 1), cycle(100, 2), cycle(200, 3)].concat());
    assert_eq!(slow(&answer), [Some(3)]);
    assert!(answer.clocks.doubtful.is_empty());
    assert_eq!(answer.roster.repeated.len(), 8);
}

#[test]
fn the_first_rank_may_be_the_one_of_another_run() {
    let mut other = Job::new(8, 10).with(0, Some(2), Work::Host, 40_000);
    other = other.with(1, Some(6), Work::Host, 70_000);
    other.base_unix_ns += 60_000_000_000;
    let mut summaries = Job::new(8, 10).summaries();
    summaries[0] = other.summaries().swap_remove(0);
    let answer = answer(summaries);
    assert_eq!(ranks(&answer.clocks.doubtful), [Some(0)]);
    assert!(
        answer.stragglers.ranks.is_empty(),
        "{:?}",
        answer.stragglers.ranks
    );
    assert!(
        answer.findings.found.is_empty(),
        "{:?}",
        answer.findings.found
    );
}

#[test]
fn a_complete_file_is_chosen_before_a_damaged_one() {
    let mut summaries = Job::new(4, 10).summaries();
    let mut cut = summaries[1].clone();
    cut.identity.file = "a_rank1.json".into();
    cut.faults.push(Fault::Cut(1));
    summaries.push(cut);
    let roster = answer(summaries).roster;
    assert_eq!(roster.repeated[0].file, "a_rank1.json");
    assert!(roster.incomplete.is_empty());
}

#[test]
fn one_file_does_not_make_the_others_foreign() {
    let mut summaries = Job::new(8, 10).summaries();
    for summary in &mut summaries {
        summary.identity.world_size = None;
    }
    summaries[0].identity.world_size = Some(2);
    let roster = answer(summaries).roster;
    assert!(roster.foreign.is_empty() && roster.world_size.is_none());
}

#[test]
fn an_absurd_number_of_ranks_is_counted_exactly() {
    let mut summaries = Job::new(4, 6).summaries();
    for summary in &mut summaries {
        summary.identity.world_size = Some(u32::MAX);
    }
    let roster = answer(summaries).roster;
    assert_eq!(roster.missing_count, u32::MAX as usize - 4);
    assert_eq!(roster.missing, format!("4-{}", u32::MAX - 1));
}
