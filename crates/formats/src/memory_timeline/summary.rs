//! The timeline in a few lines: the peak, what is left at the end, and who held the most at the
//! peak.

use std::fmt::Write;

use mindprof_analyze::{
    Analysis, CategoryBytes, MemoryCategory, MemoryDevice, MemoryHolder, shown_frames,
};
use mindprof_model::StackId;
use serde_json::{Value, json};

use super::points::points;
use super::{memory_category_name, memory_device_name};
use crate::number::memory_text;

/// How many holders and frames the text names; the JSON has all.
const HOLDERS: usize = 10;
const FRAMES: usize = 3;

/// Returns what there is to say of a device's memory as text.
pub fn memory_summary(analysis: &Analysis, device: MemoryDevice) -> String {
    let peak = analysis.memory_timeline().peak(analysis, device);
    let mut text = String::new();
    let total: i64 = peak.at_end.iter().sum();
    let name = memory_device_name(device);
    let when = peak.time.map_or_else(
        || "before the window".into(),
        |time| format!("{:.3} ms after its start", time.0 as f64 / 1e6),
    );
    let mut line = |text_of_line: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{text_of_line}");
    };
    let amount = |bytes: i64| memory_text(bytes).trim().to_owned();
    line(format_args!(
        "device {name}: peak {}, {when}; {} at its end",
        amount(peak.total()),
        amount(total)
    ));
    line(format_args!("{:16} {:>12} {:>12}", "", "peak", "end"));
    for category in MemoryCategory::ALL {
        let [at_peak, at_end] = [&peak.bytes, &peak.at_end].map(|bytes| bytes[category.index()]);
        line(format_args!(
            "{:16} {:>12} {:>12}",
            memory_category_name(category).to_lowercase(),
            amount(at_peak),
            amount(at_end)
        ));
    }
    if !peak.holders.is_empty() {
        line(format_args!("held at the peak:"));
    }
    for holder in peak.holders.iter().take(HOLDERS) {
        line(format_args!(
            "{:>12}  {:16} {} ({})",
            amount(holder.bytes as i64),
            memory_category_name(holder.category).to_lowercase(),
            owner(analysis, holder),
            match holder.blocks {
                1 => "1 block".into(),
                blocks => format!("{blocks} blocks"),
            }
        ));
        for frame in frames(analysis, holder.stack).into_iter().take(FRAMES) {
            line(format_args!("{:14}{frame}", ""));
        }
    }
    let more = peak.holders.len().saturating_sub(HOLDERS);
    if more > 0 {
        line(format_args!("{:14}and {more} more", ""));
    }
    text
}

/// Returns what there is to say of a device's memory as JSON.
pub fn memory_summary_json(analysis: &Analysis, device: MemoryDevice) -> Value {
    let peak = analysis.memory_timeline().peak(analysis, device);
    let holders: Vec<Value> = peak
        .holders
        .iter()
        .map(|holder| {
            json!({
                "owner": owner(analysis, holder),
                "category": memory_category_name(holder.category),
                "bytes": holder.bytes,
                "blocks": holder.blocks,
                "preexisting": holder.is_preexisting,
                "stack": frames(analysis, holder.stack),
            })
        })
        .collect();
    json!({
        "device": memory_device_name(device),
        "points": points(analysis, device).count(),
        "peak_ns": peak.time.map(|time| time.0),
        "peak": by_category(&peak.bytes),
        "peak_bytes": peak.total(),
        "end": by_category(&peak.at_end),
        "end_bytes": peak.at_end.iter().sum::<i64>(),
        "holders": holders,
    })
}

fn by_category(bytes: &CategoryBytes) -> Value {
    let pairs = MemoryCategory::ALL.into_iter().zip(bytes);
    let pairs =
        pairs.map(|(category, &bytes)| (memory_category_name(category).into(), bytes.into()));
    Value::Object(pairs.collect())
}

/// Says who took the blocks of a holder.
pub(super) fn owner(analysis: &Analysis, holder: &MemoryHolder) -> String {
    match holder.owner {
        Some(name) => analysis.profile().strings().text(name).into(),
        None if holder.is_preexisting => "before the window".into(),
        None => "outside of operators".into(),
    }
}

/// Returns the frames of a stack, innermost first.
pub(super) fn frames(analysis: &Analysis, stack: StackId) -> Vec<&str> {
    let profile = analysis.profile();
    shown_frames(profile, stack)
        .map(|frame| profile.strings().text(frame))
        .collect()
}
