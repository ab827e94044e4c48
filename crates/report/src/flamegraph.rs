//! Flame graphs as SVG, which any browser can search and zoom.
//!
//! The picture is drawn by `inferno` from the folded paths of a profile. Colours tell Python code,
//! named ranges and operators apart.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use inferno::flamegraph::color::{MultiPalette, Palette};
use inferno::flamegraph::{Options, from_lines};
use mindprof_analyze::{Analysis, Folded, PATH_LEVELS, StackMetric};
use mindprof_model::{Category, Nanos, Place, Profile, StringId, StringTable};
use mindprof_trace::write_file;

use crate::error::Result;
use crate::steps::short_time;
use crate::visible::visible;

/// The number of levels to draw, which is also the number that folded stacks have.
const LEVELS: usize = PATH_LEVELS;
/// Frames with less than this fraction of the total time are too narrow to be drawn.
const PARTS: u64 = 10_000;

/// Writes a flame graph: Python callers, then nested scopes. The width of a frame is the time spent
/// in it.
///
/// # Errors
/// Fails if the profile has no events with self time, or if `out` cannot be written to.
pub fn write_flamegraph(analysis: &Analysis, metric: StackMetric, out: impl Write) -> Result<()> {
    let folded = Folded::build(analysis, metric);
    let picture = FlameGraph {
        metric,
        ..FlameGraph::default()
    };
    draw_flamegraph(&folded, analysis.profile(), picture, out)
}

/// The contents of a flame graph, which its title and its subtitle report.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlameGraph {
    /// The metric that gives frames their width.
    pub metric: StackMetric,
    /// The time of waiting threads that is not in the picture.
    pub waited: Nanos,
}

/// Writes a flame graph of paths that are folded already. They must be of `profile`.
///
/// # Errors
/// Fails if the paths have no time, or if `out` cannot be written to.
pub fn draw_flamegraph(
    folded: &Folded<'_>,
    profile: &Profile,
    picture: FlameGraph,
    out: impl Write,
) -> Result<()> {
    let depth = folded.depth();
    let folded = folded.cut(LEVELS, Nanos(folded.total().0 / PARTS));
    let names = names(folded.strings(), profile);
    let lines: Vec<String> = folded
        .iter()
        .map(|(path, weight)| line(&folded.frames(path), weight.0, &names))
        .collect();
    if lines.is_empty() {
        return Err(mindprof_formats::Error::NothingSpent.into());
    }
    let mut options = Options::default();
    options.title = match picture.metric {
        StackMetric::SelfCpuTime => "CPU time".into(),
        StackMetric::SelfDeviceTime => "Device time".into(),
    };
    let mut subtitle = COLOURS.to_owned();
    if depth > LEVELS {
        let _ = write!(
            subtitle,
            "; first {LEVELS} of {depth} levels, including the time below them"
        );
    }
    if picture.waited > Nanos::ZERO {
        let waited = short_time(picture.waited);
        let _ = write!(subtitle, "; without {waited} that other threads waited");
    }
    options.subtitle = Some(subtitle);
    options.colors = Palette::Multi(MultiPalette::Java);
    options.count_name = "us".into();
    // Lines are weighted in nanoseconds, which are whole numbers; the picture shows microseconds.
    options.factor = 1e-3;
    options.hash = true;
    let mut picture = Vec::new();
    let lines = lines.iter().map(String::as_str);
    from_lines(&mut options, lines, &mut picture)?;
    write_with_dark(&picture, out)
}

/// The style for dark mode: a dark background with light text. Frames keep their bright colours and
/// dark text.
const DARK: &str = "\
@media (prefers-color-scheme: dark) {
#background stop { stop-color:#1c1c1e; }
svg > text { fill:#e6e6e6; }
#frames > *:hover { stroke:white; }
}
";

/// Writes a picture with a style for dark mode added to its own.
fn write_with_dark(picture: &[u8], mut out: impl Write) -> Result<()> {
    const END: &[u8] = b"</style>";
    let end = picture.windows(END.len()).position(|part| part == END);
    let (before, after) = picture.split_at(end.unwrap_or(picture.len()));
    out.write_all(before)?;
    if end.is_some() {
        out.write_all(DARK.as_bytes())?;
    }
    out.write_all(after)?;
    Ok(out.flush()?)
}

/// Writes a flame graph to a file, as [`write_flamegraph`] does.
///
/// # Errors
/// Fails if the profile has no events with self time, or if the file cannot be written. The error
/// names the file.
pub fn write_flamegraph_file(analysis: &Analysis, metric: StackMetric, path: &Path) -> Result<()> {
    write_file(path, |out| write_flamegraph(analysis, metric, out))
}

/// The legend of the colours. The palette picks a colour by the suffix of a name, and the picture
/// does not show the suffix.
const COLOURS: &str =
    "green: Python, blue: modules and named ranges, orange: operators and kernels";
const PYTHON: &str = "_[j]";
const NAMED: &str = "_[i]";
const OPERATOR: &str = "_[k]";

/// Returns the suffix of each name. A frame that is not the name of an event is Python code.
fn colours(strings: &StringTable, profile: &Profile) -> Vec<&'static str> {
    let of_text = |text: &str| {
        if text.starts_with("nn.Module: ") {
            NAMED
        } else {
            PYTHON
        }
    };
    let mut colours: Vec<_> = strings.iter().map(of_text).collect();
    for event in profile.events() {
        colours[event.name.index()] = match event.category {
            Category::PythonFunction => continue,
            Category::Annotation | Category::DeviceAnnotation => NAMED,
            Category::Operator | Category::Runtime | Category::Kernel | Category::Other => OPERATOR,
        };
    }
    colours
}

/// Returns each name as it appears in lines, with its suffix. Names may contain blanks, because only
/// the last blank of a line is a separator.
fn names(strings: &StringTable, profile: &Profile) -> Vec<String> {
    let names = strings.iter().zip(colours(strings, profile));
    let name = |(text, colour): (&str, &str)| visible(&label(text)).replace(';', "_") + colour;
    names.map(name).collect()
}

/// Returns a name with the function first: the end of a narrow label is cut off.
fn label(text: &str) -> Cow<'_, str> {
    match Place::parse(text) {
        Some(place) => format!("{} ({}:{})", place.function, place.file, place.line).into(),
        None => text.into(),
    }
}

fn line(frames: &[StringId], weight: u64, names: &[String]) -> String {
    let names: Vec<&str> = frames
        .iter()
        .map(|frame| names[frame.index()].as_str())
        .collect();
    format!("{} {weight}", names.join(";"))
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    #[test]
    fn labels_begin_with_the_function() {
        assert_eq!(label("src/train.py(12): step"), "step (src/train.py:12)");
        assert_eq!(label("aten::mm"), "aten::mm");
    }

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
        let dark = picture.find("prefers-color-scheme: dark").unwrap();
        assert!(dark < picture.find("</style>").unwrap(), "{picture}");
        assert!(
            picture.contains("my &lt;step&gt; (4 us, 100.00%)"),
            "{picture}"
        );
        assert!(picture.contains("aten::mm (3 us, 75.00%)"), "{picture}");
        assert!(!picture.contains("_["), "suffixes are not shown: {picture}");
    }

    fn picture(profile: Profile) -> String {
        let mut out = Vec::new();
        let analysis = Analysis::build(profile);
        write_flamegraph(&analysis, StackMetric::SelfCpuTime, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn control_characters_of_names_are_not_in_the_picture() {
        let picture = picture(Timeline::draw(|time| {
            time.op("a\u{1b}[31m\0b\u{ffff}\n;c", 1_000);
        }));
        assert!(picture.contains(r"a\u001b[31m\u0000b\uffff\n_c (1 us"));
        let is_xml = |letter: char| match letter {
            '\t' | '\n' | '\r' => true,
            letter => letter >= ' ' && !matches!(letter, '\u{fffe}' | '\u{ffff}'),
        };
        assert!(picture.chars().all(is_xml));
    }

    #[test]
    fn the_picture_says_which_waits_it_leaves_out() {
        let analysis = Analysis::build(Timeline::draw(|time| time.op("aten::mm", 3_000)));
        let folded = Folded::build(&analysis, StackMetric::SelfCpuTime);
        let picture = FlameGraph {
            waited: Nanos(1_500_000),
            ..FlameGraph::default()
        };
        let mut out = Vec::new();
        draw_flamegraph(&folded, analysis.profile(), picture, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("; without 1.50 ms that other threads waited"));
    }

    fn deep(time: &mut Timeline, depth: usize) {
        time.idle(1_000);
        if depth > 1 {
            // An only child with the name of its parent would be merged into it.
            let name = ["f", "g"][depth % 2];
            time.scope(name, |time| deep(time, depth - 1));
        }
    }

    #[test]
    fn a_picture_does_not_grow_with_levels_that_nobody_sees() {
        let [size, twice] = [LEVELS, 2 * LEVELS].map(|depth| {
            let picture = picture(Timeline::draw(|time| deep(time, depth + 1)));
            assert_eq!(
                picture.contains("levels, including the time below"),
                depth > LEVELS
            );
            picture.len()
        });
        assert!(twice.abs_diff(size) * 20 < size, "{size} {twice}");
    }

    #[test]
    fn a_profile_in_which_nothing_was_spent_has_no_picture() {
        let analysis = Analysis::build(Timeline::draw(|_| {}));
        let found = write_flamegraph(&analysis, StackMetric::SelfCpuTime, Vec::new());
        assert!(matches!(
            found,
            Err(crate::Error::Format(mindprof_formats::Error::NothingSpent))
        ));
    }
}
