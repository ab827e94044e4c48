//! `mindprof slim`: writes a part of a trace as a smaller trace.
//!
//! The new trace records what was cut in its metadata, and stderr reports it.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use mindprof_analyze::{Cut, CutReport, Slimmed};
use mindprof_answers::TimeSelection;
use mindprof_formats::Format;
use mindprof_model::{Nanos, Profile, ThreadId};
use mindprof_trace::{FileError, SlimForm, TraceFormat, fitting_slim, slim_json, write_slim};

use mindprof_formats::counted;

use crate::failure::{Outcome, advised, misused};
use crate::form::{Form, choose, listed, values};
use crate::input::{ReadLimits, read, refuse_input};
use crate::output::{Output, print_line, tell};
use crate::progress::Busy;
use crate::selected::refusal;
use crate::target::{Target, refuse_json};
use crate::units;

fn forms() -> Vec<Form<Format>> {
    let traces = Format::ALL
        .into_iter()
        .filter(|format| format.trace().is_some());
    traces.map(Form::of).collect()
}

fn example() -> String {
    let formats = listed(&forms());
    format!(
        "\
Example:
  mindprof slim trace.json.gz small.json.gz --steps 3..5 --max-size 10MB

{formats}

Device work is kept with the call that launched it. Events that cross the edge
of a time window are shortened.

Exit codes: 0 success, 1 failure, 2 usage error"
    )
}

#[derive(Debug, clap::Args)]
#[command(after_help = example())]
pub(crate) struct SlimArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    #[command(flatten)]
    target: Target,

    /// Write FORMAT [default: by the extension of OUT]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = PossibleValuesParser::new(values(&forms())))]
    to: Option<String>,

    /// Keep the time of step N, or of steps N to M, inclusive.
    #[arg(long, value_name = "N..M", value_parser = units::range)]
    steps: Option<(u64, u64)>,

    /// Keep the time from TIME on, such as 1.5ms after the start of the trace.
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    from: Option<Nanos>,

    /// Keep the time before TIME, measured from the start of the trace.
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    until: Option<Nanos>,

    /// Keep a thread, by number or name, and the device work that it launched; may be repeated.
    #[arg(long = "thread", value_name = "THREAD")]
    threads: Vec<String>,

    /// Drop events shorter than TIME, such as 10us.
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    min_duration: Option<Nanos>,

    /// Drop the shortest events until the file fits into SIZE, such as 10MB.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    max_size: Option<u64>,

    /// Drop memory records.
    #[arg(long)]
    without_memory: bool,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print a summary as JSON.
    #[arg(long)]
    json: bool,
}

/// Writes the selected part of the trace, and reports what was cut.
pub(crate) fn run(args: &SlimArgs) -> anyhow::Result<Outcome> {
    let out = args.target.output();
    refuse_json(&out, args.json)?;
    refuse_other(args, &out)?;
    let choice = choose(&forms(), args.to.as_deref(), &out)?;
    refuse_input(&args.trace, &out)?;
    let profile = read(&args.trace, args.limits)?.profile;
    let cut = Cut {
        window: window(args, &profile)?,
        within: None,
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
    out.tell_written(bytes, &counted(report.kept, "event"));
    if args.json {
        print_line(&slim_json(report, bytes))?;
    }
    Ok(Outcome::Fine)
}

/// Returns an error if the extension of the output selects a format that is not a trace.
fn refuse_other(args: &SlimArgs, out: &Output) -> anyhow::Result<()> {
    let Output::File(path) = out else {
        return Ok(());
    };
    match Format::of(path).filter(|format| format.trace().is_none()) {
        Some(format) if args.to.is_none() => {
            let (out, what) = (path.display(), format.description());
            let message = format!("{out}: slim writes traces only, not {what}");
            Err(misused(
                message,
                "write a trace first, then use `mindprof convert`",
            ))
        }
        Some(_) | None => Ok(()),
    }
}

/// Cuts the profile, repeatedly if necessary, until the file fits into `max_size`.
fn fitted(
    profile: &Profile,
    cut: &Cut,
    max_size: Option<u64>,
    form: SlimForm<'_>,
) -> anyhow::Result<Slimmed> {
    let _busy = Busy::new("selecting events".into());
    let fitted = fitting_slim(profile, cut, max_size, form);
    Ok(fitted.map_err(|error| error.at(form.name.as_ref()))?)
}

/// Returns the time window to keep: the intersection of `--steps`, `--from` and `--until`.
fn window(args: &SlimArgs, profile: &Profile) -> anyhow::Result<Option<(Nanos, Nanos)>> {
    let selection = TimeSelection {
        steps: args.steps,
        ..TimeSelection::default()
    };
    let of_steps = selection.cut(profile);
    let of_steps = of_steps.map_err(|reason| refusal(&reason))?.window;
    if of_steps.is_none() && args.from.is_none() && args.until.is_none() {
        return Ok(None);
    }
    // The end is exclusive, and the last event may end exactly at the span.
    let whole = (Nanos::ZERO, profile.span() + Nanos(1));
    let (first, last) = of_steps.unwrap_or(whole);
    let begin = first.max(args.from.unwrap_or(first));
    let end = last.min(args.until.unwrap_or(last));
    if begin >= end {
        let span = profile.span().0 as f64 / 1e6;
        let hint = format!("choose --from and --until within the {span:.3}ms of the trace");
        return Err(advised("the time window is empty", hint));
    }
    Ok(Some((begin, end)))
}

/// Returns the threads that `--thread` selects; `None` if the option is not given.
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
            let hint = format!("list threads with `mindprof info {}`", args.trace.display());
            return Err(advised(format!("the trace has no thread `{wanted}`"), hint));
        }
    }
    Ok(Some(found))
}

fn text(report: &CutReport) -> String {
    let reasons = [
        (report.outside, "outside the time window"),
        (report.other_threads, "on other threads"),
        (report.too_short, "shorter than --min-duration"),
        (report.too_many, "to fit --max-size"),
    ];
    let all = counted(report.events, "event");
    let mut lines = vec![format!("kept {} of {all}", report.kept)];
    for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
        lines.push(format!("  dropped {count} {reason}"));
    }
    if report.clipped > 0 {
        let clipped = report.clipped;
        lines.push(format!(
            "  shortened {clipped} at the edge of the time window"
        ));
    }
    if report.memory > 0 {
        let (kept, all) = (report.memory_kept, counted(report.memory, "memory record"));
        lines.push(format!("kept {kept} of {all}"));
    }
    if report.foreign > 0 {
        let (kept, all) = (report.foreign_kept, report.foreign);
        lines.push(format!("kept {kept} of {all} counters and other records"));
    }
    lines.join("\n")
}
