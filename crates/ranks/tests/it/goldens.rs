//! Summaries of torch's own traces.

use std::path::{Path, PathBuf};

use mindprof_analyze::Analysis;
use mindprof_ranks::{Cause, CollectiveKind, JobAnswer, RankSource, RankSummary, Ranks, Source};
use mindprof_trace::read_trace_file;

pub(crate) fn golden(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../../tests/goldens/h200-torch2.11").join(name)
}

pub(crate) fn summarize(path: &Path) -> RankSummary {
    let analysis = Analysis::build(read_trace_file(path).expect("the trace is sound"));
    let file = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let repairs = Vec::new();
    RankSummary::build(&analysis, &Source { file, repairs })
}

#[test]
fn a_real_trace_becomes_tens_of_kilobytes_and_comes_back() {
    let summary = summarize(&golden("gpt-full.trace.json.gz"));
    assert_eq!(summary.identity.source, RankSource::Unknown);
    assert_eq!(summary.steps.len(), 2);
    assert!(summary.rows.len() > 100);
    let device = summary.device.clone().expect("it has a device");
    assert!(device.compute.0 > 0 && device.busy <= device.span);
    let ranks = Ranks::from(summary);
    let bytes = ranks.to_bytes();
    assert!(bytes.len() < 60_000, "{} bytes", bytes.len());
    assert_eq!(Ranks::from_bytes(&bytes), Ok(ranks));
}

/// Four processes train on one busy machine, and the third multiplies forty more matrices a step.
/// Their collectives end milliseconds apart, so that some clocks stay unknown.
#[test]
fn four_gloo_ranks_have_a_slow_one_and_no_wait_is_taken_for_transfer() {
    let summaries = (0..4).map(|rank| {
        let name = format!("../gloo-torch2.15/rank{rank}.trace.json.gz");
        let summary = summarize(&golden(&name));
        assert_eq!(summary.identity.rank, Some(rank));
        assert_eq!(summary.identity.source, RankSource::Trace);
        assert_eq!((summary.steps.len(), summary.collectives.len()), (10, 10));
        Ranks::from(summary)
    });
    let answer = JobAnswer::build(&Ranks::merge(summaries));
    assert_eq!(
        (answer.roster.missing_count, answer.roster.world_size),
        (0, Some(4))
    );
    assert_eq!(answer.communication.unmatched, 0);
    let slow: Vec<_> = answer.stragglers.ranks.iter().collect();
    assert_eq!(slow.len(), 1);
    assert_eq!(
        (slow[0].rank.rank, slow[0].cause),
        (Some(2), Some(Cause::Computing))
    );
    let rules: Vec<&str> = answer.findings.found.iter().map(|one| one.rule).collect();
    assert_eq!(rules, ["slow-rank"]);
    let mut rows = answer.differences.rows.iter();
    let products = rows.find(|row| row.name == "aten::mm").unwrap();
    assert_eq!((products.usual_count, products.count_ranks), (30, 1));
    assert_eq!(products.counts[0].1, 430);
    let kinds: Vec<_> = answer
        .communication
        .rows
        .iter()
        .map(|row| row.kind)
        .collect();
    assert!(kinds.iter().all(|kind| *kind == CollectiveKind::AllReduce));
}
