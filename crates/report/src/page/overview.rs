//! The overview: the verdict, the steps, the findings, the user's functions, and how complete the
//! recording is.

use std::fmt::Write as _;

use mindprof_answers::{Bound, Explanation, Finding, first_findings, worth_mending};
use mindprof_model::Nanos;

use super::code::{OWN_AND_TOTAL, functions_table};
use super::contents::Contents;
use super::findings::{BAD_CAPTURE, finding_cards};
use super::markup::{escaped, with_units};
use super::report::events_text;
use super::steps::steps_chart;
use super::table::{Table, counted, share_text};
use crate::advice::{evidence_text, nothing_found, overhead_text};
use crate::headline::{finding_text, headline_text};
use crate::memory::amount_text;
use crate::sentence::sentence;
use crate::steps::{percent, short_time, split_text, tail_text};
use crate::verdict::incomplete_text;

/// The number of functions that the overview lists.
const FUNCTIONS: usize = 8;

/// Returns the overview as HTML.
pub(super) fn overview(contents: &Contents<'_>) -> String {
    let mut html = warning(contents);
    let _ = writeln!(html, "<h1 class=\"verdict\">{}</h1>", verdict(contents));
    html.push_str(&savings(contents));
    let _ = writeln!(
        html,
        "<p class=\"lead\">{}</p>",
        escaped(&summary(contents))
    );
    if contents.explanation.events > 0 {
        html.push_str(&tiles(contents));
    }
    html.push_str(&steps_chart(contents));
    html.push_str("<h2>What is slow, and what mending it saves</h2>\n");
    html.push_str(&finding_cards(contents));
    let functions = top_functions(contents);
    if !functions.rows.is_empty() {
        html.push_str("<h2>Your functions</h2>\n");
        html.push_str(&functions.html());
        html.push_str(OWN_AND_TOTAL);
        html.push_str(
            "<p class=\"quiet\"><a href=\"#code\">All functions, lines and modules</a></p>\n",
        );
    }
    html.push_str(&completeness(contents));
    html
}

/// Returns a warning if the recording is not good enough for what the page concludes from it.
fn warning(contents: &Contents<'_>) -> String {
    bad_capture(contents).map_or_else(String::new, |(number, finding)| {
        // Gaps are told with their numbers.
        let missing = incomplete_text(&contents.explanation.advice.incomplete);
        let flaw = missing.as_deref().map_or_else(
            || evidence_text(finding, &contents.explanation.advice),
            |missing| missing.trim_start_matches("Incomplete: ").into(),
        );
        format!(
            "<p class=\"bad\">Take the conclusions below with care: <a data-href=\"#detail?kind=finding&amp;name={number}\">{}</a>. \
             To be sure, {}.</p>\n",
            escaped(&flaw),
            escaped(finding.remedy)
        )
    })
}

/// Returns the finding that the recording is not good enough, with its number.
fn bad_capture<'a>(contents: &'a Contents<'_>) -> Option<(usize, &'a Finding)> {
    let mut findings = contents.explanation.advice.findings.iter().enumerate();
    findings.find(|(_, finding)| finding.rule.id == BAD_CAPTURE)
}

/// Returns the table of the functions that cost most.
pub(super) fn top_functions(contents: &Contents<'_>) -> Table {
    functions_table(contents, "top-functions", Some(FUNCTIONS))
}

/// Returns the one sentence to remember, as the first screen of a run has it.
fn verdict(contents: &Contents<'_>) -> String {
    let explanation = &contents.explanation;
    if explanation.events == 0 {
        return "Nothing was recorded".into();
    }
    let (headline, sources) = (&explanation.headline, &explanation.sources);
    let text = headline_text(headline, &explanation.advice, sources);
    escaped(&with_units(&sentence(&text)))
}

/// Returns the findings that go with the verdict, a sentence each, as the first screen of a run has
/// them; or that there is none worth mending.
fn savings(contents: &Contents<'_>) -> String {
    let Explanation {
        advice,
        headline,
        sources,
        ..
    } = &contents.explanation;
    let bound = bound(contents);
    let texts: Vec<String> = match &first_findings(headline, advice)[..] {
        [] if advice.steps > 0 => vec![format!("{}: {bound}", nothing_found(advice))],
        [only] if only.share > 0.0 && worth_mending(advice).next().is_none() => {
            vec![format!(
                "No change that was found saves 5 % of a step: {bound}"
            )]
        }
        findings => findings
            .iter()
            .map(|finding| sentence(&finding_text(finding, sources)))
            .collect(),
    };
    let mut html = String::new();
    for text in texts {
        let text = escaped(&with_units(&text));
        let _ = writeln!(html, "<p class=\"saving\">{text}.</p>");
    }
    html
}

fn bound(contents: &Contents<'_>) -> String {
    let what = match contents.path.bound_by {
        Bound::Cpu => "the CPU",
        Bound::Gpu => "the device",
        Bound::Communication => "communication",
    };
    let of = if contents.path.has_steps {
        "a step"
    } else {
        "the program"
    };
    format!("{what} determines the time of {of}")
}

/// Returns the facts behind the verdict in a sentence or two.
fn summary(contents: &Contents<'_>) -> String {
    let explanation = &contents.explanation;
    let mut text = String::new();
    if explanation.advice.steps > 0 {
        let overhead = overhead_text(&explanation.advice);
        let _ = write!(text, "{overhead}. ");
    }
    let incomplete = incomplete_text(&explanation.advice.incomplete);
    // The warning at the top says it already.
    if let Some(incomplete) = incomplete.filter(|_| bad_capture(contents).is_none()) {
        let _ = write!(text, "{incomplete}. ");
    }
    if !explanation.steps.steps.is_empty() {
        let (of, split) = if contents.device_median().is_some() {
            ("The time of a step on the device", &contents.device.split)
        } else {
            ("The time of a step", &explanation.steps.split)
        };
        let split = split_text(split, explanation.steps.has_python);
        let _ = write!(text, "{of} is {split}. ");
    }
    if contents.path.steps > 0 {
        let _ = write!(text, "{}.", sentence(&bound(contents)));
    }
    with_units(text.trim_end())
}

/// Returns the key numbers.
fn tiles(contents: &Contents<'_>) -> String {
    let explanation = &contents.explanation;
    let steps = &explanation.steps;
    let mut tiles: Vec<(String, String, String)> = Vec::new();
    let mut push =
        |value: String, name: &str, about: String| tiles.push((value, name.into(), about));
    if steps.steps.is_empty() {
        push(short_time(explanation.span), "recorded", String::new());
    } else {
        let about = tail_text(&steps.tail());
        match contents.device_median() {
            None => push(short_time(steps.p50), "median step, as recorded", about),
            Some(device) => {
                push(
                    short_time(device),
                    "median step on the device",
                    String::new(),
                );
                push(short_time(steps.p50), "median step on the CPU", about);
            }
        }
    }
    if contents.path.steps > 0 {
        let path = &contents.path;
        let share = |bound: Bound| {
            let kinds = path.split.iter().filter(|(kind, _)| kind.bound() == bound);
            Nanos(kinds.map(|(_, time)| time.0).sum())
        };
        let value = percent(share(path.bound_by), path.split.total());
        let name = match path.bound_by {
            Bound::Cpu => "of the critical path runs on the CPU",
            Bound::Gpu => "of the critical path runs on the device",
            Bound::Communication => "of the critical path is communication",
        };
        push(value, name, String::new());
    }
    for device in contents.device.devices.iter().take(2) {
        let window = device.in_steps.as_ref().unwrap_or(&device.whole);
        let name = device.name.clone().unwrap_or_default();
        let value = percent(window.busy, Nanos(window.duration.0 - window.unrecorded.0));
        push(value, &format!("{} busy", device.device), name);
    }
    let analysis = contents.analysis;
    if analysis.has_memory() {
        let timeline = analysis.memory_timeline();
        if let Some(&place) = timeline.places_by_peak(analysis).first() {
            let peak = timeline.peak(analysis, place);
            let name = mindprof_formats::memory_place_name(analysis, place);
            push(amount_text(&peak, peak.total()), "peak memory", name);
        }
    }
    let overhead = explanation.advice.overhead.share();
    if overhead >= 0.005 {
        push(
            share_text(overhead),
            "the profiler's own cost",
            "an estimate; savings are given without it".into(),
        );
    }
    let mut html = String::from("<ul class=\"tiles\">\n");
    for (value, name, about) in tiles {
        let _ = writeln!(
            html,
            "<li><b>{}</b><span>{}</span><small>{}</small></li>",
            escaped(value.trim()),
            escaped(&name),
            escaped(&about)
        );
    }
    html + "</ul>\n"
}

/// Returns how complete the recording is.
fn completeness(contents: &Contents<'_>) -> String {
    let explanation = &contents.explanation;
    let mut facts: Vec<String> = Vec::new();
    match explanation.lost {
        // The page begins with the other gaps of the recording.
        0 if !explanation.advice.incomplete.is_empty() => {}
        0 => facts.push("No event was lost".into()),
        lost => facts.push(format!(
            "{} lost: numbers may be too small",
            counted(lost, "event")
        )),
    }
    if let Some((kept, of)) = explanation.cut {
        facts.push(format!(
            "This is a part of a recording: {kept} of {of} events"
        ));
    }
    if explanation.steps.steps.is_empty() && explanation.events > 0 {
        facts.push(
            "No complete steps: record with prof.step(), and shares are those of a step".into(),
        );
    }
    if contents.repeated_steps > 0 {
        facts.push(format!(
            "{} with the number of an earlier step: only the first range of a number is a step",
            counted(contents.repeated_steps as u64, "range")
        ));
    }
    let mut missing: Vec<&str> = explanation
        .advice
        .unknown
        .iter()
        .map(|one| one.missing)
        .collect();
    missing.sort_unstable();
    missing.dedup();
    let is_complete = explanation.lost == 0 && explanation.advice.incomplete.is_empty();
    let class = if is_complete { "good" } else { "bad" };
    let mut html = format!("<h2>What this rests on</h2>\n<ul class=\"facts {class}\">\n");
    for fact in facts {
        let _ = writeln!(html, "<li>{}.</li>", escaped(&fact));
    }
    let _ = writeln!(
        html,
        "<li>{}.</li>",
        escaped(&sentence(&events_text(
            explanation.events as u64,
            explanation.span
        )))
    );
    html.push_str("</ul>\n");
    if !missing.is_empty() {
        html.push_str("<details><summary>Checks that need more than this recording has</summary>\n<ul class=\"facts\">\n");
        for missing in missing {
            let rules = explanation.advice.unknown.iter();
            let rules = rules
                .filter(|one| one.missing == missing)
                .map(|one| one.rule);
            let rules: Vec<&str> = rules.collect();
            let _ = writeln!(
                html,
                "<li><code>{}</code>: {}.</li>",
                escaped(&rules.join(", ")),
                escaped(missing)
            );
        }
        html.push_str("</ul></details>\n");
    }
    html
}
