//! Data that do not allow an answer: nobody is blamed, and nobody is cleared.

use mindprof_answers::{Confidence, StepClass};
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

/// Returns why a rule cannot tell, or nothing if it can.
fn why_unknown(answer: &JobAnswer, rule: &str) -> &'static str {
    let mut unknown = answer.findings.unknown.iter();
    let found = unknown.find(|unknown| unknown.rule == rule);
    found.map_or("", |unknown| unknown.missing)
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
        assert!(
            why_unknown(&answer, rule).starts_with("ranks are missing"),
            "{rule}"
        );
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

/// Returns the summaries of a job whose ranks read the same clock.
fn on_one_clock(job: &Job) -> Vec<RankSummary> {
    let mut summaries = job.summaries();
    for summary in &mut summaries {
        summary.reference_unix_ns = job.base_unix_ns;
    }
    summaries
}

/// Returns a job with steps of 50 ms whose ranks wait for a processor at the ends of collectives,
/// longer on each rank than on the one before.
fn busy_job() -> Job {
    let mut job = Job::new(4, 20);
    for rank in 0..4 {
        job = job.with(rank, None, Work::Computing, 40_000);
    }
    (job.end_noise_ns, job.late_ns) = (4_000_000, 500_000);
    job
}

// rank 0   |------------|..              all ranks have the same data, and get a processor later
// rank 1   |------------|.....|          by chance
#[test]
fn ranks_of_a_busy_machine_keep_its_clock() {
    let told = answer(on_one_clock(&busy_job()));
    assert!(told.clocks.doubtful.is_empty() && told.clocks.unknown.is_empty());
    let offsets: Vec<_> = told
        .clocks
        .ranks
        .iter()
        .map(|clock| clock.offset_ns)
        .collect();
    assert_eq!(offsets, [0; 4]);
    assert_eq!(told.clocks.error, Nanos(1_000_000));
    let kept = told.clocks.ranks.iter().filter(|clock| clock.is_of_machine);
    assert_eq!(kept.count(), 3);
    assert!(told.stragglers.ranks.is_empty());
    let rules: Vec<&str> = told.findings.found.iter().map(|found| found.rule).collect();
    assert_eq!(rules, ["ends-differ"]);
    for rule in [
        "poor-overlap",
        "communication-heavy",
        "uneven-work",
        "slow-link",
    ] {
        let why = why_unknown(&told, rule);
        assert!(
            why.starts_with("collectives end far apart"),
            "{rule}: {why}"
        );
    }
    assert!(told.communication.has_ends_apart);
    let rates = told.communication.rows.iter().map(|row| row.bytes_per_s);
    assert!(rates.flatten().next().is_none());
}

#[test]
fn a_slow_rank_of_a_busy_machine_is_found() {
    let job = busy_job().with(2, None, Work::Computing, 20_000);
    let told = answer(on_one_clock(&job));
    let slow: Vec<_> = told
        .stragglers
        .ranks
        .iter()
        .map(|slow| slow.rank.rank)
        .collect();
    assert_eq!((slow, told.stragglers.doubt), (vec![Some(2)], None));
    // Each of the others waits 20 ms of 70 ms for it.
    let share = found(&told, "slow-rank").unwrap().share;
    assert!((share - 20.0 / 70.0).abs() < 0.05, "{share}");
}

#[test]
fn only_ranks_of_one_machine_have_one_clock() {
    let of_machine = |change: fn(&mut RankSummary)| {
        let mut summaries = on_one_clock(&busy_job());
        summaries.iter_mut().for_each(change);
        let told = answer(summaries);
        told.clocks
            .ranks
            .iter()
            .filter(|clock| clock.is_of_machine)
            .count()
    };
    assert_eq!(of_machine(|_| {}), 3);
    assert_eq!(of_machine(|summary| summary.identity.host = None), 0);
    let every_machine = |summary: &mut RankSummary| {
        summary.identity.host = Some("localhost.localdomain".into());
    };
    assert_eq!(of_machine(every_machine), 0);
    let own_machine = |summary: &mut RankSummary| {
        summary.identity.host = summary
            .identity
            .rank
            .map(|rank| format!("node{rank}").into());
    };
    assert_eq!(of_machine(own_machine), 0);
    // More than a step lies between the clocks, so that they are not the same.
    let own_clock = |summary: &mut RankSummary| {
        let rank = u64::from(summary.identity.rank.unwrap());
        summary.reference_unix_ns += 200_000_000 * rank;
    };
    assert_eq!(of_machine(own_clock), 0);
}

// rank 0..7   |--work--|-----------wait-----------|--|
// rank 5      |----------work---------|---wait----|--|      others wait for it, and it may wait for
// rank 2      |--------------- ? -----------------|--|      rank 2, which has no file
#[test]
fn a_slow_rank_that_communicates_may_wait_for_a_missing_one() {
    let job = |transfer: u64| {
        let mut job = Job::new(8, 10).with(5, None, Work::Computing, 5_000);
        job.transfer = transfer;
        job
    };
    let whole = job(1_000).answer();
    assert_eq!(whole.stragglers.doubt, None);
    assert!(found(&whole, "slow-rank").unwrap().low > 0.0);
    let mut summaries = job(1_000).summaries();
    summaries.remove(2);
    let lacking = answer(summaries);
    let slow = found(&lacking, "slow-rank").expect("it is slower than the others that are there");
    assert_eq!((slow.low, slow.confidence), (0.0, Confidence::Low));
    assert!(
        lacking
            .stragglers
            .doubt
            .unwrap()
            .starts_with("ranks are missing")
    );
    // It hardly communicates, so it waits for nobody.
    let mut summaries = job(100).summaries();
    summaries.remove(2);
    let busy = answer(summaries);
    assert_eq!(busy.stragglers.doubt, None);
    assert!(found(&busy, "slow-rank").unwrap().low > 0.0);
}

#[test]
fn a_slow_rank_may_wait_for_one_that_is_not_compared() {
    let mut job = Job::new(8, 10).with(5, None, Work::Computing, 5_000);
    job.transfer = 1_000;
    let mut other = Job::new(8, 10).with(0, Some(2), Work::Host, 40_000);
    other = other.with(1, Some(6), Work::Host, 70_000);
    other.base_unix_ns += 60_000_000_000;
    let mut summaries = job.summaries();
    summaries[4] = other.summaries().swap_remove(4);
    let told = answer(summaries);
    let doubt = told.stragglers.doubt.unwrap();
    assert!(doubt.contains("cannot be compared"), "{doubt}");
    assert_eq!(why_unknown(&told, "poor-overlap"), doubt);
}

#[test]
fn without_a_common_clock_the_reason_is_told() {
    let mut job = busy_job();
    (job.ranks_per_host, job.end_noise_ns) = (1, 12_000_000);
    let told = job.answer();
    assert_eq!(told.clocks.doubtful.len(), 3);
    let why = why_unknown(&told, "ends-differ");
    assert!(why.contains("clocks of ranks cannot be aligned"), "{why}");
}

#[test]
fn sizes_that_are_not_known_are_no_zeros() {
    let job = Job::new(8, 10).with(5, None, Work::Computing, 2_000);
    let sized = job.answer().communication;
    assert_eq!(sized.rows[0].bytes, Some(20 * 16_000_000));
    assert_eq!(sized.worst[0].bytes, Some(16_000_000));
    let mut summaries = job.summaries();
    for found in summaries
        .iter_mut()
        .flat_map(|summary| &mut summary.collectives)
    {
        found.bytes = 0;
    }
    let unsized_ones = answer(summaries).communication;
    assert_eq!(unsized_ones.rows[0].bytes, None);
    assert_eq!(unsized_ones.rows[0].bytes_per_s, None);
    assert!(unsized_ones.worst.iter().all(|worst| worst.bytes.is_none()));
}

#[test]
fn a_slow_rank_that_noise_may_explain_is_unknown() {
    let mut job = Job::new(4, 10);
    let times = [0, 0, 1_500, 1_600, 3_000, 6_000, 9_000, 0, 12_000, 2_000];
    for (step, time) in (0..).zip(times) {
        job = job.with(2, Some(step), Work::Computing, time);
    }
    let told = job.answer();
    assert!(told.stragglers.ranks.is_empty());
    let why = why_unknown(&told, "slow-rank");
    assert!(why.contains("may be chance"), "{why}");
    let quiet = Job::new(4, 10)
        .with(2, None, Work::Computing, 1_500)
        .answer();
    assert_eq!(quiet.stragglers.ranks.len(), 1);
}
