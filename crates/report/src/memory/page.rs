//! The memory timeline as HTML: a page of its own or a pane of the report, with a stacked chart and
//! tables with the same numbers.

use std::fmt::Write as _;
use std::io::Write;

use mindprof_analyze::{Analysis, MemoryHolder, MemoryPeak, MemoryPlace};
use mindprof_answers::{ComponentMemory, MemoryGrowth};
use mindprof_formats::{MemoryPoints, frame_texts, holder_name, memory_place_name};
use serde_json::{Value, json};

use super::bands::{Band, amount_text, doubt_texts};
use super::components::component_memory_html;
use crate::error::Result;
use crate::number::memory_text;
use crate::page::{MEMORY, Page, Pane, escaped};
use crate::sentence::sentence;
use crate::steps::short_time;

/// The approximate maximum number of points in the table. Longer timelines are thinned; the peak is
/// kept.
const MOST_POINTS: usize = 4000;

/// The same for the table in a report, which has many other tables.
const REPORT_POINTS: usize = 500;

/// The approximate maximum number of points in the chart. It draws as many as its width has room
/// for, and zooming in shows the rest.
const MOST_DETAIL: usize = 20_000;

/// The maximum number of holders, and the number of frames of each that are shown unfolded.
const MOST_HOLDERS: usize = 50;
const FIRST_FRAMES: usize = 3;

/// The largest number of devices and processes in the pane of a report, those with the highest peaks
/// first.
const MOST_PLACES: usize = 4;

/// Writes the page of the memory of a process on a device.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_memory_timeline_html(
    analysis: &Analysis,
    place: MemoryPlace,
    out: &mut dyn Write,
) -> Result<()> {
    let name = memory_place_name(analysis, place);
    let (html, data) = place_section(
        analysis,
        place,
        Section {
            level: 1,
            index: 0,
            points: MOST_POINTS,
        },
    );
    let page = Page {
        title: format!("Memory of {name}"),
        subtitle: String::new(),
        panes: vec![Pane {
            id: "memory",
            title: "Memory",
            html,
            is_listed: true,
        }],
        data: json!({"memory": [data]}).to_string(),
        modules: MEMORY,
    };
    page.write(out)
}

/// Returns the pane of a report about memory as HTML, and the data of its charts. Both are empty if
/// no memory was recorded. `findings` is the HTML of the findings about memory.
pub(crate) fn memory_pane(
    analysis: &Analysis,
    growth: Option<&MemoryGrowth>,
    findings: &str,
) -> (String, Vec<Value>) {
    let components = ComponentMemory::read(analysis.profile().metadata());
    if analysis.profile().memory().is_empty() && components.is_empty() {
        return (String::new(), Vec::new());
    }
    let places = analysis.memory_timeline().places_by_peak(analysis);
    let shown = &places[..places.len().min(MOST_PLACES)];
    let mut html = format!("<h1>Memory</h1>\n{findings}");
    html.push_str(&growth.map_or_else(String::new, growth_html));
    let mut data = Vec::new();
    for (index, &place) in shown.iter().enumerate() {
        let (section, points) = place_section(
            analysis,
            place,
            Section {
                level: 2,
                index,
                points: REPORT_POINTS,
            },
        );
        html.push_str(&section);
        data.push(points);
    }
    if places.len() > shown.len() {
        let rest = places[shown.len()..].iter();
        let rest: Vec<String> = rest
            .map(|&place| memory_place_name(analysis, place))
            .collect();
        let _ = writeln!(
            html,
            "<p class=\"quiet\">Not shown: memory of {}; use mindprof memory --device.</p>",
            escaped(&rest.join(", "))
        );
    }
    html.push_str(&component_memory_html(&components));
    (html, data)
}

fn growth_html(growth: &MemoryGrowth) -> String {
    let mut html = format!(
        "<p class=\"bad\">Memory grows by {} in each of {} steps{}</p>\n",
        memory_text(growth.bytes_per_step as i64),
        growth.steps,
        if growth.lines.is_empty() {
            "."
        } else {
            ", allocated in:"
        }
    );
    if !growth.lines.is_empty() {
        html.push_str("<ul class=\"facts\">\n");
        for line in &growth.lines {
            let place = &line.place;
            let text = format!("{} ({}:{})", place.function, place.file, place.line);
            let bytes = memory_text(line.bytes_per_step as i64);
            let _ = writeln!(html, "<li>{}: <b>{bytes}</b> a step</li>", escaped(&text));
        }
        html.push_str("</ul>\n");
    }
    html
}

/// How a section about one process and device is written.
#[derive(Clone, Copy)]
struct Section {
    /// The level of its heading.
    level: usize,
    /// The number of its chart on the page.
    index: usize,
    /// The approximate maximum number of points in its table.
    points: usize,
}

/// Returns the section of one process and device as HTML, and the data of its chart.
fn place_section(
    analysis: &Analysis,
    place: MemoryPlace,
    Section {
        level,
        index,
        points: most,
    }: Section,
) -> (String, Value) {
    let peak = analysis.memory_timeline().peak(analysis, place);
    let all = MemoryPoints::build(analysis, place);
    let points = thinned(&all, most);
    let detail = thinned(&all, MOST_DETAIL);
    let peak_time = peak.time.map_or_else(
        || "before the window opened".into(),
        |time| format!("{} after the start of the window", short_time(time)),
    );
    let html = format!(
        "<h{level}>Memory of {device}</h{level}>\n\
         <p>Peak <strong>{most}</strong>, {peak_time}; {end} in use at the end.{loss}</p>\n\
         {notes}{CHART_BEGIN}data-memory=\"{index}\"{CHART_REST}\
         <h{inner}>By category</h{inner}>\n<div class=\"wide\">\n<table>\n<caption>Bytes by category</caption>\n\
         <thead><tr><th scope=\"col\" class=\"text\">Category</th><th scope=\"col\">At the peak</th>\
         <th scope=\"col\">Share</th><th scope=\"col\">At the end</th></tr></thead>\n\
         <tbody>\n{categories}</tbody>\n</table>\n</div>\n\
         <h{inner}>Held at the peak</h{inner}>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Held at the peak of {device}\">\n<table>\n\
         <caption>Who holds memory at the peak</caption>\n\
         <thead><tr><th scope=\"col\">Bytes</th><th scope=\"col\">Share</th><th scope=\"col\">Blocks</th>\
         <th scope=\"col\" class=\"text\">Category</th><th scope=\"col\" class=\"text\">Allocated by</th>\
         <th scope=\"col\" class=\"text\">Stack, innermost first</th></tr></thead>\n\
         <tbody>\n{holders}</tbody>\n</table>\n</div>\n{more}\
         <h{inner}>Over time</h{inner}>\n<details>\n<summary>{count}</summary>\n<div class=\"wide\">\n<table class=\"points\">\n\
         <caption>Bytes in use over time</caption>\n\
         <thead><tr><th scope=\"col\">Time (&micro;s)</th>{heads}<th scope=\"col\">Total</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>\n</details>\n",
        inner = level + 1,
        device = escaped(&memory_place_name(analysis, place)),
        most = amount_text(&peak, peak.total()),
        end = amount_text(&peak, peak.total_at_end()),
        loss = loss(analysis),
        notes = notes(&peak),
        categories = category_rows(&peak),
        holders = holder_rows(analysis, &peak),
        more = more_holders(&peak.holders),
        count = point_count(all.times.len(), points.times.len()),
        heads = point_heads(&peak),
        rows = point_rows(analysis, &points, &peak),
    );
    (html, data(analysis, &detail, &peak))
}

/// The chart of a place, which scripts draw; its attributes go in between.
pub(super) const CHART_BEGIN: &str = "<figure class=\"memory scripted\" hidden ";
pub(super) const CHART_REST: &str = ">
<div class=\"chart\" tabindex=\"0\" role=\"application\" aria-label=\"Bytes in use by category over time, stacked. The tables below hold the same numbers.\"></div>
<div class=\"chart-tip\" hidden></div>
<div class=\"tools\">
<div class=\"categories\" role=\"group\" aria-label=\"Categories: press to hide or show one\"></div>
<button type=\"button\" class=\"at-peak\">Zoom to the peak</button>
<button type=\"button\" class=\"see-all\">Show all</button>
</div>
<figcaption>Hover over the chart to read values, and drag to zoom in. On the keyboard, the arrow keys move from point to point; Home, End and P jump to the start, the end and the peak; + and &minus; zoom; Escape shows all.</figcaption>
<p class=\"reading\" aria-live=\"polite\"></p>
</figure>
";

/// Returns at most about `most` points: the highest and the last one of each time interval.
fn thinned(all: &MemoryPoints, most: usize) -> MemoryPoints {
    let count = all.times.len();
    if count <= most {
        return all.clone();
    }
    let (first, last) = (all.times[0], all.times[count - 1]);
    let stretches = most as u64 / 2;
    let stretch = |index: usize| (all.times[index] - first) * stretches / (last - first + 1);
    let total = |index: usize| all.bytes[index].iter().sum::<i64>() + all.unseen[index];
    let mut points = MemoryPoints::default();
    let mut begin = 0;
    while begin < count {
        let end = (begin + 1..count)
            .find(|&index| stretch(index) != stretch(begin))
            .unwrap_or(count);
        // If several points are highest, the first one is kept, so that the peak does not move.
        let highest = (begin..end).rev().max_by_key(|&index| total(index));
        let mut kept: Vec<usize> = highest.into_iter().chain([end - 1]).collect();
        kept.dedup();
        for index in kept {
            points.times.push(all.times[index]);
            points.bytes.push(all.bytes[index]);
            points.unseen.push(all.unseen[index]);
        }
        begin = end;
    }
    points
}

fn data(analysis: &Analysis, points: &MemoryPoints, peak: &MemoryPeak) -> Value {
    let reference = analysis.profile().reference_unix_ns();
    let since_start = |nanoseconds: u64| (reference + nanoseconds) / 1000 - reference / 1000;
    let times = points.times.iter().map(|time| time - reference / 1000);
    let first = times.clone().next();
    let peak_time = peak.time.map(|time| since_start(time.0)).or(first);
    let bands = Band::all(peak);
    let names: Vec<String> = bands.iter().map(|band| band_text(*band, peak)).collect();
    let colours: Vec<usize> = bands.iter().map(|band| band.colour()).collect();
    let rows: Vec<Vec<i64>> = (0..points.times.len())
        .map(|index| amounts_at(&bands, points, index))
        .collect();
    json!({
        "categories": names,
        "colours": colours,
        "times": times.collect::<Vec<_>>(),
        "bytes": rows,
        "end": since_start(analysis.profile().span().0),
        "peak": first.and(peak_time),
        "peak_bytes": peak.total(),
        "peak_text": amount_text(peak, peak.total()),
    })
}

fn band_text(band: Band, peak: &MemoryPeak) -> String {
    band.name(peak).replace('_', " ")
}

/// Returns the bytes in each band at a point.
fn amounts_at(bands: &[Band], points: &MemoryPoints, index: usize) -> Vec<i64> {
    let amount = |band: &Band| match band {
        Band::Unseen => points.unseen[index],
        Band::Category(category) => points.bytes[index][category.index()],
    };
    bands.iter().map(amount).collect()
}

fn notes(peak: &MemoryPeak) -> String {
    let mut notes = String::new();
    for text in doubt_texts(peak) {
        let _ = writeln!(notes, "<p>{}.</p>", sentence(&text));
    }
    let categories = (!peak.are_categories_known).then_some(
        "<p>Categories are not known: the trace does not record which tensors used the memory.</p>\n",
    );
    notes + categories.unwrap_or_default()
}

fn loss(analysis: &Analysis) -> String {
    match analysis.profile().loss().total() {
        0 => String::new(),
        lost => format!(" {lost} events were lost: sizes and categories may be wrong."),
    }
}

fn category_rows(peak: &MemoryPeak) -> String {
    let mut rows = String::new();
    for band in Band::all(peak) {
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\" class=\"text\">{}</th>{}</tr>",
            band_cell(band, peak),
            amounts(band.at_peak(peak), band.at_end(peak), peak.total()),
        );
    }
    let all = amounts(peak.total(), peak.total_at_end(), peak.total());
    let _ = writeln!(
        rows,
        "<tr class=\"total\"><th scope=\"row\" class=\"text\">total</th>{all}</tr>"
    );
    rows
}

/// Returns the cells of the bytes at the peak, their share of the total, and the bytes at the end.
fn amounts(at_peak: i64, at_end: i64, all: i64) -> String {
    format!(
        "<td>{}</td><td>{}</td><td>{}</td>",
        memory_text(at_peak),
        share(at_peak, all),
        memory_text(at_end)
    )
}

fn share(bytes: i64, all: i64) -> String {
    let percent = 100.0 * bytes as f64 / all.max(1) as f64;
    format!("{percent:.1} %")
}

/// Returns the name of a band next to its colour in the chart.
fn band_cell(band: Band, peak: &MemoryPeak) -> String {
    let (index, name) = (band.colour(), band_text(band, peak));
    format!("<span class=\"swatch category-{index}\"></span>{name}")
}

fn holder_rows(analysis: &Analysis, peak: &MemoryPeak) -> String {
    let mut rows = String::new();
    for holder in peak.holders.iter().take(MOST_HOLDERS) {
        let bytes = holder.bytes as i64;
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"text\">{}</td>\
             <td class=\"text\">{}</td><td class=\"text\">{}</td></tr>",
            memory_text(bytes),
            share(bytes, peak.total()),
            holder.blocks,
            band_cell(Band::Category(holder.category), peak),
            escaped(&holder_name(analysis, holder)),
            stack_cell(&frame_texts(analysis, holder.stack)),
        );
    }
    rows
}

/// Returns the frames of a stack, with the outer ones folded away.
pub(super) fn stack_cell(frames: &[&str]) -> String {
    let lines = |frames: &[&str]| {
        let frames: Vec<String> = frames.iter().map(|frame| escaped(frame)).collect();
        format!("<pre>{}</pre>", frames.join("\n"))
    };
    let (first, rest) = frames.split_at(frames.len().min(FIRST_FRAMES));
    match rest.len() {
        0 if first.is_empty() => String::new(),
        0 => lines(first),
        count => format!(
            "{}<details><summary>{count} more</summary>{}</details>",
            lines(first),
            lines(rest)
        ),
    }
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
        format!("{kept} of {all} points: the highest and the last of each time interval")
    }
}

fn point_heads(peak: &MemoryPeak) -> String {
    let heads = Band::all(peak).into_iter();
    let heads = heads.map(|band| format!("<th scope=\"col\">{}</th>", band_text(band, peak)));
    heads.collect()
}

fn point_rows(analysis: &Analysis, points: &MemoryPoints, peak: &MemoryPeak) -> String {
    let start = analysis.profile().reference_unix_ns() / 1000;
    let bands = Band::all(peak);
    let mut rows = String::new();
    for (index, time) in points.times.iter().enumerate() {
        let _ = write!(rows, "<tr><th scope=\"row\">{}</th>", time - start);
        let cells = amounts_at(&bands, points, index);
        let total = cells.iter().sum::<i64>();
        for bytes in cells.iter().chain([&total]) {
            let _ = write!(rows, "<td>{bytes}</td>");
        }
        rows.push_str("</tr>\n");
    }
    rows
}
