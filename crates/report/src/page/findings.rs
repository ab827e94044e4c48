//! The findings of the advice: as cards with their price, and as data with the positions of the
//! events that show them.

use std::fmt::Write as _;

use mindprof_answers::{Confidence, Finding};
use mindprof_model::EventId;
use serde_json::{Value, json};

use super::contents::Contents;
use super::events::DrawnEvents;
use super::markup::{escaped, sentence, shown};
use crate::advice::{evidence_text, nothing_found, price_text, share_text};

/// The price of a finding whose remedy saves no time, or an unknown one.
pub(super) const NOT_PRICED: &str = "not priced";

/// Returns the findings as HTML, the most valuable first.
pub(super) fn finding_cards(contents: &Contents<'_>) -> String {
    let advice = &contents.explanation.advice;
    if advice.findings.is_empty() {
        let rules = advice.clean.len();
        return match advice.steps {
            0 => "<p>There is nothing to advise on.</p>\n".into(),
            _ if !advice.incomplete.is_empty() => format!("<p>{}.</p>\n", nothing_found(advice)),
            _ => format!("<p>No cause of slowness was found by {rules} rules.</p>\n"),
        };
    }
    let mut html = String::from("<ol class=\"findings\">\n");
    for (number, finding) in advice.findings.iter().enumerate() {
        let class = if finding.share > 0.0 {
            "price"
        } else {
            "price none"
        };
        let _ = writeln!(
            html,
            "<li><b class=\"{class}\">{}</b><div>\n<h3><a href=\"#detail?kind=finding&amp;name={number}\">{}</a> \
             <code class=\"quiet\">{}</code></h3>",
            escaped(&price(finding)),
            escaped(&sentence(finding.rule.cause)),
            escaped(finding.rule.id)
        );
        for line in finding_lines(contents, finding) {
            let _ = writeln!(html, "<p>{}</p>", escaped(&line));
        }
        let _ = writeln!(
            html,
            "<p class=\"try\"><b>Try</b> {}</p>\n</div></li>",
            escaped(finding.remedy)
        );
    }
    html.push_str("</ol>\n");
    if advice.findings.iter().filter(|one| one.share > 0.0).count() > 1 {
        html.push_str("<p class=\"quiet\">Savings overlap, and do not add up.</p>\n");
    }
    html
}

/// Returns the price of a finding in a few letters.
fn price(finding: &Finding) -> String {
    if finding.share > 0.0 {
        share_text(finding.share)
    } else {
        NOT_PRICED.into()
    }
}

fn place_text(finding: &Finding) -> Option<String> {
    let place = finding.place.as_ref()?;
    Some(format!(
        "{} ({}:{})",
        place.function, place.file, place.line
    ))
}

/// Returns where a finding is, what it rests on, and what mending it saves.
fn finding_lines(contents: &Contents<'_>, finding: &Finding) -> Vec<String> {
    let shown = place_text(finding)
        .into_iter()
        .chain([evidence_text(finding)]);
    let shown: Vec<String> = shown.filter(|part| !part.is_empty()).collect();
    let mut lines = vec![shown.join(", ")];
    if finding.share > 0.0 {
        let price = price_text(finding, contents.explanation.advice.overhead.unrecorded);
        lines.push(sentence(&price));
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Returns the findings for the scripts.
pub(super) fn findings_json(contents: &Contents<'_>, drawn: &DrawnEvents) -> Value {
    let findings = contents.explanation.advice.findings.iter();
    let findings = findings.map(|finding| {
        let events = finding.events.iter();
        let events = events.filter_map(|&event| drawn.position(EventId::from_raw(event)));
        let place = finding.place.as_ref();
        json!({
            "rule": finding.rule.id,
            "cause": sentence(finding.rule.cause),
            "price": price(finding),
            "is_priced": finding.share > 0.0,
            "range": (finding.share > 0.0)
                .then(|| format!("{} to {}", share_text(finding.low), share_text(finding.high))),
            "confidence": match finding.confidence {
                Confidence::Low => "low",
                Confidence::Medium => "medium",
                Confidence::High => "high",
            },
            "lines": finding_lines(contents, finding)
                .iter()
                .map(|line| shown(line))
                .collect::<Vec<_>>(),
            "remedy": finding.remedy,
            "name": finding.name.as_deref().map(shown),
            "count": finding.count,
            "events": events.collect::<Vec<u32>>(),
            "file": place.map(|place| shown(&place.file)),
            "line": place.map(|place| place.line),
            "function": place.map(|place| shown(&place.function)),
        })
    });
    json!(findings.collect::<Vec<_>>())
}
