//! Damages the files of an Ascend profiler's folder, and reads the folder. The readers must not panic, and a profile
//! that they accept must be writable as a trace that is read again.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mindprof_trace::{ReadOptions, UnknownArgs, read_trace_file_with, read_trace_with, write_trace};

/// The files with events, of which a folder has one.
const EVENTS: [(&str, &[u8]); 3] = [
    ("ascend_pytorch_profiler_3.db", include_bytes!("../seeds/ascend.db")),
    ("trace_view.json", include_bytes!("../seeds/trace_view.json")),
    ("kernel_details.csv", include_bytes!("../seeds/kernel_details.csv")),
];

/// The other files that are read.
const OTHERS: [(&str, &[u8]); 5] = [
    ("kernel_details.csv", include_bytes!("../seeds/kernel_details.csv")),
    ("memory_record.csv", include_bytes!("../seeds/memory_record.csv")),
    ("npu_module_mem.csv", include_bytes!("../seeds/npu_module_mem.csv")),
    ("step_trace_time.csv", include_bytes!("../seeds/step_trace_time.csv")),
    ("operator_details.csv", include_bytes!("../seeds/operator_details.csv")),
];

#[derive(Arbitrary, Debug)]
struct Damage {
    /// Bytes to overwrite, as positions and values.
    bytes: Vec<(u16, u8)>,
    /// Bytes to insert.
    inserted: Option<(u16, Vec<u8>)>,
    /// The length to cut the file to.
    cut: Option<u16>,
}

impl Damage {
    fn apply(&self, file: &[u8]) -> Vec<u8> {
        let mut file = file.to_vec();
        for &(place, value) in &self.bytes {
            let place = usize::from(place) % file.len();
            file[place] = value;
        }
        if let Some((place, bytes)) = &self.inserted {
            let place = usize::from(*place) % file.len();
            file.splice(place..place, bytes.iter().copied());
        }
        if let Some(cut) = self.cut {
            file.truncate(usize::from(cut));
        }
        file
    }
}

#[derive(Arbitrary, Debug)]
struct Folder {
    events: u8,
    damage: Damage,
    /// Whether each other file is there, and its damage.
    others: [Option<Damage>; 5],
    keeps: bool,
}

/// A folder of this process, in memory if possible.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    parent.join(format!("mindprof-fuzz-{}_ascend_pt", std::process::id()))
});

fuzz_target!(|folder: Folder| {
    let path = &*FOLDER;
    let _ = fs::remove_dir_all(path);
    fs::create_dir(path).expect("the folder is writable");
    for ((name, file), damage) in OTHERS.iter().zip(&folder.others) {
        if let Some(damage) = damage {
            fs::write(path.join(name), damage.apply(file)).expect("the folder is writable");
        }
    }
    let (name, file) = EVENTS[usize::from(folder.events) % EVENTS.len()];
    fs::write(path.join(name), folder.damage.apply(file)).expect("the folder is writable");
    let mut options = ReadOptions::default();
    if !folder.keeps {
        options.unknown = UnknownArgs::Count;
    }
    let Ok(reading) = read_trace_file_with(path, &options) else {
        return;
    };
    let mut text = Vec::new();
    write_trace(&reading.profile, "trace.json", &mut text).expect("memory takes all bytes");
    let again = read_trace_with(&text, &ReadOptions::default()).expect("what we wrote is a trace");
    assert_eq!(again.profile.events().len(), reading.profile.events().len());
});
