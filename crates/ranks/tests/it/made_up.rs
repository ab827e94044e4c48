//! Answers about made-up jobs: everything that was planted is found, and nothing else.

use mindprof_ranks::{Blame, Cause, JobAnswer};

use crate::job::{HALF, Job, Work, answer};

fn slow_ranks(answer: &JobAnswer) -> Vec<(u32, Option<Cause>)> {
    let ranks = answer.stragglers.ranks.iter();
    let mut ranks: Vec<_> = ranks
        .map(|straggler| (straggler.rank.rank.unwrap_or(u32::MAX), straggler.cause))
        .collect();
    ranks.sort_unstable();
    ranks
}

fn assert_clocks(answer: &JobAnswer) {
    assert!(answer.clocks.unknown.is_empty() && answer.clocks.doubtful.is_empty());
    for clock in &answer.clocks.ranks {
        let ahead = Job::clock_ns(u64::from(clock.rank.rank.unwrap()));
        let wrong = (clock.offset_ns + ahead).abs();
        assert!(wrong < 10_000, "{}: {wrong} ns", clock.rank.text());
    }
    // Of few collectives, the error is stated with care.
    assert!(answer.clocks.error.0 < 15_000);
}

#[test]
fn the_true_clocks_are_within_the_stated_errors() {
    let (mut clocks, mut wrong) = (0, 0);
    for (steps, end_noise_ns, late_ns) in [
        (2, 0, 1_000),
        (2, 4_000, 0),
        (4, 2_000, 900),
        (12, 4_000, 0),
        (3, 40_000, 0),
        (12, 90_000, 700),
        (40, 300_000, 0),
    ] {
        for seed in 0..25 {
            let mut job = Job::new(4, steps);
            (job.end_noise_ns, job.late_ns, job.seed) = (end_noise_ns, late_ns, seed);
            for clock in job.answer().clocks.ranks {
                let ahead = Job::clock_ns(u64::from(clock.rank.rank.unwrap()));
                clocks += 1;
                wrong += u32::from((clock.offset_ns + ahead).unsigned_abs() > clock.error.0);
            }
        }
    }
    assert_eq!(clocks, 7 * 25 * 4);
    // Chance moves one of 1,000 offsets by more.
    assert!(wrong <= 2, "{wrong}");
}

#[test]
fn a_healthy_job_has_no_findings() {
    for ranks in [2, 8, 64] {
        let answer = Job::new(ranks, 12).answer();
        assert_clocks(&answer);
        assert!(answer.stragglers.ranks.is_empty() && answer.stragglers.hosts.is_empty());
        assert!(answer.slow_steps.is_empty(), "{:?}", answer.slow_steps);
        assert!(
            answer.findings.found.is_empty(),
            "{:?}",
            answer.findings.found
        );
        assert!(answer.findings.unknown.is_empty());
        assert!(answer.differences.rows.is_empty() && answer.differences.facts.is_empty());
        assert_eq!(answer.communication.unmatched, 0);
    }
}

#[test]
fn the_causes_of_slow_ranks_are_told() {
    let job = Job::new(8, 10)
        .with(1, None, Work::Computing, 3_000)
        .with(3, None, Work::Data, 2_000)
        .with(6, None, Work::Copies, 1_500);
    let answer = job.answer();
    assert_clocks(&answer);
    let found = slow_ranks(&answer);
    let expected = [(1, Cause::Computing), (3, Cause::Data), (6, Cause::Copies)];
    assert_eq!(found, expected.map(|(rank, cause)| (rank, Some(cause))));
    let host = Job::new(8, 10).with(5, None, Work::Host, 2_000).answer();
    assert_eq!(slow_ranks(&host), [(5, Some(Cause::Host))]);
    let finding = &host.findings.found[0];
    assert_eq!(finding.rule, "slow-rank");
    // A step takes two halves, the extra work and two transfers.
    let share = 2_000.0 / (2 * HALF + 2_000 + 200) as f64;
    assert!(
        (finding.share - share).abs() < 0.02,
        "{} is not {share}",
        finding.share
    );
    let last = host.communication.rows[0].last.clone().unwrap();
    assert_eq!(last.0.rank, Some(5));
}

#[test]
fn a_mixed_cause_is_not_named() {
    let job =
        Job::new(4, 10)
            .with(2, None, Work::Computing, 1_000)
            .with(2, None, Work::Data, 1_000);
    assert_eq!(slow_ranks(&job.answer()), [(2, None)]);
}

#[test]
fn extra_work_below_the_limit_is_not_claimed() {
    let answer = Job::new(8, 10).with(5, None, Work::Computing, 300).answer();
    assert!(answer.stragglers.ranks.is_empty());
    let once = Job::new(8, 10)
        .with(5, Some(3), Work::Computing, 2_000)
        .answer();
    assert!(
        once.stragglers.ranks.is_empty(),
        "one step makes no slow rank"
    );
}

#[test]
fn a_slow_step_has_its_rank_and_its_cause() {
    let mut job = Job::new(8, 12).with(2, Some(7), Work::Data, 9_000);
    for rank in 0..8 {
        job = job.with(rank, Some(4), Work::Host, 6_000);
    }
    let answer = job.answer();
    let steps: Vec<u64> = answer.slow_steps.iter().map(|step| step.number).collect();
    assert_eq!(steps, [7, 4]);
    let Blame::Rank(rank) = &answer.slow_steps[0].blame else {
        panic!("{:?}", answer.slow_steps[0]);
    };
    assert_eq!(
        (rank.rank, answer.slow_steps[0].cause),
        (Some(2), Some(Cause::Data))
    );
    assert_eq!(answer.slow_steps[1].blame, Blame::AllRanks);
    assert_eq!(answer.slow_steps[1].cause, Some(Cause::Host));
    assert!(answer.stragglers.ranks.is_empty());
}

#[test]
fn a_long_first_step_does_not_hide_what_the_others_cost() {
    let mut job = Job::new(4, 12).with(2, None, Work::Data, 5_000);
    for rank in 0..4 {
        job = job.with(rank, Some(0), Work::Host, 60_000_000);
    }
    let answer = job.answer();
    assert_eq!(answer.slow_steps[0].number, 0);
    let finding = &answer.findings.found[0];
    let share = 5_000.0 / (2 * HALF + 5_000 + 200) as f64;
    assert_eq!(finding.rule, "slow-rank");
    assert!((finding.share - share).abs() < 0.02, "{}", finding.share);
}

#[test]
fn ranks_that_hold_up_a_step_alike_are_blamed_together() {
    let blamed = |times: [(u64, u64); 2]| {
        let mut job = Job::new(8, 12);
        for (rank, time) in times {
            job = job.with(rank, Some(7), Work::Data, time);
        }
        let mut summaries = job.summaries();
        let answer = answer(summaries.clone());
        // The order of the parts does not matter.
        summaries.reverse();
        assert_eq!(crate::job::answer(summaries).slow_steps, answer.slow_steps);
        let [step] = &answer.slow_steps[..] else {
            panic!("{:?}", answer.slow_steps);
        };
        assert_eq!((step.number, step.cause), (7, Some(Cause::Data)));
        step.blame.clone()
    };
    let ranks = |blame: Blame| match blame {
        Blame::Rank(rank) => vec![rank.rank],
        Blame::Ranks(ranks) => ranks.iter().map(|rank| rank.rank).collect(),
        Blame::AllRanks | Blame::Nobody => Vec::new(),
    };
    assert_eq!(ranks(blamed([(5, 9_000), (2, 9_000)])), [Some(2), Some(5)]);
    assert_eq!(ranks(blamed([(5, 8_800), (2, 9_000)])), [Some(2), Some(5)]);
    assert_eq!(ranks(blamed([(5, 7_000), (2, 9_000)])), [Some(2)]);
}

#[test]
fn many_ranks_have_the_same_answers() {
    let mut job = Job::new(512, 6).with(300, None, Work::Data, 2_500);
    for rank in 88..96 {
        job = job.with(rank, None, Work::Computing, 1_500);
    }
    let answer = job.answer();
    assert_clocks(&answer);
    let mut expected: Vec<_> = (88..96)
        .map(|rank| (rank, Some(Cause::Computing)))
        .collect();
    expected.push((300, Some(Cause::Data)));
    assert_eq!(slow_ranks(&answer), expected);
    let hosts: Vec<&str> = answer
        .stragglers
        .hosts
        .iter()
        .map(|host| &*host.host)
        .collect();
    assert_eq!(hosts, ["node11"]);
    assert_eq!((answer.roster.files, answer.roster.hosts), (512, 64));
    assert_eq!(
        (answer.roster.ranks.as_str(), answer.roster.missing_count),
        ("0-511", 0)
    );
}

#[test]
fn without_sequence_numbers_the_order_within_steps_counts() {
    let mut job = Job::new(8, 10).with(5, None, Work::Computing, 2_000);
    job.has_sequence = false;
    let mut summaries = job.summaries();
    let whole = answer(summaries.clone());
    assert_clocks(&whole);
    assert!(whole.communication.is_by_order && whole.communication.unmatched == 0);
    // A rank that lacks a collective of a step is not matched there by mistake.
    summaries[3].collectives.remove(8);
    let lacking = answer(summaries);
    assert_eq!(lacking.communication.unmatched, 1);
    assert_clocks(&lacking);
}

#[test]
fn a_rank_of_another_run_is_not_trusted() {
    let job = Job::new(8, 10);
    let mut other = Job::new(8, 10).with(0, Some(2), Work::Host, 40_000);
    other = other.with(1, Some(6), Work::Host, 70_000);
    other.base_unix_ns += 60_000_000_000;
    let mut summaries = job.summaries();
    summaries[4] = other.summaries().swap_remove(4);
    let answer = answer(summaries);
    let doubtful: Vec<_> = answer
        .clocks
        .doubtful
        .iter()
        .map(|rank| rank.rank)
        .collect();
    assert_eq!(doubtful, [Some(4)]);
    assert_eq!(answer.clocks.ranks.len(), 7);
    assert!(answer.clocks.error.0 < 15_000);
}

#[test]
fn repeated_missing_and_foreign_ranks_are_told() {
    let mut summaries = Job::new(8, 6).summaries();
    summaries.remove(2);
    summaries.push(summaries[5].clone());
    summaries.push(Job::new(16, 6).summaries().swap_remove(3));
    let roster = answer(summaries).roster;
    assert_eq!((roster.files, roster.world_size), (9, Some(8)));
    assert_eq!(
        (roster.ranks.as_str(), roster.missing.as_str()),
        ("0-1,3-7", "2")
    );
    let repeated: Vec<_> = roster.repeated.iter().map(|rank| rank.rank).collect();
    assert_eq!(repeated, [Some(6)]);
    let foreign: Vec<_> = roster.foreign.iter().map(|rank| rank.rank).collect();
    assert_eq!(foreign, [Some(3)]);
}

#[test]
fn ranks_that_run_other_operators_are_told() {
    let mut summaries = Job::new(6, 6).summaries();
    summaries[4].rows.retain(|row| &*row.name != "gemm");
    summaries[1].identity.versions = vec![("nccl_version".into(), "2.19".into())];
    let differences = answer(summaries).differences;
    let [row] = differences.rows.as_slice() else {
        panic!("{:?}", differences.rows);
    };
    assert_eq!(
        (row.name.as_str(), row.usual_count, row.count_ranks),
        ("gemm", 12, 1)
    );
    assert_eq!((row.counts[0].0.rank, row.counts[0].1), (Some(4), 0));
    assert_eq!(differences.facts[0].fact, "nccl_version");
}

// Half of the products of a rank are not recorded, which is no difference between programs.
#[test]
fn ranks_that_recorded_other_operators_are_told_and_not_compared() {
    let mut summaries = Job::new(6, 6)
        .with(2, None, Work::Computing, 2_000)
        .summaries();
    summaries[2].identity.limit = Some("share=0.5".into());
    summaries[2].rows.retain(|row| &*row.name != "gemm");
    let told = answer(summaries.clone());
    let [(rank, limit)] = told.roster.limits.as_slice() else {
        panic!("{:?}", told.roster.limits);
    };
    assert_eq!((rank.rank, limit.as_str()), (Some(2), "share=0.5"));
    assert_eq!(told.differences.row_count, 0);
    assert_eq!(slow_ranks(&told), [(2, None)]);
    for summary in &mut summaries {
        summary.identity.limit = Some("share=0.5".into());
    }
    let alike = answer(summaries);
    assert!(alike.roster.limits.is_empty());
    assert_eq!(alike.differences.row_count, 1);
    assert_eq!(slow_ranks(&alike), [(2, Some(Cause::Computing))]);
}

#[test]
fn exposed_transfers_are_priced_without_the_waits() {
    let mut job = Job::new(8, 10).with(5, None, Work::Computing, 2_000);
    job.transfer = 1_000;
    let answer = job.answer();
    let found = answer.findings.found.iter();
    let mut found: Vec<_> = found.map(|found| (found.rule, found)).collect();
    found.sort_by_key(|(rule, _)| *rule);
    let [("poor-overlap", found), ("slow-rank", _)] = found[..] else {
        panic!("{found:?}");
    };
    let share = 2_000.0 / (2 * HALF + 2_000 + 2_000) as f64;
    assert!(
        (found.share - share).abs() < 0.01,
        "{} is not {share}",
        found.share
    );
}

#[test]
fn one_rank_alone_claims_nothing() {
    let answer = Job::new(1, 6).answer();
    assert!(answer.findings.found.is_empty());
    assert_eq!(answer.stragglers.unknown, Some("there is only one rank"));
    let empty = answer_of_nothing();
    assert_eq!(empty.roster.files, 0);
}

fn answer_of_nothing() -> JobAnswer {
    answer(Vec::new())
}
