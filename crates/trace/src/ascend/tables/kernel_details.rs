//! `kernel_details.csv`: each kernel with its stream, type, core, shapes and counters.

use std::io::Read;

use mindprof_model::{Category, DeviceKind};

use super::Table;
use crate::ascend::assembly::{Assembly, Row, task_number};
use crate::ascend::collective_name;
use crate::error::{Error, Result};
use crate::read_options::ReadOptions;
use crate::reading::PartReading;
use crate::repairs::Repairs;

/// One kernel of the file.
#[derive(Clone, Debug)]
pub(in crate::ascend) struct KernelRow<'a> {
    pub(in crate::ascend) name: &'a str,
    pub(in crate::ascend) device: u64,
    /// `None` for a collective, which runs on several streams.
    pub(in crate::ascend) stream: Option<u64>,
    /// A number that tells the task from others of its stream.
    pub(in crate::ascend) task: u32,
    pub(in crate::ascend) start_ns: Option<i64>,
    pub(in crate::ascend) duration_ns: Option<i64>,
    pub(in crate::ascend) shapes: &'a str,
    pub(in crate::ascend) dtypes: &'a str,
    /// The other columns that say something, with their values.
    pub(in crate::ascend) others: Vec<(&'a str, &'a str)>,
}

/// Reads a file alone.
pub(super) fn read(input: impl Read, options: &ReadOptions<'_>) -> Result<PartReading> {
    let mut assembly = Assembly::default();
    let keeps = options.unknown.are_kept();
    let mut is_empty = true;
    let repairs = each_kernel(input, keeps, |kernel| {
        is_empty = false;
        let strings = &mut assembly.part.strings;
        let name = strings.intern(collective_name(kernel.name));
        let [shapes, dtypes] = [kernel.shapes, kernel.dtypes].map(|text| strings.intern(text));
        let inputs = assembly.inputs(shapes, dtypes);
        let thread = if let Some(stream) = kernel.stream {
            assembly.thread(DeviceKind::PrivateUse1, kernel.device, stream)
        } else {
            let group = assembly.part.strings.intern("HCCL");
            assembly.group(kernel.device, group)
        };
        let end_ns = kernel.start_ns.zip(kernel.duration_ns);
        let added = assembly.add(Row {
            category: Category::Kernel,
            name,
            thread,
            start_ns: kernel.start_ns,
            end_ns: end_ns.and_then(|(start, duration)| start.checked_add(duration)),
            connection: 0,
            task: kernel.task,
        });
        if let Some(event) = added {
            event.inputs = inputs;
            if keeps {
                assembly.keep_arguments(&entries(&kernel.others));
            }
        }
        Ok(())
    })?;
    if is_empty && repairs.is_empty() {
        return Err(Error::NoRows);
    }
    assembly.repairs.merge(&repairs);
    assembly.sort();
    Ok(assembly.into_reading(&[]))
}

/// Calls `each` with every kernel. Other columns are collected only if `with_others`. Returns the
/// repairs.
pub(in crate::ascend) fn each_kernel(
    input: impl Read,
    with_others: bool,
    mut each: impl FnMut(KernelRow<'_>) -> Result<()>,
) -> Result<Repairs> {
    let table = Table::open(input)?;
    let place = |names: &[&str]| table.column(names);
    let (name, device) = (place(&["Name"]), place(&["Device_id"]));
    let (id, context) = (place(&["Task ID"]), place(&["Context ID"]));
    let (stream, start) = (place(&["Stream ID"]), place(&["Start Time(us)"]));
    let duration = place(&["Duration(us)"]);
    let (shapes, dtypes) = (place(&["Input Shapes"]), place(&["Input Data Types"]));
    let used = [name, device, stream, start, duration];
    let columns = table.columns.clone();
    let others: Vec<(usize, &str)> = columns
        .iter()
        .map(str::trim)
        .enumerate()
        .filter(|(index, _)| with_others && !used.contains(index))
        .collect();
    table.each_row(|fields| {
        let said = others
            .iter()
            .map(|&(column, name)| (name, fields.text(column)));
        each(KernelRow {
            name: fields.text(name),
            device: fields.integer(device).unwrap_or(0),
            stream: fields.integer(stream),
            task: task_number((fields.text(id), fields.text(context), fields.text(name))),
            start_ns: fields.nanoseconds(start),
            duration_ns: fields.nanoseconds(duration),
            shapes: fields.text(shapes),
            dtypes: fields.text(dtypes),
            others: said
                .filter(|(_, value)| !matches!(*value, "" | "N/A"))
                .collect(),
        })
    })
}

/// Returns columns as entries of a JSON object.
pub(in crate::ascend) fn entries(others: &[(&str, &str)]) -> String {
    let entry = |&(key, value): &(&str, &str)| {
        let key = serde_json::Value::from(key);
        // Leading zeros and the like are texts.
        match serde_json::from_str::<serde_json::Number>(value) {
            Ok(_) => format!("{key}:{value}"),
            Err(_) => format!("{key}:{}", serde_json::Value::from(value.trim_matches('"'))),
        }
    };
    others.iter().map(entry).collect::<Vec<_>>().join(",")
}
