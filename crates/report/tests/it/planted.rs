//! Advice on training runs with one planted cause each, against the truth: which cause it is, which
//! function is to blame, and what mending it saved without a profiler.
//!
//! The traces are large and lie outside of the repository. Where they are missing, the test says so.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the findings explain a failure"
)]

use std::path::{Path, PathBuf};

use mindprof_analyze::Analysis;
use mindprof_answers::{Advice, OwnCode};
use mindprof_trace::read_trace;
use serde_json::Value;

/// The rule that finds a planted cause, by the cause's name in the truth.
const RULES: [(&str, &str); 12] = [
    ("copies", "conversions"),
    ("data-loading", "data-loading"),
    ("device-allocations", "device-allocations"),
    ("growing-memory", "growing-memory"),
    ("host-copies", "host-copies"),
    ("launch-bound", "launch-bound"),
    ("loop-over-batch", "loop-over-batch"),
    ("no-tensor-cores", "tensor-cores"),
    ("optimizer-loop", "optimizer-loop"),
    ("python-bound", "python-bound"),
    ("slow-step", "slow-step"),
    ("synchronisation", "synchronization"),
];

/// A planted run, and what advice says about it.
struct Planted {
    device: &'static str,
    name: String,
    /// The rule that should find the cause; none in a healthy run.
    rule: Option<&'static str>,
    function: Option<String>,
    saving: Option<f64>,
    advice: Advice,
}

impl Planted {
    /// The position of the planted cause among the findings, from one.
    fn rank(&self) -> Option<usize> {
        let mut findings = self.advice.findings.iter();
        let at = findings.position(|finding| Some(finding.rule.id) == self.rule);
        at.map(|at| at + 1)
    }

    fn price(&self) -> Option<f64> {
        Some(self.advice.findings[self.rank()? - 1].share)
    }

    fn names_function(&self) -> bool {
        let Some(rank) = self.rank() else {
            return false;
        };
        let place = self.advice.findings[rank - 1].place.as_ref();
        place.map(|place| place.function.as_str()) == self.function.as_deref()
    }

    /// A line of the table in the documentation.
    fn row(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let run = format!("{} {}", self.device, self.name);
        let Some(rule) = self.rule else {
            let most = self.advice.findings.first().map_or(0.0, |one| one.share);
            return format!(
                "| {run} | healthy | - | - | - | at most {} | 0 % |",
                percent(most)
            );
        };
        let rank = self.rank().map_or("-".into(), |rank| rank.to_string());
        let function = self.function.as_deref().unwrap_or("-");
        let found = if self.names_function() { "yes" } else { "no" };
        let price = self.price().filter(|_| self.saving.is_some());
        let [price, saving] = [price, self.saving].map(|share| share.map_or("-".into(), percent));
        format!("| {run} | `{rule}` | {rank} | `{function}` | {found} | {price} | {saving} |")
    }
}

fn planted() -> Option<Vec<Planted>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/planted");
    if !folder.is_dir() {
        eprintln!("skipped: {} is missing", folder.display());
        return None;
    }
    let mut all = Vec::new();
    for device in ["cpu", "cuda"] {
        let truth = std::fs::read_to_string(folder.join(device).join("truth.json")).unwrap();
        let truth: Value = serde_json::from_str(&truth).unwrap();
        for (name, truth) in truth.as_object().unwrap() {
            let path: PathBuf = folder.join(device).join(format!("{name}.trace.json.gz"));
            let profile = read_trace(&std::fs::read(path).unwrap()).unwrap();
            let analysis = Analysis::build(profile);
            let own = OwnCode::of(analysis.profile().metadata(), &[]);
            let cause = truth["cause"].as_str();
            let rule = cause.and_then(|cause| RULES.iter().find(|(known, _)| *known == cause));
            all.push(Planted {
                device,
                name: name.clone(),
                rule: rule.map(|(_, rule)| *rule),
                function: truth["function"].as_str().map(Into::into),
                saving: truth["saving"].as_f64(),
                advice: Advice::build(&analysis, &own),
            });
        }
    }
    Some(all)
}

#[test]
fn every_rule_is_documented() {
    let documented = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/advice.md");
    let documented = std::fs::read_to_string(documented).unwrap();
    for rule in mindprof_answers::RULES {
        let row = format!("| `{}` | {} | {} |", rule.id, rule.cause, rule.remedy);
        assert!(documented.contains(&row), "docs/advice.md lacks\n{row}");
    }
}

#[test]
fn planted_causes_are_found_and_priced() {
    let Some(all) = planted() else { return };
    for one in &all {
        println!("{}", one.row());
        for finding in &one.advice.findings {
            println!(
                "    {:20} {:5.3} {:?} {:.1}/step {:?} {:?}",
                finding.rule.id,
                finding.share,
                finding
                    .place
                    .as_ref()
                    .map(|place| (&place.function, place.line)),
                finding.per_step,
                finding
                    .name
                    .as_ref()
                    .map(|name| name.chars().take(40).collect::<String>()),
                finding.merged
            );
        }
    }
    let sick: Vec<&Planted> = all.iter().filter(|one| one.rule.is_some()).collect();
    let healthy = all.iter().filter(|one| one.rule.is_none());
    for one in healthy {
        let most = one.advice.findings.iter().map(|finding| finding.share);
        assert!(most.fold(0.0, f64::max) < 0.05, "{}", one.row());
    }
    let missed = |is_met: &dyn Fn(&Planted) -> bool| -> Vec<String> {
        let missed = sick.iter().filter(|one| !is_met(one));
        missed.map(|one| one.row()).collect()
    };
    let unranked = missed(&|one| one.rank().is_some_and(|rank| rank <= 3));
    assert!(unranked.is_empty(), "{unranked:#?}");
    let unnamed = missed(&|one| one.names_function());
    assert!(unnamed.is_empty(), "{unnamed:#?}");
    let mispriced = missed(&|one| match (one.price(), one.saving) {
        (Some(price), Some(saving)) => (0.5..=2.0).contains(&(price / saving)),
        _ => true,
    });
    assert!(mispriced.len() <= 3, "{mispriced:#?}");
    let documented = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/advice.md");
    let documented = std::fs::read_to_string(documented).unwrap();
    for one in &all {
        assert!(
            documented.contains(&one.row()),
            "docs/advice.md lacks\n{}",
            one.row()
        );
    }
}
