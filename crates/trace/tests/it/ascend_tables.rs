//! CSV files and folders of Ascend profilers.

use std::fs::{self, File};
use std::path::Path;

use flate2::read::GzDecoder;
use mindprof_analyze::{Analysis, CategoryBytes, MemoryPrecision};
use mindprof_model::{Category, DType, DeviceKind, Input, Metadata, PassthroughKind, Profile};
use mindprof_trace::{
    ReadOptions, Reading, Repair, read_trace, read_trace_file, read_trace_file_with,
    read_trace_with, write_trace,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::ascend::{of_category, sample};

fn read_with_sources(path: &Path) -> Reading {
    read_trace_file_with(path, &ReadOptions::default()).unwrap()
}

/// The numbers are those of the file's columns, summed by a spreadsheet.
#[test]
fn every_row_of_kernel_details_is_a_kernel() {
    let profile = read_trace_file(&sample("kernel_details.csv")).unwrap();
    assert_eq!(of_category(&profile, Category::Kernel), (591, 396_807_040));
    assert_eq!(profile.events().len(), 591);
    assert_eq!(profile.reference_unix_ns(), 1_699_529_622_790_614_800);
    let on = |native: u64| {
        let events = profile.events().iter();
        let thread = |event: &&mindprof_model::Event| profile.threads()[event.thread.index()];
        events
            .filter(|event| thread(event).native == native)
            .count()
    };
    assert_eq!((on(16), on(17)), (558, 14));
    let mut collectives = profile.events().iter().map(|event| profile.name(event));
    assert_eq!(
        collectives
            .by_ref()
            .filter(|name| name.starts_with("hcom_"))
            .count(),
        19
    );
    let mut cast = profile.events().iter();
    let cast = cast.find(|event| profile.name(event) == "Cast66").unwrap();
    let inputs: Vec<_> = profile.inputs().inputs(cast.inputs).collect();
    let [Input::Tensor { dtype, dims, .. }] = inputs.as_slice() else {
        panic!("one tensor: {inputs:?}");
    };
    assert_eq!((*dtype, *dims), (DType::I64, &[4_u64, 1025][..]));
    let threads = profile.threads().iter();
    assert!(
        threads
            .clone()
            .all(|thread| thread.device == DeviceKind::PrivateUse1)
    );
}

#[test]
fn files_with_sums_alone_say_what_to_read_instead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    fs::write(&path, "Device_id,Step,Computing,Free\n0,1,2.5,3\n").unwrap();
    let message = read_trace_file(&path).unwrap_err().to_string();
    assert!(
        message.contains("step_trace_time.csv has sums without times"),
        "{message}"
    );
}

#[test]
fn the_memory_of_torchs_allocator_becomes_a_curve() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory_record.csv");
    let text = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n\
        PTA,1704161511420306.491\t,1.0,20.0,1.0,0,NPU:3\n\
        GE,1704161511420307.491\t,9.0,20.0,1.0,0,NPU:3\n\
        PTA,1704161511420308.491\t,0.5,20.0,1.0,0,NPU:3\n";
    fs::write(&path, text).unwrap();
    let profile = read_trace_file(&path).unwrap();
    let found: Vec<_> = profile
        .memory()
        .iter()
        .map(|record| {
            (
                record.time.0,
                record.bytes,
                record.total_allocated,
                record.device_index,
            )
        })
        .collect();
    assert_eq!(found, [(0, 0, 1 << 20, 3), (2_000, -(1 << 19), 1 << 19, 3)]);
}

/// The totals are the curve, although no change of it is the size of another one.
#[test]
fn the_stated_totals_are_the_timeline() {
    let megabytes = |bytes: i64| bytes as f64 / 1_048_576.0;
    let mut text = MEMORY_HEAD.to_owned();
    let totals = [100.0, 60.0, 90.0, 0.0, 30.5];
    for (index, total) in totals.iter().enumerate() {
        let row = format!("PTA,170416151142030{index}.491\t,{total},120.0,1.0,0,NPU:0\n");
        text.push_str(&row);
    }
    let analysis = Analysis::build(read_trace(text.as_bytes()).unwrap());
    let timeline = analysis.memory_timeline();
    let place = timeline.places()[0];
    let peak = timeline.peak(&analysis, place);
    assert_eq!(peak.time.map(|time| time.0), Some(0));
    assert_eq!(
        (megabytes(peak.total()), megabytes(peak.total_at_end())),
        (100.0, 30.5)
    );
    assert_eq!(peak.precision(), MemoryPrecision::Exact);
    let mut bytes = CategoryBytes::default();
    let mut curve: Vec<(Option<u64>, f64)> = Vec::new();
    for change in timeline.changes_in(place) {
        change.apply(&mut bytes);
        let time = change.time.map(|time| time.0);
        curve.pop_if(|last| last.0 == time);
        curve.push((time, megabytes(bytes.iter().sum())));
    }
    let stated = (0..)
        .zip(totals)
        .map(|(index, total)| (Some(index * 1_000), total));
    assert_eq!(curve, stated.collect::<Vec<_>>());
}

/// Returns the components that a profile lists, as texts: device, name, and the peak and end of the
/// allocated and of the reserved bytes.
fn components(profile: &Profile) -> Vec<String> {
    let told = profile.metadata().get(Metadata::MEMORY_COMPONENTS);
    let told: Vec<Value> = serde_json::from_str(told.unwrap_or("[]")).unwrap();
    let amount = |amount: &Value| format!("{}..{}", amount["peak"], amount["end"]);
    told.iter()
        .map(|one| {
            let name = one["component"].as_str().unwrap();
            let (allocated, reserved) = (amount(&one["allocated"]), amount(&one["reserved"]));
            format!("{} {name} {allocated} {reserved}", one["device"])
        })
        .collect()
}

/// The beginning of every such file.
const MEMORY_HEAD: &str = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n";

#[test]
fn all_components_have_their_memory() {
    let text = format!(
        "{MEMORY_HEAD}APP,1704161511420306.491\t,N/A,64.0,N/A,N/A,NPU:0\n\
         GE,1704161511420306.491\t,2.0,4.0,0,,NPU:0\n\
         PTA,1704161511420307.491\t,1.0,20.0,1.0,0,NPU:0\n\
         PTA+GE,1704161511420307.491\t,3.0,24.0,1.0,0,NPU:0\n\
         WORKSPACE,1704161511420308.491\t,0.5,2.0,0,0,NPU:1\n\
         APP,1704161511420309.491\t,N/A,32.0,N/A,N/A,NPU:0\n\
         GE,yesterday,900.0,900.0,0,,NPU:0\n\
         GE,1704161511420310.491\t,-1.0,1e300,0,,NPU:0\n"
    );
    let profile = read_trace(text.as_bytes()).unwrap();
    assert_eq!(
        components(&profile),
        [
            "0 APP null..null 67108864..33554432",
            "0 GE 2097152..2097152 4194304..4194304",
            "0 PTA 1048576..1048576 20971520..20971520",
            "0 PTA+GE 3145728..3145728 25165824..25165824",
            "1 WORKSPACE 524288..524288 2097152..2097152",
        ]
    );
    assert_eq!(profile.memory().len(), 1);
    // The sum of torch's allocator and a graph engine that is not there is no component.
    let without: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("GE"))
        .collect();
    let without = without.join("\n");
    let profile = read_trace(without.as_bytes()).unwrap();
    assert_eq!(components(&profile).len(), 3);
    // A trace that is written again says the same.
    let mut json = Vec::new();
    write_trace(&profile, "trace.json", &mut json).unwrap();
    assert_eq!(
        components(&read_trace(&json).unwrap()),
        components(&profile)
    );
}

#[test]
fn amounts_that_no_device_has_are_left_out() {
    let text = format!(
        "{MEMORY_HEAD}PTA,1704161511420306.491,1.0,2.0,1.0,0,NPU:0\n\
         PTA,1704161511420307.491,6151000000000000,1e300,1.0,0,NPU:0\n\
         PTA,1704161511420308.491,3.0,nan,1.0,0,NPU:0\n"
    );
    let reading = read_trace_with(text.as_bytes(), &ReadOptions::default()).unwrap();
    let repairs: Vec<_> = reading
        .repairs
        .iter()
        .map(|(repair, count, _)| (repair, count))
        .collect();
    assert_eq!(
        repairs,
        [(Repair::AbsurdMemory, 2), (Repair::UnreadableMemory, 1)]
    );
    let profile = reading.profile;
    let totals: Vec<_> = profile
        .memory()
        .iter()
        .map(|record| record.total_allocated)
        .collect();
    assert_eq!(totals, [1 << 20, 3 << 20]);
    let mut json = Vec::new();
    write_trace(&profile, "trace.json", &mut json).unwrap();
    let again = read_trace_with(&json, &ReadOptions::default()).unwrap();
    assert_eq!(again.repairs.iter().count(), 0);
}

#[test]
fn modules_of_cann_are_components_in_other_units() {
    let text = "Component,Timestamp(us),Total Reserved(KB),Device\n\
        HCCL,1704161511420306.491,2048,NPU:0\nRUNTIME,1704161511420306.491,1,NPU:0\n";
    let profile = read_trace(text.as_bytes()).unwrap();
    assert_eq!(
        components(&profile),
        [
            "0 HCCL null..null 2097152..2097152",
            "0 RUNTIME null..null 1024..1024"
        ]
    );
    assert!(profile.memory().is_empty());
}

#[test]
fn a_database_keeps_its_own_memory_and_takes_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("a_ascend_pt/ASCEND_PROFILER_OUTPUT");
    fs::create_dir_all(&results).unwrap();
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let database = results.join("ascend_pytorch_profiler_0.db");
    fs::copy(Path::new(seeds).join("ascend.db"), &database).unwrap();
    let connection = rusqlite::Connection::open(&database).unwrap();
    let before = read_trace_file(&database).unwrap();
    let start = before.reference_unix_ns();
    let add = format!(
        "DROP TABLE IF EXISTS MEMORY_RECORD;
         CREATE TABLE MEMORY_RECORD (component INTEGER, timestamp INTEGER, totalAllocated INTEGER,
             totalReserved INTEGER, totalActive INTEGER, streamPtr INTEGER, deviceId INTEGER);
         INSERT INTO STRING_IDS VALUES (900001, 'PTA'), (900002, 'WORKSPACE'), (900003, 'HCCL');
         INSERT INTO MEMORY_RECORD VALUES (900001, {start} + 10, 512, 2048, 512, 1, 0),
             (900001, {start} + 20, 256, 1024, 256, 1, 0),
             (900002, {start} + 30, 64, 64, 64, 1, 0);
         DROP TABLE IF EXISTS ENUM_MODULE;
         CREATE TABLE ENUM_MODULE (id INTEGER, name INTEGER);
         INSERT INTO ENUM_MODULE VALUES (77, 900003);
         DROP TABLE IF EXISTS NPU_MODULE_MEM;
         CREATE TABLE NPU_MODULE_MEM (moduleId INTEGER, timestampNs INTEGER,
             totalReserved NUMERIC, deviceId INTEGER);
         INSERT INTO NPU_MODULE_MEM VALUES (77, {start} + 5, 4096, 0);"
    );
    connection.execute_batch(&add).unwrap();
    let text = format!(
        "{MEMORY_HEAD}PTA,1704161511420307.491\t,1.0,20.0,1.0,0,NPU:0\n\
         APP,1704161511420307.491\t,N/A,1.0,N/A,N/A,NPU:0\n"
    );
    fs::write(results.join("memory_record.csv"), text).unwrap();
    let reading = read_with_sources(&results);
    assert_eq!(
        reading.sources,
        [
            "events from ascend_pytorch_profiler_0.db",
            "memory from memory_record.csv"
        ]
    );
    let profile = reading.profile;
    assert_eq!(
        components(&profile),
        [
            "0 PTA 512..256 2048..1024",
            "0 WORKSPACE 64..64 64..64",
            "0 HCCL null..null 4096..4096",
            "0 APP null..null 1048576..1048576",
        ]
    );
    let changes: Vec<_> = profile
        .memory()
        .iter()
        .map(|record| (record.time.0, record.bytes))
        .collect();
    assert_eq!(changes, [(10, 0), (20, -256)]);
    fs::write(results.join("memory_record.csv"), MEMORY_HEAD).unwrap();
    assert_eq!(read_with_sources(&results).sources.len(), 1);
}

/// The curve of torch's allocator falls by what `aten::mm` released. Two rows of `OP_MEMORY` are no
/// part of the curve: one of another size, and one at another time.
#[test]
fn blocks_of_operators_are_changes_of_the_curve() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ascend_pytorch_profiler_0.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
             INSERT INTO STRING_IDS VALUES (1, 'aten::add'), (2, 'aten::mm'), (3, 'PTA');
             CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, globalTid INTEGER, name INTEGER);
             INSERT INTO PYTORCH_API VALUES (1000, 1900, 4294967297, 1), (1000, 1400, 4294967298, 2),
                 (1500, 1900, 4294967298, 2);
             CREATE TABLE MEMORY_RECORD (component INTEGER, timestamp INTEGER,
                 totalAllocated INTEGER, totalReserved INTEGER, deviceId INTEGER);
             INSERT INTO MEMORY_RECORD VALUES (3, 1100, 512, 2048, 0), (3, 1200, 1536, 2048, 0),
                 (3, 1600, 2048, 4096, 0), (3, 1700, 1024, 4096, 0);
             CREATE TABLE OP_MEMORY (name INTEGER, size INTEGER, allocationTime INTEGER,
                 releaseTime INTEGER, deviceId INTEGER);
             INSERT INTO OP_MEMORY VALUES (2, 1024, 1200, 1700, 0), (1, 512, 1100, NULL, 0),
                 (1, 100, 1600, NULL, 0), (1, 512, 1650, NULL, 0);",
        )
        .unwrap();
    drop(connection);
    let profile = read_trace_file(&path).unwrap();
    let records = profile.memory().iter().map(|record| {
        let thread = profile.threads()[record.thread.index()].native;
        (record.time.0, record.bytes, record.address, thread)
    });
    assert_eq!(
        records.collect::<Vec<_>>(),
        [
            (100, 512, 2, 1),
            (200, 1024, 1, 2),
            (600, 512, 0, 1),
            (700, -1024, 1, 2),
        ]
    );
    let mut json = Vec::new();
    write_trace(&profile, "trace.json", &mut json).unwrap();
    let again = read_trace(&json).unwrap();
    assert!(again.memory().iter().eq(profile.memory().iter()));
}

#[test]
fn a_folder_takes_each_thing_from_its_best_file() {
    let folder = tempfile::tempdir().unwrap();
    let worker = folder.path().join("worker_20260101_ascend_pt");
    let results = worker.join("ASCEND_PROFILER_OUTPUT");
    fs::create_dir_all(&results).unwrap();
    let no_profile = read_trace_file(&worker).unwrap_err().to_string();
    assert!(
        no_profile.contains("no profile in the folder"),
        "{no_profile}"
    );

    let packed = File::open(sample("trace_view.json.gz")).unwrap();
    let mut json = File::create(results.join("trace_view.json")).unwrap();
    std::io::copy(&mut GzDecoder::new(packed), &mut json).unwrap();
    drop(json);
    // The second kernel of the trace.
    let kernels = "Device_id,Model ID,Task ID,Stream ID,Name,Type,Start Time(us),Duration(us),Block Num,Input Shapes,Input Data Types,aiv_vec_ratio,aiv_time(us)\n\
        0,1,280,3,aclnnInplaceZero_ZerosLikeAiCore_ZerosLike,ZerosLike,1704161511422917.264\t,1.27,48,\"\"\"6,1\"\"\",FLOAT,0.25,1.1\n";
    fs::write(results.join("kernel_details.csv"), kernels).unwrap();
    let steps = "Device_id,Step,Computing,Free\n0,1,1788.2505,9481.667\n";
    fs::write(results.join("step_trace_time.csv"), steps).unwrap();
    let reading = read_with_sources(&worker);
    assert_eq!(
        reading.sources,
        [
            "events from trace_view.json",
            "shapes of 1 of 276 kernels from kernel_details.csv",
            "sums of steps from step_trace_time.csv, as metadata",
        ]
    );
    let profile = reading.profile;
    assert_eq!(of_category(&profile, Category::Kernel).0, 276);
    let with_shapes = profile.events().iter().enumerate();
    let with_shapes = with_shapes.filter(|(_, event)| event.category == Category::Kernel);
    let with_shapes =
        with_shapes.filter(|(_, event)| profile.inputs().inputs(event.inputs).count() > 0);
    let with_shapes: Vec<usize> = with_shapes.map(|(index, _)| index).collect();
    let [kernel] = with_shapes.as_slice() else {
        panic!("one kernel: {with_shapes:?}");
    };
    let passthrough = profile.passthrough();
    let arguments = passthrough.of(PassthroughKind::Arguments, *kernel).unwrap();
    let arguments = passthrough.texts.text(arguments);
    assert!(arguments.contains("\"Task Type\""), "{arguments}");
    let details = r#""Type":"ZerosLike","Block Num":48,"aiv_vec_ratio":0.25"#;
    assert!(arguments.ends_with(details), "{arguments}");
    let told = profile.metadata().get("step_trace_time").unwrap();
    assert!(told.contains("\"Free\":9481.667"), "{told}");

    fs::write(results.join("ascend_pytorch_profiler_0.db"), "").unwrap();
    fs::write(results.join("ascend_pytorch_profiler_1.db"), "").unwrap();
    let several = read_trace_file(&results).unwrap_err().to_string();
    assert!(
        several.contains("several profiles in the folder"),
        "{several}"
    );
}

#[test]
fn other_folders_are_refused_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let message = read_trace_file(folder.path()).unwrap_err().to_string();
    assert!(
        message.ends_with("is a directory, expected a file"),
        "{message}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_files_never_panic(
        file in 0..4_usize,
        bytes in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..12),
        cut in proptest::option::of(any::<u16>()),
    ) {
        let names = ["ascend.db", "kernel_details.csv", "memory_record.csv", "trace_view.json"];
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
        let mut text = fs::read(Path::new(seeds).join(names[file])).unwrap();
        for (place, value) in bytes {
            let place = usize::from(place) % text.len();
            text[place] = value;
        }
        text.truncate(cut.map_or(usize::MAX, usize::from));
        if let Ok(profile) = read_trace(&text) {
            let mut json = Vec::new();
            write_trace(&profile, "trace.json", &mut json).unwrap();
            prop_assert_eq!(read_trace(&json).unwrap().events().len(), profile.events().len());
        }
    }
}

#[test]
fn the_files_that_are_damaged_in_tests_are_read_whole() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    for (name, kernels) in [
        ("ascend.db", 9),
        ("kernel_details.csv", 4),
        ("trace_view.json", 3),
    ] {
        let profile = read_trace_file(&Path::new(seeds).join(name)).unwrap();
        assert_eq!(of_category(&profile, Category::Kernel).0, kernels, "{name}");
    }
}
