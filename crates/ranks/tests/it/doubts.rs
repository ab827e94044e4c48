//! Data that do not allow an answer: nobody is blamed, and nobody is cleared.

use mindprof_answers::StepClass;
use mindprof_model::Nanos;
use mindprof_ranks::{JobAnswer, RankSummary, RowKind};

use crate::job::{Job, Work, answer};

fn found<'a>(answer: &'a JobAnswer, rule: &str) -> Option<&'a mindprof_ranks::JobFinding> {
    answer
        .findings
        .found
        .iter()
        .find(|found| found.rule == rule)
}

fn is_unknown(answer: &JobAnswer, rule: &str) -> bool {
    answer
        .findings
        .unknown
        .iter()
        .any(|unknown| unknown.rule == rule)
}

/// Turns time of a class into idle time in all steps.
fn idle(summary: &mut RankSummary, class: StepClass, most: Nanos) {
    for step in &mut summary.steps {
        let time = step.classes[class as usize].min(most);
        step.classes[class as usize] = step.classes[class as usize] - time;
        step.classes[StepClass::Idle as usize] = step.classes[StepClass::Idle as usize] + time;
    }
}

// rank 0..7    |--work--|------------wait-----------|-|      a wait or a transfer?
// rank 5       |----------------work----------------|-|      has no file
#[test]
fn waits_for_a_rank_that_is_missing_are_no_transfers() {
    let mut summaries = Job::new(8, 10)
        .with(5, None, Work::Computing, 5_000)
        .summaries();
    summaries.remove(5);
    let answer = answer(summaries);
    assert!(
        answer.findings.found.is_empty(),
        "{:?}",
        answer.findings.found
    );
    for rule in ["slow-rank", "poor-overlap", "communication-heavy"] {
        assert!(is_unknown(&answer, rule), "{rule}");
    }
    assert!(answer.communication.rows.is_empty() && answer.communication.incomplete == 20);
}

#[test]
fn a_rank_whose_collectives_were_not_recorded_is_not_blamed() {
    let mut job = Job::new(8, 10);
    job.transfer = 2_000;
    let mut summaries = job.summaries();
    summaries[5].collectives.clear();
    idle(&mut summaries[5], StepClass::Communication, Nanos(u64::MAX));
    let answer = answer(summaries);
    assert!(answer.stragglers.ranks.is_empty());
    assert!(is_unknown(&answer, "slow-rank") && answer.findings.found.is_empty());
}

#[test]
fn without_communication_no_rank_is_cleared_or_blamed() {
    let mut summaries = Job::new(8, 10)
        .with(3, None, Work::Computing, 5_000)
        .summaries();
    for summary in &mut summaries {
        summary.collectives.clear();
        idle(summary, StepClass::Communication, Nanos(u64::MAX));
    }
    let answer = answer(summaries);
    assert!(answer.stragglers.ranks.is_empty() && answer.findings.found.is_empty());
    assert!(is_unknown(&answer, "slow-rank"));
}

#[test]
fn waits_outside_of_communication_leave_the_slow_rank_unknown() {
    let mut summaries = Job::new(8, 10).summaries();
    for (rank, summary) in summaries.iter_mut().enumerate() {
        let waits = if rank == 5 { 0 } else { 2_000_000 };
        idle(summary, StepClass::Kernel, Nanos(waits));
    }
    let answer = answer(summaries);
    assert!(answer.stragglers.ranks.is_empty() && is_unknown(&answer, "slow-rank"));
}

#[test]
fn a_rank_that_never_comes_last_is_not_waited_for() {
    let mut job = Job::new(8, 10);
    job.transfer = 2_000;
    let mut summaries = job.summaries();
    idle(
        &mut summaries[0],
        StepClass::Communication,
        Nanos(2_000_000),
    );
    let seen = answer(summaries.clone());
    assert!(seen.stragglers.ranks.is_empty() && found(&seen, "slow-rank").is_none());
    // Without a common clock it may be waited for.
    for summary in &mut summaries {
        for collective in &mut summary.collectives {
            collective.kind = mindprof_ranks::CollectiveKind::Broadcast;
        }
    }
    assert!(is_unknown(&answer(summaries), "slow-rank"));
}

#[test]
fn noise_in_few_steps_blames_nobody() {
    for (ranks, steps) in [(2, 5), (4, 1), (4, 3), (8, 2), (8, 6), (8, 20)] {
        for seed in 0..8 {
            let mut job = Job::new(ranks, steps);
            (job.noise, job.seed) = (2_500, 3 + 10 * seed);
            let answer = job.answer();
            assert!(
                answer.stragglers.ranks.is_empty(),
                "{ranks} ranks, {steps} steps, {seed}"
            );
            let is_told = steps >= 5 || is_unknown(&answer, "slow-rank");
            assert!(is_told, "{ranks} ranks, {steps} steps");
        }
    }
}

#[test]
fn a_rank_with_few_steps_is_not_compared() {
    let mut summaries = Job::new(8, 20)
        .with(3, None, Work::Computing, 3_000)
        .summaries();
    summaries[3].steps.truncate(4);
    let answer = answer(summaries);
    assert!(answer.stragglers.ranks.is_empty());
    assert!(is_unknown(&answer, "slow-rank"));
}

#[test]
fn waits_that_no_slow_rank_explains_are_priced() {
    let mut job = Job::new(8, 10);
    for step in 0..7 {
        job = job.with(5, Some(step), Work::Computing, 9_000);
    }
    let often = job.answer();
    let uneven = found(&often, "uneven-work").expect("seven of eight ranks wait in seven steps");
    let ranks: Vec<_> = uneven.ranks.iter().map(|rank| rank.rank).collect();
    assert_eq!(ranks, [Some(5)]);
    // Seven of eight ranks wait for 9 ms in seven of ten steps of 10.2 ms.
    let share = 0.875 * 63.0 / (63.0 + 102.0);
    assert!(
        (uneven.share - share).abs() < 0.02,
        "{} is not {share}",
        uneven.share
    );
    assert!(is_unknown(&often, "slow-rank"));
    let mut job = Job::new(8, 16);
    for step in 0..16 {
        job = job.with(step % 8, Some(step), Work::Computing, 5_000);
    }
    let in_turn = job.answer();
    assert!(in_turn.stragglers.ranks.is_empty());
    let uneven = found(&in_turn, "uneven-work").expect("all ranks are late in turn");
    assert!(uneven.share > 0.2 && uneven.ranks.is_empty());
}

// ranks 1..7   |--work--|-wait-|-|   |--work--|-wait-|-|     rank 0 stops before rank 5 begins, so
// rank 5                             |-----work------|-|     that rank 5 has no clock of rank 0
#[test]
fn a_slow_rank_without_a_clock_has_a_price() {
    let mut summaries = Job::new(8, 18)
        .with(5, None, Work::Computing, 5_000)
        .summaries();
    let mut keep = |rank: usize, from: u64, to: u64| {
        let summary = &mut summaries[rank];
        let is_kept = |step: u64| (from..to).contains(&step);
        summary.steps.retain(|step| is_kept(step.number));
        summary
            .collectives
            .retain(|found| found.step.is_some_and(is_kept));
    };
    keep(0, 0, 9);
    keep(5, 8, 18);
    let answer = answer(summaries);
    let slow = found(&answer, "slow-rank").expect("it has more to compute than the others");
    assert!(slow.share > 0.2 && slow.share <= 1.0, "{}", slow.share);
    assert!(is_unknown(&answer, "poor-overlap"));
}

#[test]
fn stages_of_a_pipeline_are_not_late_by_chance() {
    let mut summaries = Job::new(4, 10).summaries();
    let is_late = |step: u64| step.is_multiple_of(2);
    for summary in &mut summaries[..3] {
        for found in &mut summary.collectives {
            if found.step.is_some_and(is_late) {
                found.start = found.start - Nanos(2_000_000);
                found.exposed = found.duration();
            }
        }
        for step in summary.steps.iter_mut().filter(|step| is_late(step.number)) {
            step.classes[StepClass::Communication as usize] = Nanos(4_200_000);
            step.classes[StepClass::Kernel as usize] = Nanos(6_000_000);
        }
    }
    assert!(found(&answer(summaries.clone()), "uneven-work").is_some());
    let mut received = summaries[1].collectives[0].clone();
    received.kind = mindprof_ranks::CollectiveKind::Receive;
    summaries[1].collectives.insert(1, received);
    assert!(found(&answer(summaries), "uneven-work").is_none());
}

#[test]
fn collectives_at_the_same_time_cost_it_once() {
    let mut job = Job::new(4, 10);
    job.transfer = 1_000;
    let mut summaries = job.summaries();
    let alone = answer(summaries.clone());
    for summary in &mut summaries {
        let group = summary.groups[0].clone();
        for number in 1..4 {
            let mut other = group.clone();
            other.name = format!("9{number}").into();
            summary.groups.push(other);
            let own = summary.collectives.clone();
            let own = own.into_iter().filter(|found| found.group == Some(0));
            summary.collectives.extend(own.map(|mut found| {
                found.group = Some(number);
                found
            }));
        }
        summary.collectives.sort();
    }
    let at_once = answer(summaries);
    let share = |answer: &JobAnswer| found(answer, "poor-overlap").unwrap().share;
    let (one, four) = (share(&alone), share(&at_once));
    assert!((one - four).abs() < 0.01, "{one} and {four}");
}

#[test]
fn groups_of_unknown_ranks_are_not_matched() {
    let mut summaries = Job::new(8, 10).summaries();
    for summary in &mut summaries {
        summary.groups[0].ranks = "".into();
    }
    let answer = answer(summaries);
    assert_eq!(answer.communication.without_group, 160);
    assert!(answer.clocks.ranks.is_empty() && is_unknown(&answer, "poor-overlap"));
}

#[test]
fn more_ranks_than_a_group_has_are_not_matched() {
    let mut summaries = Job::new(8, 10).summaries();
    for summary in &mut summaries {
        summary.groups[0].ranks = "0-1".into();
    }
    assert_eq!(answer(summaries).communication.unmatched, 160);
}

#[test]
fn a_clock_that_jumps_is_not_trusted() {
    let mut summaries = Job::new(8, 20).summaries();
    let jump = Nanos(5_000_000);
    for collective in summaries[3].collectives.iter_mut().skip(26) {
        (collective.start, collective.end) = (collective.start + jump, collective.end + jump);
    }
    let answer = answer(summaries);
    let doubtful: Vec<_> = answer
        .clocks
        .doubtful
        .iter()
        .map(|rank| rank.rank)
        .collect();
    assert_eq!(doubtful, [Some(3)]);
    assert!(answer.communication.worst.is_empty());
}

#[test]
fn kernels_of_other_libraries_are_communication() {
    for kernel in [
        "ncclSymDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_f32",
        "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f32",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>",
        "two_shot_all_reduce_kernel",
        // Only its arguments tell.
        "triton_poi_exchange_0",
    ] {
        let mut job = Job::new(8, 10).with(5, None, Work::Computing, 2_000);
        job.kernel = kernel;
        let answer = job.answer();
        assert_eq!(answer.stragglers.ranks.len(), 1, "{kernel}");
        assert_eq!(answer.stragglers.ranks[0].rank.rank, Some(5), "{kernel}");
        let row = answer.kernels.iter().find(|row| row.name == kernel);
        assert_eq!(
            row.map(|row| row.kind),
            Some(RowKind::Communication),
            "{kernel}"
        );
        let times = answer.devices.all.unwrap();
        assert!(times.communication.0 > 0, "{kernel}");
        let overlap = times.overlap.unwrap();
        assert!(overlap < 0.01, "{kernel}: {overlap}");
    }
}

#[test]
fn absurd_times_do_not_panic() {
    let mut summaries = Job::new(4, 10).summaries();
    for (rank, summary) in (0..).zip(&mut summaries) {
        for step in &mut summary.steps {
            step.classes = step.classes.map(|_| Nanos(u64::MAX / (rank + 1)));
        }
        for collective in &mut summary.collectives {
            collective.end = Nanos(u64::MAX - rank);
            collective.exposed = Nanos(u64::MAX);
        }
        summary.reference_unix_ns = u64::MAX - rank;
    }
    let answer = answer(summaries);
    let shares = answer.findings.found.iter().map(|found| found.high);
    assert!(shares.fold(0.0, f64::max) <= 1.0);
}
