//! Files of Ascend profilers that are damaged, were stored again by other programs, or are no
//! profiles.

use std::fs;
use std::path::Path;

use mindprof_model::{Category, Profile};
use mindprof_trace::{
    ReadOptions, Reading, Repair, read_trace, read_trace_file, read_trace_file_with,
    read_trace_with, write_trace,
};
use rusqlite::Connection;

use crate::ascend::{of_category, sample};

const KERNELS: &str = "Device_id,Model ID,Task ID,Stream ID,Name,Type,Start Time(us),Duration(us),Input Shapes\n\
    0,1,7,3,Add1,Add,1704161511422917.264\t,1.27,\"\"\"4,1024\"\"\"\n\
    0,1,8,3,Mul2,Mul,1704161511422927.264\t,20.5,\"\"\"4,1024\"\"\"\n";

const MEMORY: &str = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\n\
    PTA,1704161511420306.491\t,100.5,120.0,NPU:0\n\
    PTA,1704161511420308.491\t,60.0,120.0,NPU:0\n";

fn read(text: &[u8]) -> Reading {
    read_trace_with(text, &ReadOptions::default()).unwrap()
}

fn repairs(reading: &Reading) -> Vec<(Repair, u64)> {
    let repairs = reading.repairs.iter();
    repairs.map(|(repair, count, _)| (repair, count)).collect()
}

fn kernels(profile: &Profile) -> (usize, u64) {
    of_category(profile, Category::Kernel)
}

/// Writes a database of tasks: start, end, task.
fn database(path: &Path, tasks: &[(i64, i64, i64)]) {
    let connection = Connection::open(path).unwrap();
    let schema = "CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
        INSERT INTO STRING_IDS VALUES (1, 'AI_CORE');
        CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER,
            connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER,
            contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER);";
    connection.execute_batch(schema).unwrap();
    for &(start, end, task) in tasks {
        let sql = "INSERT INTO TASK VALUES (?, ?, 0, 4294967295, ?, 0, 1, 0, 3, ?, 1)";
        let row = rusqlite::params![start, end, task, task];
        connection.execute(sql, row).unwrap();
    }
}

fn read_file(path: &Path) -> Reading {
    read_trace_file_with(path, &ReadOptions::default()).unwrap()
}

const DATE: i64 = 1_704_161_511_422_917_264;

/// A table sums the durations as the file states them.
#[test]
fn the_time_of_a_kernel_is_the_sum_of_its_rows() {
    let profile = read_trace_file(&sample("kernel_details.csv")).unwrap();
    let named = profile.events().iter();
    let named = named.filter(|event| profile.name(event) == "ApplyAdamW179");
    assert_eq!(named.map(|event| event.duration.0).sum::<u64>(), 7_127_500);
}

#[test]
fn a_table_that_is_cut_inside_a_row_is_cut_off() {
    for cut in 1..KERNELS.len() {
        let text = &KERNELS[..cut];
        let Ok(reading) = read_trace_with(text.as_bytes(), &ReadOptions::default()) else {
            // The names of columns are cut.
            assert!(cut <= KERNELS.find('\n').unwrap() + 1, "{text}");
            continue;
        };
        let is_whole = text.ends_with('\n') || text.ends_with("Shapes");
        let found = repairs(&reading);
        let expected = if is_whole {
            vec![]
        } else {
            vec![(Repair::Truncated, 1)]
        };
        // The last field of both rows is the same, and whole without the end of the line.
        let is_clear = !text.trim_end_matches('"').ends_with("4,1024");
        assert!(found == expected || !is_clear, "{found:?} of {text}");
        let rows = KERNELS.lines().skip(1);
        let whole = rows.filter(|row| text.contains(row.trim_end_matches(",\"\"\"4,1024\"\"\"")));
        assert!(kernels(&reading.profile).0 <= whole.count(), "{text}");
    }
    let reading = read(&MEMORY.as_bytes()[..MEMORY.len() - 12]);
    assert_eq!(repairs(&reading), [(Repair::Truncated, 1)]);
    assert_eq!(reading.profile.memory().len(), 1);
    // A program that joins lines leaves out the last line break.
    let reading = read(MEMORY.trim_end().as_bytes());
    assert_eq!(repairs(&reading), []);
    assert_eq!(reading.profile.memory().len(), 2);
}

#[test]
fn tables_that_other_programs_stored_are_the_same() {
    let expected = read(KERNELS.as_bytes()).profile;
    let memory = read(MEMORY.as_bytes()).profile;
    let utf16 = |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
        units.flat_map(order).collect()
    };
    let same = |text: &[u8], expected: &Profile| {
        let reading = read(text);
        assert_eq!(repairs(&reading), []);
        let mut texts = [&reading.profile, expected].map(|profile| {
            let mut json = Vec::new();
            write_trace(profile, "trace.json", &mut json).unwrap();
            String::from_utf8(json).unwrap()
        });
        texts.sort();
        assert_eq!(texts[0], texts[1]);
    };
    for (text, expected) in [(KERNELS, &expected), (MEMORY, &memory)] {
        same(&utf16(text, u16::to_le_bytes), expected);
        same(&utf16(text, u16::to_be_bytes), expected);
        let tabs = text.replace("\"4,1024\"", "4 1024").replace('\t', "");
        let tabs = tabs.replace(',', "\t").replace("4 1024", "\"4,1024\"");
        same(tabs.as_bytes(), expected);
        let semicolons = text.replace("4,1024", "4 1024").replace(',', ";");
        let semicolons = semicolons.replace('.', ",").replace("4 1024", "4,1024");
        same(semicolons.as_bytes(), expected);
        same(format!("\u{feff}{semicolons}").as_bytes(), expected);
    }
}

#[test]
fn tables_that_are_no_profile_say_what_they_are() {
    let kernels = KERNELS.lines().next().unwrap();
    let memory = MEMORY.lines().next().unwrap();
    for (text, part) in [
        (
            kernels.replace("Stream ID,", "") + "\n",
            "kernel_details.csv lacks the column `Stream ID`",
        ),
        (
            "Name,Size(KB),Allocation Time(us),Release Time(us)\nA,1,2,3\n".into(),
            "read memory_record.csv",
        ),
        (
            "Device_id,OP Type,Core Type,Count,Total Time(us)\n0,Add,AI_CORE,1,2\n".into(),
            "op_statistic.csv has sums without times",
        ),
        (
            memory.replace("MB", "XB") + "\n",
            "unknown unit of the column `Total Allocated(XB)`",
        ),
        (kernels.to_owned() + "\n", "the table has no rows"),
        (memory.to_owned() + "\n", "the table has no rows"),
    ] {
        let message = read_trace(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn amounts_have_the_unit_that_the_column_states() {
    let text = MEMORY.replace("(MB)", "(GB)").replace(",60.0,", ",-60.0,");
    let reading = read(text.as_bytes());
    assert_eq!(repairs(&reading), [(Repair::UnreadableMemory, 1)]);
    let records: Vec<_> = reading.profile.memory().iter().collect();
    let [record] = records.as_slice() else {
        panic!("{records:?}");
    };
    assert_eq!(record.total_allocated, 100 * (1 << 30) + (1 << 29));
    assert_eq!(record.total_reserved, 120 << 30);
    let text = MEMORY.replace(",60.0,", ",sixty,");
    assert_eq!(
        repairs(&read(text.as_bytes())),
        [(Repair::UnreadableMemory, 1)]
    );
}

#[test]
fn tasks_that_are_there_twice_count_once() {
    let rows = KERNELS.split_once('\n').unwrap().1;
    let reading = read(format!("{KERNELS}{rows}{rows}").as_bytes());
    assert_eq!(repairs(&reading), [(Repair::DuplicateTask, 4)]);
    assert_eq!(kernels(&reading.profile), (2, 21_770));
    let shapes = reading.profile.events().iter();
    assert!(
        shapes
            .clone()
            .all(|event| reading.profile.inputs().inputs(event.inputs).count() == 1)
    );
    // Another task at the same time is none of them.
    let other = rows.replace(",7,3,", ",9,3,");
    let reading = read(format!("{KERNELS}{other}").as_bytes());
    assert_eq!(repairs(&reading), [(Repair::DuplicateTask, 1)]);
    assert_eq!(kernels(&reading.profile).0, 3);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("msmonitor_1.db");
    let task = |at: i64, task| (DATE + at, DATE + at + 50, task);
    database(&path, &[task(0, 1), task(100, 2), task(0, 1), task(0, 3)]);
    let reading = read_file(&path);
    assert_eq!(repairs(&reading), [(Repair::DuplicateTask, 1)]);
    assert_eq!(kernels(&reading.profile), (3, 150));
}

#[test]
fn tasks_at_impossible_times_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("msmonitor_1.db");
    let far = [
        (0, DATE, 1),
        (0, 10, 2),
        (5, 15, 3),
        (DATE, i64::MAX / 2, 4),
    ];
    let good = [(DATE + 10, DATE + 20, 5), (DATE + 30, DATE + 40, 6)];
    database(&path, &[&far[..], &good].concat());
    let reading = read_file(&path);
    assert_eq!(repairs(&reading), [(Repair::NoTime, 4)]);
    assert_eq!(kernels(&reading.profile), (2, 20));
    assert_eq!(reading.profile.reference_unix_ns(), (DATE + 10) as u64);
    assert_eq!(reading.profile.loss().total(), 4);

    let text = MEMORY.replace("PTA,1704161511420306.491", "PTA,0");
    let reading = read(text.as_bytes());
    assert_eq!(repairs(&reading), [(Repair::NoTime, 1)]);
    assert_eq!(reading.profile.memory().len(), 1);
    // Times that no clock of a date gave are as good as others.
    fs::remove_file(&path).unwrap();
    database(&path, &[(0, 10, 1), (20, 30, 2)]);
    assert_eq!(repairs(&read_file(&path)), []);
}

/// The rows of this view never end.
#[test]
fn views_are_no_tables() {
    const ENDLESS: &str = "WITH RECURSIVE n(startNs, endNs, streamId) AS
        (SELECT 1, 2, 3 UNION ALL SELECT startNs + 1, endNs + 1, 3 FROM n) SELECT * FROM n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("msmonitor_1.db");
    let connection = Connection::open(&path).unwrap();
    let view = format!("CREATE TABLE OTHER (a); CREATE VIEW TASK AS {ENDLESS}");
    connection.execute_batch(&view).unwrap();
    let message = read_trace_file(&path).unwrap_err().to_string();
    assert!(message.contains("found OTHER"), "{message}");
    drop(connection);

    // A schema may call a view a table.
    let path = folder.path().join("msmonitor_2.db");
    database(&path, &[(DATE, DATE + 1, 1)]);
    let connection = Connection::open(&path).unwrap();
    let view = format!("CREATE VIEW STEP_TIME AS {ENDLESS}");
    connection.execute_batch(&view).unwrap();
    connection
        .execute_batch(
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_master SET type = 'table', rootpage = 2 WHERE name = 'STEP_TIME'",
        )
        .unwrap();
    drop(connection);
    if let Ok(reading) = read_trace_file_with(&path, &ReadOptions::default()) {
        assert_eq!(kernels(&reading.profile), (1, 1));
    }
}

#[test]
fn a_foreign_table_of_tasks_is_no_profile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("todo.db");
    let connection = Connection::open(&path).unwrap();
    let tables = "CREATE TABLE TASK (id INTEGER, title TEXT, done INTEGER);
        INSERT INTO TASK VALUES (1, 'buy milk', 0)";
    connection.execute_batch(tables).unwrap();
    let message = read_trace_file(&path).unwrap_err().to_string();
    assert!(
        message.contains("TASK without the column startNs"),
        "{message}"
    );
}
