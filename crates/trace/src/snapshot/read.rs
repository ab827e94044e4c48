//! Reads a snapshot from a source: runs its pickle, and sorts its records by device.

use mindprof_model::{AllocatorSettings, MemorySnapshot, SnapshotDevice};

use super::fields::{Fields, Key};
use super::machine::{Fault, Machine, Progress};
use super::objects::{Object, Value};
use super::operations::{Decoded, LONGEST_NAME, Operation, decode, imported_names};
use super::records::{Records, items, misplaced};
use crate::error::{Error, Result};
use crate::scan::Source;

/// The memory that a pickle may take besides that for its own size. Snapshots take less than their
/// size; a pickle that takes more than twice as much is made to exhaust memory.
const ALLOWED_BYTES: u64 = 48 << 20;
const ALLOWED_TIMES: u64 = 2;

/// The number of operations after which the memory is checked.
const CHECKED_OPERATIONS: u32 = 256;

/// The most devices. Machines have 16.
const MOST_DEVICES: u32 = 1 << 12;

/// Returns whether an input that begins with these bytes is a pickle of protocols 2 to 5.
pub(crate) fn is_pickle(head: &[u8]) -> bool {
    matches!(head, [0x80, 2..=5, ..])
}

/// Returns the protocol of a pickle that is not read, as text, if an input that begins with these
/// bytes is one. Protocols 0 and 1 do not state their number, but a snapshot begins with a dictionary
/// or a list.
pub(crate) fn unread_pickle(head: &[u8]) -> Option<String> {
    const OLD: [&[u8]; 8] = [
        b"(dp", b"(lp", b"(d.", b"(l.", b"}q\0", b"]q\0", b"}.", b"].",
    ];
    match head {
        [0x80, protocol @ 6..=32, ..] => Some(protocol.to_string()),
        _ if OLD.iter().any(|begin| head.starts_with(begin)) => Some("0 or 1".into()),
        _ => None,
    }
}

/// Reads a memory snapshot. Anything behind the end of the pickle is ignored, as Python does.
///
/// # Errors
/// If the source cannot be read, is not a pickle, or not of a snapshot; if it asks to run code,
/// nests deeply, takes more memory than snapshots do, or is cut off.
pub(crate) fn read_snapshot_source(mut source: Source<'_>) -> Result<MemorySnapshot> {
    source.forget_lines();
    let machine = run(&mut source)?;
    let offset = source.offset();
    drop(source);
    snapshot(machine).map_err(|fault| error(fault, offset))
}

fn run(source: &mut Source<'_>) -> Result<Machine> {
    let mut machine = Machine::new();
    let mut operations = 0_u32;
    loop {
        let offset = source.offset();
        match decode(source.window()) {
            Decoded::Operation(operation, length) => {
                let progress = machine.run(operation);
                let progress = progress.map_err(|fault| error(fault, offset))?;
                source.pass(length);
                if progress == Progress::Stopped {
                    return Ok(machine);
                }
            }
            Decoded::More(bytes) => fill(source, bytes)?,
            Decoded::Long(head, length) => {
                source.pass(head);
                skip(source, length)?;
                let pushed = machine.run(Operation::Other);
                pushed.map_err(|fault| error(fault, offset))?;
            }
            Decoded::Code(name) => return Err(code(name, source, &machine)?),
            Decoded::Bad(what) => return Err(Error::BadPickle { what, offset }),
        }
        operations = operations.wrapping_add(1);
        if operations.is_multiple_of(CHECKED_OPERATIONS) {
            check_memory(&machine, offset)?;
        }
    }
}

/// Returns the error for an operation that would run code, with the names that it imports.
fn code(name: &str, source: &mut Source<'_>, machine: &Machine) -> Result<Error> {
    source.fill(LONGEST_NAME)?;
    let names = match name {
        "STACK_GLOBAL" => machine.top_names(),
        _ => imported_names(source.window()),
    };
    let what = match names.as_str() {
        "" => name.into(),
        names => format!("{name} of `{names}`"),
    };
    let offset = source.offset();
    Ok(Error::PickledCode { what, offset })
}

fn check_memory(machine: &Machine, offset: u64) -> Result<()> {
    let limit = ALLOWED_BYTES.saturating_add(offset.saturating_mul(ALLOWED_TIMES));
    if machine.bytes() > limit {
        return Err(Error::PickleTooLarge { limit, offset });
    }
    Ok(())
}

/// Extends the window to `bytes`, which the next operation needs.
fn fill(source: &mut Source<'_>, bytes: usize) -> Result<()> {
    source.fill(bytes)?;
    if source.window().len() < bytes {
        return Err(cut_off(source));
    }
    Ok(())
}

/// Passes data that is not kept, however long.
fn skip(source: &mut Source<'_>, length: u64) -> Result<()> {
    let mut left = length;
    while left > 0 {
        if source.window().is_empty() {
            fill(source, 1)?;
        }
        let passed = left.min(source.window().len() as u64);
        source.pass(passed as usize);
        left -= passed;
    }
    Ok(())
}

fn cut_off(source: &Source<'_>) -> Error {
    let offset = source.offset();
    let damage = source.damage();
    damage.unwrap_or(Error::PickleTruncated { offset })
}

fn error(fault: Fault, offset: u64) -> Error {
    match fault {
        Fault::Bad(what) => Error::BadPickle { what, offset },
        Fault::Strange(what) => Error::NotASnapshot { what },
    }
}

/// The parts of a snapshot by position, which the objects of the pickle are not needed for.
#[derive(Default)]
struct Outline {
    segments: Vec<usize>,
    /// The entries of each device.
    traces: Vec<Vec<u32>>,
    settings: AllocatorSettings,
    has_pinned: bool,
}

fn snapshot(machine: Machine) -> std::result::Result<MemorySnapshot, Fault> {
    let (result, objects, mut records) = machine.finish()?;
    let outline = outline(result, &objects, &records)?;
    // The objects are most of the memory, and the records are about to be copied.
    drop(objects);
    let mut devices: Vec<SnapshotDevice> = Vec::new();
    let mut segments: Vec<_> = records.segments.drain(..).map(Some).collect();
    for index in outline.segments {
        if let Some((number, segment)) = segments[index].take() {
            if number >= MOST_DEVICES {
                return Err(misplaced(Key::Device, "a large number"));
            }
            device_of(&mut devices, number).segments.push(segment);
        }
    }
    for (number, trace) in (0_u32..).zip(outline.traces) {
        if !trace.is_empty() {
            let entries = trace.iter().map(|&index| records.entries[index as usize]);
            device_of(&mut devices, number).entries = entries.collect();
        }
    }
    Ok(MemorySnapshot {
        devices,
        strings: records.strings,
        stacks: records.stacks,
        settings: outline.settings,
        has_pinned: outline.has_pinned,
    })
}

/// Returns the device with this number, adding it if it is new.
fn device_of(devices: &mut Vec<SnapshotDevice>, number: u32) -> &mut SnapshotDevice {
    let found = devices.binary_search_by_key(&number, |device| device.device);
    let index = found.unwrap_or_else(|index| {
        let device = SnapshotDevice {
            device: number,
            ..SnapshotDevice::default()
        };
        devices.insert(index, device);
        index
    });
    &mut devices[index]
}

fn outline(
    result: Value,
    objects: &[Object],
    records: &Records,
) -> std::result::Result<Outline, Fault> {
    const EXPECTED: &str = "expected a dictionary with `segments` and `device_traces`";
    match result.object(objects) {
        Some(Object::Dict(Some(dict))) if dict.fields.has(Key::Segments) => {
            let fields = &dict.fields;
            let segments = items(fields.get(Key::Segments), objects, Key::Segments)?;
            let traces = match fields.get(Key::DeviceTraces) {
                Value::Nothing => Vec::new(),
                traces => traces_of(traces, objects, records.entries.len())?,
            };
            if traces.len() > MOST_DEVICES as usize {
                return Err(misplaced(Key::DeviceTraces, "more than 4096 devices"));
            }
            let is_used = |key| {
                fields.has(key)
                    && !items(fields.get(key), objects, key).is_ok_and(<[Value]>::is_empty)
            };
            Ok(Outline {
                segments: segments_of(segments, objects)?,
                traces,
                settings: settings_of(fields, objects, records),
                has_pinned: is_used(Key::HostSegments),
            })
        }
        // The list that `torch.cuda.memory_snapshot()` returns.
        Some(Object::List(Some(list))) if !list.items.is_empty() => Ok(Outline {
            segments: segments_of(&list.items, objects)?,
            ..Outline::default()
        }),
        _ => {
            let found = result.noun(objects);
            Err(Fault::Strange(format!("{EXPECTED}, found {found}")))
        }
    }
}

fn segments_of(values: &[Value], objects: &[Object]) -> std::result::Result<Vec<usize>, Fault> {
    let index = |value: &Value| match value.object(objects) {
        Some(Object::Segment(index)) => Ok(*index as usize),
        _ => Err(misplaced(Key::Segments, value.noun(objects))),
    };
    values.iter().map(index).collect()
}

/// Returns the entries of each device. An entry belongs to one device, so that lists which share
/// their entries cannot multiply them.
fn traces_of(
    traces: Value,
    objects: &[Object],
    entries: usize,
) -> std::result::Result<Vec<Vec<u32>>, Fault> {
    let mut left = entries;
    let mut index = |value: &Value| match value.object(objects) {
        Some(_) if left == 0 => Err(misplaced(Key::DeviceTraces, "an entry of another device")),
        Some(Object::Entry(index)) => {
            left -= 1;
            Ok(*index)
        }
        _ => Err(misplaced(Key::DeviceTraces, value.noun(objects))),
    };
    let trace = |trace: &Value| {
        let listed = items(*trace, objects, Key::DeviceTraces)?;
        listed.iter().map(&mut index).collect()
    };
    let traces = items(traces, objects, Key::DeviceTraces)?;
    traces.iter().map(trace).collect()
}

fn settings_of(fields: &Fields, objects: &[Object], records: &Records) -> AllocatorSettings {
    let Some(Object::Dict(Some(settings))) = fields.get(Key::Settings).object(objects) else {
        return AllocatorSettings::default();
    };
    let text = |key| settings.fields.get(key).text();
    let text = text(Key::NewAllocConf).or_else(|| text(Key::AllocConf));
    let is_expandable = settings.fields.get(Key::ExpandableSegments);
    AllocatorSettings {
        text: text.map(|text| records.text(text).to_owned()),
        expandable_segments: is_expandable.bool(),
    }
}
