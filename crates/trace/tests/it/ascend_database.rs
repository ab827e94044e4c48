//! Databases of Ascend profilers. No recorded one is at hand, so the content of the recorded trace
//! is written by the documented schema, and both must say the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mindprof_analyze::{Analysis, Correlation};
use mindprof_model::{Category, DeviceKind, EventId, Flags, PassthroughKind, Profile, TextId};
use mindprof_trace::{
    Error, ReadOptions, UnknownArgs, read_trace, read_trace_file, read_trace_file_with,
};
use rusqlite::{Connection, params};

use crate::ascend::{of_category, sample};

/// The tables that the documentation lists, with the columns that are read.
const SCHEMA: &str = "
    CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
    CREATE TABLE ENUM_API_TYPE (id INTEGER PRIMARY KEY, name TEXT);
    INSERT INTO ENUM_API_TYPE VALUES (20000, 'acl'), (10000, 'node'), (50001, 'op'),
        (50002, 'queue'), (50003, 'trace'), (50004, 'mstx');
    CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER,
        name INTEGER, sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER,
        inputShapes INTEGER, callchainId INTEGER, type INTEGER);
    CREATE TABLE CONNECTION_IDS (id INTEGER, connectionId INTEGER);
    CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER,
        connectionId INTEGER PRIMARY KEY, name INTEGER);
    CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER,
        globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER,
        streamId INTEGER, taskId INTEGER, modelId INTEGER);
    CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER PRIMARY KEY,
        blockNum INTEGER, mixBlockNum INTEGER, taskType INTEGER, opType INTEGER,
        inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER, outputFormats INTEGER,
        outputDataTypes INTEGER, outputShapes INTEGER, attrInfo INTEGER);
    CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER);
    CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER);
    INSERT INTO RANK_DEVICE_MAP VALUES (5, 0);
";

/// A database being written.
struct Writer<'a> {
    connection: Connection,
    profile: &'a Profile,
}

impl<'a> Writer<'a> {
    fn new(path: &Path, profile: &'a Profile) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        Self {
            connection,
            profile,
        }
    }

    fn string(&self, text: &str) -> i64 {
        let find = "SELECT id FROM STRING_IDS WHERE value = ?";
        let found = self.connection.query_row(find, [text], |row| row.get(0));
        found.unwrap_or_else(|_| {
            let add = "INSERT INTO STRING_IDS (value) VALUES (?)";
            self.connection.execute(add, [text]).unwrap();
            self.connection.last_insert_rowid()
        })
    }

    fn times(&self, id: EventId) -> (i64, i64) {
        let event = self.profile.event(id);
        let start = self.profile.reference_unix_ns() + event.start.0;
        (start as i64, (start + event.duration.0) as i64)
    }

    fn global_thread(&self, id: EventId) -> i64 {
        let thread = self.profile.threads()[self.profile.event(id).thread.index()];
        (thread.process << 32 | thread.native) as i64
    }

    fn add_api(&self, id: EventId, kind: i64) {
        let event = self.profile.event(id);
        let (start, end) = self.times(id);
        let thread_numbers = self.profile.thread_numbers();
        let links = self.profile.links(id).unwrap_or_default();
        let sql = "INSERT INTO PYTORCH_API VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, ?)";
        let row = params![
            start.to_string(),
            end.to_string(),
            self.global_thread(id),
            i64::from(id.to_raw()),
            self.string(self.profile.name(event)),
            event.sequence().map_or(-1, i64::from),
            thread_numbers.forward_number(links.forward_thread()),
            kind
        ];
        self.connection.execute(sql, row).unwrap();
    }

    fn add_call(&self, id: EventId) {
        let (start, end) = self.times(id);
        let name = self.profile.name(self.profile.event(id));
        let Some(name) = name.strip_prefix("AscendCL@") else {
            return self.add_api(id, 50_002);
        };
        let sql = "INSERT INTO CANN_API VALUES (?, ?, 20000, ?, ?, ?)";
        let connection = 100_000 + i64::from(id.to_raw());
        let row = params![
            start,
            end,
            self.global_thread(id),
            connection,
            self.string(name)
        ];
        self.connection.execute(sql, row).unwrap();
    }

    fn add_task(&self, id: EventId, owner: Option<EventId>) {
        let (start, end) = self.times(id);
        let event = self.profile.event(id);
        let thread = self.profile.threads()[event.thread.index()];
        let number = i64::from(id.to_raw());
        let connection = if owner.is_some() {
            number
        } else {
            4_294_967_295
        };
        let row = params![
            start,
            end,
            thread.process as i64,
            connection,
            number,
            self.string("AI_CORE"),
            thread.native as i64
        ];
        let sql = "INSERT INTO TASK VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?, 7, 4294967295)";
        self.connection.execute(sql, row).unwrap();
        let row = params![
            self.string(self.profile.name(event)),
            number,
            self.string("AI_VECTOR_CORE"),
            self.string("Cast"),
            self.string("FLOAT16;INT64"),
            self.string("4,1024;"),
        ];
        let sql = "INSERT INTO COMPUTE_TASK_INFO VALUES
            (?, ?, 48, 0, ?, ?, NULL, ?, ?, NULL, NULL, NULL, NULL)";
        self.connection.execute(sql, row).unwrap();
        if let Some(owner) = owner {
            let sql = "INSERT INTO CONNECTION_IDS VALUES (?, ?)";
            let row = params![i64::from(owner.to_raw()), connection];
            self.connection.execute(sql, row).unwrap();
        }
    }
}

/// Writes what a profile says of operators, calls and kernels.
fn write_database(profile: &Profile, path: &Path) {
    let writer = Writer::new(path, profile);
    let correlation = Correlation::build(profile);
    for index in 0..profile.events().len() {
        let id = EventId::from_index(index);
        match profile.event(id).category {
            Category::Operator | Category::Annotation => writer.add_api(id, 50_001),
            Category::Runtime => writer.add_call(id),
            Category::Kernel => writer.add_task(id, correlation.owner(id)),
            Category::PythonFunction | Category::DeviceAnnotation | Category::Other => {}
        }
    }
    writer.connection.execute_batch("COMMIT").unwrap();
}

/// Returns the rows of a table as texts: name, calls, times of the CPU and of devices.
fn rows(profile: &Profile) -> Vec<String> {
    let analysis = Analysis::build(profile.clone());
    let averages = mindprof_analyze::averages(&analysis, mindprof_analyze::GroupBy::default());
    let mut rows: Vec<String> = averages
        .rows
        .iter()
        .map(|row| {
            let sums = &row.sums;
            format!(
                "{} {:?} {} {:?} {:?} {:?} {:?}",
                row.key,
                row.device,
                sums.count,
                sums.self_cpu_total,
                sums.cpu_total,
                sums.self_device_total,
                sums.device_total
            )
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn a_database_with_the_content_of_a_trace_gives_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ascend_pytorch_profiler_5.db");
    let trace = read_trace_file(&sample("trace_view.json.gz")).unwrap();
    write_database(&trace, &path);
    let profile = read_trace_file(&path).unwrap();
    for category in [
        Category::Operator,
        Category::Annotation,
        Category::Runtime,
        Category::Kernel,
    ] {
        assert_eq!(
            of_category(&profile, category),
            of_category(&trace, category)
        );
    }
    assert_eq!(rows(&profile), rows(&trace));
    let places = |profile: &Profile| {
        let of_devices = profile.threads().iter();
        let of_devices = of_devices.filter(|thread| thread.device == DeviceKind::PrivateUse1);
        of_devices
            .map(|thread| (thread.process, thread.native))
            .collect::<Vec<_>>()
    };
    assert_eq!(places(&profile), [(0, 3)]);
    let told = profile.metadata().get("distributedInfo");
    assert_eq!(told, Some("{\"backend\":\"hccl\",\"rank\":5}"));
    // The same bytes from memory.
    let again = read_trace(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(rows(&again), rows(&profile));
}

#[test]
fn waits_and_parts_of_collectives_are_no_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection
        .execute_batch(
            "INSERT INTO STRING_IDS VALUES (1, 'NOTIFY_WAIT'), (2, 'MEMCPY_ASYNC'),
                 (3, 'hcom_allReduce__428_0_1'), (4, 'group_1'), (5, 'SDMA');
             INSERT INTO TASK VALUES (1000, 1100, 2, 4294967295, 1, 0, 1, 0, 11, 1, 0),
                 (1100, 1150, 2, 4294967295, 2, 0, 2, 0, 11, 2, 0),
                 (1000, 1200, 2, 4294967295, 3, 0, 5, 0, 12, 3, 0);
             CREATE TABLE COMMUNICATION_TASK_INFO (globalTaskId INTEGER);
             INSERT INTO COMMUNICATION_TASK_INFO VALUES (3);
             CREATE TABLE COMMUNICATION_OP (opName INTEGER, startNs INTEGER, endNs INTEGER,
                 connectionId INTEGER, groupName INTEGER, opId INTEGER, deviceId INTEGER,
                 count INTEGER, dataType INTEGER);
             INSERT INTO COMMUNICATION_OP VALUES (3, 1000, 1300, 4294967295, 4, 1, 2, 4096, 11);
             CREATE TABLE ENUM_HCCL_DATA_TYPE (id INTEGER PRIMARY KEY, name TEXT);
             INSERT INTO ENUM_HCCL_DATA_TYPE VALUES (3, 'FP16'), (11, 'BFP16');
             INSERT INTO STEP_TIME VALUES (9, 900, 1400);",
        )
        .unwrap();
    drop(connection);
    let profile = read_trace_file(&path).unwrap();
    let described: Vec<String> = profile
        .events()
        .iter()
        .map(|event| {
            let thread = profile.threads()[event.thread.index()];
            let thread = profile.strings().text(thread.name);
            let (start, duration) = (event.start.0, event.duration.0);
            let name = profile.name(event);
            format!("{:?} {name} {thread} {start}+{duration}", event.category)
        })
        .collect();
    assert_eq!(
        described,
        [
            "Annotation ProfilerStep#9 Thread 0 0+500",
            "Kernel hcom_allReduce_ group_1 100+300",
            "Other NOTIFY_WAIT Stream 11 100+100",
            "Kernel MEMCPY_ASYNC Stream 11 200+50",
        ]
    );
    assert!(
        profile
            .events()
            .iter()
            .all(|event| event.flags == Flags::NONE)
    );
    let passthrough = profile.passthrough();
    let told = passthrough.of(PassthroughKind::Arguments, 1).unwrap();
    let told = passthrough.texts.text(told);
    assert!(
        told.ends_with(r#""count":4096,"data_type":"BFP16""#),
        "{told}"
    );
}

#[test]
fn readers_that_only_look_at_arguments_share_those_of_equal_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.db");
    let seed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/ascend.db");
    fs::copy(seed, &path).unwrap();
    // A graph runs again.
    let again =
        "DELETE FROM TASK_PMU_INFO; INSERT INTO TASK SELECT startNs + 1000000, endNs + 1000000, deviceId, connectionId,
        globalTaskId, globalPid, taskType, contextId, streamId, taskId + 100, modelId FROM TASK";
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(again).unwrap();
    let told = |unknown: UnknownArgs| {
        let options = ReadOptions {
            unknown,
            ..ReadOptions::default()
        };
        let profile = read_trace_file_with(&path, &options).unwrap().profile;
        let passthrough = profile.passthrough();
        let kernels = (0..profile.events().len())
            .filter_map(|index| passthrough.of(PassthroughKind::Arguments, index));
        let texts = kernels.map(|id| (id, passthrough.texts.text(id)));
        texts.collect::<Vec<_>>()
    };
    let (kept, described) = (told(UnknownArgs::Keep), told(UnknownArgs::Describe));
    assert!(!described.is_empty() && told(UnknownArgs::Count).is_empty());
    let ids = |told: &[(TextId, String)]| told.iter().map(|(id, _)| *id).collect::<BTreeSet<_>>();
    // Kernels of three kinds, and a collective.
    assert_eq!((ids(&kept).len(), described.len()), (17, 17));
    assert_eq!(ids(&described).len(), 4);
    // Only the ids of tasks are missing.
    for (_, text) in &described {
        assert!(kept.iter().any(|(_, all)| all.starts_with(text.as_str())));
    }
}

/// Returns the arguments of each kernel of a database with these rows, in time order.
fn arguments_of_kernels(rows: &str) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection.execute_batch(rows).unwrap();
    drop(connection);
    let profile = read_trace_file(&path).unwrap();
    let passthrough = profile.passthrough();
    let told = (0..profile.events().len())
        .map(|index| passthrough.of(PassthroughKind::Arguments, index).unwrap());
    let told = told.map(|id| format!("{{{}}}", passthrough.texts.text(id)));
    told.map(|text| serde_json::from_str(&text).unwrap())
        .collect()
}

#[test]
fn counters_are_arguments_of_their_kernels() {
    let told = arguments_of_kernels(
        "INSERT INTO STRING_IDS VALUES (1, 'AI_CORE'), (2, 'aic_mac_ratio'), (3, 'aic \"total\"');
         INSERT INTO TASK VALUES (1000, 1100, 2, 4294967295, 7, 0, 1, 0, 11, 1, 0),
             (1100, 1150, 2, 4294967295, 8, 0, 1, 0, 11, 2, 0),
             (1200, 1250, 2, 4294967295, 9, 0, 1, 0, 11, 3, 0);
         CREATE TABLE TASK_PMU_INFO (globalTaskId INTEGER, name INTEGER, value NUMERIC);
         INSERT INTO TASK_PMU_INFO VALUES (8, 2, 0.25), (8, 3, 1200), (7, 2, 0.5), (7, 3, NULL),
             (9, 2, 0.5), (9, 2, 0.75), (7, 3, 9e999), (6, 2, 1);",
    );
    assert_eq!(told[0]["aic_mac_ratio"], 0.5);
    assert_eq!(told[0].get("aic \"total\""), None);
    assert_eq!(told[1]["aic_mac_ratio"], 0.25);
    assert_eq!(told[1]["aic \"total\""], 1200);
    // Two runs of a task, of which nobody knows which one ran here.
    assert_eq!(told[2].get("aic_mac_ratio"), None);
    assert_eq!(told[2]["Task Id"], 3);
}

#[test]
fn counters_of_a_task_that_runs_again_are_told_apart_by_their_time() {
    let told = arguments_of_kernels(
        "INSERT INTO STRING_IDS VALUES (1, 'AI_CORE'), (2, 'aic_mac_ratio'), (3, 'aiv_vec_ratio');
         INSERT INTO TASK VALUES (1000, 1100, 2, 4294967295, 7, 0, 1, 0, 11, 1, 0),
             (1200, 1250, 2, 4294967295, 7, 0, 1, 0, 11, 1, 0),
             (1300, 1350, 2, 4294967295, 7, 0, 1, 0, 11, 1, 0);
         CREATE TABLE TASK_PMU_INFO (globalTaskId INTEGER, name INTEGER, value NUMERIC,
             timestampNs INTEGER);
         INSERT INTO TASK_PMU_INFO VALUES (7, 2, 0.75, 1250), (7, 2, 0.5, 1100), (7, 3, 0.1, 1100);",
    );
    let ratios = told.iter().map(|told| told["aic_mac_ratio"].as_f64());
    assert_eq!(ratios.collect::<Vec<_>>(), [Some(0.5), Some(0.75), None]);
    assert_eq!(told[0]["aiv_vec_ratio"], 0.1);
}

#[test]
fn collections_of_garbage_are_ranges_and_the_environment_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection
        .execute_batch(
            r#"INSERT INTO STRING_IDS VALUES (1, 'aten::mm');
            INSERT INTO PYTORCH_API VALUES ('1000', '1900', 17179869189, NULL, 1, -1, 0, NULL, NULL,
                NULL, 50001);
            CREATE TABLE GC_RECORD (startNs INTEGER, endNs INTEGER, globalTid INTEGER);
            INSERT INTO GC_RECORD VALUES (1200, 1700, 17179869189);
            CREATE TABLE META_DATA (name TEXT, value TEXT);
            INSERT INTO META_DATA VALUES ('SCHEMA_VERSION', '1.0.2'),
                ('ENV_VARIABLES', '{"ASCEND_GLOBAL_LOG_LEVEL": "1"}');"#,
        )
        .unwrap();
    let profile = read_trace_file(&path).unwrap();
    let [_, collection] = profile.events() else {
        panic!("{:?}", profile.events());
    };
    assert_eq!(profile.name(collection), "Python GC");
    assert_eq!(collection.category, Category::Annotation);
    assert_eq!((collection.start.0, collection.duration.0), (200, 500));
    let thread = profile.threads()[collection.thread.index()];
    assert_eq!((thread.process, thread.native), (4, 5));
    let variables = profile.metadata().get("ENV_VARIABLES");
    assert_eq!(variables, Some(r#"{"ASCEND_GLOBAL_LOG_LEVEL":"1"}"#));

    // A value that is no object would damage a trace that is written with it.
    let damage = "UPDATE META_DATA SET value = '{' WHERE name = 'ENV_VARIABLES'";
    connection.execute_batch(damage).unwrap();
    let profile = read_trace_file(&path).unwrap();
    assert_eq!(profile.metadata().get("ENV_VARIABLES"), None);
}

#[test]
fn databases_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.db");
    let message = || read_trace_file(&path).unwrap_err().to_string();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("CREATE TABLE people (name TEXT)")
        .unwrap();
    assert!(
        message().contains("not a database of an Ascend profiler"),
        "{}",
        message()
    );
    assert!(message().ends_with("found people"), "{}", message());

    connection.execute_batch(SCHEMA).unwrap();
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
        INSERT INTO TASK SELECT i, i, 0, i, i, 0, 1, 0, 1, 1, 0 FROM n";
    connection.execute_batch(fill).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let Error::File { source, .. } = read_trace_file(&path).unwrap_err() else {
        panic!("an error of a file names it");
    };
    assert!(matches!(*source, Error::DatabaseLocked), "{source}");
    connection.execute_batch("COMMIT").unwrap();
    drop(connection);

    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(message().contains("damaged or cut off"), "{}", message());
    assert!(read_trace(&whole[..whole.len() / 2]).is_err());
    fs::write(&path, &whole[..20]).unwrap();
    assert!(message().contains("damaged or cut off"), "{}", message());
}
