//! The timeline as a page: one file without a network, with a stacked chart and the same numbers in
//! tables.

use std::fmt::Write as _;
use std::io::Write;

use mindprof_analyze::{
    Analysis, CategoryBytes, MemoryCategory, MemoryDevice, MemoryHolder, MemoryPeak,
};
use serde_json::json;

use super::summary::{frames, owner};
use super::{MemoryPoints, memory_category_name, memory_device_name};
use crate::{Result, memory_text};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(include_str!("page/chart.js"), include_str!("page/main.js"));

/// A longer timeline is thinned to about this many points; the peak stays.
const MOST_POINTS: usize = 4000;

/// How many holders the page shows.
const MOST_HOLDERS: usize = 50;

/// Writes the page of a device.
///
/// # Errors
/// When `out` refuses.
pub fn write_memory_timeline_html(
    analysis: &Analysis,
    device: MemoryDevice,
    out: &mut dyn Write,
) -> Result<()> {
    let peak = analysis.memory_timeline().peak(analysis, device);
    let all = MemoryPoints::build(analysis, device);
    let points = thinned(&all);
    let mut rest = PAGE;
    while let Some((before, from_name)) = rest.split_once("{{") {
        let (name, after) = from_name.split_once("}}").unwrap_or((from_name, ""));
        out.write_all(before.as_bytes())?;
        let text = match name {
            "style" => STYLE.trim_end().into(),
            "script" => SCRIPT.trim_end().into(),
            "data" => data(analysis, &points, &peak),
            "device" => escaped(&memory_device_name(device)),
            "peak" => memory_text(peak.total()),
            "peak_time" => peak.time.map_or_else(
                || "before the window opened".into(),
                |time| {
                    format!(
                        "{:.3} ms after the start of the window",
                        time.0 as f64 / 1e6
                    )
                },
            ),
            "end" => memory_text(peak.at_end.iter().sum()),
            "loss" => loss(analysis),
            "categories" => category_rows(&peak),
            "holders" => holder_rows(analysis, &peak.holders),
            "more_holders" => more_holders(&peak.holders),
            "point_count" => point_count(all.times.len(), points.times.len()),
            "point_heads" => point_heads(),
            "points" => point_rows(&points),
            other => unreachable!("the page has a place for {other}"),
        };
        out.write_all(text.as_bytes())?;
        rest = after;
    }
    Ok(out.write_all(rest.as_bytes())?)
}

/// Returns at most about [`MOST_POINTS`]: of each stretch of time the point with the most in use,
/// and the last one.
fn thinned(all: &MemoryPoints) -> MemoryPoints {
    let count = all.times.len();
    if count <= MOST_POINTS {
        return all.clone();
    }
    let (first, last) = (all.times[0], all.times[count - 1]);
    let stretches = MOST_POINTS as u64 / 2;
    let stretch = |index: usize| (all.times[index] - first) * stretches / (last - first + 1);
    let total = |index: usize| all.bytes[index].iter().sum::<i64>();
    let mut points = MemoryPoints::default();
    let mut begin = 0;
    while begin < count {
        let end = (begin + 1..count)
            .find(|&index| stretch(index) != stretch(begin))
            .unwrap_or(count);
        // Of several that are highest the first one, so that the peak is where it is.
        let highest = (begin..end).rev().max_by_key(|&index| total(index));
        let mut kept: Vec<usize> = highest.into_iter().chain([end - 1]).collect();
        kept.dedup();
        for index in kept {
            points.times.push(all.times[index]);
            points.bytes.push(all.bytes[index]);
        }
        begin = end;
    }
    points
}

fn data(analysis: &Analysis, points: &MemoryPoints, peak: &MemoryPeak) -> String {
    let reference = analysis.profile().reference_unix_ns();
    let first = points.times.first().copied().unwrap_or_default();
    let since_first = |microseconds: u64| microseconds.saturating_sub(first);
    let since_reference = |nanoseconds: u64| since_first((reference + nanoseconds) / 1000);
    let peak_time = peak.time.map_or(0, |time| since_reference(time.0));
    let text = json!({
        "categories": MemoryCategory::ALL.map(category_text),
        "times": points.times.iter().map(|&time| since_first(time)).collect::<Vec<_>>(),
        "bytes": points.bytes,
        "end": since_reference(analysis.profile().span().0),
        "peak": (!points.times.is_empty()).then_some(peak_time),
        "peak_bytes": peak.total(),
    })
    .to_string();
    // Within a script no markup may begin.
    text.replace('<', "\\u003c")
}

fn category_text(category: MemoryCategory) -> String {
    memory_category_name(category)
        .to_lowercase()
        .replace('_', " ")
}

fn loss(analysis: &Analysis) -> String {
    match analysis.profile().loss().total() {
        0 => String::new(),
        lost => format!(" {lost} events were lost: sizes and categories may be wrong."),
    }
}

fn category_rows(peak: &MemoryPeak) -> String {
    let mut rows = String::new();
    let mut row = |name: &str, at_peak: i64, at_end: i64| {
        let (at_peak, at_end) = (memory_text(at_peak), memory_text(at_end));
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{name}</th><td>{at_peak}</td><td>{at_end}</td></tr>"
        );
    };
    for category in MemoryCategory::ALL {
        let index = category.index();
        row(
            &category_text(category),
            peak.bytes[index],
            peak.at_end[index],
        );
    }
    row("total", peak.total(), peak.at_end.iter().sum());
    rows
}

fn holder_rows(analysis: &Analysis, holders: &[MemoryHolder]) -> String {
    let mut rows = String::new();
    for holder in holders.iter().take(MOST_HOLDERS) {
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td>\
             <td class=\"text\">{}</td></tr>",
            memory_text(holder.bytes as i64),
            holder.blocks,
            category_text(holder.category),
            escaped(&owner(analysis, holder)),
            escaped(&frames(analysis, holder.stack).join("\n")),
        );
    }
    rows
}

fn more_holders(holders: &[MemoryHolder]) -> String {
    let rest = holders.get(MOST_HOLDERS..).unwrap_or_default();
    if rest.is_empty() {
        return String::new();
    }
    let bytes: u64 = rest.iter().map(|holder| holder.bytes).sum();
    let count = rest.len();
    format!(
        "<p>and {count} more with {}</p>\n",
        memory_text(bytes as i64)
    )
}

fn point_count(all: usize, kept: usize) -> String {
    if all == kept {
        format!("{all} points")
    } else {
        format!("{kept} of {all} points: the highest and the last of each stretch of time")
    }
}

fn point_heads() -> String {
    let heads = MemoryCategory::ALL.map(category_text);
    let heads = heads.map(|name| format!("<th scope=\"col\">{name}</th>"));
    heads.concat()
}

fn point_rows(points: &MemoryPoints) -> String {
    let first = points.times.first().copied().unwrap_or_default();
    let mut rows = String::new();
    for (time, bytes) in points.times.iter().zip(&points.bytes) {
        let _ = write!(rows, "<tr><th scope=\"row\">{}</th>", time - first);
        let total = bytes.iter().sum::<i64>();
        let cells: &CategoryBytes = bytes;
        for bytes in cells.iter().chain([&total]) {
            let _ = write!(rows, "<td>{bytes}</td>");
        }
        rows.push_str("</tr>\n");
    }
    rows
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
