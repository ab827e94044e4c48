//! `mindprof report`: writes one offline page about a trace.

use std::fs;
use std::path::{Path, PathBuf};

use mindprof_analyze::Analysis;
use mindprof_answers::{Functions, OwnCode, SourceFile, Sources, Work};
use mindprof_formats::counted;
use mindprof_report::{Compared, ReportOptions, write_report};
use mindprof_trace::write_perfetto_file;

use crate::failure::{Outcome, advised};
use crate::input::{ReadLimits, read, read_analysis, refuse_input, tell_part};
use crate::output::{Output, tell};

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

    /// Show lines of your own source files that lie below the current folder.
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
    refuse_input(&args.trace, &out)?;
    let reading = read(&args.trace, args.limits)?;
    let repairs = reading.repairs.iter();
    let repairs: Vec<String> = repairs.map(|(_, _, sentence)| sentence.clone()).collect();
    let analysis = Analysis::build(reading.profile);
    tell_part(&args.trace, &analysis);
    let other = match &args.compare {
        Some(path) => Some((read_analysis(path, args.limits)?, name_of(path))),
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
    if args.perfetto {
        write_beside(&out, &analysis)?;
    }
    Ok(Outcome::Fine)
}

/// Writes the trace for Perfetto beside the page.
fn write_beside(out: &Output, analysis: &Analysis) -> anyhow::Result<()> {
    let Output::File(page) = out else {
        let message = "--perfetto needs a file to write beside";
        return Err(advised(message, "name the page with --out"));
    };
    let path = page.with_extension("pftrace");
    write_perfetto_file(analysis.profile(), &path)?;
    tell(&format!(
        "wrote {}: open it at ui.perfetto.dev, which reads it in the browser",
        path.display()
    ));
    Ok(())
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

/// Reads the user's source files that lie below the current folder, and reports the others.
fn own_sources(analysis: &Analysis, mine: &[String]) -> Vec<SourceFile> {
    let metadata = analysis.profile().metadata();
    let own = OwnCode::of(metadata, mine);
    let functions = Functions::build(analysis, &Work::of(analysis), &own);
    let listed = Sources::read(metadata);
    let here = std::env::current_dir().and_then(fs::canonicalize);
    let mut outside = 0;
    let mut sources = Vec::new();
    for file in functions.files() {
        let path = listed.as_ref().and_then(|sources| sources.path(file));
        let path = fs::canonicalize(path.unwrap_or(file));
        let (Ok(path), Ok(here)) = (path, &here) else {
            continue;
        };
        if !path.starts_with(here) {
            outside += 1;
            continue;
        }
        if let Ok(bytes) = fs::read(&path) {
            let text = String::from_utf8_lossy(&bytes);
            sources.push(SourceFile {
                file: file.into(),
                functions: Vec::new(),
                lines: text.lines().map(Into::into).collect(),
            });
        }
    }
    if outside > 0 {
        let files = counted(outside, "source file");
        tell(&format!("left out {files} outside of the current folder"));
    }
    sources
}
