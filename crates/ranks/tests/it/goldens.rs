//! Summaries of torch's own traces.

use std::path::{Path, PathBuf};

use mindprof_analyze::Analysis;
use mindprof_ranks::{RankSource, RankSummary, Ranks, Source};
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
