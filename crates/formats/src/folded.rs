//! Folded stacks in torch's layout: a line per event with its callers, outermost first, and its self
//! time.
//!
//! Tools that draw flame graphs read such lines and sum up those with equal stacks.

use std::io::Write;
use std::path::Path;

use mindprof_analyze::{Analysis, StackMetric, shown_frames, stack_weights};
use mindprof_model::{Profile, StackId};

use crate::error::{Error, Result};
use mindprof_trace::write_file;

/// torch's names of the metrics that stacks can be weighted by.
pub const STACK_METRICS: [&str; 4] = [
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
];

/// Parses torch's name of a stack metric. The name of any device means devices of all kinds.
///
/// # Errors
/// Fails if the name is not one of [`STACK_METRICS`].
pub fn stack_metric(name: &str) -> Result<StackMetric> {
    match STACK_METRICS.iter().position(|known| *known == name) {
        Some(0) => Ok(StackMetric::SelfCpuTime),
        Some(_) => Ok(StackMetric::SelfDeviceTime),
        None => Err(Error::UnknownStackMetric { name: name.into() }),
    }
}

/// Writes folded stacks as torch does: lines such as `outer;inner 25`, with whole microseconds.
///
/// Events without callers and events shorter than a microsecond have no line.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_folded(analysis: &Analysis, metric: StackMetric, mut out: impl Write) -> Result<()> {
    let mut texts = StackTexts::new(analysis.profile());
    for (stack, weight) in stack_weights(analysis, metric) {
        texts.write_line(stack, weight.0 / 1000, &mut out)?;
    }
    Ok(())
}

/// Writes the lines of [`write_folded`], followed by a line for each stack whose events are all
/// shorter than a microsecond, with their sum rounded up.
///
/// Without these lines, code that only calls fast operators would be missing from a flame graph.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_folded_with_short(
    analysis: &Analysis,
    metric: StackMetric,
    mut out: impl Write,
) -> Result<()> {
    let mut texts = StackTexts::new(analysis.profile());
    let mut short = vec![Some(0); analysis.profile().stacks().len()];
    for (stack, weight) in stack_weights(analysis, metric) {
        let micros = weight.0 / 1000;
        let sum = &mut short[stack.index()];
        *sum = sum.filter(|_| micros == 0).map(|sum| sum + weight.0);
        texts.write_line(stack, micros, &mut out)?;
    }
    for (index, sum) in short.into_iter().enumerate() {
        let micros = sum.unwrap_or(0).div_ceil(1000);
        texts.write_line(StackId::from_index(index), micros, &mut out)?;
    }
    Ok(())
}

/// Writes folded stacks to a file, as [`write_folded`] does.
///
/// # Errors
/// Fails if the file cannot be written. The error names the file.
pub fn write_folded_file(analysis: &Analysis, metric: StackMetric, path: &Path) -> Result<()> {
    write_file(path, |out| write_folded(analysis, metric, out))
}

/// Returns a frame with every character that separates frames or lines replaced by an underscore.
pub(crate) fn folded_frame(frame: &str) -> impl Iterator<Item = char> {
    frame.chars().map(|letter| match letter {
        ' ' | ';' | '\t' | '\n' => '_',
        letter => letter,
    })
}

/// The text of each stack, with a trailing space. Texts are built when they are first needed.
struct StackTexts<'a> {
    profile: &'a Profile,
    texts: Vec<Option<Box<str>>>,
}

impl<'a> StackTexts<'a> {
    fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            texts: vec![None; profile.stacks().len()],
        }
    }

    /// Writes the line of a stack, unless its weight is zero or it has no visible frames.
    fn write_line(&mut self, stack: StackId, weight: u64, out: &mut impl Write) -> Result<()> {
        let text = if weight == 0 { "" } else { self.of(stack) };
        if !text.is_empty() {
            out.write_all(text.as_bytes())?;
            out.write_all(itoa::Buffer::new().format(weight).as_bytes())?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn of(&mut self, stack: StackId) -> &str {
        let profile = self.profile;
        self.texts[stack.index()].get_or_insert_with(|| stack_text(profile, stack).into())
    }
}

/// Returns the text of a stack, which is empty if the stack has no visible frames.
fn stack_text(profile: &Profile, stack: StackId) -> String {
    let frames: Vec<_> = shown_frames(profile, stack).collect();
    let mut text = String::new();
    for (position, &frame) in frames.iter().rev().enumerate() {
        if position > 0 {
            text.push(';');
        }
        text.extend(folded_frame(profile.strings().text(frame)));
    }
    if !frames.is_empty() {
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Category, DeviceKind, Event, Nanos, Part, StringTable, Thread};

    use super::*;

    /// Returns an analysis of operators: their frames, outermost first, and their nanoseconds, one
    /// after the other.
    fn analysis(events: &[(&[&str], u64)]) -> Analysis {
        let mut builder = Part::new();
        let thread = builder.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        let name = builder.strings.intern("aten::mm");
        let mut start = 0;
        for &(frames, duration) in events {
            let mut event = Event::new(
                Category::Operator,
                name,
                thread,
                Nanos(start),
                Nanos(duration),
            );
            for frame in frames {
                let frame = builder.strings.intern(frame);
                event.stack = builder.stacks.push(event.stack, frame);
            }
            builder.add_event(event);
            start += duration;
        }
        Analysis::build(builder.into_profile().unwrap())
    }

    fn written(analysis: &Analysis) -> String {
        let mut out = Vec::new();
        write_folded(analysis, StackMetric::SelfCpuTime, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_has_frames_outermost_first_and_whole_microseconds() {
        let found = analysis(&[
            (&["main", "g;h.py(2): b\tar\n"], 10_999),
            (&["main"], 999),
            (&[], 5_000),
            (&["main"], 25_000),
            (&["main"], 25_000),
        ]);
        let expected = "main;g_h.py(2):_b_ar_ 10\nmain 25\nmain 25\n";
        assert_eq!(written(&found), expected);
    }

    #[test]
    fn frames_of_the_framework_are_not_shown() {
        let own = "torch/autograd/__init__.py(1): backward";
        let found = analysis(&[(&["main", own], 3_000), (&[own], 3_000)]);
        assert_eq!(written(&found), "main 3\n");
    }

    #[test]
    fn a_stack_whose_events_are_all_short_has_a_line_if_asked_for() {
        let analysis = analysis(&[
            (&["short"], 900),
            (&["long"], 2500),
            (&["short"], 700),
            (&["long"], 10),
            (&["nothing"], 0),
        ]);
        let mut text = Vec::new();
        write_folded_with_short(&analysis, StackMetric::SelfCpuTime, &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "long 2\nshort 2\n");
    }
}
