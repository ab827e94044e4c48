//! `mindprof memory`: prints the peak memory of each device and process, or writes a timeline.
//!
//! The file is a trace with memory records, or a memory snapshot of torch's caching allocator.

mod snapshot;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use mindprof_analyze::{Analysis, MemoryDevice, MemoryPlace};
use mindprof_answers::{ComponentMemory, MemoryGrowth, OwnCode, Step, StepTimes};
use mindprof_formats::{
    memory_device, memory_device_name, memory_place_name, memory_summary_json,
    write_memory_timeline, write_memory_timeline_raw,
};
use mindprof_model::DeviceKind;
use mindprof_report::{component_memory_text, memory_summary, write_memory_timeline_html};
use mindprof_trace::MemoryInput;
use serde_json::json;

use crate::commands::functions::Code;
use crate::failure::{Outcome, advised};
use crate::form::{Choice, Form, choose, listed, values};
use crate::input::{ReadLimits, read_memory};
use crate::output::{Output, print, print_line, tell};
use crate::selected::{Selected, selected_of};

/// The output formats of a timeline.
#[derive(Clone, Copy, Debug)]
enum Timeline {
    Points,
    Changes,
    Page,
}

const FORMS: [Form<Timeline>; 3] = [
    Form {
        name: "json",
        endings: &[".json"],
        description: "points of the timeline, as torch writes them",
        is_text: true,
        kind: Timeline::Points,
    },
    Form {
        name: "raw.json",
        endings: &[".raw.json"],
        description: "every allocation and free, as torch writes them",
        is_text: true,
        kind: Timeline::Changes,
    },
    Form {
        name: "html",
        endings: &[".html"],
        description: "page with a chart",
        is_text: true,
        kind: Timeline::Page,
    },
];

fn example() -> String {
    let formats = listed(&FORMS);
    format!(
        "\
Example:
  mindprof memory trace.json.gz --out memory.html
  mindprof memory snapshot.pickle

{formats}

Traces that torch wrote do not record what memory was used for, so its category
is \"not known\". Traces that mindprof recorded with shapes and memory have
torch's categories.

A memory snapshot is what torch.cuda.memory._dump_snapshot() writes. It is read
without running code. A page is its only output file.

A profile of an NPU also has the memory of other components than torch's
allocator; the summary lists them.

Exit codes: 0 success, 1 failure, 2 usage error"
    )
}

#[derive(Debug, clap::Args)]
#[command(after_help = example())]
pub(crate) struct MemoryArgs {
    /// Trace file, recorded with `profile_memory=True`, or memory snapshot; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Select a device, such as cuda:0 [default: all, by peak; with --out the first]
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    device: Option<MemoryDevice>,

    /// Select a process by its id [default: all, by peak; with --out the first]
    #[arg(long, value_name = "PID")]
    process: Option<u64>,

    /// Write a timeline to FILE instead of a summary to stdout; `-` writes it to stdout.
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    out: Option<PathBuf>,

    /// Write FORMAT to the file [default: by the extension of FILE]
    #[arg(long, value_name = "FORMAT", requires = "out", hide_possible_values = true, value_parser = PossibleValuesParser::new(values(&FORMS)))]
    to: Option<String>,

    #[command(flatten)]
    code: Code,

    #[command(flatten)]
    selected: Selected,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print JSON, with one entry for each device of each process.
    #[arg(long)]
    json: bool,
}

/// Parses a device. Profiles of NPUs call theirs `npu`, which is no name of torch's.
fn device(text: &str) -> Result<MemoryDevice, String> {
    let npu = DeviceKind::PrivateUse1.name();
    let of_torch = match text.strip_prefix("npu") {
        Some(index) if index.is_empty() || index.starts_with(':') => format!("{npu}{index}"),
        Some(_) | None => text.to_owned(),
    };
    memory_device(&of_torch).map_err(|error| error.to_string())
}

/// Prints a summary for each process and device, or writes the timeline of one.
pub(crate) fn run(args: &MemoryArgs) -> anyhow::Result<Outcome> {
    let out = args.out.as_deref().map(Output::of);
    let choice = out
        .as_ref()
        .map(|out| choose(&FORMS, args.to.as_deref(), out));
    let choice = choice.transpose()?;
    let reading = match read_memory(&args.trace, args.limits)? {
        MemoryInput::Snapshot(snapshot) => {
            let out = out.zip(choice);
            return snapshot::run(args, &snapshot, out.as_ref());
        }
        MemoryInput::Trace(reading) => *reading,
    };
    let analysis = selected_of(&args.trace, reading, &args.selected)?;
    let components = components(args, &analysis);
    let places = match places(args, &analysis) {
        Err(_) if !components.is_empty() && out.is_none() => Vec::new(),
        places => places?,
    };
    if let Some((out, choice)) = out.zip(choice) {
        write(&analysis, places[0], &out, choice)?;
        tell_others(&analysis, &places[1..]);
        return Ok(Outcome::Fine);
    }
    let own = OwnCode::of(analysis.profile().metadata(), &args.code.mine);
    let steps = StepTimes::build(&analysis, &own).steps;
    let steps: Vec<Step> = steps.into_iter().map(|time| time.step).collect();
    let growth = |place| MemoryGrowth::find(&analysis, &own, &steps, Some(place));
    if args.json {
        let summaries = places.iter();
        let summaries = summaries.map(|&place| {
            let mut summary = memory_summary_json(&analysis, place);
            summary["growth"] = serde_json::to_value(growth(place))?;
            if place.device.kind == DeviceKind::PrivateUse1 {
                summary["components"] = of_device(&components, place.device.index)?;
            }
            Ok(summary)
        });
        let mut summaries = summaries.collect::<serde_json::Result<Vec<serde_json::Value>>>()?;
        for index in devices_without(&components, &places) {
            let components = of_device(&components, index)?;
            summaries.push(json!({"device": format!("npu:{index}"), "components": components}));
        }
        print_line(&serde_json::to_string_pretty(&summaries)?)?;
    } else {
        let summaries = places.iter();
        let summaries =
            summaries.map(|&place| memory_summary(&analysis, place, &own, growth(place).as_ref()));
        let mut summaries: Vec<String> = summaries.collect();
        let mut devices: Vec<i16> = components.iter().map(|one| one.device).collect();
        devices.dedup();
        let devices = devices.into_iter();
        summaries.extend(devices.map(|device| component_memory_text(&components, device)));
        print(&summaries.join("\n"))?;
    }
    Ok(Outcome::Fine)
}

fn write(
    analysis: &Analysis,
    place: MemoryPlace,
    out: &Output,
    choice: Choice<Timeline>,
) -> anyhow::Result<()> {
    let ((), bytes) = out.write(choice.compression, |out| match choice.form.kind {
        Timeline::Points => Ok(write_memory_timeline(analysis, place, out)?),
        Timeline::Changes => Ok(write_memory_timeline_raw(analysis, place, out)?),
        Timeline::Page => write_memory_timeline_html(analysis, place, out),
    })?;
    out.tell_written(
        bytes,
        &format!("memory of {}", memory_place_name(analysis, place)),
    );
    Ok(())
}

/// Returns the components of the selected devices. They are those of the whole recording, and belong
/// to no single process.
fn components(args: &MemoryArgs, analysis: &Analysis) -> Vec<ComponentMemory> {
    let mut components = ComponentMemory::read(analysis.profile().metadata());
    if let Some(device) = args.device {
        let is_wanted = |one: &ComponentMemory| {
            device.kind == DeviceKind::PrivateUse1 && device.index == one.device
        };
        components.retain(is_wanted);
    }
    if args.process.is_some() {
        components.clear();
    }
    components
}

/// Returns the devices with components that are not among places.
fn devices_without(components: &[ComponentMemory], places: &[MemoryPlace]) -> Vec<i16> {
    let is_known = |index: i16| {
        let mut devices = places.iter().map(|place| place.device);
        devices.any(|device| device.kind == DeviceKind::PrivateUse1 && device.index == index)
    };
    let mut devices: Vec<i16> = components.iter().map(|one| one.device).collect();
    devices.dedup();
    devices.retain(|&index| !is_known(index));
    devices
}

fn of_device(components: &[ComponentMemory], index: i16) -> serde_json::Result<serde_json::Value> {
    let components = components.iter().filter(|one| one.device == index);
    serde_json::to_value(components.collect::<Vec<_>>())
}

/// Reports the devices and processes that match the options but are not in the file.
fn tell_others(analysis: &Analysis, others: &[MemoryPlace]) {
    if !others.is_empty() {
        tell(&format!(
            "not in the file: memory of {}; use --device or --process to select one",
            names(analysis, others)
        ));
    }
}

/// Returns the selected devices and processes, or all of them, by falling peak.
fn places(args: &MemoryArgs, analysis: &Analysis) -> anyhow::Result<Vec<MemoryPlace>> {
    let known = analysis.memory_timeline().places_by_peak(analysis);
    let path = args.trace.display();
    if known.is_empty() {
        let message = format!("{path}: no memory records");
        return Err(advised(
            message,
            "record with profile_memory=True or `mindprof run --memory --shapes`",
        ));
    }
    let is_wanted = |place: &MemoryPlace| {
        args.device.is_none_or(|device| device == place.device)
            && args.process.is_none_or(|process| process == place.process)
    };
    let wanted: Vec<MemoryPlace> = known.iter().copied().filter(is_wanted).collect();
    if !wanted.is_empty() {
        return Ok(wanted);
    }
    let device = args.device.map(memory_device_name);
    let process = args.process.map(|process| format!("process {process}"));
    let asked: Vec<String> = device.into_iter().chain(process).collect();
    let message = format!("{path}: no memory records of {}", asked.join(" of "));
    let hint = format!("select one of {}", names(analysis, &known));
    Err(advised(message, hint))
}

fn names(analysis: &Analysis, places: &[MemoryPlace]) -> String {
    let names = places.iter();
    let names: Vec<String> = names
        .map(|&place| memory_place_name(analysis, place))
        .collect();
    names.join(", ")
}
