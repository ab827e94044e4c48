use mindprof_answers::Confidence;
use mindprof_model::Nanos;
use mindprof_ranks::RankClock;

use super::notes::singular;
use super::*;

fn label(rank: u32) -> RankLabel {
    RankLabel {
        rank: Some(rank),
        host: None,
        file: format!("rank{rank}.json"),
    }
}

#[test]
fn ranks_are_named_or_counted() {
    let ranks: Vec<RankLabel> = (3..9).map(label).collect();
    assert_eq!(ranks_words(&ranks[..1]), "rank 3");
    assert_eq!(ranks_words(&ranks[..3]), "ranks 3, 4 and 5");
    assert_eq!(ranks_words(&ranks), "6 ranks (3, 4, 5, 6 …)");
    let unnumbered = RankLabel {
        rank: None,
        ..label(0)
    };
    assert_eq!(ranks_words(&[unnumbered]), "rank0.json");
}

#[test]
fn without_ranks_the_text_says_so() {
    let layout = RanksLayout {
        rows: 8,
        width: Some(80),
    };
    let text = ranks_text(&JobAnswer::default(), layout);
    assert_eq!(text, "There is no rank to tell anything about.\n");
}

#[test]
fn one_file_is_told_in_the_singular() {
    assert_eq!(
        singular("repeat a rank and are left out"),
        "repeats a rank and is left out"
    );
    assert_eq!(singular("do not tell their rank"), "does not tell its rank");
}

#[test]
fn ranks_that_recorded_other_operators_are_told() {
    let mut answer = JobAnswer::default();
    answer.roster.limits = vec![(label(3), "share=0.5".into()), (label(5), "depth=1".into())];
    assert_eq!(
        roster_notes(&answer),
        [
            "ranks 3 and 5 recorded other operators than most, and these are not compared: \
             rank 3 recorded share=0.5"
        ]
    );
}

#[test]
fn a_slow_rank_that_may_wait_itself_is_told_with_the_doubt() {
    let mut answer = JobAnswer::default();
    answer.roster.files = 3;
    answer.findings.found = vec![JobFinding {
        rule: "slow-rank",
        summary: "some ranks are slower than the others, which wait for them",
        share: 0.2,
        low: 0.0,
        high: 0.31,
        confidence: Confidence::Low,
        ranks: vec![label(4)],
        hosts: Vec::new(),
        group: None,
        cause: Some(Cause::Computing),
        collectives: 0,
        remedy: "compare",
    }];
    let slow = "3 ranks: rank 4 is slow, mostly because of computing; the others wait for it";
    assert_eq!(verdict(&answer), format!("{slow}, 20 % of each step."));
    answer.stragglers.doubt = Some("ranks are missing: add their traces");
    assert_eq!(
        verdict(&answer),
        format!("{slow}, at most 31 % of each step. Ranks are missing: add their traces.")
    );
}

#[test]
fn ranks_that_keep_the_clock_of_their_machine_are_told() {
    let clock = |rank, is_of_machine| RankClock {
        rank: label(rank),
        offset_ns: 0,
        error: Nanos(if is_of_machine { 1_000_000 } else { 0 }),
        collectives: 0,
        is_of_machine,
    };
    let mut answer = JobAnswer::default();
    answer.clocks.ranks = vec![clock(0, false), clock(1, true)];
    answer.clocks.error = Nanos(1_000_000);
    assert_eq!(
        clock_notes(&answer),
        ["Clocks: 2 ranks on the clock of their machine, error 1.00 ms"]
    );
    answer.clocks.ranks.push(clock(2, false));
    assert_eq!(
        clock_notes(&answer),
        [
            "Clocks: 2 ranks aligned on collectives, offsets 0 to 0, error 1.00 ms; \
             1 rank on the clock of the machine"
        ]
    );
}
