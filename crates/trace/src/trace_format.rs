//! The formats that hold a whole profile, as trace viewers open them, and how file names select
//! them.

use std::io::Write;
use std::path::Path;

use mindprof_model::Profile;

use crate::chrome::{TraceOptions, write_trace, write_trace_with};
use crate::error::Result;
use crate::files::{Compression, write_file};
use crate::perfetto::write_perfetto_with;

/// A format of trace files.
///
/// Unlike tables and stacks, a trace keeps every event, so it can be cut (`slim`), converted and
/// opened in a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceFormat {
    /// Chrome's JSON, which `torch.profiler` writes and which is read back.
    Chrome,
    /// Perfetto's protocol buffers.
    Perfetto,
}

impl TraceFormat {
    /// Returns the endings of file names in this format, without the ending of a compression.
    pub const fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Chrome => &[".json"],
            Self::Perfetto => &[".pftrace", ".perfetto-trace"],
        }
    }

    /// Returns the format that a file name selects: Perfetto's by its endings, otherwise Chrome's.
    pub fn of(path: &Path) -> Self {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let (name, _) = Compression::split(&name);
        let endings = Self::Perfetto.endings();
        if endings.iter().any(|ending| name.ends_with(ending)) {
            Self::Perfetto
        } else {
            Self::Chrome
        }
    }

    /// Writes a profile in this format. Chrome's traces state `name` as their own.
    ///
    /// # Errors
    /// If `out` does not take the bytes.
    pub fn write(
        self,
        profile: &Profile,
        name: &str,
        options: &TraceOptions,
        out: &mut dyn Write,
    ) -> Result<()> {
        match self {
            Self::Chrome => write_trace_with(profile, name, options, out),
            Self::Perfetto => write_perfetto_with(profile, options, out),
        }
    }
}

/// Writes a profile to a file as a Chrome trace.
///
/// # Errors
/// If the file cannot be written; the error names it.
pub fn write_trace_file(profile: &Profile, path: &Path) -> Result<()> {
    let name = path.to_string_lossy();
    write_file(path, |out| write_trace(profile, &name, out))
}

/// Writes a profile to a file in the trace format that its name selects.
///
/// # Errors
/// If the file cannot be written; the error names it.
pub fn write_named_trace_file(
    profile: &Profile,
    options: &TraceOptions,
    path: &Path,
) -> Result<()> {
    let name = path.to_string_lossy();
    write_file(path, |out| {
        TraceFormat::of(path).write(profile, &name, options, out)
    })
}
