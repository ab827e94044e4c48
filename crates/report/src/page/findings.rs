//! The findings of the advice: as cards with their price, and as data with the positions of the
//! events that show them.

use std::fmt::Write as _;

use mindprof_answers::{Advice, Confidence, Finding};
use mindprof_model::{EventId, Nanos};
use serde_json::{Value, json};

use super::contents::Contents;
use super::events::DrawnEvents;
use super::markup::{escaped, shown, with_units};
use super::names;
use crate::advice::{
    evidence_text, nothing_found, price_text, saved_text, share_text, stake_text, unit,
};
use crate::sentence::sentence;
use crate::steps::short_time;

/// The price of a finding whose remedy saves no time, or an unknown one.
pub(super) const NOT_PRICED: &str = "no estimate";

/// The rule that judges the recording, rather than the program. The overview begins with it.
pub(super) const BAD_CAPTURE: &str = "bad-capture";

/// The rules whose findings the pane about memory repeats.
const MEMORY_RULES: [&str; 4] = [
    "growing-memory",
    "memory-pressure",
    "allocator-overhang",
    "device-allocations",
];

/// Returns the findings about memory as HTML; empty if there are none.
pub(super) fn memory_findings(contents: &Contents<'_>) -> String {
    let findings = contents.explanation.advice.findings.iter().enumerate();
    let findings = findings.filter(|(_, finding)| MEMORY_RULES.contains(&finding.rule.id));
    let mut items = String::new();
    for (number, finding) in findings {
        let place = place_text(finding).map(|place| format!("in {place}"));
        let evidence = evidence_text(finding, &contents.explanation.advice);
        let parts = place.into_iter().chain([evidence]);
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        let link = finding_link(number, finding);
        let parts = escaped(&parts.join(", "));
        let item = format!("<li>{link}: {parts}.</li>\n");
        items.push_str(&item);
    }
    if items.is_empty() {
        return items;
    }
    format!("<ul class=\"facts\">\n{items}</ul>\n")
}

/// Returns the cause of a finding as a link to its detail.
fn finding_link(number: usize, finding: &Finding) -> String {
    format!(
        "<a data-href=\"#detail?kind=finding&amp;name={number}\">{}</a>",
        escaped(&sentence(finding.rule.cause))
    )
}

/// Returns the findings as HTML, the most valuable first.
pub(super) fn finding_cards(contents: &Contents<'_>) -> String {
    let advice = &contents.explanation.advice;
    let shown = advice.findings.iter().enumerate();
    let shown: Vec<_> = shown
        .filter(|(_, one)| one.rule.id != BAD_CAPTURE)
        .collect();
    if shown.is_empty() {
        let rules = advice.clean.len();
        return match advice.steps {
            0 => "<p>There is nothing to advise on.</p>\n".into(),
            _ if !advice.incomplete.is_empty() => format!("<p>{}.</p>\n", nothing_found(advice)),
            _ => format!("<p>No cause of slowness was found by {rules} rules.</p>\n"),
        };
    }
    let mut html = String::from("<ol class=\"findings\">\n");
    for (number, finding) in shown {
        let class = if finding.share > 0.0 {
            "price"
        } else {
            "price none"
        };
        let _ = writeln!(
            html,
            "<li><b class=\"{class}\">{}</b><div>\n<h3>{} \
             <code class=\"quiet\">{}</code></h3>",
            escaped(&price(finding)),
            finding_link(number, finding),
            escaped(finding.rule.id)
        );
        // The evidence has names cut to a line.
        let name = finding.name.as_deref().unwrap_or_default();
        let mut tip = format!(" title=\"{}\"", escaped(&names::shown_name(name)));
        for line in finding_lines(contents, finding) {
            if !line.contains("...") {
                tip.clear();
            }
            let _ = writeln!(html, "<p{tip}>{}</p>", escaped(&with_units(&line)));
            tip.clear();
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
    Some(names::place_text(&place.function, &place.file, place.line))
}

/// Returns where a finding is, what it rests on, and what mending it saves.
fn finding_lines(contents: &Contents<'_>, finding: &Finding) -> Vec<String> {
    let shown = place_text(finding)
        .into_iter()
        .chain([evidence_text(finding, &contents.explanation.advice)]);
    let shown: Vec<String> = shown.filter(|part| !part.is_empty()).collect();
    let mut lines = vec![shown.join(", ")];
    if finding.share > 0.0 {
        let price = price_text(finding, &contents.explanation.advice);
        lines.push(sentence(&price));
    } else if let Some(stake) = stake_text(finding, &contents.explanation.advice) {
        lines.push(sentence(&stake));
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Returns how the price of a finding follows from the replay, and how it compares with the time of
/// the events that show it.
///
/// ```text
/// recorded  |--a--|wait||--b--|       the saving is the wait and what b begins earlier
/// replayed  |--a--||--b--|
/// ```
fn basis_text(finding: &Finding, advice: &Advice) -> Option<String> {
    if finding.share <= 0.0 {
        return None;
    }
    let step = advice.overhead.unrecorded;
    let saved = Nanos((step.0 as f64 * finding.share) as u64);
    let left = step.saturating_sub(saved);
    let mut text = format!(
        "{} takes {} without the profiler's own cost. Replayed without this work, so \
         that what overlaps with other work counts for nothing, it takes {}: {} less",
        sentence(unit(advice)),
        short_time(step),
        short_time(left),
        saved_text(finding, advice)
    );
    let events = Nanos(finding.recorded.0 / advice.steps.max(1) as u64);
    if events == Nanos::ZERO {
        return Some(text);
    }
    let ratio = saved.0 as f64 / events.0 as f64;
    let rest = if ratio > 1.15 {
        ", so the rest of the saving is work that goes with them or waits for them"
    } else if ratio < 0.87 {
        ", but a part of that stays, overlaps with other work, or is the profiler's own cost"
    } else {
        ""
    };
    let events = short_time(events);
    let _ = write!(
        text,
        ". The events that show it take {events} of {}{rest}",
        if advice.has_steps {
            "a step"
        } else {
            "the program"
        }
    );
    Some(text)
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
            "range": (finding.share > 0.0 && !finding.is_least())
                .then(|| with_units(&format!("{} to {}", share_text(finding.low), share_text(finding.high)))),
            "is_least": finding.is_least(),
            "confidence": match finding.confidence {
                Confidence::Low => "low",
                Confidence::Medium => "medium",
                Confidence::High => "high",
            },
            "lines": finding_lines(contents, finding)
                .iter()
                .map(|line| with_units(&shown(line)))
                .collect::<Vec<_>>(),
            "remedy": finding.remedy,
            "basis": basis_text(finding, &contents.explanation.advice).map(|text| with_units(&text)),
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

#[cfg(test)]
mod tests {
    use mindprof_answers::{Overhead, RULES};

    use super::*;

    fn basis(share: f64, recorded: u64) -> Option<String> {
        let finding = Finding {
            rule: RULES[0],
            share,
            low: share,
            high: share,
            time: Nanos::ZERO,
            confidence: Confidence::High,
            place: None,
            module: None,
            events: Vec::new(),
            count: 1,
            per_step: 1.0,
            recorded: Nanos(recorded),
            bytes: None,
            name: None,
            remedy: "",
            merged: Vec::new(),
        };
        let advice = Advice {
            steps: 2,
            has_steps: true,
            overhead: Overhead {
                recorded: Nanos(12_000_000),
                replayed: Nanos(12_000_000),
                unrecorded: Nanos(10_000_000),
                imports: Nanos::ZERO,
            },
            ..Advice::default()
        };
        basis_text(&finding, &advice)
    }

    #[test]
    fn a_price_is_told_beside_the_time_of_its_events() {
        let text = basis(0.2, 1_000_000).unwrap();
        assert!(
            text.starts_with("An average step takes 10.0 ms without"),
            "{text}"
        );
        assert!(text.contains("it takes 8.00 ms: 2.00 ms less. "), "{text}");
        let rest = "take 500 us of a step, so the rest of the saving is work that goes with them";
        assert!(text.contains(rest), "{text}");
        let less = basis(0.2, 8_000_000).unwrap();
        assert!(
            less.contains("take 4.00 ms of a step, but a part of that"),
            "{less}"
        );
        let same = basis(0.2, 4_000_000).unwrap();
        assert!(same.ends_with("take 2.00 ms of a step"), "{same}");
        assert_eq!(basis(0.0, 1), None);
    }
}
