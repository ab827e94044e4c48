//! How a command is told where to write: by the last argument, or by `--out` as everywhere.

use std::path::{Path, PathBuf};

use crate::failure::misused;
use crate::output::Output;

/// Where the result goes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Target {
    /// Where it is written to; - for stdout.
    #[arg(value_name = "OUT", required_unless_present = "out")]
    path: Option<PathBuf>,

    /// As OUT.
    #[arg(short, long, value_name = "FILE", conflicts_with = "path")]
    out: Option<PathBuf>,
}

impl Target {
    pub(crate) fn output(&self) -> Output {
        let path = self.path.as_ref().or(self.out.as_ref());
        Output::of(path.map_or(Path::new("-"), PathBuf::as_path))
    }
}

/// Refuses to mix what is written with what is said about it.
pub(crate) fn refuse_json(out: &Output, json: bool) -> anyhow::Result<()> {
    if json && *out == Output::Stdout {
        let message = "stdout cannot take both the result and the JSON about it";
        return Err(misused(message, "leave --json away, or name a file"));
    }
    Ok(())
}
