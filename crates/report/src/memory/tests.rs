//! Tests of the page and the text of the memory timeline.

use mindprof_analyze::{Analysis, MemoryDevice, MemoryPlace};
use mindprof_answers::{CodePlace, GrownLine, MemoryGrowth, OwnCode};
use mindprof_model::{
    DeviceKind, MemoryRecord, Nanos, Part, StackId, StringTable, Thread, ThreadId,
};

use super::*;

const HOST: MemoryPlace = MemoryPlace {
    process: 1,
    device: MemoryDevice::HOST,
};

fn analysis(records: &[(u64, u64, i64)]) -> Analysis {
    let mut builder = Part::new();
    builder.reference_unix_ns = 5_000_000;
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    assert_eq!(thread, ThreadId::from_raw(0));
    let name = builder.strings.intern("</script><b>frame");
    let stack = builder.stacks.push(StackId::NONE, name);
    for &(time, address, bytes) in records {
        builder.add_memory(MemoryRecord {
            time: Nanos(time),
            address,
            bytes,
            total_allocated: 0,
            total_reserved: 0,
            thread,
            stack,
            device: DeviceKind::Cpu,
            device_index: -1,
        });
    }
    Analysis::build(builder.into_profile().unwrap())
}

fn text(
    write: impl FnOnce(&Analysis, MemoryPlace, &mut dyn std::io::Write) -> crate::Result<()>,
    records: &[(u64, u64, i64)],
) -> String {
    let mut bytes = Vec::new();
    write(&analysis(records), HOST, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Two blocks in one microsecond, one release in a later one, and a block of before that is given
/// back.
const RECORDS: &[(u64, u64, i64)] = &[
    (1_000, 1, 8),
    (1_999, 2, 4),
    (2_000, 1, -8),
    (7_500, 3, -16),
];

#[test]
fn without_memory_there_is_nothing_on_the_page() {
    assert!(text(write_memory_timeline_html, &[]).contains("<td>0 B</td>"));
}

#[test]
fn the_page_is_whole_and_offline_and_holds_no_foreign_markup() {
    let page = text(write_memory_timeline_html, RECORDS);
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let links = ["http://", "https://", "src=", "href=", "@import", "fetch("];
    let namespace = "http://www.w3.org/2000/svg";
    let without_namespace = page.replace(namespace, "");
    for link in links {
        assert!(!without_namespace.contains(link), "the page has {link}");
    }
    assert_eq!(page.matches("</script>").count(), 3);
    assert!(page.contains("&lt;/script&gt;&lt;b&gt;frame"));
    assert!(
        page.contains("<strong>at least 28 B</strong>"),
        "the peak is named"
    );
}

#[test]
fn the_data_of_the_page_is_json_with_the_numbers_of_its_tables() {
    let page = text(write_memory_timeline_html, RECORDS);
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    assert!(!data.contains('<'));
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let data = &data["memory"][0];
    assert_eq!(data["times"], serde_json::json!([1, 1, 2, 7]));
    assert_eq!(data["peak"], 1);
    assert_eq!(data["peak_bytes"], 28);
    for row in data["bytes"].as_array().unwrap() {
        let cells = row.as_array().unwrap().iter();
        let cells: Vec<_> = cells.map(|bytes| format!("<td>{bytes}</td>")).collect();
        assert!(page.contains(&cells.concat()), "no table has {row}");
    }
}

#[test]
fn a_long_timeline_is_thinned_without_losing_its_peak() {
    let rises = (0..20_000_u64).map(|index| {
        let bytes = if index == 7_777 { 1_000 } else { 1 };
        (index * 1_000, index + 1, bytes)
    });
    let falls = (0..20_000_u64).map(|index| {
        let bytes = if index == 7_777 { -1_000 } else { -1 };
        (20_000_000 + index * 1_000, index + 1, bytes)
    });
    let records: Vec<_> = rises.chain(falls).collect();
    let page = text(write_memory_timeline_html, &records);
    let rows = page.matches("<tr><th scope=\"row\">").count();
    assert!((2_000..5_000).contains(&rows), "{rows} rows");
    assert!(page.contains("of 40000 points"));
    assert!(page.contains("<td>20999</td>"), "the peak is one of them");
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let data = &data["memory"][0];
    let detail = data["times"].as_array().unwrap().len();
    assert!(detail > 3 * rows, "{detail} points to zoom into");
}

#[test]
fn the_summary_says_by_how_much_memory_grows_and_where() {
    let growth = MemoryGrowth {
        bytes_per_step: 4096,
        steps: 9,
        place: None,
        lines: vec![GrownLine {
            place: CodePlace {
                file: "train.py".into(),
                line: 7,
                function: "remember".into(),
            },
            bytes_per_step: 3072,
        }],
        operator: None,
    };
    let text = memory_summary(&analysis(RECORDS), HOST, &OwnCode::default(), Some(&growth));
    contains_in_order(
        &text,
        &[
            "grows by 4.00 KB in each of 9 steps, allocated in:",
            "     3.00 KB  train.py(7): remember",
        ],
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn the_summary_says_peak_end_and_holders() {
    let analysis = analysis(RECORDS);
    contains_in_order(
        &memory_summary(&analysis, HOST, &OwnCode::default(), None),
        &[
            "device cpu: peak at least 28 B, 0.002 ms into the window; at least 4 B at the\nend",
            "not known                  28 B          4 B",
            "16 B  not known        before the window (1 block)",
            "12 B  not known        outside of operators (2 blocks)",
            "</script><b>frame",
        ],
    );
}

/// Looks for each part, in order.
fn contains_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("no {part:?} in\n{rest}");
        };
        rest = after;
    }
}
