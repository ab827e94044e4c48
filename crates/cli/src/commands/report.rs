//! `mindprof report`: writes one offline page about a trace.

use std::path::{Path, PathBuf};

use mindprof_analyze::Analysis;
use mindprof_report::{Compared, ReportOptions, write_report};
use mindprof_trace::write_perfetto_file;

use crate::failure::{Outcome, advised};
use crate::input::{ReadLimits, read, read_whole_analysis, refuse_input, tell_part};
use crate::output::{Output, tell};
use crate::own_sources::own_sources;
use crate::replaced::{page_place, refuse_other_trace};

const EXAMPLE: &str = "\
Example:
  mindprof report trace.json.gz
  mindprof report after.json.gz --compare before.json.gz --out report.html

The page is one HTML file that needs no server and no network: the verdict, the
steps, a timeline, the operators, a flame graph, your functions, memory and
devices. It shows what the other commands print.

Exit codes: 0 success, 1 failure, 2 usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct ReportArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Compare with OTHER, an earlier trace: what grew, and which findings are new.
    #[arg(long, value_name = "OTHER")]
    compare: Option<PathBuf>,

    /// Write the page to FILE; `-` writes it to stdout [default: the name of the trace with .html]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Show lines of your own Python files that lie below the current folder.
    #[arg(long, overrides_with = "no_source")]
    source: bool,

    /// Show no source lines; this is the default.
    #[arg(long, overrides_with = "source")]
    no_source: bool,

    /// Write the trace for Perfetto beside the page, too: its name with .pftrace.
    #[arg(long)]
    perfetto: bool,

    /// Take files whose path contains TEXT as your code, instead of all that are not in a library;
    /// may be repeated.
    #[arg(long, value_name = "TEXT")]
    mine: Vec<String>,

    #[command(flatten)]
    limits: ReadLimits,
}

/// Writes the page of a trace.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<Outcome> {
    let out = Output::of(&out_path(args));
    let beside = refuse_loss(args, &out)?;
    let reading = read(&args.trace, args.limits)?;
    let repairs = reading.repairs.iter();
    let repairs: Vec<String> = repairs.map(|(_, _, sentence)| sentence.clone()).collect();
    let analysis = Analysis::build(reading.profile);
    tell_part(&args.trace, &analysis);
    let other = match &args.compare {
        Some(path) => Some((read_whole_analysis(path, args.limits)?, name_of(path))),
        None => None,
    };
    let options = ReportOptions {
        title: name_of(&args.trace),
        compare: other
            .as_ref()
            .map(|(analysis, name)| Compared { analysis, name }),
        sources: if args.source {
            own_sources(&analysis, &args.mine)
        } else {
            Vec::new()
        },
        mine: args.mine.clone(),
        repairs,
    };
    let ((), bytes) = out.write(None, |out| write_report(&analysis, &options, out))?;
    out.tell_written(bytes, "report");
    if let Some(path) = beside {
        write_perfetto_file(analysis.profile(), &path)?;
        tell(&format!(
            "wrote {}: open it at ui.perfetto.dev, which reads it in the browser",
            path.display()
        ));
    }
    Ok(Outcome::Fine)
}

/// Returns an error if writing would replace a trace that is read, or a file that no earlier report
/// wrote; otherwise the path of the trace for Perfetto, if there is to be one.
fn refuse_loss(args: &ReportArgs, out: &Output) -> anyhow::Result<Option<PathBuf>> {
    let beside = match out {
        Output::File(page) if args.perfetto => Some(page.with_extension("pftrace")),
        Output::Stdout if args.perfetto => {
            let message = "--perfetto needs a file to write beside";
            return Err(advised(message, "name the page with --out"));
        }
        Output::File(_) | Output::Stdout => None,
    };
    for input in [Some(&args.trace), args.compare.as_ref()]
        .into_iter()
        .flatten()
    {
        refuse_input(input, out)?;
        if let Some(path) = &beside {
            refuse_input(input, &Output::File(path.clone()))?;
        }
    }
    let place = page_place(out)?;
    if let Some(path) = &beside {
        refuse_other_trace(path, place)?;
    }
    Ok(beside)
}

/// Returns the path of the page: that of `--out`, or the name of the trace in the current folder.
fn out_path(args: &ReportArgs) -> PathBuf {
    if let Some(out) = &args.out {
        return out.clone();
    }
    let name = name_of(&args.trace);
    let mut stem = name.as_str();
    for ending in [".gz", ".zst", ".json", ".pftrace", ".trace"] {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    let stem = if stem.is_empty() || stem == "-" {
        "report"
    } else {
        stem
    };
    PathBuf::from(format!("{stem}.html"))
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
