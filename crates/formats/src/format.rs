//! The file formats that profiles can be converted to: their names, file extensions and writers.
//!
//! `convert`, `slim` and the hints of the command line take their formats from [`Format`]. A new
//! format is a variant here, and the compiler names the matches to extend. Python has one export
//! method per format.

use std::io::Write;
use std::path::Path;

use mindprof_analyze::{Analysis, PATH_LEVELS, StackMetric};
use mindprof_model::{DeviceKind, Event, EventId, Profile};
use mindprof_trace::{
    Compression, EventOrder, TraceFormat, TraceOptions, write_perfetto, write_trace_with,
};

use crate::arrow::write_arrow;
use crate::csv::write_csv;
use crate::error::{Error, Result};
use crate::parquet::write_parquet;
use crate::paths::{write_callers, write_paths};
use crate::speedscope::write_speedscope;

/// A file format that a profile can be converted to.
///
/// The format is usually chosen by the extension of the output file, see [`Format::of`]. Each one
/// knows its name, its extensions and how to write itself; only Chrome traces can be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A Chrome trace in JSON, the format that is also read.
    Chrome,
    /// Perfetto's protobuf trace.
    Perfetto,
    /// A speedscope profile in JSON.
    Speedscope,
    /// Folded stacks, weighted by CPU time.
    Folded,
    /// A Parquet table with a row per event.
    Parquet,
    /// An Arrow IPC file with a row per event.
    Arrow,
    /// A CSV table with a row per event.
    Csv,
}

/// The result of writing a profile in some format.
///
/// A caller reports it to the user: how much was written, and which parts of the profile the format
/// could not represent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The number of units written.
    pub count: u64,
    /// The name of a unit: event, row or stack.
    pub unit: &'static str,
    /// Warnings about the trace, to be printed after its name and a colon.
    pub notes: Vec<String>,
}

/// The properties of a format.
struct Entry {
    name: &'static str,
    endings: &'static [&'static str],
    description: &'static str,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 7] = [
        Self::Chrome,
        Self::Perfetto,
        Self::Speedscope,
        Self::Folded,
        Self::Parquet,
        Self::Arrow,
        Self::Csv,
    ];

    /// Returns the name that selects the format on the command line.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the extensions of files in this format. A further `.gz` or `.zst` selects compression.
    pub const fn endings(self) -> &'static [&'static str] {
        self.entry().endings
    }

    /// Returns a short description for help texts.
    pub const fn description(self) -> &'static str {
        self.entry().description
    }

    /// Returns whether files in this format can be read.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Chrome)
    }

    /// Returns the trace format, or `None` if trace viewers cannot open files in this format.
    pub const fn trace(self) -> Option<TraceFormat> {
        match self {
            Self::Chrome => Some(TraceFormat::Chrome),
            Self::Perfetto => Some(TraceFormat::Perfetto),
            Self::Speedscope | Self::Folded | Self::Parquet | Self::Arrow | Self::Csv => None,
        }
    }

    /// Returns whether the format is text, which a terminal can show.
    pub const fn is_text(self) -> bool {
        match self {
            Self::Chrome | Self::Speedscope | Self::Folded | Self::Csv => true,
            Self::Perfetto | Self::Parquet | Self::Arrow => false,
        }
    }

    const fn entry(self) -> Entry {
        let (name, endings, description): (_, &[_], _) = match self {
            Self::Chrome => ("json", TraceFormat::Chrome.endings(), "a Chrome trace"),
            Self::Perfetto => (
                "pftrace",
                TraceFormat::Perfetto.endings(),
                "a Perfetto trace",
            ),
            Self::Speedscope => ("speedscope", &[".speedscope.json"], "a speedscope profile"),
            Self::Folded => (
                "folded",
                &[".folded", ".stacks.txt"],
                "folded stacks, weighted by CPU time",
            ),
            Self::Parquet => ("parquet", &[".parquet"], "a Parquet table of the events"),
            Self::Arrow => (
                "arrow",
                &[".arrow", ".feather"],
                "an Arrow table of the events",
            ),
            Self::Csv => ("csv", &[".csv"], "a CSV table of the events"),
        };
        Entry {
            name,
            endings,
            description,
        }
    }

    /// Returns the format of a file by its extension, ignoring case and the extension of a
    /// compression. Returns `None` if the extension is not known.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let (name, _) = Compression::split(&name);
        let length = |format: &Self| {
            let endings = format.endings().iter();
            let found = endings.filter(|ending| name.ends_with(**ending));
            found.map(|ending| ending.len()).max()
        };
        let found = Self::ALL.into_iter().filter(|one| length(one).is_some());
        // The longest extension wins, because `.speedscope.json` also ends in `.json`.
        found.max_by_key(length)
    }

    /// Writes a profile. Formats that store the name of a profile store `name`.
    ///
    /// # Errors
    /// Fails if `out` cannot be written to, or if the profile has nothing that the format can
    /// represent.
    pub fn write(self, profile: Profile, name: &str, out: &mut dyn Write) -> Result<Written> {
        let mut notes = Vec::from_iter(self.lack(&profile));
        let events = profile.events().len() as u64;
        let count = match self {
            Self::Chrome => {
                let options = TraceOptions {
                    order: EventOrder::Kind,
                    ..TraceOptions::default()
                };
                write_trace_with(&profile, name, &options, out).map(|()| events)?
            }
            Self::Perfetto => write_perfetto(&profile, out).map(|()| events)?,
            Self::Speedscope if events == 0 => return Err(Error::NothingSpent),
            Self::Speedscope => {
                write_speedscope(&Analysis::build(profile), name, out).map(|()| events)?
            }
            Self::Folded => write_folded_lines(&Analysis::build(profile), &mut notes, out)?,
            Self::Parquet => write_parquet(&self.rows_of(profile, &mut notes), out)?,
            Self::Arrow => write_arrow(&self.rows_of(profile, &mut notes), out)?,
            Self::Csv => write_csv(&self.rows_of(profile, &mut notes), out)?,
        };
        let unit = match self {
            Self::Chrome | Self::Perfetto | Self::Speedscope => "event",
            Self::Folded => "stack",
            Self::Parquet | Self::Arrow | Self::Csv => "row",
        };
        Ok(Written { count, unit, notes })
    }

    /// Analyses a profile that is written as rows, and notes which events and memory records have no
    /// row.
    fn rows_of(self, profile: Profile, notes: &mut Vec<String>) -> Analysis {
        let analysis = Analysis::build(profile);
        let format = self.name();
        let ids = (0..analysis.profile().events().len()).map(EventId::from_index);
        let (mut merged, mut hidden) = (0, 0);
        for id in ids.filter(|&id| !analysis.is_shown(id)) {
            let is_merged = analysis.tree().is_merged(id);
            *if is_merged { &mut merged } else { &mut hidden } += 1;
        }
        let records = analysis.profile().memory().len();
        let summed = records - analysis.memory().unclaimed().len();
        for (count, noun, why) in [
            (
                merged,
                "event",
                "an only child with the name of its parent is merged into it",
            ),
            (
                hidden,
                "event",
                "events of the profiler itself are not shown",
            ),
            (
                summed,
                "memory record",
                "the row of the enclosing event counts the bytes",
            ),
        ] {
            if count > 0 {
                let things = counted(count as u64, noun);
                notes.push(format!("{format} has no row for {things}: {why}"));
            }
        }
        analysis
    }

    /// Describes the records of a profile that the format cannot hold. Details of events are not
    /// counted. Returns `None` if it can hold all of them.
    fn lack(self, profile: &Profile) -> Option<String> {
        let memory = profile.memory().len();
        let others = profile.passthrough().unknown_events().len();
        let is_on_device =
            |event: &&Event| profile.threads()[event.thread.index()].device != DeviceKind::Cpu;
        let (on_device, memory) = match self {
            Self::Chrome | Self::Perfetto => return None,
            Self::Speedscope => (0, memory),
            // Folded stacks are weighted by CPU time.
            Self::Folded => (profile.events().iter().filter(is_on_device).count(), memory),
            Self::Parquet | Self::Arrow | Self::Csv => (0, 0),
        };
        let parts = [
            (on_device, "device event"),
            (memory, "memory record"),
            (others, "counter, flow or other event"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, noun)| counted(count as u64, noun))
            .collect();
        let format = self.name();
        (!parts.is_empty()).then(|| format!("{format} cannot hold {}", parts.join(", ")))
    }
}

/// Returns a number with its noun: `1 event`, `2 events`.
pub fn counted(count: u64, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{end}")
}

/// Writes the stacks of a profile, or the nesting of its scopes if it has no stacks, weighted by CPU
/// time. Returns the number of lines.
fn write_folded_lines(
    analysis: &Analysis,
    notes: &mut Vec<String>,
    out: &mut dyn Write,
) -> Result<u64> {
    let metric = StackMetric::SelfCpuTime;
    let written = if analysis.profile().stacks().is_empty() {
        notes.push(NO_STACKS.into());
        write_paths(analysis, metric, out)?
    } else {
        write_callers(analysis, metric, out)?
    };
    if written.lines == 0 {
        return Err(Error::NothingSpent);
    }
    if written.levels > PATH_LEVELS {
        notes.push(cut_levels(written.levels));
    }
    Ok(written.lines)
}

/// The warning for a trace without stacks, whose scopes are written instead.
pub const NO_STACKS: &str = "has no stacks (record with with_stack=True): scopes are shown instead";

/// Returns the warning for a trace with more levels of nesting than are written.
pub fn cut_levels(levels: usize) -> String {
    format!(
        "has {levels} levels: only the first {PATH_LEVELS} are shown, and include the time below them"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_the_format() {
        for format in Format::ALL {
            for ending in format.endings() {
                let upper = ending.to_uppercase();
                for name in [
                    format!("a{ending}"),
                    format!("b/a{ending}.gz"),
                    format!("A{upper}.GZ"),
                    format!("a{ending}.zst"),
                ] {
                    assert_eq!(Format::of(Path::new(&name)), Some(format), "{name}");
                }
            }
        }
        for name in ["a", "a.gz", "a.txt", "json", "a.json.bz2"] {
            assert_eq!(Format::of(Path::new(name)), None, "{name}");
        }
    }
}
