//! A memory snapshot as an HTML page: a chart of allocated and reserved memory, who held it, and the
//! out-of-memory errors.

use std::fmt::Write as _;
use std::io::Write;

use mindprof_answers::{DeviceMemory, HeldBy, OutOfMemory, SnapshotMemory};
use mindprof_formats::counted;
use serde_json::{Value, json};

use super::page::{CHART_BEGIN, CHART_REST, stack_cell};
use super::snapshot_text::{
    bytes, device_name, error_facts, head_sentence, hint, kind_text, moment, share, snapshot_notes,
    unknown_text,
};
use crate::error::Result;
use crate::page::{MEMORY, Page, Pane, escaped};

/// The largest number of lines of the user's in a table.
const MOST_LINES: usize = 50;

/// The names of the layers and the numbers of their colours. Reserved memory without use is grey.
const LAYERS: [(&str, usize); 2] = [("allocated", 1), ("reserved, not allocated", 7)];

/// Writes the page of a memory snapshot, with a section for each device.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_snapshot_html(memory: &SnapshotMemory, out: &mut dyn Write) -> Result<()> {
    let mut html = String::new();
    let mut charts = Vec::new();
    for (index, device) in memory.devices.iter().enumerate() {
        html.push_str(&section(device, memory.expandable_segments, index));
        charts.push(chart(device));
    }
    if memory.has_pinned {
        html.push_str(
            "<p class=\"quiet\">Pinned memory of the CPU is in the file, but not shown.</p>\n",
        );
    }
    let page = Page {
        title: "Memory snapshot".into(),
        subtitle: String::new(),
        panes: vec![Pane {
            id: "memory",
            title: "Memory",
            html,
            is_listed: true,
        }],
        data: json!({"memory": charts}).to_string(),
        modules: MEMORY,
    };
    page.write(out)
}

fn section(device: &DeviceMemory, expandable: Option<bool>, index: usize) -> String {
    let mut html = format!(
        "<h1>Memory of {}</h1>\n<p><strong>{}</strong></p>\n<p>Hint: {}.</p>\n",
        escaped(&device_name(device)),
        escaped(&head_sentence(device)),
        escaped(&hint(device, expandable)),
    );
    for note in snapshot_notes(device) {
        let _ = writeln!(html, "<p class=\"quiet\">Note: {}.</p>", escaped(&note));
    }
    let _ = write!(html, "{CHART_BEGIN}data-memory=\"{index}\"{CHART_REST}");
    for error in device.out_of_memory.iter().rev() {
        html.push_str(&error_section(error));
    }
    let all = device.most().allocated_bytes;
    let _ = writeln!(html, "<h2>Held {}</h2>", moment(device));
    html.push_str(&lines_table(&device.held, all));
    html.push_str(&stacks_table(&device.held, all));
    html.push_str(&space_table(device));
    html.push_str(&points_table(device));
    html
}

/// Returns the data of the chart. Reserved memory is stacked on what is allocated of it.
fn chart(device: &DeviceMemory) -> Value {
    let curve = &device.curve;
    let rows: Vec<[u64; 2]> = curve
        .allocated_bytes
        .iter()
        .zip(&curve.reserved_bytes)
        .map(|(&allocated, reserved)| [allocated, reserved.saturating_sub(allocated)])
        .collect();
    let end = curve.times_us.last().copied().unwrap_or_default();
    let first = curve.times_us.first().copied();
    json!({
        "categories": LAYERS.map(|(name, _)| name),
        "colours": LAYERS.map(|(_, colour)| colour),
        "times": curve.times_us,
        "bytes": rows,
        "end": end,
        "peak": device.most().time_us.or(device.most().entry).or(first),
        "peak_bytes": device.most().allocated_bytes,
        "peak_text": bytes(device.most().allocated_bytes),
    })
}

fn error_section(error: &OutOfMemory) -> String {
    let when = error.time_us.map_or_else(String::new, |time| {
        format!(" {:.3} ms into the history", time as f64 / 1e3)
    });
    format!(
        "<h2>Out of memory{when}</h2>\n<p class=\"bad\">{}.</p>\n{}\n{}",
        error_facts(error),
        frames_cell(&error.frames, error.frames_left_out),
        lines_table(&error.held, error.allocated_bytes),
    )
}

/// Returns a stack, which says how many of its frames are left out.
fn frames_cell(frames: &[String], left_out: u64) -> String {
    let more = counted(left_out, "outer frame");
    let more = format!("and {more} that are not listed");
    let frames = frames.iter().map(String::as_str);
    let frames = frames.chain((left_out > 0).then_some(more.as_str()));
    stack_cell(&frames.collect::<Vec<_>>())
}

fn lines_table(held: &HeldBy, all: u64) -> String {
    let mut rows = String::new();
    for line in held.lines.iter().take(MOST_LINES) {
        let place = kind_text(&line.kind).unwrap_or_else(|| unknown_text(&line.kind).into());
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>",
            bytes(line.bytes),
            share(line.bytes, all),
            line.blocks,
            escaped(&place)
        );
    }
    let more = held.lines.len().saturating_sub(MOST_LINES) as u64 + held.lines_left_out;
    if more > 0 {
        let rest = held.lines.iter().skip(MOST_LINES).map(|line| line.bytes);
        let rest = rest.fold(held.lines_left_out_bytes, u64::saturating_add);
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td>{}</td><td></td><td class=\"text\">and {} more</td></tr>",
            bytes(rest),
            share(rest, all),
            more
        );
    }
    format!(
        "<div class=\"wide\">\n<table>\n<caption>Held memory by line</caption>\n<thead><tr>\
         <th scope=\"col\">Bytes</th><th scope=\"col\">Share</th><th scope=\"col\">Blocks</th>\
         <th scope=\"col\" class=\"text\">Allocated by</th></tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table>\n</div>\n"
    )
}

fn stacks_table(held: &HeldBy, all: u64) -> String {
    let mut rows = String::new();
    for stack in held.stacks.iter().filter(|stack| !stack.frames.is_empty()) {
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>",
            bytes(stack.bytes),
            share(stack.bytes, all),
            stack.blocks,
            frames_cell(&stack.frames, stack.frames_left_out)
        );
    }
    let shown = held.stacks.len() as u64;
    let count = held.stack_count;
    let caption = if shown < count {
        format!("Held memory by stack, the {shown} of {count} that hold most")
    } else {
        "Held memory by stack".into()
    };
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Held memory by stack\">\n\
         <table>\n<caption>{caption}</caption>\n<thead><tr>\
         <th scope=\"col\">Bytes</th><th scope=\"col\">Share</th><th scope=\"col\">Blocks</th>\
         <th scope=\"col\" class=\"text\">Stack, innermost first</th></tr></thead>\n<tbody>\n{rows}\
         </tbody>\n</table>\n</div>\n"
    )
}

fn space_table(device: &DeviceMemory) -> String {
    let space = &device.space;
    let rows = [
        ("in use", space.allocated_bytes),
        ("of that, rounding", space.rounding_bytes),
        (
            "awaiting the end of work on other streams",
            space.awaiting_free_bytes,
        ),
        (
            "free, and returned by torch.cuda.empty_cache()",
            space.cached_bytes,
        ),
        ("free in private pools", space.private_free_bytes),
        ("free in pieces between allocations", space.split_bytes),
        ("the largest free block", space.largest_free_bytes),
        (
            "in private pools, such as those of CUDA graphs",
            space.private_bytes,
        ),
        ("all reserved memory", space.reserved_bytes),
    ];
    let mut html = String::from(
        "<h2>Reserved memory at the end</h2>\n<table>\n<caption>Reserved memory</caption>\n<thead>\
         <tr><th scope=\"col\" class=\"text\">What</th><th scope=\"col\">Bytes</th>\
         <th scope=\"col\">Share</th></tr></thead>\n<tbody>\n",
    );
    for (what, amount) in rows {
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\" class=\"text\">{what}</th><td>{}</td><td>{}</td></tr>",
            bytes(amount),
            share(amount, space.reserved_bytes)
        );
    }
    html + "</tbody>\n</table>\n"
}

fn points_table(device: &DeviceMemory) -> String {
    let curve = &device.curve;
    let mut rows = String::new();
    for ((time, allocated), reserved) in curve
        .times_us
        .iter()
        .zip(&curve.allocated_bytes)
        .zip(&curve.reserved_bytes)
    {
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{time}</th><td>{allocated}</td><td>{reserved}</td></tr>"
        );
    }
    format!(
        "<h2>Over time</h2>\n<details>\n<summary>{} points: the highest and the last of each time \
         interval</summary>\n<div class=\"wide\">\n<table class=\"points\">\n<caption>Bytes over \
         time</caption>\n<thead><tr><th scope=\"col\">Time (&micro;s)</th><th scope=\"col\">\
         Allocated</th><th scope=\"col\">Reserved</th></tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table>\n</div>\n</details>\n",
        curve.times_us.len()
    )
}
