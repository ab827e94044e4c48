//! The use of devices as text: busy and idle time, launches, copies, streams, rates and steps.

mod rates;

use mindprof_answers::{
    CopyUse, CpuMemory, Device, DeviceUse, DeviceWindow, IdleCause, LaunchDelays, StepClass,
    StreamUse,
};
use mindprof_formats::counted;
use mindprof_model::Nanos;

use self::rates::{amount, push_rates};
use crate::grid::{Align, grid, push_line, push_wrapped};
use crate::steps::{percent, short_time, tail_text};
use crate::visible::visible;

/// The layout of the use of devices.
#[derive(Clone, Copy, Debug)]
pub struct DeviceLayout {
    /// The largest number of rows of each list.
    pub rows: usize,
    /// The largest width, or `None` for no limit. The columns of numbers need 80 characters.
    pub width: Option<usize>,
}

/// The least width of the use of devices.
const LEAST_WIDTH: usize = 80;

/// Returns the use of devices as text, as `mindprof device` prints it.
pub fn device_text(device: &Device, layout: DeviceLayout) -> String {
    let layout = DeviceLayout {
        width: layout.width.map(|width| width.max(LEAST_WIDTH)),
        ..layout
    };
    let mut text = String::new();
    if device.devices.is_empty() {
        let line = format!(
            "No device work in this profile: record a device, as with \
             `activities=[ProfilerActivity.CPU, ProfilerActivity.{}]`",
            if device.is_of_npu { "NPU" } else { "CUDA" }
        );
        push_wrapped(&mut text, &line, layout.width);
    }
    for (index, device) in device.devices.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        push_device(&mut text, device, layout);
    }
    text
}

fn push_device(text: &mut String, device: &DeviceUse, layout: DeviceLayout) {
    let mut title = visible(&device.device).into_owned();
    if let Some(rank) = device.rank {
        title = format!("{title} of rank {rank}");
    }
    if let Some(name) = &device.name {
        title = format!("{title}, {}", visible(name));
    }
    let whole = &device.whole;
    let busy = |window: &DeviceWindow| percent(window.busy, window.recorded());
    let known = if whole.unrecorded > Nanos::ZERO {
        "the recorded time"
    } else {
        "the recording"
    };
    let mut shares = format!("busy {} of {known}", busy(whole));
    if let Some(steps) = &device.in_steps {
        let count = counted(device.each_step.len() as u64, "step");
        shares = format!("busy {} of {count}, {}", busy(steps), &shares[5..]);
    }
    push_wrapped(text, &format!("{title}: {shares}"), layout.width);
    push_times(text, device);
    let shown = device.in_steps.as_ref().unwrap_or(whole);
    push_kernels(text, device, shown, layout.width);
    push_launches(text, &shown.launches, layout.width);
    push_copies(text, &shown.copies);
    push_streams(text, device, layout);
    push_rates(text, device, layout);
    push_steps(text, device, layout);
}

/// One line of the table of times: its name, and its time in a window.
type TimeLine = (String, Box<dyn Fn(&DeviceWindow) -> Nanos>);

fn push_times(text: &mut String, device: &DeviceUse) {
    let mut windows = Vec::new();
    windows.extend(device.in_steps.as_ref());
    windows.push(&device.whole);
    let mut columns = vec![("", Align::Left)];
    if device.in_steps.is_some() {
        columns.extend([("In steps", Align::Right), ("Share", Align::Right)]);
    }
    columns.extend([("Recording", Align::Right), ("Share", Align::Right)]);
    let rows: Vec<Vec<String>> = time_lines()
        .into_iter()
        .filter(|(_, time)| windows.iter().any(|window| time(window) > Nanos::ZERO))
        .map(|(name, time)| {
            let cells = windows.iter().flat_map(|window| {
                let time = time(window);
                // Shares are those of the time in which the device's work is known.
                let is_beyond = ["time", "not recorded"].contains(&name.as_str());
                let share = if is_beyond && window.unrecorded > Nanos::ZERO {
                    String::new()
                } else {
                    share(time, window)
                };
                [short_time(time), share]
            });
            [name.clone()].into_iter().chain(cells).collect()
        })
        .collect();
    text.push('\n');
    text.push_str(&grid(&columns, &rows));
}

fn time_lines() -> Vec<TimeLine> {
    fn line(name: &str, time: impl Fn(&DeviceWindow) -> Nanos + 'static) -> TimeLine {
        (name.into(), Box::new(time))
    }
    const KERNEL: StepClass = StepClass::Kernel;
    const COMMUNICATION: StepClass = StepClass::Communication;
    const COPY: StepClass = StepClass::Copy;
    let mut lines = vec![
        line("time", |window| window.duration),
        line("busy", |window| window.busy),
        line("  compute", |window| window.classes.of(KERNEL)),
        line("  communication", |window| window.classes.of(COMMUNICATION)),
        line("    exposed", |window| {
            window.classes.exposed(COMMUNICATION)
        }),
        line("    with compute", |window| {
            window.classes.overlap(COMMUNICATION, KERNEL)
        }),
        line("  copies", |window| window.classes.of(COPY)),
        line("    with compute", |window| {
            window.classes.overlap(COPY, KERNEL)
        }),
        line("    with communication", |window| {
            window.classes.overlap(COPY, COMMUNICATION)
        }),
        line("  fills", |window| window.classes.of(StepClass::Memset)),
        line("not recorded", |window| window.unrecorded),
        line("idle", |window| window.idle.total()),
    ];
    let causes = IdleCause::ALL.into_iter();
    lines.extend(causes.map(|cause| {
        let name = format!("  {}", cause.name());
        line(&name, move |window| window.idle.time(cause))
    }));
    lines
}

fn push_kernels(
    text: &mut String,
    device: &DeviceUse,
    window: &DeviceWindow,
    width: Option<usize>,
) {
    let mut facts = vec![format!("utilization {}", fraction(window.utilization))];
    if let Some(efficiency) = window.sm_efficiency {
        facts.push(format!("SM efficiency {}", fraction(efficiency)));
    }
    if let Some(occupancy) = window.occupancy {
        facts.push(format!("occupancy {}", fraction(occupancy)));
    }
    if window.kernels > Nanos::ZERO {
        let cores = percent(window.tensor_cores, window.kernels);
        facts.push(format!("tensor cores {cores} of kernel time"));
    }
    if window.silent_kernels > Nanos::ZERO {
        let silent = percent(window.silent_kernels, window.kernels);
        facts.push(format!("{silent} of kernel time has no launch geometry"));
    }
    text.push('\n');
    push_wrapped(text, &format!("Kernels: {}", facts.join(", ")), width);
    for matmul in &device.matmul {
        let dtype = matmul.dtype.unwrap_or("unknown dtype (record shapes)");
        let line = format!(
            "Matrix products on {dtype}: {}, {} of it on tensor cores",
            short_time(matmul.time),
            percent(matmul.tensor_cores, matmul.time)
        );
        push_wrapped(text, &line, width);
    }
}

fn push_launches(text: &mut String, launches: &LaunchDelays, width: Option<usize>) {
    let mut line = if launches.launches == 0 {
        "Launches: not recorded".into()
    } else {
        format!(
            "Launches: {}, delay p50 {}, {}; {} over 50 us, {} over 100 us",
            launches.launches,
            short_time(launches.p50),
            tail_text(&launches.tail()),
            launches.over_50_us,
            launches.over_100_us
        )
    };
    if launches.launches > 0 && launches.unknown > 0 {
        line = format!("{line}; {} more are not recorded", launches.unknown);
    }
    push_wrapped(text, &line, width);
}

fn push_copies(text: &mut String, copies: &[CopyUse]) {
    if copies.is_empty() {
        return;
    }
    let columns = [
        ("Copies", Align::Left),
        ("Count", Align::Right),
        ("Time", Align::Right),
        ("Bytes", Align::Right),
        ("Bytes/s", Align::Right),
    ];
    let rows: Vec<Vec<String>> = copies
        .iter()
        .map(|copy| {
            let memory = match copy.memory {
                Some(CpuMemory::Pinned) => ", pinned",
                Some(CpuMemory::Pageable) => ", pageable",
                None => "",
            };
            vec![
                format!("{}{memory}", copy.direction.name()),
                copy.copies.to_string(),
                short_time(copy.time),
                copy.bytes
                    .map_or_else(String::new, |bytes| format!("{}B", amount(bytes as f64))),
                copy.bytes_per_s
                    .map_or_else(String::new, |rate| format!("{}B/s", amount(rate))),
            ]
        })
        .collect();
    text.push('\n');
    text.push_str(&grid(&columns, &rows));
}

fn push_streams(text: &mut String, device: &DeviceUse, layout: DeviceLayout) {
    let columns = [
        ("Stream", Align::Right),
        ("Count", Align::Right),
        ("Work", Align::Right),
        ("CPU wait", Align::Right),
        ("Kernel wait", Align::Right),
        ("Other gap", Align::Right),
        ("Queue", Align::Right),
        ("Mean", Align::Right),
        ("Full", Align::Right),
    ];
    let full = |stream: &StreamUse| stream.queue.map_or(Nanos::ZERO, |queue| queue.full);
    let is_full = device
        .streams
        .iter()
        .any(|stream| full(stream) > Nanos::ZERO);
    // Queues are rarely full, and the column has no room beside the others.
    let columns = &columns[..if is_full { 9 } else { 8 }];
    let row = |stream: &StreamUse| {
        let mut cells = vec![
            (stream.name.as_deref()).map_or_else(
                || stream.stream.to_string(),
                |name| visible(name).into_owned(),
            ),
            stream.works.to_string(),
            short_time(stream.work),
            short_time(stream.gaps.cpu_wait),
            short_time(stream.gaps.kernel_wait),
            short_time(stream.gaps.other),
        ];
        match stream.queue {
            Some(queue) => cells.extend([
                queue.max.to_string(),
                format!("{:.1}", queue.mean),
                short_time(queue.full),
            ]),
            None => cells.resize(9, String::new()),
        }
        cells.truncate(columns.len());
        cells
    };
    let mut streams: Vec<&StreamUse> = device.streams.iter().collect();
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.work));
    let rows: Vec<Vec<String>> = streams.iter().take(layout.rows).map(|s| row(s)).collect();
    text.push('\n');
    text.push_str(&grid(columns, &rows));
    push_more(text, streams.len(), layout.rows, "stream");
}

fn push_steps(text: &mut String, device: &DeviceUse, layout: DeviceLayout) {
    if device.each_step.is_empty() || layout.rows == 0 {
        return;
    }
    let steps = &device.each_step;
    let causes: Vec<IdleCause> = IdleCause::ALL
        .into_iter()
        .filter(|&cause| {
            let is_seen = |step: &DeviceWindow| 200 * step.idle.time(cause).0 >= step.duration.0;
            steps
                .iter()
                .any(|step| step.duration > Nanos::ZERO && is_seen(step))
        })
        .collect();
    let mut columns = vec![
        ("Step", Align::Right),
        ("Time", Align::Right),
        ("Busy", Align::Right),
    ];
    columns.extend(causes.iter().map(|cause| (cause.name(), Align::Right)));
    let rows: Vec<Vec<String>> = (steps.iter().take(layout.rows))
        .map(|step| {
            let mut cells = vec![
                step.number
                    .map_or_else(String::new, |number| number.to_string()),
                short_time(step.duration),
                share(step.busy, step),
            ];
            cells.extend(
                causes
                    .iter()
                    .map(|&cause| share(step.idle.time(cause), step)),
            );
            cells
        })
        .collect();
    text.push('\n');
    text.push_str(&grid(&columns, &rows));
    push_more(text, steps.len(), layout.rows, "step");
}

/// Appends how many rows of a list are not shown.
fn push_more(text: &mut String, count: usize, shown: usize, noun: &str) {
    let more = count.saturating_sub(shown) as u64;
    if more > 0 {
        push_line(text, &counted(more, &format!("more {noun}")));
    }
}

/// Returns the share of a window. Something is never shown as nothing.
fn share(time: Nanos, window: &DeviceWindow) -> String {
    let whole = window.recorded();
    if time > Nanos::ZERO && 200 * time.0 < whole.0 {
        return "< 1 %".into();
    }
    percent(time, whole)
}

/// Returns a fraction as a percentage with one digit.
fn fraction(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

#[cfg(test)]
mod tests;
