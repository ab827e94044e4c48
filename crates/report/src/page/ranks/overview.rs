//! The overview of a job: the verdict, the picture of ranks and steps, and the findings.

use std::fmt::Write as _;

use mindprof_answers::Confidence;
use mindprof_formats::counted;
use mindprof_ranks::{JobAnswer, JobFinding, StepGrid};

use super::heat::heat_map;
use super::push_notes;
use crate::page::findings::NOT_PRICED;
use crate::page::markup::{escaped, with_code, with_units};
use crate::page::table::Table;
use crate::ranks::{
    cause_words, range_words, ranks_words, roster_notes, share_words, unknown_rules, verdict,
};
use crate::sentence::sentence;

/// Returns the overview as HTML.
pub(super) fn overview(answer: &JobAnswer, grid: &StepGrid, tables: &[Table]) -> String {
    let mut html = format!(
        "<h1 class=\"verdict\">{}</h1>\n",
        escaped(&with_units(verdict(answer).trim_end_matches('.')))
    );
    push_notes(&mut html, &roster_notes(answer));
    html.push_str(&heat_map(grid));
    html.push_str("<h2>What is slow, and what mending it saves</h2>\n");
    html.push_str(&finding_cards(answer));
    let shown = tables.iter().filter(|table| !table.rows.is_empty());
    html.extend(shown.map(Table::html));
    html
}

/// Returns the findings as HTML, the most valuable first, and the rules that could not be applied.
fn finding_cards(answer: &JobAnswer) -> String {
    let findings = &answer.findings;
    let mut html = String::new();
    if findings.found.is_empty() {
        let _ = writeln!(
            html,
            "<p>No cause of slowness was found by {} about several ranks.</p>",
            counted(findings.clean.len() as u64, "rule")
        );
    } else {
        html.push_str("<ol class=\"findings\">\n");
        html.extend(findings.found.iter().map(card));
        html.push_str("</ol>\n");
    }
    for (rules, missing) in unknown_rules(answer) {
        let rules: Vec<String> = rules
            .iter()
            .map(|rule| format!("<code>{rule}</code>"))
            .collect();
        let _ = writeln!(
            html,
            "<p class=\"quiet\">Cannot tell: {} ({}).</p>",
            rules.join(", "),
            with_code(missing)
        );
    }
    html
}

fn card(finding: &JobFinding) -> String {
    let (class, price) = if finding.share > 0.0 {
        ("price", share_words(finding.share))
    } else {
        ("price none", NOT_PRICED.into())
    };
    let mut html = format!(
        "<li><b class=\"{class}\">{}</b><div>\n<h3>{} <code class=\"quiet\">{}</code></h3>\n",
        escaped(&with_units(&price)),
        escaped(&sentence(finding.summary)),
        finding.rule
    );
    for line in lines(finding) {
        let _ = writeln!(html, "<p>{}</p>", escaped(&with_units(&line)));
    }
    let _ = writeln!(
        html,
        "<p class=\"try\"><b>Try</b> {}</p>\n</div></li>",
        with_code(finding.remedy)
    );
    html
}

/// Returns the ranks that a finding concerns, and how sure its price is.
fn lines(finding: &JobFinding) -> Vec<String> {
    let mut concerned = Vec::new();
    if !finding.ranks.is_empty() {
        concerned.push(sentence(&ranks_words(&finding.ranks)));
    }
    concerned.extend(
        finding
            .group
            .iter()
            .map(|group| format!("group of ranks {group}")),
    );
    if !finding.hosts.is_empty() {
        concerned.push(format!("machines {}", finding.hosts.join(", ")));
    }
    concerned.extend(
        finding
            .cause
            .map(|cause| format!("mostly because of {}", cause_words(cause))),
    );
    let mut lines = Vec::new();
    if !concerned.is_empty() {
        lines.push(concerned.join(", "));
    }
    if finding.share > 0.0 {
        let sureness = match finding.confidence {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        };
        lines.push(format!(
            "Mending it is likely to save {} of a step; {sureness} confidence",
            range_words(finding)
        ));
    }
    lines
}
