//! `mindprof slim`: a part of a trace, as a trace that says what was cut.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use mindprof_analyze::{Cut, CutReport, Slimmed};
use mindprof_answers::Steps;
use mindprof_formats::Format;
use mindprof_model::{Nanos, Profile, ThreadId};
use mindprof_trace::{FileError, SlimForm, TraceFormat, fitting_slim, slim_json, write_slim};

use crate::failure::{Outcome, advised, misused};
use crate::form::{Form, choose, values};
use crate::input::{ReadLimits, read, refuse_input};
use crate::output::{Output, print_line, tell};
use crate::progress::Busy;
use crate::target::{Target, refuse_json};
use crate::units;

fn forms() -> Vec<Form<Format>> {
    let traces = Format::ALL
        .into_iter()
        .filter(|format| format.trace().is_some());
    traces.map(Form::of).collect()
}

const EXAMPLE: &str = "\
Example:
  mindprof slim trace.json.gz small.json.gz --steps 3..5 --min-duration 10us --max-size 10MB

What devices did follows the call that asked for it. Events that cross an edge of the time that is kept are cut there.
The end of the name OUT says which kind of trace it is: .json, or Perfetto's .pftrace; a further .gz or .zst compresses.

Exit codes: 0 it worked, 1 a file cannot be read or written, 2 the arguments make no sense";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct SlimArgs {
    /// The trace: Chrome JSON, plain or compressed; - for stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    #[command(flatten)]
    target: Target,

    /// The kind of trace [default: what the end of OUT says; on stdout json]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(values(&forms())))]
    to: Option<String>,

    /// Keeps the time of these steps: one number, or a range with both ends included.
    #[arg(long, value_name = "N..M", value_parser = units::range)]
    steps: Option<(u64, u64)>,

    /// Keeps what happened from this time on, counted from the start of the trace: 10us, 1.5ms,
    /// 2s.
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    from: Option<Nanos>,

    /// Keeps what happened before this time, counted from the start of the trace.
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    until: Option<Nanos>,

    /// Keeps a thread, by its number or its name, and what it asked devices for. Can be given
    /// several times.
    #[arg(long = "thread", value_name = "THREAD")]
    threads: Vec<String>,

    /// Leaves out events that took less than this.
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    min_duration: Option<Nanos>,

    /// Leaves out the shortest events until the file is at most this large: 500KB, 10MB, 1GiB.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    max_size: Option<u64>,

    /// Leaves out memory records.
    #[arg(long)]
    without_memory: bool,

    #[command(flatten)]
    limits: ReadLimits,

    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Writes the part and says what was cut.
pub(crate) fn run(args: &SlimArgs) -> anyhow::Result<Outcome> {
    let out = args.target.output();
    refuse_json(&out, args.json)?;
    refuse_other(args, &out)?;
    let choice = choose(&forms(), args.to.as_deref(), &out)?;
    refuse_input(&args.trace, &out)?;
    let profile = read(&args.trace, args.limits)?.profile;
    let cut = Cut {
        window: window(args, &profile)?,
        threads: threads(args, &profile)?,
        shortest: args.min_duration.unwrap_or_default(),
        most_events: None,
        without_memory: args.without_memory,
        without_foreign: false,
    };
    let name = out.name();
    let form = SlimForm {
        format: choice.form.kind.trace().unwrap_or(TraceFormat::Chrome),
        compression: choice.compression,
        name: &name,
    };
    let slimmed = fitted(&profile, &cut, args.max_size, form)?;
    let ((), bytes) = out.write(choice.compression, |out| write_slim(&slimmed, form, out))?;
    let report = &slimmed.report;
    tell(&text(report));
    out.tell_written(bytes, &units::count(report.kept, "event"));
    if args.json {
        print_line(&slim_json(report, bytes))?;
    }
    Ok(Outcome::Fine)
}

/// Refuses a name that says what a part of a trace is not.
fn refuse_other(args: &SlimArgs, out: &Output) -> anyhow::Result<()> {
    let Output::File(path) = out else {
        return Ok(());
    };
    match Format::of(path).filter(|format| format.trace().is_none()) {
        Some(format) if args.to.is_none() => {
            let (out, what) = (path.display(), format.description());
            let message = format!("{out}: the name says {what}, and a part of a trace is a trace");
            Err(misused(message, "convert the part once it is written"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Cuts the profile, as often as it takes to find what fits.
fn fitted(
    profile: &Profile,
    cut: &Cut,
    max_size: Option<u64>,
    form: SlimForm<'_>,
) -> anyhow::Result<Slimmed> {
    let _busy = Busy::new("cutting".into());
    let fitted = fitting_slim(profile, cut, max_size, form);
    Ok(fitted.map_err(|error| error.at(form.name.as_ref()))?)
}

/// Returns the time that is kept: of the steps, of the range, or of both.
fn window(args: &SlimArgs, profile: &Profile) -> anyhow::Result<Option<(Nanos, Nanos)>> {
    let of_steps = args.steps.map(|range| steps_window(range, profile));
    let of_steps = of_steps.transpose()?;
    if of_steps.is_none() && args.from.is_none() && args.until.is_none() {
        return Ok(None);
    }
    // The end of the last event is a part of the whole.
    let whole = (Nanos::ZERO, profile.span() + Nanos(1));
    let (first, last) = of_steps.unwrap_or(whole);
    let begin = first.max(args.from.unwrap_or(first));
    let end = last.min(args.until.unwrap_or(last));
    if begin >= end {
        let span = profile.span().0 as f64 / 1e6;
        let hint = format!("the trace spans {span:.3}ms");
        return Err(advised("no time is left between --from and --until", hint));
    }
    Ok(Some((begin, end)))
}

fn steps_window((first, last): (u64, u64), profile: &Profile) -> anyhow::Result<(Nanos, Nanos)> {
    let steps = Steps::build(profile);
    let all = steps.complete();
    let hint = || match (all.first(), steps.open().as_ref().or(all.last())) {
        (Some(first), Some(last)) => format!("it has steps {} to {}", first.number, last.number),
        _ => "it has no steps at all".into(),
    };
    steps
        .window(first, last)
        .ok_or_else(|| advised("the trace has none of these steps", hint()))
}

fn threads(args: &SlimArgs, profile: &Profile) -> anyhow::Result<Option<Vec<ThreadId>>> {
    if args.threads.is_empty() {
        return Ok(None);
    }
    let mut found = Vec::new();
    for wanted in &args.threads {
        let signed = || wanted.parse().map(|number: i64| number as u64);
        let number: Option<u64> = wanted.parse().or_else(|_| signed()).ok();
        let before = found.len();
        for (index, thread) in profile.threads().iter().enumerate() {
            let name = profile.strings().text(thread.name);
            if number == Some(thread.native) || name == wanted {
                found.push(ThreadId::from_index(index));
            }
        }
        if found.len() == before {
            let hint = format!("mindprof info {} lists them", args.trace.display());
            return Err(advised(format!("the trace has no thread `{wanted}`"), hint));
        }
    }
    Ok(Some(found))
}

fn text(report: &CutReport) -> String {
    let reasons = [
        (report.outside, "outside of the time that is kept"),
        (report.other_threads, "of other threads"),
        (report.too_short, "shorter than asked for"),
        (report.too_many, "among the shortest, for the size"),
    ];
    let all = units::count(report.events, "event");
    let mut lines = vec![format!("kept {} of {all}", report.kept)];
    for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
        lines.push(format!("  cut {count} {reason}"));
    }
    if report.clipped > 0 {
        let clipped = report.clipped;
        lines.push(format!(
            "  cut {clipped} short at an edge of the time that is kept"
        ));
    }
    if report.memory > 0 {
        let (kept, all) = (
            report.memory_kept,
            units::count(report.memory, "memory record"),
        );
        lines.push(format!("kept {kept} of {all}"));
    }
    if report.foreign > 0 {
        let (kept, all) = (report.foreign_kept, report.foreign);
        lines.push(format!("kept {kept} of {all} counters and other records"));
    }
    lines.join("\n")
}
