//! A flame graph as a picture: one svg that can be searched and zoomed in any browser.

use std::io::{BufWriter, Write};
use std::path::Path;

use inferno::flamegraph::color::{MultiPalette, Palette};
use inferno::flamegraph::{Options, from_lines};
use mindprof_analyze::{Analysis, Folded, StackMetric};
use mindprof_formats::{Error, Result, folded_frame, write_file};
use mindprof_model::{Category, Profile, StringId};

/// Writes a flame graph: who called, then the scopes inside of each other, as wide as what was
/// spent in them.
///
/// # Errors
/// When nothing was spent, or `out` cannot be written to.
pub fn write_flamegraph(analysis: &Analysis, metric: StackMetric, out: impl Write) -> Result<()> {
    let folded = Folded::build(analysis, metric);
    let strings = analysis.profile().strings();
    let colours = colours(analysis.profile());
    let text = |frame: StringId| (strings.text(frame), colours[frame.index()]);
    let lines: Vec<String> = folded
        .iter()
        .map(|(path, weight)| line(&folded.frames(path), weight.0, text))
        .collect();
    if lines.is_empty() {
        return Err(Error::NothingSpent);
    }
    let mut options = Options::default();
    options.title = match metric {
        StackMetric::SelfCpuTime => "CPU time".into(),
        StackMetric::SelfDeviceTime => "Device time".into(),
    };
    options.subtitle = Some(COLOURS.into());
    options.colors = Palette::Multi(MultiPalette::Java);
    options.count_name = "us".into();
    // Lines weigh nanoseconds, which are whole; the picture says microseconds.
    options.factor = 1e-3;
    options.hash = true;
    // It writes piece by piece, and a writer behind a reference cannot be buffered twice for
    // nothing.
    let mut buffered = BufWriter::new(out);
    from_lines(
        &mut options,
        lines.iter().map(String::as_str),
        &mut buffered,
    )?;
    Ok(buffered.flush()?)
}

/// Writes a file with a flame graph.
///
/// # Errors
/// When nothing was spent, or the file cannot be written; the error names it.
pub fn write_flamegraph_file(analysis: &Analysis, metric: StackMetric, path: &Path) -> Result<()> {
    write_file(path, |out| write_flamegraph(analysis, metric, out))
}

/// What the colours stand for. The palette takes them from a mark behind a name, which the picture
/// does not show.
const COLOURS: &str =
    "green: Python, blue: modules and named ranges, orange: operators and kernels";
const PYTHON: &str = "_[j]";
const NAMED: &str = "_[i]";
const OPERATOR: &str = "_[k]";

/// Returns the mark of each name: a frame that is no event's name is a line of Python.
fn colours(profile: &Profile) -> Vec<&'static str> {
    let of_text = |text: &str| {
        if text.starts_with("nn.Module: ") {
            NAMED
        } else {
            PYTHON
        }
    };
    let mut colours: Vec<_> = profile.strings().iter().map(of_text).collect();
    for event in profile.events() {
        colours[event.name.index()] = match event.category {
            Category::PythonFunction => continue,
            Category::Annotation | Category::DeviceAnnotation => NAMED,
            Category::Operator | Category::Runtime | Category::Kernel | Category::Other => OPERATOR,
        };
    }
    colours
}

/// Names keep their blanks here: only the last one of a line separates.
fn line<'a>(
    frames: &[StringId],
    weight: u64,
    text: impl Fn(StringId) -> (&'a str, &'a str),
) -> String {
    let mut line = String::new();
    for (position, &frame) in frames.iter().enumerate() {
        if position > 0 {
            line.push(';');
        }
        let (text, colour) = text(frame);
        let letters = text.chars().zip(folded_frame(text));
        line.extend(letters.map(|(letter, folded)| if letter == ' ' { ' ' } else { folded }));
        line.push_str(colour);
    }
    line.push(' ');
    line.push_str(itoa::Buffer::new().format(weight));
    line
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    #[test]
    fn the_picture_shows_names_and_microseconds() {
        let profile = Timeline::draw(|time| {
            time.annotation("my <step>", |time| {
                time.idle(1_000);
                time.op("aten::mm", 3_000);
            });
        });
        let mut out = Vec::new();
        write_flamegraph(
            &Analysis::build(profile),
            StackMetric::SelfCpuTime,
            &mut out,
        )
        .unwrap();
        let picture = String::from_utf8(out).unwrap();
        assert!(picture.contains("<svg"), "{picture}");
        assert!(
            picture.contains("my &lt;step&gt; (4 us, 100.00%)"),
            "{picture}"
        );
        assert!(picture.contains("aten::mm (3 us, 75.00%)"), "{picture}");
        assert!(
            !picture.contains("_["),
            "marks of colours are not shown: {picture}"
        );
    }

    #[test]
    fn a_profile_in_which_nothing_was_spent_has_no_picture() {
        let analysis = Analysis::build(Timeline::draw(|_| {}));
        let found = write_flamegraph(&analysis, StackMetric::SelfCpuTime, Vec::new());
        assert!(matches!(found, Err(Error::NothingSpent)));
    }
}
