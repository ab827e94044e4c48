//! A summary of the memory timeline as text: the peak, the memory in use at the end, and the
//! operators that held the most at the peak.

use std::fmt::Write;

use mindprof_analyze::{Analysis, MemoryPeak, MemoryPlace};
use mindprof_formats::{frame_texts, holder_name, memory_place_name};

use super::bands::{Band, amount_text, doubt_texts};
use crate::number::memory_text;
use crate::visible::visible;

/// The maximum numbers of holders and frames in the text. The JSON of `mindprof_formats` has all.
const HOLDERS: usize = 10;
const FRAMES: usize = 3;

/// Returns a summary of the memory of a process on a device as text.
pub fn memory_summary(analysis: &Analysis, place: MemoryPlace) -> String {
    let peak = analysis.memory_timeline().peak(analysis, place);
    let mut text = String::new();
    let name = memory_place_name(analysis, place);
    let when = peak.time.map_or_else(
        || "before the window".into(),
        |time| format!("{:.3} ms into the window", time.0 as f64 / 1e6),
    );
    let mut line = |text_of_line: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{text_of_line}");
    };
    let amount = |bytes: i64| memory_text(bytes).trim().to_owned();
    line(format_args!(
        "device {name}: peak {}, {when}; {} at the end",
        amount_text(&peak, peak.total()),
        amount_text(&peak, peak.total_at_end())
    ));
    line(format_args!("{:18} {:>12} {:>12}", "", "peak", "end"));
    for band in Band::all(&peak) {
        let (at_peak, at_end) = (amount(band.at_peak(&peak)), amount(band.at_end(&peak)));
        line(format_args!(
            "{:18} {at_peak:>12} {at_end:>12}",
            band.name(&peak)
        ));
    }
    for note in notes(&peak) {
        line(format_args!("{note}"));
    }
    if !peak.holders.is_empty() {
        line(format_args!("held at the peak:"));
    }
    for holder in peak.holders.iter().take(HOLDERS) {
        line(format_args!(
            "{:>12}  {:16} {} ({})",
            amount(holder.bytes as i64),
            Band::Category(holder.category).name(&peak),
            visible(&holder_name(analysis, holder)),
            match holder.blocks {
                1 => "1 block".into(),
                blocks => format!("{blocks} blocks"),
            }
        ));
        for frame in frame_texts(analysis, holder.stack).into_iter().take(FRAMES) {
            line(format_args!("{:14}{}", "", visible(frame)));
        }
    }
    let more = peak.holders.len().saturating_sub(HOLDERS);
    if more > 0 {
        line(format_args!("{:14}and {more} more", ""));
    }
    text
}

/// Returns the notes on numbers that are not exact or not known.
fn notes(peak: &MemoryPeak) -> impl Iterator<Item = String> {
    let categories = (!peak.are_categories_known).then_some(
        "categories are not known: the trace does not record which tensors used the memory",
    );
    let categories = categories.map(str::to_owned);
    doubt_texts(peak).into_iter().chain(categories)
}
