//! The formats that profiles are written in: how names of files end in each, whether it is read,
//! and who writes it.
//!
//! The program, the native module and the texts of errors ask here: a new format is one more entry.

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

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A Chrome trace, which is read too.
    Chrome,
    /// Perfetto's own.
    Perfetto,
    /// speedscope's.
    Speedscope,
    /// Folded stacks, weighed by time on the host.
    Folded,
    /// The events as a table, as Parquet.
    Parquet,
    /// The events as a table, as Arrow's own format of files.
    Arrow,
    /// The events as a table, as text.
    Csv,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// How many of its parts there are.
    pub count: u64,
    /// What one part is called: an event, a row, a stack.
    pub unit: &'static str,
    /// What who asked for it should know, as ends of a sentence about the trace.
    pub notes: Vec<String>,
}

/// What is known of a format.
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

    /// Returns the name that it is asked for by.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns how names of files in it end; a further `.gz` or `.zst` compresses.
    pub const fn endings(self) -> &'static [&'static str] {
        self.entry().endings
    }

    /// Says in a few words what it is.
    pub const fn description(self) -> &'static str {
        self.entry().description
    }

    /// Returns whether files in it are read again.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Chrome)
    }

    /// Returns the trace format, if it holds a whole profile as trace viewers open it.
    pub const fn trace(self) -> Option<TraceFormat> {
        match self {
            Self::Chrome => Some(TraceFormat::Chrome),
            Self::Perfetto => Some(TraceFormat::Perfetto),
            Self::Speedscope | Self::Folded | Self::Parquet | Self::Arrow | Self::Csv => None,
        }
    }

    /// Returns whether it is text that a terminal can show.
    pub const fn is_text(self) -> bool {
        match self {
            Self::Chrome | Self::Speedscope | Self::Folded | Self::Csv => true,
            Self::Perfetto | Self::Parquet | Self::Arrow => false,
        }
    }

    const fn entry(self) -> Entry {
        let (name, endings, description): (_, &[_], _) = match self {
            Self::Chrome => ("json", TraceFormat::Chrome.endings(), "a Chrome trace"),
            Self::Perfetto => ("pftrace", TraceFormat::Perfetto.endings(), "Perfetto's own"),
            Self::Speedscope => ("speedscope", &[".speedscope.json"], "speedscope"),
            Self::Folded => (
                "folded",
                &[".folded", ".stacks.txt"],
                "folded stacks, weighed by time on the host",
            ),
            Self::Parquet => (
                "parquet",
                &[".parquet"],
                "a table of the events, as Parquet",
            ),
            Self::Arrow => (
                "arrow",
                &[".arrow", ".feather"],
                "a table of the events, as Arrow",
            ),
            Self::Csv => ("csv", &[".csv"], "a table of the events, as text"),
        };
        Entry {
            name,
            endings,
            description,
        }
    }

    /// Returns the format that the name of a file says, compressed or not, in letters of any case.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let (name, _) = Compression::split(&name);
        let length = |format: &Self| {
            let endings = format.endings().iter();
            let found = endings.filter(|ending| name.ends_with(**ending));
            found.map(|ending| ending.len()).max()
        };
        let found = Self::ALL.into_iter().filter(|one| length(one).is_some());
        // What ends in `.speedscope.json` ends in `.json` as well.
        found.max_by_key(length)
    }

    /// Writes a profile, which calls itself `name` where the format has a place for it.
    ///
    /// # Errors
    /// When `out` does not take the bytes, or nothing of the profile has a place in the format.
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

    /// Analyses what becomes rows, and notes which events and memory records become none.
    fn rows_of(self, profile: Profile, notes: &mut Vec<String>) -> Analysis {
        let analysis = Analysis::build(profile);
        let format = self.name();
        let ids = (0..analysis.profile().events().len()).map(EventId::from_index);
        let (mut merged, mut hidden) = (0, 0);
        for id in ids.filter(|&id| !analysis.is_shown(id)) {
            let is_merged = analysis.tree().is_merged(id);
            *if is_merged { &mut merged } else { &mut hidden } += 1;
        }
        for (count, why) in [
            (
                merged,
                "each is the only call in a call of its name, which has its row",
            ),
            (hidden, "they are the profiler's own, which no table shows"),
        ] {
            if count > 0 {
                notes.push(format!("{count} events have no row in {format}: {why}"));
            }
        }
        let records = analysis.profile().memory().len();
        let summed = records - analysis.memory().unclaimed().len();
        if summed > 0 {
            notes.push(format!(
                "{summed} memory records have no row in {format}: the events that they fell into \
                 have their bytes"
            ));
        }
        analysis
    }

    /// Says what of a profile has no place in the format, beside the details of events.
    fn lack(self, profile: &Profile) -> Option<String> {
        let memory = profile.memory().len();
        let others = profile.passthrough().unknown_events().len();
        let is_on_device =
            |event: &&Event| profile.threads()[event.thread.index()].device != DeviceKind::Cpu;
        let (on_device, memory) = match self {
            Self::Chrome | Self::Perfetto => return None,
            Self::Speedscope => (0, memory),
            // Its times are the host's.
            Self::Folded => (profile.events().iter().filter(is_on_device).count(), memory),
            Self::Parquet | Self::Arrow | Self::Csv => (0, 0),
        };
        let parts = [
            (on_device, "events of devices"),
            (memory, "memory records"),
            (others, "counters, arrows and other records"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let format = self.name();
        (!parts.is_empty()).then(|| format!("{} have no place in {format}", parts.join(", ")))
    }
}

/// Writes the stacks of a profile, or its scopes if it has none, weighed by time on the host. Returns
/// how many lines there are.
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

/// What is said of a trace whose scopes are shown in place of its stacks.
pub const NO_STACKS: &str = "has no stacks (record with with_stack=True), scopes are shown instead";

/// Says that not all levels of paths are shown.
pub fn cut_levels(levels: usize) -> String {
    format!("has {levels} levels, the first {PATH_LEVELS} are shown, with all below them")
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
