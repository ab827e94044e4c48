//! The output argument of the commands that always write a file, `convert` and `slim`.

use std::path::PathBuf;

use crate::failure::misused;
use crate::output::Output;

/// The positional argument OUT. `convert` and `slim` share it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Target {
    /// Output file; `-` writes to stdout.
    #[arg(value_name = "OUT")]
    path: PathBuf,
}

impl Target {
    pub(crate) fn output(&self) -> Output {
        Output::of(&self.path)
    }
}

/// Returns an error if both the result and `--json` would go to stdout.
pub(crate) fn refuse_json(out: &Output, json: bool) -> anyhow::Result<()> {
    if json && *out == Output::Stdout {
        let message = "stdout cannot take both the output and --json";
        return Err(misused(message, "run without --json, or write to a file"));
    }
    Ok(())
}
