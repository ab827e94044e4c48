//! Devices: how busy they were and why they were idle, their streams, copies and kernels.

use std::fmt::Write as _;

use mindprof_answers::{DeviceUse, DeviceWindow, IdleCause, KernelUse};
use mindprof_model::Nanos;

use super::contents::Contents;
use super::markup::{escaped, with_units};
use super::table::{Cell, Kind, Table, column, share_text, thousands};
use crate::sentence::sentence;
use crate::steps::{is_share, percent, short_time, tail_text};

/// Returns the sentences about a device as HTML.
pub(super) fn device_facts(contents: &Contents<'_>) -> String {
    let mut html = String::new();
    for device in &contents.device.devices {
        let window = device.in_steps.as_ref().unwrap_or(&device.whole);
        let of = if device.in_steps.is_some() {
            "the steps"
        } else {
            "the recording"
        };
        let whole = window.recorded();
        let name = device.name.as_deref().unwrap_or("");
        let _ = writeln!(
            html,
            "<h2>{} <span class=\"quiet\">{}</span></h2>\n<ul class=\"facts\">\n<li>Busy {} of {of}: {}.</li>",
            escaped(&device.device),
            escaped(name),
            percent(window.busy, whole),
            escaped(&busy_text(window)),
        );
        if device.whole.busy > window.busy {
            let _ = writeln!(
                html,
                "<li>Busy {} of the recording, which has work outside of the steps: {}.</li>",
                percent(device.whole.busy, device.whole.recorded()),
                escaped(&busy_text(&device.whole)),
            );
        }
        if let Some(idle) = idle_text(window, of) {
            let _ = writeln!(html, "<li>{}.</li>", escaped(&idle));
        }
        let mut rates = vec![format!(
            "kernels ran {} of the time",
            share_text(window.utilization)
        )];
        rates.extend(
            window
                .sm_efficiency
                .map(|share| format!("SM efficiency {}", share_text(share))),
        );
        rates.extend(
            window
                .occupancy
                .map(|share| format!("occupancy {}", share_text(share))),
        );
        rates.push(format!(
            "tensor cores {} of kernel time",
            percent(window.tensor_cores, window.kernels)
        ));
        let _ = writeln!(html, "<li>{}.</li>", escaped(&sentence(&rates.join(", "))));
        let launches = &window.launches;
        if launches.launches > 0 {
            let _ = writeln!(
                html,
                "<li>{} launches, with a delay of p50 {}, {}.</li>",
                thousands(&launches.launches.to_string()),
                escaped(&short_time(launches.p50)),
                escaped(&tail_text(&launches.tail()))
            );
        }
        html.push_str("</ul>\n");
    }
    with_units(&html)
}

fn busy_text(window: &DeviceWindow) -> String {
    let (busy, whole) = (short_time(window.busy), short_time(window.recorded()));
    format!("{busy} of {whole}")
}

/// Returns how long a device was idle, and why, as parts of the steps or the recording; `None` if it
/// never was.
fn idle_text(window: &DeviceWindow, of: &str) -> Option<String> {
    let (idle, whole) = (window.idle.total(), window.recorded());
    let causes = IdleCause::ALL.into_iter();
    let causes = causes.map(|cause| (cause, window.idle.time(cause)));
    let mut causes: Vec<_> = causes.filter(|(_, time)| time.0 > 0).collect();
    causes.sort_by_key(|&(_, time)| std::cmp::Reverse(time));
    let causes: Vec<String> = causes
        .into_iter()
        .map(|(cause, time)| format!("{} {}", cause.name(), part_text(time, whole)))
        .collect();
    (!causes.is_empty()).then(|| {
        format!(
            "Idle {} of {of}: {}. By cause, as shares of {of}: {}",
            part_text(idle, whole),
            short_time(idle),
            causes.join(", ")
        )
    })
}

/// Returns a part in percent. Less than one percent is not nothing.
pub(super) fn part_text(part: Nanos, whole: Nanos) -> String {
    if is_share(part, whole, 1) {
        percent(part, whole)
    } else {
        "under 1 %".into()
    }
}

/// The note above the tables of devices about the time that they cover.
pub(super) const COUNTED: &str = "\
<p class=\"quiet\">The tables cover the whole recording. Work that overlaps counts in full each time, so the times \
of a table may add up to more than the time that the device is busy. Kernel times are not part of CPU time.</p>\n";

/// Returns the tables of devices that have rows.
pub(super) fn kernel_tables(contents: &Contents<'_>) -> Vec<Table> {
    let devices = &contents.device.devices;
    if devices.is_empty() {
        return Vec::new();
    }
    let tables = [
        kernels(devices),
        streams(devices),
        copies(devices),
        rates(devices),
    ];
    let tables = tables.into_iter().filter(|table| !table.rows.is_empty());
    tables.map(Table::without_empty_columns).collect()
}

fn kernels(devices: &[DeviceUse]) -> Table {
    let all = devices.iter().flat_map(|device| device.kernels.iter());
    let whole = Nanos(all.clone().map(|kernel| kernel.time.0).sum());
    let row = |device: &DeviceUse, kernel: &KernelUse| {
        vec![
            Cell::detail("kernel", &kernel.name),
            Cell::text(&*device.device),
            Cell::time(kernel.time),
            Cell::share(kernel.time, whole),
            Cell::count(kernel.calls),
            Cell::Number(kernel.time.0 as f64 / kernel.calls.max(1) as f64),
            Cell::text(if kernel.uses_tensor_cores { "yes" } else { "" }),
            kernel.occupancy.map_or(Cell::Empty, Cell::Number),
            kernel.blocks_per_sm.map_or(Cell::Empty, Cell::Number),
        ]
    };
    let rows = devices.iter();
    let rows = rows.flat_map(|device| device.kernels.iter().map(move |one| row(device, one)));
    Table {
        id: "kernels",
        caption: "Kernels".into(),
        columns: vec![
            column("Kernel", Kind::Name, ""),
            column("Device", Kind::Text, ""),
            column("Time", Kind::Time, "The sum of their durations."),
            column("Share", Kind::Share, "The part of the time of all kernels."),
            column("Calls", Kind::Count, ""),
            column("Mean", Kind::Time, ""),
            column(
                "Tensor cores",
                Kind::Text,
                "Whether they use tensor cores, by their name.",
            ),
            column(
                "Occupancy",
                Kind::Share,
                "The estimated occupancy, weighted by duration.",
            ),
            column(
                "Blocks per SM",
                Kind::Amount,
                "The mean, weighted by duration.",
            ),
        ],
        rows: rows.collect(),
        sorted_by: Some(2),
    }
}

fn streams(devices: &[DeviceUse]) -> Table {
    let rows = devices.iter().flat_map(|device| {
        device.streams.iter().map(move |stream| {
            vec![
                Cell::text(format!("{} stream {}", device.device, stream.stream as i64)),
                Cell::time(stream.work),
                Cell::count(stream.works),
                Cell::time(stream.gaps.cpu_wait),
                Cell::time(stream.gaps.kernel_wait),
                Cell::time(stream.gaps.other),
                stream
                    .queue
                    .map_or(Cell::Empty, |queue| Cell::count(queue.max)),
                stream
                    .queue
                    .map_or(Cell::Empty, |queue| Cell::Number(queue.mean)),
            ]
        })
    });
    Table {
        id: "streams",
        caption: "Streams".into(),
        columns: vec![
            column("Stream", Kind::Name, ""),
            column("Work", Kind::Time, "The sum of the durations of its work."),
            column("Count", Kind::Count, ""),
            column(
                "CPU wait",
                Kind::Time,
                "Gaps because the next work was launched too late.",
            ),
            column(
                "Kernel wait",
                Kind::Time,
                "Gaps before work that was in the queue.",
            ),
            column("Other gaps", Kind::Time, ""),
            column("Longest queue", Kind::Count, ""),
            column("Mean queue", Kind::Amount, ""),
        ],
        rows: rows.collect(),
        sorted_by: Some(1),
    }
}

fn copies(devices: &[DeviceUse]) -> Table {
    let rows = devices.iter().flat_map(|device| {
        device.whole.copies.iter().map(move |copy| {
            vec![
                Cell::text(format!("{} {}", device.device, copy.direction.name())),
                Cell::time(copy.time),
                Cell::count(copy.copies),
                copy.bytes
                    .map_or(Cell::Empty, |bytes| Cell::bytes(bytes as i64)),
            ]
        })
    });
    Table {
        id: "copies",
        caption: "Copies and fills".into(),
        columns: vec![
            column("Direction", Kind::Name, ""),
            column("Time", Kind::Time, ""),
            column("Count", Kind::Count, ""),
            column("Bytes", Kind::Bytes, ""),
        ],
        rows: rows.collect(),
        sorted_by: Some(1),
    }
}

fn rates(devices: &[DeviceUse]) -> Table {
    let rows = devices.iter().flat_map(|device| {
        device.operators.iter().map(move |one| {
            let rate = |rate: &Option<mindprof_answers::Rate>| {
                rate.as_ref()
                    .map_or(Cell::Empty, |rate| Cell::Number(rate.per_s))
            };
            let limit = |rate: &Option<mindprof_answers::Rate>| {
                let share = rate.as_ref().and_then(|rate| rate.share);
                share.map_or(Cell::Empty, Cell::Number)
            };
            vec![
                Cell::detail("operator", &one.operator),
                Cell::text(one.dtype),
                Cell::time(one.time),
                Cell::count(one.calls),
                rate(&one.flops),
                limit(&one.flops),
                rate(&one.bytes),
                limit(&one.bytes),
            ]
        })
    });
    Table {
        id: "rates",
        caption: "Rates of operators with a known number of operations".into(),
        columns: vec![
            column("Operator", Kind::Name, ""),
            column("Dtype", Kind::Text, ""),
            column("Kernel time", Kind::Time, ""),
            column("Calls", Kind::Count, ""),
            column("FLOP/s", Kind::Amount, ""),
            column(
                "of the limit",
                Kind::Share,
                "The part of what the device can do.",
            ),
            column("Bytes/s", Kind::Amount, ""),
            column(
                "of the bandwidth",
                Kind::Share,
                "The part of what the device can do.",
            ),
        ],
        rows: rows.collect(),
        sorted_by: Some(2),
    }
}
