//! The contents of a trace as text: steps, threads, devices, counts, loss, repairs and metadata.

use mindprof_analyze::microseconds;
use mindprof_answers::{Step, Track};
use mindprof_formats::Info;
use mindprof_model::{DeviceKind, Nanos, Profile};

use crate::grid::{Align, cut, grid, push_line};
use crate::number::time_text;
use crate::table::loss_texts;
use crate::visible::visible;

#[cfg(test)]
mod tests;

/// The maximum width of a value of metadata.
const METADATA_WIDTH: usize = 80;

/// Returns the contents of a trace as text, as `mindprof info` prints it.
pub fn info_text(info: &Info<'_>) -> String {
    let mut text = String::new();
    let (profile, summary) = (info.profile, info.summary);
    push_line(&mut text, &format!("Span: {}", time(profile.span())));
    push_line(&mut text, &format!("Events: {}", profile.events().len()));
    for (category, count) in info.categories() {
        push_line(&mut text, &format!("  {}: {count}", visible(&category)));
    }
    let memory = profile.memory().len();
    if memory > 0 {
        push_line(&mut text, &format!("Memory records: {memory}"));
    }
    push_tracks(&mut text, profile, "Threads", &summary.threads);
    push_tracks(&mut text, profile, "Streams", &summary.streams);
    push_steps(&mut text, &summary.steps);
    if let Some(work) = info.work {
        push_line(
            &mut text,
            &format!("\nSelf CPU time total: {}", time(work.self_cpu)),
        );
        let imports = time(work.left_out.imports);
        push_line(
            &mut text,
            &format!(
                "  left out: imports {imports}, step ranges {}",
                work.left_out.step_ranges
            ),
        );
    }
    let metadata: Vec<_> = profile.metadata().iter().collect();
    if !metadata.is_empty() {
        push_line(&mut text, "\nMetadata:");
        for (key, value) in metadata {
            let words: Vec<&str> = value.split_whitespace().collect();
            let value = cut(&words.join(" "), Some(METADATA_WIDTH));
            let line = format!("  {}: {}", visible(key), visible(&value));
            push_line(&mut text, &line);
        }
    }
    let loss = profile.loss();
    if let [one] = &loss_texts(loss)[..] {
        push_line(&mut text, &format!("\nEvents lost: {one}"));
    } else {
        push_line(&mut text, &format!("\nEvents lost: {}", loss.total()));
        for cause in loss_texts(loss) {
            push_line(&mut text, &format!("  {cause}"));
        }
    }
    push_line(&mut text, &format!("Repairs: {}", info.repairs.total()));
    for (_, _, sentence) in info.repairs.iter() {
        push_line(&mut text, &format!("  {sentence}"));
    }
    for (name, count) in info.unknown_categories {
        let line = format!(
            "Unknown category, shown as CPU events: {count} of {}",
            visible(name)
        );
        push_line(&mut text, &line);
    }
    for (name, count) in info.set_aside.by_name() {
        push_line(&mut text, &format!("Kept as they are: {count} {name}"));
    }
    for (name, count) in info.left_out.by_name() {
        push_line(&mut text, &format!("Not in the profile: {count} {name}"));
    }
    text
}

fn push_tracks(text: &mut String, profile: &Profile, title: &str, tracks: &[Track]) {
    if tracks.is_empty() {
        return;
    }
    let is_on_cpu = tracks[0].device == DeviceKind::Cpu;
    let (process, number) = if is_on_cpu {
        ("Process", "Thread")
    } else {
        ("Device", "Stream")
    };
    let rows: Vec<Vec<String>> = tracks
        .iter()
        .map(|track| {
            let thread = &profile.threads()[track.thread.index()];
            let process = if is_on_cpu {
                thread.process.to_string()
            } else {
                format!("{}:{}", profile.device_name(track.device), thread.process)
            };
            vec![
                process,
                thread
                    .number()
                    .map_or_else(String::new, |at| at.to_string()),
                profile.strings().text(thread.name).to_owned(),
                track.events.to_string(),
                time(track.busy),
            ]
        })
        .collect();
    let columns = [
        (process, Align::Right),
        (number, Align::Right),
        ("Name", Align::Left),
        ("Events", Align::Right),
        ("Busy", Align::Right),
    ];
    push_line(text, &format!("\n{title}: {}", tracks.len()));
    push_indented(text, &grid(&columns, &rows));
}

fn push_steps(text: &mut String, steps: &[Step]) {
    if steps.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = steps
        .iter()
        .map(|step| {
            vec![
                step.number.to_string(),
                time(step.start),
                time(step.duration),
            ]
        })
        .collect();
    let columns = ["Step", "Start", "Duration"].map(|header| (header, Align::Right));
    push_line(text, &format!("\nSteps: {}", steps.len()));
    push_indented(text, &grid(&columns, &rows));
}

fn push_indented(text: &mut String, block: &str) {
    for line in block.lines() {
        push_line(text, &format!("  {line}"));
    }
}

fn time(time: Nanos) -> String {
    time_text(microseconds(time), None)
}
