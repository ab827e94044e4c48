//! `mindprof memory` of a memory snapshot.

use mindprof_answers::{OwnCode, SnapshotMemory};
use mindprof_formats::memory_device_name;
use mindprof_model::{DeviceKind, MemorySnapshot};
use mindprof_report::{snapshot_text, write_snapshot_html};

use super::{MemoryArgs, Timeline};
use crate::failure::{Outcome, advised};
use crate::form::Choice;
use crate::output::{Output, print, print_line};

/// Prints a summary of each device of a snapshot, or writes a page.
pub(super) fn run(
    args: &MemoryArgs,
    snapshot: &MemorySnapshot,
    out: Option<&(Output, Choice<Timeline>)>,
) -> anyhow::Result<Outcome> {
    let path = args.trace.display();
    if args.selected.is_part() || args.process.is_some() {
        let message = format!("{path}: a memory snapshot has neither steps nor processes");
        return Err(advised(
            message,
            "leave out --steps, --within and --process",
        ));
    }
    let own = OwnCode::new(&args.code.mine);
    let mut memory = SnapshotMemory::build(snapshot, &own);
    if let Some(device) = args.device {
        let is_wanted = |number: u32| {
            device.kind == DeviceKind::Cuda && i64::from(device.index) == i64::from(number)
        };
        memory.devices.retain(|found| is_wanted(found.device));
        if memory.devices.is_empty() {
            let name = memory_device_name(device);
            let message = format!("{path}: no memory of {name} in the snapshot");
            return Err(advised(message, "leave out --device to see all devices"));
        }
    }
    if let Some((out, choice)) = out {
        write(&memory, out, *choice)?;
    } else if args.json {
        print_line(&serde_json::to_string_pretty(&memory)?)?;
    } else {
        print(&snapshot_text(&memory))?;
    }
    Ok(Outcome::Fine)
}

fn write(memory: &SnapshotMemory, out: &Output, choice: Choice<Timeline>) -> anyhow::Result<()> {
    match choice.form.kind {
        Timeline::Page => {}
        Timeline::Points | Timeline::Changes => {
            let message = "a memory snapshot has no timeline as torch's profiler writes it";
            return Err(advised(
                message,
                "write a page (--out memory.html), or use --json",
            ));
        }
    }
    let ((), bytes) = out.write(choice.compression, |out| write_snapshot_html(memory, out))?;
    out.tell_written(bytes, "memory of the snapshot");
    Ok(())
}
