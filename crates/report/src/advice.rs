//! Advice as text: what is slow, what mending it would save, and what to try.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mindprof_answers::{Advice, Confidence, Finding, RULES};
use mindprof_formats::counted;
use mindprof_model::Nanos;

use crate::grid::{characters, cut, push_line, push_wrapped};
use crate::number::memory_text;
use crate::sentence::sentence;
use crate::steps::{differ, short_time};
use crate::verdict::incomplete_text;
use crate::visible::visible;

/// The layout of advice.
#[derive(Clone, Copy, Debug)]
pub struct AdviceLayout {
    /// The largest number of findings.
    pub findings: usize,
    /// Whether the rules that found nothing are listed too.
    pub all_rules: bool,
    /// The largest width, or `None` for no limit. Narrower than 40 columns nothing can be read.
    pub width: Option<usize>,
}

/// The least width of advice.
const LEAST_WIDTH: usize = 40;

/// Returns advice as text, as `mindprof advise` prints it.
pub fn advice_text(advice: &Advice, layout: AdviceLayout) -> String {
    let layout = AdviceLayout {
        width: layout.width.map(|width| width.max(LEAST_WIDTH)),
        ..layout
    };
    let mut text = String::new();
    let incomplete = incomplete_text(&advice.incomplete);
    if advice.steps == 0 {
        push_line(
            &mut text,
            "No work on the CPU was recorded: nothing to advise on",
        );
    } else {
        let overhead = overhead_text(advice);
        push_fitting(&mut text, &overhead, layout.width);
    }
    if let Some(incomplete) = &incomplete {
        push_fitting(&mut text, incomplete, layout.width);
    }
    if advice.steps == 0 {
        return text;
    }
    if advice.findings.is_empty() {
        push_fitting(&mut text, nothing_found(advice), layout.width);
    }
    for finding in advice.findings.iter().take(layout.findings) {
        text.push('\n');
        push_finding(&mut text, finding, advice, layout.width);
    }
    let more = advice.findings.len().saturating_sub(layout.findings);
    if more > 0 {
        push_line(
            &mut text,
            &format!("\n{}", counted(more as u64, "more finding")),
        );
    }
    push_rules(&mut text, advice, layout);
    text
}

/// Returns that no rule found anything. In an incomplete trace that is no clean bill.
pub(crate) const fn nothing_found(advice: &Advice) -> &'static str {
    if advice.incomplete.is_empty() {
        "No rule found a cause of slowness"
    } else {
        "No rule found a cause of slowness in what is left of the recording"
    }
}

/// Returns the time of a step, or of a program without steps, and what the profiler took of it.
pub(crate) fn overhead_text(advice: &Advice) -> String {
    let overhead = &advice.overhead;
    let text = if advice.has_steps {
        let steps = counted(advice.steps as u64, "step");
        let average = if advice.steps == 1 { "" } else { " on average" };
        format!("{steps} of {}", time_text(advice, average))
    } else {
        format!("A program without steps: {}", time_text(advice, ""))
    };
    if overhead.imports == Nanos::ZERO {
        return text;
    }
    let imports = short_time(overhead.imports);
    format!("{text}, and {imports} of imports that are not counted")
}

/// Returns the time of a step, with the word for an average behind it.
fn time_text(advice: &Advice, average: &str) -> String {
    let overhead = &advice.overhead;
    let (recorded, replayed) = (short_time(overhead.recorded), short_time(overhead.replayed));
    let share = overhead.share();
    let differs = differ(overhead.recorded, overhead.replayed);
    if advice.is_doubtful {
        return format!(
            "{recorded}{average}, but a replay of that takes {replayed}: work waits for \
             something that the recording does not show, so nothing is priced"
        );
    }
    if share < 0.005 && differs {
        return format!("{recorded}{average} ({replayed} in the replay that estimates savings)");
    }
    if share < 0.005 {
        return format!("{recorded}{average}");
    }
    let replayed = if differs {
        format!(", {replayed} in the replay that estimates savings")
    } else {
        String::new()
    };
    format!(
        "{}{average} without the profiler ({recorded} recorded{replayed}, {} of it the profiler's own cost)",
        short_time(overhead.unrecorded),
        share_text(share)
    )
}

/// Appends a finding:
///
/// ```text
///  48 %  The optimizer updates parameters one by one           [optimizer-loop]
///        step (train.py:83), 1098 events a step, mostly aten::add_
///        saves about 16.7 ms of an average step (29 % to 57 %), medium confidence
///        try: update all parameters at once: fused=True (or foreach=True) in ...
/// ```
fn push_finding(text: &mut String, finding: &Finding, advice: &Advice, width: Option<usize>) {
    let share = if finding.share > 0.0 {
        share_text(finding.share)
    } else {
        "-".into()
    };
    let cause = sentence(finding.rule.cause);
    let head = format!("{share:>5}  {cause}");
    let id = format!("[{}]", finding.rule.id);
    match width {
        Some(width) if head.chars().count() + 2 + id.len() <= width => {
            let gap = width - head.chars().count() - id.len();
            push_line(text, &format!("{head}{:gap$}{id}", ""));
        }
        Some(_) | None => push_indented(text, &format!("{cause} {id}"), &share, width),
    }
    let mut shown: Vec<String> = Vec::new();
    if let Some(place) = &finding.place {
        let (function, file) = (visible(&place.function), visible(&place.file));
        shown.push(format!("{function} ({file}:{})", place.line));
    }
    shown.push(evidence_text(finding, advice));
    shown.retain(|part| !part.is_empty());
    push_indented(text, &shown.join(", "), "", width);
    if finding.share > 0.0 {
        let price = price_text(finding, advice);
        push_indented(text, &price, "", width);
    } else if let Some(stake) = stake_text(finding, advice) {
        push_indented(text, &stake, "", width);
    }
    push_indented(text, &format!("try: {}", finding.remedy), "", width);
}

/// Rules without a price that find work which would take less time, though nobody knows how much.
const SHRINKING: [&str; 3] = ["idle-pipes", "unaligned-cube", "underfilled-device"];

/// Returns how long the work takes that a finding without a price would shorten.
pub(crate) fn stake_text(finding: &Finding, advice: &Advice) -> Option<String> {
    let step = advice.overhead.unrecorded;
    let time = Nanos(finding.recorded.0 / advice.steps.max(1) as u64);
    let unit = unit(advice);
    let is_known = SHRINKING.contains(&finding.rule.id) && time > Nanos::ZERO && step > Nanos::ZERO;
    is_known.then(|| {
        let share = (time.0 as f64 / step.0 as f64).min(1.0);
        format!(
            "this work takes {} of {unit} ({}); how much less is not known",
            short_time(time),
            share_text(share)
        )
    })
}

/// Returns the word before a saving: some prices are the least that mending saves.
pub(crate) fn least_or_about(finding: &Finding) -> &'static str {
    if finding.is_least() {
        "at least"
    } else {
        "about"
    }
}

/// Returns what mending saves of a step.
pub(crate) fn price_text(finding: &Finding, advice: &Advice) -> String {
    let (saved, unit) = (saved_text(finding, advice), unit(advice));
    let confidence = confidence_text(finding.confidence);
    if finding.is_least() {
        return format!("saves {saved} of {unit} or more, {confidence} confidence");
    }
    format!(
        "saves about {saved} of {unit} ({} to {}), {confidence} confidence",
        share_text(finding.low),
        share_text(finding.high),
    )
}

/// Returns the time that mending the cause of a finding is likely to save of a step, or of a program
/// without steps.
pub(crate) fn saved_text(finding: &Finding, advice: &Advice) -> String {
    let step = advice.overhead.unrecorded;
    short_time(Nanos((step.0 as f64 * finding.share) as u64))
}

/// Returns the time that savings are parts of, in words.
pub(crate) const fn unit(advice: &Advice) -> &'static str {
    if advice.has_steps {
        "an average step"
    } else {
        "the program"
    }
}

/// Returns the bytes that are concerned in each step, or in a program without steps.
pub(crate) fn bytes_text(bytes: u64, advice: &Advice) -> String {
    let bytes = memory_text(bytes.cast_signed());
    if advice.has_steps {
        format!("{bytes} a step")
    } else {
        bytes
    }
}

/// Returns the numbers that a finding rests on.
pub(crate) fn evidence_text(finding: &Finding, advice: &Advice) -> String {
    let mut parts = Vec::new();
    if finding.count > 0 {
        parts.push(if !advice.has_steps {
            counted(finding.count as u64, "event")
        } else if finding.per_step >= 1.5 {
            format!("{:.0} events a step", finding.per_step)
        } else if finding.per_step > 0.95 {
            "one event a step".into()
        } else {
            format!("{} in all", counted(finding.count as u64, "event"))
        });
    }
    if let Some(bytes) = finding.bytes {
        parts.push(bytes_text(bytes, advice));
    }
    // The place says the rest if the events are calls of the blamed function.
    let is_said = |name: &str| {
        let place = finding.place.as_ref();
        place.is_some_and(|place| name.ends_with(&format!(": {}", place.function)))
    };
    if let Some(name) = finding.name.as_ref().filter(|name| !is_said(name)) {
        let name = cut(&visible(short_name(name)), Some(50));
        parts.push(match finding.count {
            0 => name,
            _ => format!("mostly {name}"),
        });
    }
    parts.join(", ")
}

fn push_rules(text: &mut String, advice: &Advice, layout: AdviceLayout) {
    text.push('\n');
    let found = advice.findings.len();
    let same = RULES.len() - advice.clean.len() - advice.unknown.len() - found;
    let same = match same {
        0 => String::new(),
        same => format!(", {same} about the same work"),
    };
    let line = format!(
        "{}: {found} found{same}, {} clean, {} cannot tell{}",
        counted(RULES.len() as u64, "rule"),
        advice.clean.len(),
        advice.unknown.len(),
        if layout.all_rules {
            ""
        } else {
            " (--all lists them)"
        },
    );
    push_fitting(text, &line, layout.width);
    if !layout.all_rules {
        return;
    }
    for finding in advice.findings.iter().filter(|it| !it.merged.is_empty()) {
        let line = format!(
            "About the same work as {}: {}",
            finding.rule.id,
            finding.merged.join(", ")
        );
        push_fitting(text, &line, layout.width);
    }
    if !advice.clean.is_empty() {
        push_indented(text, &advice.clean.join(", "), "Clean", layout.width);
    }
    for (missing, rules) in missing_data(advice) {
        let line = format!("Cannot tell {rules}: {missing}");
        push_fitting(text, &line, layout.width);
    }
}

/// Returns what the recording lacks, each with the rules that need it.
pub(crate) fn missing_data(advice: &Advice) -> BTreeMap<&'static str, String> {
    let mut rules: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for unknown in &advice.unknown {
        rules.entry(unknown.missing).or_default().push(unknown.rule);
    }
    let rules = rules.into_iter();
    rules
        .map(|(missing, rules)| (missing, rules.join(", ")))
        .collect()
}

/// Appends a text with an indent, wrapped. The indent of the first line shows a label.
fn push_indented(text: &mut String, line: &str, label: &str, width: Option<usize>) {
    const INDENT: usize = 7;
    let width = width.map(|width| width.saturating_sub(INDENT));
    let mut wrapped = String::new();
    push_fitting(&mut wrapped, line, width);
    for (number, line) in wrapped.lines().enumerate() {
        let label = if number == 0 { label } else { "" };
        push_line(text, format!("{label:>5}  {line}").trim_end());
    }
}

/// Appends a line, wrapped between words and inside of those that are too long.
fn push_fitting(text: &mut String, line: &str, width: Option<usize>) {
    push_wrapped(text, &broken(line, width), width);
}

/// Returns a line whose words fit into a width: longer ones are broken into pieces.
fn broken(line: &str, width: Option<usize>) -> Cow<'_, str> {
    let Some(width) = width.filter(|&width| line.split(' ').any(|word| characters(word) > width))
    else {
        return line.into();
    };
    let mut broken = String::new();
    let mut taken = 0;
    for letter in line.chars() {
        if taken == width && letter != ' ' {
            broken.push(' ');
            taken = 0;
        }
        broken.push(letter);
        taken = if letter == ' ' { 0 } else { taken + 1 };
    }
    broken.into()
}

/// Returns a fraction as a percentage with as many digits as matter.
pub(crate) fn share_text(share: f64) -> String {
    let digits = usize::from(share < 0.0995 && share > 0.0);
    format!("{:.digits$} %", share * 100.0)
}

const fn confidence_text(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

/// Returns the name of a kernel without its result, namespaces, template arguments and parameters.
fn short_name(name: &str) -> &str {
    let Some(function) = name.strip_prefix("void ") else {
        return name;
    };
    let end = function.find(['<', '(']).unwrap_or(function.len());
    let path = &function[..end];
    path.rsplit("::")
        .next()
        .filter(|last| !last.is_empty())
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use mindprof_answers::Overhead;

    use super::*;

    #[test]
    fn kernels_lose_their_template_arguments() {
        for (name, short) in [
            (
                "void at::native::reduce_kernel<128, 4, at::Op<float> >(at::Op<float>)",
                "reduce_kernel",
            ),
            (
                "void sgemm_largek_lds64<true>(float*)",
                "sgemm_largek_lds64",
            ),
            ("aten::add_", "aten::add_"),
            (
                "Memcpy HtoD (Pageable -> Device)",
                "Memcpy HtoD (Pageable -> Device)",
            ),
        ] {
            assert_eq!(short_name(name), short);
        }
    }

    #[test]
    fn a_program_without_steps_is_not_called_a_step() {
        let advice = Advice {
            steps: 1,
            overhead: Overhead {
                recorded: Nanos(2_000_000),
                replayed: Nanos(2_000_000),
                unrecorded: Nanos(1_000_000),
                imports: Nanos(5_000_000),
            },
            ..Advice::default()
        };
        assert_eq!(
            overhead_text(&advice),
            "A program without steps: 1.00 ms without the profiler (2.00 ms recorded, 50 % of it \
             the profiler's own cost), and 5.00 ms of imports that are not counted"
        );
        assert_eq!(unit(&advice), "the program");
        assert_eq!(bytes_text(1 << 20, &advice), "1.00 MB");
    }

    #[test]
    fn long_words_are_broken() {
        assert_eq!(broken("in abcdefgh, 2", Some(5)), "in abcde fgh, 2");
        assert_eq!(broken("in abcdefgh", None), "in abcdefgh");
        assert_eq!(broken("in abc", Some(5)), "in abc");
    }

    #[test]
    fn shares_have_the_digits_that_matter() {
        assert_eq!(share_text(0.857), "86 %");
        assert_eq!(share_text(0.0257), "2.6 %");
        assert_eq!(share_text(0.0), "0 %");
    }
}
