//! A memory snapshot as text: a sentence about the peak or the last out-of-memory error with what
//! to do, then who held memory, and how free memory is divided.

use std::fmt::Write as _;

use mindprof_answers::{
    CodePlace, DeviceMemory, FreeElsewhere, HeldBy, HolderKind, MemoryMoment, OutOfMemory,
    Shortage, SnapshotMemory,
};
use mindprof_formats::counted;
use mindprof_model::Place;

use crate::grid::{characters, cut, push_line, push_wrapped};
use crate::number::memory_text;
use crate::visible::visible;

/// The maximum numbers of lines, stacks and frames in the text. The JSON has more.
const LINES: usize = 8;
const STACKS: usize = 3;
const FRAMES: usize = 4;

/// The maximum number of out-of-memory errors that are described.
const ERRORS: usize = 3;

/// The width of the text.
const WIDTH: usize = 80;

/// The part of the reserved memory, and the bytes, from which on free pieces are worth a hint.
const MUCH_SPLIT: f64 = 0.2;
const LEAST_SPLIT: u64 = 256 << 20;

/// Returns a memory snapshot as text, one section for each device.
pub fn snapshot_text(memory: &SnapshotMemory) -> String {
    let mut sections: Vec<String> = Vec::new();
    for device in &memory.devices {
        let mut text = String::new();
        push_wrapped(&mut text, &head_sentence(device), Some(WIDTH));
        let hint = hint(device, memory.expandable_segments);
        push_wrapped(&mut text, &format!("hint: {hint}"), Some(WIDTH));
        push_sums(&mut text, device);
        for note in snapshot_notes(device) {
            push_wrapped(&mut text, &format!("note: {note}"), Some(WIDTH));
        }
        for error in device.out_of_memory.iter().rev().take(ERRORS) {
            push_error(&mut text, error);
        }
        let more = device.out_of_memory_count.saturating_sub(ERRORS as u64);
        if more > 0 {
            let errors = counted(more, "earlier out-of-memory error");
            push_line(&mut text, &format!("and {errors}"));
        }
        // The state of an error is often that of the peak.
        let last = device
            .out_of_memory
            .last()
            .map(|error| error.allocated_bytes);
        let peak = device.most().allocated_bytes;
        if last != Some(peak) {
            let title = format!("held {}", moment(device));
            push_held(&mut text, &title, &device.held, peak);
        }
        push_stacks(&mut text, device);
        push_space(&mut text, device);
        sections.push(text);
    }
    if memory.devices.is_empty() {
        sections.push("no memory of a device and no history of one in the snapshot\n".into());
    }
    if memory.has_pinned {
        sections.push("note: pinned memory of the CPU is in the file, but not shown\n".into());
    }
    sections.join("\n")
}

/// Returns the name of a device of a snapshot.
pub(super) fn device_name(device: &DeviceMemory) -> String {
    format!("cuda:{}", device.device)
}

/// Returns the sentence that a device's section begins with.
pub(super) fn head_sentence(device: &DeviceMemory) -> String {
    let name = device_name(device);
    if let Some(error) = device.out_of_memory.last() {
        let asked = match kind_text(&error.kind) {
            Some(place) => format!("{place} asked for {}", bytes(error.requested_bytes)),
            None => format!("{} were asked for", bytes(error.requested_bytes)),
        };
        return format!(
            "{name} ran out of memory: {asked} with {} allocated{}.",
            bytes(error.allocated_bytes),
            most_of(&error.held, error.allocated_bytes)
        );
    }
    let Some(peak) = device.peak else {
        return format!(
            "{name}: {} allocated when the snapshot was taken{}. The peak is not known.",
            bytes(device.at_end.allocated_bytes),
            most_of(&device.held, device.at_end.allocated_bytes)
        );
    };
    format!(
        "{name}: peak {} allocated{}{}.",
        bytes(peak.allocated_bytes),
        when(peak),
        most_of(&device.held, peak.allocated_bytes)
    )
}

/// Returns the moment whose holders are listed.
pub(super) const fn moment(device: &DeviceMemory) -> &'static str {
    if device.peak.is_some() {
        "at the peak"
    } else {
        "when the snapshot was taken"
    }
}

fn when(peak: MemoryMoment) -> String {
    match (peak.entry, peak.time_us) {
        (None, _) => " where the history begins, the most that it knows of".into(),
        (Some(_), Some(time)) => format!(" {:.3} ms into the history", time as f64 / 1e3),
        (Some(entry), None) => format!(" after entry {entry} of the history"),
    }
}

/// Returns the end of a sentence that names who holds the most.
fn most_of(held: &HeldBy, all: u64) -> String {
    let Some(most) = held.lines.first().filter(|_| all > 0) else {
        return String::new();
    };
    let (amount, share) = (bytes(most.bytes), share(most.bytes, all));
    match kind_text(&most.kind) {
        Some(place) => format!(", {amount} ({share}) of them by {place}"),
        None => format!(", {amount} ({share}) of them {}", unknown_text(&most.kind)),
    }
}

/// Returns what to do about the memory of a device.
pub(super) fn hint(device: &DeviceMemory, expandable: Option<bool>) -> String {
    const EXPANDABLE: &str = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
    let grows = expandable == Some(true);
    if let Some(error) = device.out_of_memory.last() {
        return match error.shortage {
            Shortage::Fragmented if grows => format!(
                "{}, which is enough for the request, but a request needs one piece: allocate \
                 large tensors early, or keep sizes from varying",
                free_text(error)
            ),
            Shortage::Fragmented => format!(
                "{}, which is enough for the request, but a request needs one piece: {EXPANDABLE}",
                free_text(error)
            ),
            Shortage::Elsewhere => elsewhere_hint(&error.free_elsewhere),
            Shortage::Unused => format!(
                "{} lay free in one piece, which the request may not use: it may be of a private \
                 pool, as while a CUDA graph is captured; capture graphs before memory is short",
                bytes(error.largest_free_bytes)
            ),
            Shortage::Limited => format!(
                "the device had {} free, so that a limit of the process was reached: raise \
                 torch.cuda.set_per_process_memory_fraction, or hold less",
                bytes(error.device_free_bytes)
            ),
            Shortage::Short { missing_bytes } => format!(
                "{}, and the request needed {} more than both together: hold less, starting with \
                 the first line below",
                free_text(error),
                bytes(missing_bytes)
            ),
        };
    }
    let space = &device.space;
    let is_split = space.split_bytes >= LEAST_SPLIT
        && space.split_bytes as f64 >= MUCH_SPLIT * space.reserved_bytes as f64;
    if is_split && !grows {
        return format!(
            "{} of the reserved memory lie free in pieces between allocations: {EXPANDABLE}",
            bytes(space.split_bytes)
        );
    }
    match device.held.lines.first().map(|line| &line.kind) {
        Some(HolderKind::Line(_)) if device.peak.is_none() => {
            "start with the first line below to hold less".into()
        }
        Some(HolderKind::Line(_)) => "start with the first line below to lower the peak".into(),
        Some(HolderKind::Library(_) | HolderKind::NoPython) => {
            "the largest part has no line of yours: see the stacks below".into()
        }
        Some(HolderKind::Before) if device.history.is_truncated() => {
            "raise max_entries of torch.cuda.memory._record_memory_history()".into()
        }
        Some(HolderKind::Before) => {
            "start torch.cuda.memory._record_memory_history() before the model is created".into()
        }
        None => "nothing is allocated".into(),
    }
}

/// Returns how much memory was free that a request could have used.
fn free_text(error: &OutOfMemory) -> String {
    let pieces = match error.free_bytes {
        0 => "No memory was free between allocations".into(),
        free => format!(
            "{} were free between allocations, in pieces of at most {}",
            bytes(free),
            bytes(error.largest_free_bytes)
        ),
    };
    format!(
        "{pieces}, and {} on the device",
        bytes(error.device_free_bytes)
    )
}

/// Returns what to do about free memory that a request cannot use, by where most of it lies.
fn elsewhere_hint(free: &FreeElsewhere) -> String {
    let most = free.private_pool_bytes.max(free.other_stream_bytes);
    let most = most.max(free.other_size_bytes);
    let remedy = if most == free.private_pool_bytes {
        "let CUDA graphs share a pool, or delete those that are not used any more"
    } else if most == free.other_stream_bytes {
        "allocate large tensors on one stream"
    } else {
        "hold less, first in the lines below"
    };
    let places = elsewhere(free).join(" and ");
    format!("{places}, where the request cannot use it: {remedy}")
}

/// Returns where free memory lay that a request could not use, one text for each place.
fn elsewhere(free: &FreeElsewhere) -> Vec<String> {
    let places = [
        (free.private_pool_bytes, "in private pools"),
        (free.other_stream_bytes, "on other streams"),
        (
            free.other_size_bytes,
            "in segments for requests of another size",
        ),
    ];
    let places = places.into_iter().filter(|(amount, _)| *amount > 0);
    let texts = places.map(|(amount, place)| format!("{} lay free {place}", bytes(amount)));
    texts.collect()
}

fn push_sums(text: &mut String, device: &DeviceMemory) {
    if device.peak.is_some() {
        let _ = writeln!(text, "{:12} {:>12} {:>12}", "", "peak", "end");
    } else {
        let _ = writeln!(text, "{:12} {:>12}", "", "now");
    }
    let rows = [
        (
            "allocated",
            device.peak.map(|peak| peak.allocated_bytes),
            device.at_end.allocated_bytes,
        ),
        (
            "reserved",
            device.peak_reserved_bytes,
            device.at_end.reserved_bytes,
        ),
    ];
    for (name, peak, end) in rows {
        let peak = peak.map_or_else(String::new, |peak| format!("{:>12} ", bytes(peak)));
        let _ = writeln!(text, "{name:12} {peak}{:>12}", bytes(end));
    }
}

/// Returns what a reader has to know about the numbers of a device.
pub(super) fn snapshot_notes(device: &DeviceMemory) -> Vec<String> {
    let history = &device.history;
    let mut notes = Vec::new();
    if !history.is_there() {
        notes.push(
            "the snapshot has no history, so that only the memory at its time is known: call \
             torch.cuda.memory._record_memory_history() before the work, to know the peak"
                .into(),
        );
        return notes;
    }
    if history.is_truncated() {
        notes.push(format!(
            "the history is cut: {} were recorded earlier, but their entries were overwritten \
             (max_entries) or cleared. An earlier peak would not be seen",
            bytes(history.overwritten_bytes)
        ));
    } else if history.before_bytes > 0 {
        notes.push(format!(
            "{} are from before the history, which begins after them; an earlier peak would not \
             be seen",
            bytes(history.before_bytes)
        ));
    }
    let is_said = history.is_truncated() || history.before_bytes > 0;
    if history.before_reserved_bytes > 0 && !is_said {
        notes.push(format!(
            "{} were reserved where the history begins, so that memory was allocated before it; an \
             earlier peak would not be seen",
            bytes(history.before_reserved_bytes)
        ));
    }
    if history.contradictions > 0 {
        notes.push(format!(
            "{} of the history contradict the blocks or each other, so amounts are not exact",
            counted(history.contradictions, "record")
        ));
    }
    if history.unknown_entries > 0 {
        notes.push(format!(
            "{} of the history are of unknown kinds and were left out",
            counted(history.unknown_entries, "record")
        ));
    }
    notes
}

fn push_error(text: &mut String, error: &OutOfMemory) {
    let when = error.time_us.map_or_else(String::new, |time| {
        format!(" {:.3} ms into the history", time as f64 / 1e3)
    });
    let head = format!("out of memory{when}: {}", error_facts(error));
    push_wrapped(text, &head, Some(WIDTH));
    push_frames(text, &error.frames, error.frames_left_out);
    push_held(text, "held then", &error.held, error.allocated_bytes);
}

/// Returns the request and the state of the memory at an out-of-memory error.
pub(super) fn error_facts(error: &OutOfMemory) -> String {
    let pieces = match error.free_bytes {
        0 => "nothing free between allocations for such a request".into(),
        free => format!(
            "{} free in pieces of at most {}",
            bytes(free),
            bytes(error.largest_free_bytes)
        ),
    };
    let elsewhere = elsewhere(&error.free_elsewhere);
    let elsewhere = elsewhere.iter().map(|place| format!("; {place}"));
    let elsewhere: String = elsewhere.collect();
    format!(
        "{} asked for; {} allocated, {} reserved, {pieces}, {} free on the device{elsewhere}",
        bytes(error.requested_bytes),
        bytes(error.allocated_bytes),
        bytes(error.reserved_bytes),
        bytes(error.device_free_bytes)
    )
}

fn push_held(text: &mut String, title: &str, held: &HeldBy, all: u64) {
    if held.lines.is_empty() {
        return;
    }
    push_line(text, &format!("{title}, by line:"));
    for line in held.lines.iter().take(LINES) {
        let blocks = counted(line.blocks, "block");
        let amounts = format!(
            "{:>12} {:>6}  {blocks:>10}  ",
            bytes(line.bytes),
            share(line.bytes, all)
        );
        let room = WIDTH.saturating_sub(characters(&amounts));
        let _ = writeln!(text, "{amounts}{}", fitted(&line.kind, room));
    }
    let more = held.lines.len().saturating_sub(LINES) as u64 + held.lines_left_out;
    if more > 0 {
        let rest = held.lines.iter().skip(LINES).map(|line| line.bytes);
        let rest = rest.fold(held.lines_left_out_bytes, u64::saturating_add);
        let _ = writeln!(
            text,
            "{:>12} {:>6}  and {more} more",
            bytes(rest),
            share(rest, all)
        );
    }
}

fn push_stacks(text: &mut String, device: &DeviceMemory) {
    let mut stacks = device
        .held
        .stacks
        .iter()
        .filter(|stack| !stack.frames.is_empty())
        .peekable();
    if stacks.peek().is_none() {
        return;
    }
    let title = format!("held {}, by stack, innermost frame first:", moment(device));
    push_line(text, &title);
    for stack in stacks.take(STACKS) {
        let blocks = counted(stack.blocks, "block");
        let _ = writeln!(text, "{:>12}  {blocks}", bytes(stack.bytes));
        push_frames(text, &stack.frames, stack.frames_left_out);
    }
}

/// Writes the innermost frames of Python code, or of any code if there are none.
fn push_frames(text: &mut String, frames: &[String], left_out: u64) {
    let is_python = |frame: &&String| Place::parse(frame).is_some_and(|place| place.is_python());
    let mut shown: Vec<&String> = frames.iter().filter(is_python).collect();
    if shown.is_empty() {
        shown = frames.iter().collect();
    }
    for frame in shown.iter().take(FRAMES) {
        let _ = writeln!(text, "{:14}{}", "", tail(&visible(frame), WIDTH - 14));
    }
    let more = (shown.len().saturating_sub(FRAMES) as u64).saturating_add(left_out);
    if more > 0 {
        let _ = writeln!(text, "{:14}and {}", "", counted(more, "outer frame"));
    }
}

fn push_space(text: &mut String, device: &DeviceMemory) {
    let space = &device.space;
    if space.reserved_bytes == 0 {
        return;
    }
    push_line(text, "reserved memory at the end:");
    let pieces = counted(space.split_blocks, "piece");
    let rows = [
        (space.allocated_bytes, "in use".to_owned()),
        (
            space.awaiting_free_bytes,
            "awaiting the end of work on other streams".into(),
        ),
        (
            space.cached_bytes,
            "free, and returned by torch.cuda.empty_cache()".into(),
        ),
        (
            space.private_free_bytes,
            "free in private pools, for requests of these pools only".into(),
        ),
        (
            space.split_bytes,
            format!("free in {pieces} between allocations"),
        ),
    ];
    for (amount, what) in rows {
        if amount > 0 {
            let _ = writeln!(
                text,
                "{:>12} {:>6}  {what}",
                bytes(amount),
                share(amount, space.reserved_bytes)
            );
        }
    }
    let largest = format!(
        "largest free block {}; {} of the memory in use are rounding",
        bytes(space.largest_free_bytes),
        bytes(space.rounding_bytes)
    );
    push_line(text, &cut(&largest, Some(WIDTH)));
    if space.private_bytes > 0 {
        let private = bytes(space.private_bytes);
        push_line(
            text,
            &format!("{private} belong to private pools, such as those of CUDA graphs"),
        );
    }
}

/// Returns the place that memory was allocated at, if it is one.
pub(super) fn kind_text(kind: &HolderKind) -> Option<String> {
    let text = |place: &CodePlace| {
        visible(&format!(
            "{} ({}:{})",
            place.function, place.file, place.line
        ))
        .into_owned()
    };
    match kind {
        HolderKind::Line(place) | HolderKind::Library(place) => Some(text(place)),
        HolderKind::NoPython | HolderKind::Before => None,
    }
}

/// Returns the place in at most `width` characters, if the end of its path suffices for that, or why
/// there is none.
fn fitted(kind: &HolderKind, width: usize) -> String {
    match kind {
        HolderKind::Line(place) | HolderKind::Library(place) => {
            let around = format!("{} (:{})", place.function, place.line);
            let room = width.saturating_sub(characters(&around)).max(12);
            let CodePlace { function, line, .. } = place;
            let place = format!("{function} ({}:{line})", tail(&place.file, room));
            cut(&visible(&place), Some(width))
        }
        HolderKind::NoPython | HolderKind::Before => unknown_text(kind).into(),
    }
}

/// Returns why no place is known, as the end of a sentence.
pub(super) const fn unknown_text(kind: &HolderKind) -> &'static str {
    match kind {
        HolderKind::Line(_) | HolderKind::Library(_) => "",
        HolderKind::NoPython => "without Python code, as in the backward pass",
        HolderKind::Before => "from before the history",
    }
}

pub(super) fn bytes(bytes: u64) -> String {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    memory_text(bytes).trim().to_owned()
}

pub(super) fn share(part: u64, all: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / all.max(1) as f64)
}

/// Returns the end of a text, which has the name of a file and the line, if all of it does not fit.
fn tail(text: &str, width: usize) -> String {
    let length = characters(text);
    if length <= width {
        return text.into();
    }
    let kept = text.chars().skip(length + 3 - width);
    "...".chars().chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_that_cannot_be_used_is_named_with_its_place() {
        let free = FreeElsewhere {
            private_pool_bytes: 2 << 30,
            other_stream_bytes: 1 << 20,
            ..FreeElsewhere::default()
        };
        assert_eq!(
            elsewhere_hint(&free),
            "2.00 GB lay free in private pools and 1.00 MB lay free on other streams, where the \
             request cannot use it: let CUDA graphs share a pool, or delete those that are not \
             used any more"
        );
    }

    #[test]
    fn long_paths_keep_their_ends() {
        assert_eq!(tail("/a/b/train.py(1): step", 12), "...(1): step");
        assert_eq!(tail("short", 12), "short");
    }
}
