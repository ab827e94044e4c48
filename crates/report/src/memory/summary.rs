//! A summary of the memory timeline as text: the peak, the memory in use at the end, and the
//! operators that held the most at the peak.

use std::fmt::Write;

use mindprof_analyze::{Analysis, MemoryOrigin, MemoryPeak, MemoryPlace};
use mindprof_answers::{MemoryGrowth, OwnCode};
use mindprof_formats::{counted, frame_texts, holder_name, memory_place_name};
use mindprof_model::{Place, StackId};

use super::bands::{Band, amount_text, doubt_texts};
use crate::grid::{characters, cut, push_wrapped};
use crate::number::memory_text;
use crate::visible::visible;

/// The maximum numbers of holders and frames in the text. The JSON of `mindprof_formats` has all.
const HOLDERS: usize = 10;
const FRAMES: usize = 3;

/// The maximum number of lines that memory grows from.
const LINES: usize = 5;

/// The width of the text.
const WIDTH: usize = 80;

/// Returns a summary of the memory of a process on a device as text. Stacks have only the
/// user's own frames, if there are any.
pub fn memory_summary(
    analysis: &Analysis,
    place: MemoryPlace,
    own: &OwnCode,
    growth: Option<&MemoryGrowth>,
) -> String {
    let peak = analysis.memory_timeline().peak(analysis, place);
    let mut text = String::new();
    let name = memory_place_name(analysis, place);
    let when = peak.time.map_or_else(
        || "before the window".into(),
        |time| format!("{:.3} ms into the window", time.0 as f64 / 1e6),
    );
    let head = format!(
        "device {name}: peak {}, {when}; {} at the end",
        amount_text(&peak, peak.total()),
        amount_text(&peak, peak.total_at_end())
    );
    push_wrapped(&mut text, &head, Some(WIDTH));
    if let Some(growth) = growth {
        push_growth(&mut text, growth);
    }
    let amount = |bytes: i64| memory_text(bytes).trim().to_owned();
    let mut line = |text_of_line: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{}", cut(&text_of_line.to_string(), Some(WIDTH)));
    };
    line(format_args!("{:18} {:>12} {:>12}", "", "peak", "end"));
    for band in Band::all(&peak) {
        let (at_peak, at_end) = (amount(band.at_peak(&peak)), amount(band.at_end(&peak)));
        line(format_args!(
            "{:18} {at_peak:>12} {at_end:>12}",
            band.name(&peak)
        ));
    }
    for note in notes(&peak) {
        push_wrapped(&mut text, &note, Some(WIDTH));
    }
    let mut line = |text_of_line: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{}", cut(&text_of_line.to_string(), Some(WIDTH)));
    };
    if !peak.holders.is_empty() {
        line(format_args!("held at the peak:"));
    }
    for holder in peak.holders.iter().take(HOLDERS) {
        let mut name = holder_name(analysis, holder);
        if holder.origin != MemoryOrigin::Total {
            name = format!("{name} ({})", counted(holder.blocks, "block"));
        }
        let head = format!(
            "{:>12}  {:16}",
            amount(holder.bytes as i64),
            Band::Category(holder.category).name(&peak)
        );
        for row in holder_rows(&head, &visible(&name)) {
            line(format_args!("{row}"));
        }
        for frame in frames(analysis, holder.stack, own) {
            line(format_args!("{:14}{}", "", visible(frame)));
        }
    }
    let more = peak.holders.len().saturating_sub(HOLDERS);
    if more > 0 {
        line(format_args!("{:14}and {more} more", ""));
    }
    text
}

/// Reports how much memory grows in each step, and which lines allocate it.
fn push_growth(text: &mut String, growth: &MemoryGrowth) {
    let steps = counted(growth.steps as u64, "step");
    let bytes = memory_text(growth.bytes_per_step as i64);
    let head = format!("grows by {} in each of {steps}", bytes.trim());
    if growth.lines.is_empty() {
        push_wrapped(text, &head, Some(WIDTH));
        return;
    }
    push_wrapped(text, &format!("{head}, allocated in:"), Some(WIDTH));
    for line in growth.lines.iter().take(LINES) {
        let bytes = memory_text(line.bytes_per_step as i64);
        let place = &line.place;
        let row = format!(
            "{:>12}  {}({}): {}",
            bytes.trim(),
            place.file,
            place.line,
            place.function
        );
        let _ = writeln!(text, "{}", cut(&visible(&row), Some(WIDTH)));
    }
    let more = growth.lines.len().saturating_sub(LINES);
    if more > 0 {
        let _ = writeln!(text, "{:14}and {more} more", "");
    }
}

/// Returns the beginning of a row with the name of a holder, which has rows of its own if it does not
/// fit.
fn holder_rows(head: &str, name: &str) -> Vec<String> {
    let row = format!("{head} {name}");
    if characters(&row) <= WIDTH {
        return vec![row];
    }
    let mut wrapped = String::new();
    push_wrapped(&mut wrapped, name, Some(WIDTH - 14));
    let rows = wrapped.lines().map(|line| format!("{:14}{line}", ""));
    std::iter::once(head.trim_end().to_owned())
        .chain(rows)
        .collect()
}

/// Returns the innermost frames of the user's own code, or of any code if there are none.
fn frames<'a>(analysis: &'a Analysis, stack: StackId, own: &OwnCode) -> Vec<&'a str> {
    let mut frames = frame_texts(analysis, stack);
    let is_own = |frame: &&str| Place::parse(frame).is_some_and(|place| own.contains(place.file));
    if frames.iter().any(is_own) {
        frames.retain(|frame| is_own(frame));
    }
    frames.truncate(FRAMES);
    frames
}

/// Returns the notes on numbers that are not exact or not known.
fn notes(peak: &MemoryPeak) -> impl Iterator<Item = String> {
    let categories = (!peak.are_categories_known).then_some(
        "categories are not known: the trace does not record which tensors used the memory",
    );
    let categories = categories.map(str::to_owned);
    doubt_texts(peak).into_iter().chain(categories)
}
