//! A whole folder of an Ascend profiler, `*_ascend_pt`: the best file for each thing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use mindprof_model::{Category, DeviceKind, Part, PassthroughKind};
use rustc_hash::FxHashMap;

use super::database::read_database_file;
use super::memory::NpuMemory;
use super::shapes::encode_inputs;
use super::tables::{each_kernel, entries, read_memory_record, read_step_times};
use crate::error::{Error, Result};
use crate::files::FileError;
use crate::read_options::ReadOptions;
use crate::reading::PartReading;
use crate::repairs::Repair;

/// The folder with the results, within that of a recording.
const RESULTS: &str = "ASCEND_PROFILER_OUTPUT";
/// The beginnings of the names of databases, the best one first.
const DATABASES: [&str; 3] = [
    "ascend_pytorch_profiler",
    "ascend_mindspore_profiler",
    "msmonitor_",
];
/// Files with events, the best one first, for folders without a database.
const EVENT_FILES: [&str; 3] = [
    "trace_view.json",
    "trace_view.json.gz",
    "kernel_details.csv",
];

/// The beginning of the name of a file beside the results, which ends in the rank.
const INFO: &str = "profiler_info_";

/// Files about memory. Facts that a database has already are not taken again.
const MEMORY_FILES: [&str; 2] = ["memory_record.csv", "npu_module_mem.csv"];

/// Reads a folder. The result names the files and what was taken from each.
///
/// # Errors
/// If the folder has no file with events, several databases, or a file that cannot be read.
pub(crate) fn read_folder(
    path: &Path,
    options: &ReadOptions<'_>,
    read_file: impl Fn(&Path, &ReadOptions<'_>) -> Result<PartReading>,
) -> Result<PartReading> {
    let inner = path.join(RESULTS);
    let folder = if inner.is_dir() {
        inner
    } else {
        path.to_path_buf()
    };
    let main = find_main(&folder)?;
    let name = name_of(&main);
    let is_database = main.extension().is_some_and(|extension| extension == "db");
    let read = if is_database {
        read_database_file(&main, options)
    } else {
        read_file(&main, options)
    };
    let mut reading = read.map_err(|error| error.at(&main))?;
    reading.sources.push(format!("events from {name}"));
    let kernels = folder.join("kernel_details.csv");
    if name.starts_with("trace_view") && kernels.is_file() {
        let keeps = options.unknown.are_kept();
        let (found, all) = add_shapes(&mut reading, &kernels, keeps)?;
        let said = format!("shapes of {found} of {all} kernels from kernel_details.csv");
        reading.sources.push(said);
    }
    for name in MEMORY_FILES {
        let memory = folder.join(name);
        if memory.is_file() && add_memory(&mut reading, &memory)? {
            reading.sources.push(format!("memory from {name}"));
        }
    }
    if reading.part.rank.is_none()
        && let Some(rank) = stated_rank(path)
    {
        reading.part.rank = Some(rank);
        if reading.part.metadata.get("distributedInfo").is_none() {
            let told = format!("{{\"backend\":\"hccl\",\"rank\":{rank}}}");
            reading.part.metadata.set("distributedInfo", told);
        }
        (reading.sources).push(format!("the rank from {INFO}{rank}.json"));
    }
    let steps = folder.join("step_trace_time.csv");
    if steps.is_file() {
        let rows = File::open(&steps).map_err(Error::from);
        let (rows, repairs) = rows
            .and_then(read_step_times)
            .map_err(|error| error.at(&steps))?;
        reading.repairs.merge(&repairs);
        reading.part.metadata.set("step_trace_time", rows);
        (reading.sources).push("sums of steps from step_trace_time.csv, as metadata".into());
    }
    Ok(reading)
}

/// Returns the rank that the name of a file in the folder of the recording states, if there is one
/// such file.
fn stated_rank(path: &Path) -> Option<u32> {
    let recording = match path.parent() {
        _ if !path.ends_with(RESULTS) => path,
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent?,
    };
    let mut ranks = Vec::new();
    for entry in fs::read_dir(recording).ok()?.flatten() {
        let name = name_of(&entry.path());
        let rank = name
            .strip_prefix(INFO)
            .and_then(|rest| rest.strip_suffix(".json"));
        ranks.extend(rank.and_then(|rank| rank.parse::<u32>().ok()));
    }
    match ranks.as_slice() {
        [rank] => Some(*rank),
        _ => None,
    }
}

/// Finds the file with the events.
fn find_main(folder: &Path) -> Result<PathBuf> {
    let mut databases = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = name_of(&path);
        let is_database = path.extension().is_some_and(|extension| extension == "db");
        let is_known = DATABASES.iter().any(|begin| name.starts_with(begin));
        if is_database && is_known && path.is_file() {
            databases.push(path);
        }
    }
    databases.sort();
    if let [only] = databases.as_slice() {
        return Ok(only.clone());
    }
    if databases.len() > 1 {
        let names: Vec<String> = databases.iter().map(|path| name_of(path)).collect();
        return Err(Error::SeveralProfiles {
            found: names.join(", "),
        });
    }
    let files = EVENT_FILES.iter().map(|name| folder.join(name));
    let mut files = files.filter(|path| path.is_file());
    files.next().ok_or_else(|| {
        if folder.ends_with(RESULTS) {
            Error::NoProfile
        } else {
            io::Error::from(io::ErrorKind::IsADirectory).into()
        }
    })
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns whether a column of `kernel_details.csv` has a fact that traces lack: the kind of a kernel,
/// its blocks, and the parts of its time in which pipes work.
fn is_detail(column: &str) -> bool {
    let names = ["Type", "OP State", "Accelerator Core"];
    let is_block = || {
        ["Block ", "Mix Block "]
            .iter()
            .any(|begin| column.starts_with(begin))
    };
    names.contains(&column) || is_block() || column.ends_with("_ratio")
}

/// Adds the shapes of kernels to those that a trace has without, and if `with_details` what else
/// rules of advice look at. Kernels are the same if they begin in the same nanosecond on the same
/// stream. Returns how many have shapes, of how many.
fn add_shapes(
    reading: &mut PartReading,
    path: &Path,
    with_details: bool,
) -> Result<(usize, usize)> {
    let part: &mut Part = &mut reading.part;
    let mut kernels: FxHashMap<(u64, u64), usize> = FxHashMap::default();
    for (index, event) in part.events().iter().enumerate() {
        let thread = part.threads()[event.thread.index()];
        if event.category == Category::Kernel && thread.device == DeviceKind::PrivateUse1 {
            let start = part.reference_unix_ns + event.start.0;
            kernels.insert((start, thread.native), index);
        }
    }
    let all = kernels.len();
    let mut encoder = mindprof_model::InputsEncoder::default();
    let mut found = 0;
    let mut details: FxHashMap<usize, String> = FxHashMap::default();
    let file = File::open(path).map_err(Error::from);
    let read = file.and_then(|file| {
        each_kernel(file, with_details, |mut kernel| {
            let start = kernel.start_ns.and_then(|start| u64::try_from(start).ok());
            let Some(place) = start.zip(kernel.stream) else {
                return Ok(());
            };
            let Some(index) = kernels.remove(&place) else {
                return Ok(());
            };
            if encode_inputs(&mut encoder, kernel.shapes, kernel.dtypes) {
                let inputs = part.inputs.intern(encoder.words());
                part.set_inputs(index, inputs);
                found += 1;
            }
            kernel.others.retain(|(column, _)| is_detail(column));
            if !kernel.others.is_empty() {
                details.insert(index, entries(&kernel.others));
            }
            Ok(())
        })
    });
    let repairs = read.map_err(|error| error.at(path))?;
    part.passthrough
        .add_entries(PassthroughKind::Arguments, details);
    reading.repairs.merge(&repairs);
    Ok((found, all))
}

/// Adds the memory of components. Returns whether the file says anything new.
fn add_memory(reading: &mut PartReading, path: &Path) -> Result<bool> {
    let file = File::open(path).map_err(Error::from);
    let mut memory = NpuMemory::default();
    let read = file.and_then(|file| read_memory_record(file, &mut memory));
    let repairs = read.map_err(|error| error.at(path))?;
    reading.repairs.merge(&repairs);
    (reading.repairs).add(Repair::AbsurdMemory, memory.absurd);
    Ok(memory.add_to(&mut reading.part))
}
