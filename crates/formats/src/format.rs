//! The formats that profiles are written in: how names of files end in each, whether it is read,
//! and who writes it.
//!
//! The program, the native module and the texts of errors ask here: a new format is one more entry.

use std::io::Write;
use std::path::Path;

use mindprof_analyze::{Analysis, StackMetric};
use mindprof_model::Profile;

use crate::chrome::{TraceOptions, write_trace_file, write_trace_with};
use crate::error::Result;
use crate::folded::write_folded_file;
use crate::parquet::write_parquet_file;
use crate::perfetto::{write_perfetto_file, write_perfetto_with};
use crate::speedscope::write_speedscope_file;
use crate::whole_file::write_file;

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
}

/// What is known of a format.
struct Entry {
    name: &'static str,
    endings: &'static [&'static str],
    description: &'static str,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] = [
        Self::Chrome,
        Self::Perfetto,
        Self::Speedscope,
        Self::Folded,
        Self::Parquet,
    ];

    /// Returns the name that it is asked for by.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns how names of files in it end; a further `.gz` compresses.
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

    /// Returns whether it holds a whole profile, as other tools for traces open it.
    pub const fn is_trace(self) -> bool {
        matches!(self, Self::Chrome | Self::Perfetto)
    }

    const fn entry(self) -> Entry {
        let (name, endings, description): (_, &[_], _) = match self {
            Self::Chrome => ("json", &[".json"], "a Chrome trace"),
            Self::Perfetto => (
                "pftrace",
                &[".pftrace", ".perfetto-trace"],
                "Perfetto's own",
            ),
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
        };
        Entry {
            name,
            endings,
            description,
        }
    }

    /// Returns the format of a name that it is asked for by.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns the format that the name of a file says, compressed or not, in letters of any case.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let length = |format: &Self| {
            let endings = format.endings().iter();
            let found = endings.filter(|ending| name.ends_with(**ending));
            found.map(|ending| ending.len()).max()
        };
        let found = Self::ALL.into_iter().filter(|one| length(one).is_some());
        // What ends in `.speedscope.json` ends in `.json` as well.
        found.max_by_key(length)
    }

    /// Writes a profile to a file.
    ///
    /// # Errors
    /// When the file cannot be written; the error names it.
    pub fn write(self, profile: Profile, path: &Path) -> Result<()> {
        match self {
            Self::Chrome => write_trace_file(&profile, path),
            Self::Perfetto => write_perfetto_file(&profile, path),
            Self::Speedscope => write_speedscope_file(&Analysis::build(profile), path),
            Self::Folded => {
                write_folded_file(&Analysis::build(profile), StackMetric::SelfCpuTime, path)
            }
            Self::Parquet => write_parquet_file(&Analysis::build(profile), path),
        }
    }
}

/// Writes a profile to a file as the trace that its name says: Perfetto's, or else Chrome's.
///
/// # Errors
/// When the file cannot be written; the error names it.
pub fn write_named_trace_file(
    profile: &Profile,
    options: &TraceOptions,
    path: &Path,
) -> Result<()> {
    write_file(path, |out| write_named_trace(profile, options, path, out))
}

/// As [`write_named_trace_file`], to wherever the bytes of the file go.
pub(crate) fn write_named_trace(
    profile: &Profile,
    options: &TraceOptions,
    path: &Path,
    out: &mut dyn Write,
) -> Result<()> {
    match Format::of(path) {
        Some(Format::Perfetto) => write_perfetto_with(profile, options, out),
        _ => write_trace_with(profile, &path.to_string_lossy(), options, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_the_format() {
        for format in Format::ALL {
            assert_eq!(Format::named(format.name()), Some(format));
            for ending in format.endings() {
                let upper = ending.to_uppercase();
                for name in [
                    format!("a{ending}"),
                    format!("b/a{ending}.gz"),
                    format!("A{upper}.GZ"),
                ] {
                    assert_eq!(Format::of(Path::new(&name)), Some(format), "{name}");
                }
            }
        }
        for name in ["a", "a.gz", "a.txt", "json", "a.json.zst"] {
            assert_eq!(Format::of(Path::new(name)), None, "{name}");
        }
    }
}
