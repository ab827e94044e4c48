//! `mindprof verify`: checks a trace or an execution trace, and prints its faults.

use std::path::PathBuf;

use mindprof_formats::{verify_execution_trace_json, verify_json};
use mindprof_model::LossCause;
use mindprof_report::visible;
use mindprof_trace::{ExecutionTraceCheck, Reading, check_execution_trace_file};

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_quietly};
use crate::output::{print, print_line};
use mindprof_formats::counted;

const EXAMPLE: &str = "\
Example:
  mindprof verify trace.json.gz

Exit codes: 0 no faults, 1 faults found, 2 failure or usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct VerifyArgs {
    /// Trace or execution trace; `-` reads a trace from stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the faults of a file, by kind and number.
pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<Outcome> {
    // If this check fails, the trace reader below fails too and has the better error.
    if args.trace.is_file()
        && let Ok(Some(check)) = check_execution_trace_file(&args.trace)
    {
        return tell(args, &check);
    }
    let reading = match read_quietly(&args.trace, args.limits) {
        Ok(reading) => reading,
        Err(error) if args.json => {
            print_line(&verify_json(Err(&error.to_string())))?;
            return Ok(Outcome::Unreadable);
        }
        Err(error) => return Err(error.into()),
    };
    if args.json {
        print_line(&verify_json(Ok((&reading.profile, &reading.repairs))))?;
    } else {
        print(&text(args, &reading))?;
    }
    Ok(if reading.repairs.is_empty() {
        Outcome::Fine
    } else {
        Outcome::Found
    })
}

/// Prints the result of checking an execution trace.
fn tell(args: &VerifyArgs, check: &ExecutionTraceCheck) -> anyhow::Result<Outcome> {
    if args.json {
        print_line(&verify_execution_trace_json(check))?;
    } else {
        let verdict = match check.faults.values().sum() {
            0 => "no faults".to_owned(),
            1 => "1 fault".to_owned(),
            total => format!("{total} faults"),
        };
        let path = args.trace.display();
        let nodes = counted(check.nodes as u64, "node");
        print_line(&format!("{path}: {verdict}, execution trace with {nodes}"))?;
        for (fault, times) in &check.faults {
            print_line(&format!("  {times} times: {fault}"))?;
        }
        if check.lost > 0 {
            let lost = counted(check.lost, "event");
            print_line(&format!("  {lost} lost by the writer"))?;
        }
    }
    Ok(if check.faults.is_empty() {
        Outcome::Fine
    } else {
        Outcome::Found
    })
}

/// Returns the result of checking a trace, as text.
fn text(args: &VerifyArgs, reading: &Reading) -> String {
    let path = args.trace.display();
    let events = reading.profile.events().len();
    let verdict = match reading.repairs.total() {
        0 => "no faults".to_owned(),
        1 => "1 fault repaired".to_owned(),
        total => format!("{total} faults repaired"),
    };
    let events = counted(events as u64, "event");
    let mut lines = vec![format!("{path}: {verdict}, {events}")];
    let repairs = reading.repairs.iter();
    lines.extend(repairs.map(|(_, _, sentence)| format!("  {sentence}")));
    for (name, number) in &reading.unknown_categories {
        let (events, name) = (counted(*number, "event"), visible(name));
        lines.push(format!(
            "  {events} of the unknown category `{name}`, shown as CPU events"
        ));
    }
    let loss = reading.profile.loss();
    for cause in LossCause::ALL.into_iter().filter(|&c| loss.count(c) > 0) {
        let (number, why) = (loss.count(cause), cause.describe());
        lines.push(format!("  {} lost: {why}", counted(number, "event")));
    }
    lines.join("\n") + "\n"
}
