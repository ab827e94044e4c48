//! Tests of whole reports: what they hold, and what they must not hold.

use std::io::Read as _;

use mindprof_analyze::{Analysis, Metric};
use mindprof_answers::{SourceFile, Work};
use mindprof_model::{
    Category, DeviceKind, Event, Links, MemoryRecord, Nanos, Part, StackId, StringTable, Thread,
    Timeline,
};

use super::*;

fn report(analysis: &Analysis) -> String {
    report_with(analysis, &ReportOptions::default())
}

fn report_with(analysis: &Analysis, options: &ReportOptions<'_>) -> String {
    let mut bytes = Vec::new();
    write_report(analysis, options, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Three steps of an operator with another one inside, called by a function of the user's.
fn steps() -> Analysis {
    Analysis::build(Timeline::draw(|time| {
        for number in 0..3 {
            time.annotation(&format!("ProfilerStep#{number}"), |time| {
                time.event(Category::PythonFunction, "train.py(7): step", |time| {
                    time.event(Category::Operator, "aten::linear", |time| {
                        time.op("aten::addmm", 300_000);
                        time.idle(50_000);
                    });
                    time.op("aten::relu", 20_000);
                });
            });
        }
    }))
}

/// An operator with a stack of one frame.
fn called_from(frame: &str) -> Analysis {
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    let name = part.strings.intern("aten::mm");
    let mut event = Event::new(Category::Operator, name, thread, Nanos(0), Nanos(500));
    let frame = part.strings.intern(frame);
    event.stack = part.stacks.push(StackId::NONE, frame);
    part.add_event(event);
    Analysis::build(part.into_profile().unwrap())
}

/// Returns the HTML of a pane.
fn pane<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<section id=\"{id}\"")).unwrap();
    rest.split_once("</section>").unwrap().0
}

/// Returns a table of the document.
fn table_of<'a>(document: &'a serde_json::Value, id: &str) -> &'a serde_json::Value {
    let mut tables = document["tables"].as_array().unwrap().iter();
    tables.find(|table| table["id"] == id).unwrap()
}

/// Returns the document of the data block and the bytes of its columns.
fn unpacked(page: &str) -> (serde_json::Value, Vec<u8>) {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let packed = from_base64(data["packed"].as_str().unwrap());
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(&packed[..])
        .read_to_end(&mut plain)
        .unwrap();
    let length = u32::from_le_bytes(plain[..4].try_into().unwrap()) as usize;
    let document = serde_json::from_slice(&plain[4..4 + length]).unwrap();
    (document, plain[4 + length..].to_vec())
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.trim_end_matches('=').bytes().map(value).collect();
    let groups = letters.chunks(4);
    let bytes = groups.flat_map(|group| {
        let bits = group
            .iter()
            .fold(0_u32, |bits, letter| bits << 6 | u32::from(*letter));
        let bits = bits << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    });
    bytes.collect()
}

/// Returns a column as `columns.js` reads it.
fn column(page: &str, name: &str) -> Vec<u64> {
    let (document, bytes) = unpacked(page);
    let places = document["columns"].as_array().unwrap();
    let place = places.iter().find(|place| place["name"] == name).unwrap();
    let number = |key: &str| place[key].as_u64().unwrap() as usize;
    let (offset, count, width) = (number("offset"), number("count"), number("width"));
    let limit = 1_u64 << (8 * width);
    let mut sum = 0;
    let values = (0..count).map(|index| {
        let bytes_of = 0..width;
        let value =
            bytes_of.map(|plane| u64::from(bytes[offset + plane * count + index]) << (8 * plane));
        let value: u64 = value.sum();
        if place["is_difference"] == false {
            return value;
        }
        sum = (sum + value) % limit;
        sum
    });
    values.collect()
}

/// Returns where the events of the first track begin, as `startsOf` finds it.
fn drawn_starts(page: &str) -> Vec<u64> {
    let (gaps, insides) = (column(page, "gap"), column(page, "inside"));
    let durations = column(page, "duration");
    let (mut start, mut end) = (0, 0);
    let starts = gaps.iter().zip(insides).zip(durations);
    let starts = starts.map(|((gap, is_inside), duration)| {
        start = if is_inside == 1 { start } else { end } + gap;
        end = start + duration;
        start
    });
    starts.collect()
}

#[test]
fn a_report_is_whole_and_offline() {
    let page = report(&steps());
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for name in [
        "policy",
        "title",
        "subtitle",
        "early",
        "navigation",
        "panes",
        "data",
        "script",
    ] {
        assert!(!page.contains(&format!("{{{{{name}}}}}")), "{name} is left");
    }
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for link in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(link), "the page has {link}");
    }
    for id in [
        "overview",
        "step",
        "operators",
        "flames",
        "code",
        "about",
        "detail",
    ] {
        assert!(
            page.contains(&format!("<section id=\"{id}\"")),
            "no pane {id}"
        );
    }
}

#[test]
fn columns_have_the_times_and_names_of_the_events() {
    let analysis = steps();
    let page = report(&analysis);
    let (document, _) = unpacked(&page);
    let profile = analysis.profile();
    let starts: Vec<u64> = profile.events().iter().map(|event| event.start.0).collect();
    assert_eq!(drawn_starts(&page), starts);
    let durations: Vec<u64> = profile
        .events()
        .iter()
        .map(|event| event.duration.0)
        .collect();
    assert_eq!(column(&page, "duration"), durations);
    let names = column(&page, "name");
    for (name, event) in names.iter().zip(profile.events()) {
        assert_eq!(document["strings"][*name as usize], profile.name(event));
    }
    assert_eq!(document["steps"].as_array().unwrap().len(), 3);
}

#[test]
fn the_table_of_operators_has_the_numbers_of_the_engine() {
    let analysis = steps();
    let (document, _) = unpacked(&report(&analysis));
    let table = table_of(&document, "operators");
    let work = Work::of(&analysis);
    let rows = work.averages(&analysis, work.grouping(analysis.profile()));
    let row = rows
        .averages
        .rows
        .iter()
        .find(|row| row.key == "aten::linear")
        .unwrap();
    let shown = table["rows"].as_array().unwrap().iter();
    let shown = shown
        .filter(|row| row[0][0] == "aten::linear")
        .collect::<Vec<_>>();
    assert_eq!(shown.len(), 1);
    let micros = Metric::SelfCpuTimeTotal.of(&row.sums).float();
    assert_eq!(shown[0][1], micros * 1000.0);
    assert_eq!(row.sums.self_cpu_total, Nanos(150_000));
}

#[test]
fn hostile_names_are_text_everywhere() {
    let name = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}\u{1f525}";
    let analysis = Analysis::build(Timeline::draw(|time| {
        time.annotation("ProfilerStep#0", |time| {
            let call = format!("{name}.py(7): {name}");
            time.event(Category::PythonFunction, &call, |time| {
                time.op(name, 300_000);
            });
        });
    }));
    let page = report(&analysis);
    assert_eq!(
        page.matches("</script>").count(),
        3,
        "the page's own scripts"
    );
    assert!(!page.contains("<img") && !page.contains("<script>alert"));
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    assert!(
        !page.contains('\u{202e}'),
        "the writing direction is not changed"
    );
}

#[test]
fn profiles_with_next_to_nothing_have_a_report() {
    let empty = Analysis::build(Timeline::draw(|_| {}));
    let page = report(&empty);
    assert!(page.contains("Nothing was recorded") && page.contains(">no events</span>"));
    assert!(!page.contains("0 events"));
    let one = Analysis::build(Timeline::draw(|time| time.op("aten::mm", 1)));
    assert_eq!(column(&report(&one), "duration"), [1]);
}

#[test]
fn source_lines_are_only_those_that_were_given() {
    let analysis = called_from("train.py(7): step");
    let (document, _) = unpacked(&report(&analysis));
    assert_eq!(document["source"], serde_json::json!({}));
    let lines = (1..=30).map(|number| format!("line {number}")).collect();
    let options = ReportOptions {
        sources: vec![SourceFile {
            file: "train.py".into(),
            functions: Vec::new(),
            lines,
        }],
        ..ReportOptions::default()
    };
    let (document, _) = unpacked(&report_with(&analysis, &options));
    let lines = document["source"]["train.py"].as_object().unwrap();
    assert_eq!(lines["7"], "line 7");
    assert!(!lines.contains_key("20"), "lines without cost stay out");
}

#[test]
fn a_finding_without_a_price_is_the_verdict_too() {
    // Each step allocates a block that nothing frees.
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    for step in 0..10_u64 {
        let name = part.strings.intern(&format!("ProfilerStep#{step}"));
        let (start, long) = (Nanos(step * 1_000_000), Nanos(900_000));
        part.add_event(Event::new(Category::Annotation, name, thread, start, long));
        let name = part.strings.intern("aten::mm");
        part.add_event(Event::new(Category::Operator, name, thread, start, long));
        part.add_memory(MemoryRecord {
            time: Nanos(step * 1_000_000 + 1000),
            address: step + 1,
            bytes: 1 << 20,
            total_allocated: (step + 1) << 20,
            total_reserved: 0,
            thread,
            stack: StackId::NONE,
            device: DeviceKind::Cpu,
            device_index: -1,
        });
    }
    let page = report(&Analysis::build(part.into_profile().unwrap()));
    let (_, verdict) = page.split_once("<h1 class=\"verdict\">").unwrap();
    assert!(verdict.starts_with("Memory grows with every step: 1.00\u{a0}MB a step</h1>"));
    let memory = pane(&page, "memory");
    let finding =
        "<li><a data-href=\"#detail?kind=finding&amp;name=0\">Memory grows with every step</a>: ";
    assert!(memory.contains(finding), "the pane names the finding");
    // The amount is not exact, which the overview says as the pane does.
    let peak = "at least 10.00 MB";
    assert!(memory.contains(&format!("Peak <strong>{peak}</strong>")));
    assert!(page.contains(&format!("<b>{peak}</b><span>peak memory</span>")));
}

#[test]
fn a_repeated_number_of_a_step_is_told() {
    let draw = |numbers: [u64; 3]| {
        Analysis::build(Timeline::draw(|time| {
            for number in numbers {
                time.annotation(&format!("ProfilerStep#{number}"), |time| {
                    time.op("aten::mm", 300);
                });
            }
        }))
    };
    let told = "1 range with the number of an earlier step";
    assert!(report(&draw([3, 4, 3])).contains(told));
    assert!(!report(&draw([3, 4, 5])).contains("number of an earlier step"));
}

/// A recording of a single step is too short for conclusions, which one sentence says.
#[test]
fn a_bad_capture_is_told_once() {
    let page = report(&Analysis::build(Timeline::draw(|time| {
        time.annotation("ProfilerStep#0", |time| {
            time.op("aten::linear", 300_000);
        });
    })));
    let overview = pane(&page, "overview");
    assert_eq!(overview.matches("fewer than two steps").count(), 1);
    assert!(overview.contains("<a data-href=\"#detail?kind=finding&amp;name=0\">fewer than two"));
}

/// Launches without their kernels are a gap, which no sentence denies.
#[test]
fn a_recording_with_gaps_is_not_called_complete() {
    let page = report(&Analysis::build(Timeline::draw(|time| {
        for number in 0..4 {
            time.annotation(&format!("ProfilerStep#{number}"), |time| {
                for _ in 0..10 {
                    time.scope("aten::mm", |time| {
                        time.event(Category::Runtime, "cudaLaunchKernel", |time| {
                            time.idle(10_000);
                        });
                    });
                }
            });
        }
    })));
    let gap = "lacks the device work of 40 of 40 kernel launches";
    assert!(!page.contains("No event was lost"));
    assert_eq!(pane(&page, "overview").matches(gap).count(), 1);
    assert_eq!(pane(&page, "about").matches(gap).count(), 1);
}

/// Four steps whose kernels run behind them, and work of another program part outside of them.
///
/// ```text
/// CPU     |-0-|-1-|-2-|
/// device      |----0----|----1----|----2----|
/// ```
fn behind(kernel_ns: u64) -> Analysis {
    let mut part = Part::new();
    let thread = |native, device| Thread {
        process: u64::from(device == DeviceKind::Cpu),
        native,
        name: StringTable::EMPTY,
        device,
    };
    let cpu = part.add_thread(thread(1, DeviceKind::Cpu));
    let stream = part.add_thread(thread(7, DeviceKind::Cuda));
    for step in 0..4_u64 {
        let start = Nanos(step * 1_000_000);
        let name = part.strings.intern(&format!("ProfilerStep#{step}"));
        part.add_event(Event::new(
            Category::Annotation,
            name,
            cpu,
            start,
            Nanos(900_000),
        ));
        let name = part.strings.intern("cudaLaunchKernel");
        let launch = Event::new(Category::Runtime, name, cpu, start + Nanos(500), Nanos(900));
        let name = part.strings.intern("gemm");
        let begin = Nanos(2_000_000 + step * kernel_ns);
        let kernel = Event::new(Category::Kernel, name, stream, begin, Nanos(kernel_ns));
        for event in [launch, kernel] {
            part.add_linked_event(event, Links::new(0, step as u32 + 1));
        }
    }
    let name = part.strings.intern("outside");
    let (begin, long) = (Nanos(30_000_000), Nanos(1_000_000));
    part.add_event(Event::new(Category::Kernel, name, stream, begin, long));
    Analysis::build(part.into_profile().unwrap())
}

#[test]
fn a_device_that_runs_behind_has_steps_of_its_own() {
    let page = report(&behind(5_000_000));
    let overview = pane(&page, "overview");
    assert!(overview.contains("<b>5.00 ms</b><span>median step on the device</span>"));
    assert!(overview.contains("<b>900 us</b><span>median step on the CPU</span>"));
    let device = overview.find("<h2>Steps on the device</h2>").unwrap();
    assert!(device < overview.find("<h2>Steps on the CPU</h2>").unwrap());
    assert!(overview.contains("The time of a step on the device is kernel"));
    assert!(overview.contains("<title>Step 2: 5.00 ms\nkernel 5.00 ms</title>"));
    // Percentiles of four steps are steps themselves.
    assert!(overview.contains("<small>longest 900 us</small>"));
    let (document, _) = unpacked(&page);
    assert_eq!(
        document["steps"][2]["device"],
        serde_json::json!([12_000_000, 5_000_000])
    );
    // A kernel has no times on the CPU, not even a longest one.
    let operators = table_of(&document, "operators");
    let (columns, rows) = (&operators["columns"], operators["rows"].as_array().unwrap());
    let is_of_cpu = |title: &str| title.starts_with("CPU ");
    for (at, column) in columns.as_array().unwrap().iter().enumerate() {
        for row in rows.iter().filter(|row| row[1] == "device") {
            assert!(!is_of_cpu(column["title"].as_str().unwrap()) || row[at].is_null());
        }
    }
    assert!(rows.iter().any(|row| row[1] == "device"));
    // Numbers stay with their units.
    assert!(pane(&page, "kernels").contains("20.0\u{a0}ms of 22.0\u{a0}ms"));
    let devices = pane(&page, "kernels").replace('\u{a0}', " ");
    assert!(devices.contains("<li>Busy 91 % of the steps: 20.0 ms of 22.0 ms.</li>"));
    assert!(devices.contains("of the recording, which has work outside of the steps: 21.0 ms of "));
}

#[test]
fn a_range_on_a_device_is_no_device_work() {
    let mut part = Part::new();
    let cuda = part.add_thread(Thread {
        process: 0,
        native: 7,
        name: StringTable::EMPTY,
        device: DeviceKind::Cuda,
    });
    for (category, name, long) in [
        (Category::DeviceAnnotation, "forward", 900),
        (Category::Kernel, "gemm", 500),
    ] {
        let name = part.strings.intern(name);
        part.add_event(Event::new(category, name, cuda, Nanos(0), Nanos(long)));
    }
    let page = report(&Analysis::build(part.into_profile().unwrap()));
    let (document, _) = unpacked(&page);
    let table = table_of(&document, "operators");
    let titles: Vec<&str> = (table["columns"].as_array().unwrap().iter())
        .map(|column| column["title"].as_str().unwrap())
        .collect();
    assert_eq!(
        titles[..5],
        [
            "Name",
            "Runs on",
            "Self device",
            "Self device %",
            "Device total"
        ]
    );
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(
        rows[0].as_array().unwrap()[1..5],
        serde_json::json!(["device", 500.0, 1.0, 500.0])
            .as_array()
            .unwrap()[..]
    );
    assert_eq!(
        rows[1].as_array().unwrap()[1..5],
        serde_json::json!(["device, range", null, null, 900.0])
            .as_array()
            .unwrap()[..]
    );
}

/// step  |------------------------------|
/// op      |-7-|  |--------9---------|      the lines of `train.py` that call it
#[test]
fn functions_on_the_critical_path_are_named_as_in_the_table_of_functions() {
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    for step in 0..3 {
        let from = step * 1_000_000;
        let name = part.strings.intern(&format!("ProfilerStep#{step}"));
        let (start, long) = (Nanos(from), Nanos(900_000));
        part.add_event(Event::new(Category::Annotation, name, thread, start, long));
        for (line, start, long) in [(7, 50_000, 100_000), (9, 200_000, 600_000)] {
            let name = part.strings.intern("aten::mm");
            let start = Nanos(from + start);
            let mut event = Event::new(Category::Operator, name, thread, start, Nanos(long));
            let frame = part.strings.intern(&format!("train.py({line}): step"));
            event.stack = part.stacks.push(StackId::NONE, frame);
            part.add_event(event);
        }
    }
    let page = report(&Analysis::build(part.into_profile().unwrap()));
    let (document, _) = unpacked(&page);
    let name = |table: &str| table_of(&document, table)["rows"][0][0].clone();
    assert!(name("functions").to_string().contains("step (train.py:9)"));
    assert_eq!(name("path-functions"), name("functions"));
}

#[test]
fn long_names_are_cut_and_lead_to_their_details() {
    let name = "x".repeat(1 << 20);
    let analysis = Analysis::build(Timeline::draw(|time| {
        time.op(&format!("{name}1"), 300);
        time.op(&format!("{name}2"), 200);
    }));
    let page = report(&analysis);
    let (document, _) = unpacked(&page);
    let strings = document["strings"].as_array().unwrap();
    let rows = &table_of(&document, "operators")["rows"];
    for row in 0..2 {
        let shown = rows[row][0][0].as_str().unwrap();
        assert!(shown.len() < 5000, "{}", shown.len());
        assert!(strings.iter().any(|text| text == shown));
        let view = rows[row][0][1].as_str().unwrap();
        assert!(view.len() < 5000 && view.starts_with("detail?kind=operator&name=xxx"));
    }
    assert!(rows[0][0] != rows[1][0]);
    assert!(document.to_string().len() < 100_000);
}

#[test]
fn times_beyond_what_scripts_count_are_refused() {
    let longest = 1 << 53;
    let write = |duration| {
        let analysis = Analysis::build(Timeline::draw(|time| time.op("aten::mm", duration)));
        let mut page = Vec::new();
        let written = write_report(&analysis, &ReportOptions::default(), &mut page);
        written.map(|()| String::from_utf8(page).unwrap())
    };
    assert_eq!(column(&write(longest).unwrap(), "duration"), [longest]);
    let refused = write(longest * 4).unwrap_err().to_string();
    assert!(refused.starts_with("events span 416 days"), "{refused}");
}

/// ```text
/// x  |----------------|   the inner x is the only content of the outer one: one call
/// x    |-----------|
/// y      |--|
/// ```
#[test]
fn merged_calls_are_marked() {
    let analysis = Analysis::build(Timeline::draw(|time| {
        time.event(Category::Operator, "x", |time| {
            time.event(Category::Operator, "x", |time| time.op("y", 100));
        });
    }));
    assert_eq!(column(&report(&analysis), "merged_at"), [1]);
}

/// Returns the report of a profile compared with another one.
fn compared(before: &Analysis, after: &Analysis) -> String {
    let options = ReportOptions {
        compare: Some(Compared {
            analysis: before,
            name: "before.json",
        }),
        ..ReportOptions::default()
    };
    report_with(after, &options)
}

#[test]
fn runs_that_are_bound_by_the_device_are_compared_by_its_steps() {
    let page = compared(&behind(2_000_000), &behind(5_000_000));
    let compare = pane(&page, "compare");
    let text =
        "The median step on the device grew from 2.00\u{a0}ms to 5.00\u{a0}ms (+150.0\u{a0}%).";
    assert!(compare.contains(text), "{compare}");
    let text = "Device time per step grew from 2.00\u{a0}ms to 5.00\u{a0}ms";
    assert!(
        compare.contains(text),
        "work outside of the steps counts: {compare}"
    );
}

/// ```text
/// before   |step|step|
/// now      |step|step|step|step|------sync------|
/// ```
#[test]
fn steps_are_compared_whatever_their_number_and_what_surrounds_them() {
    let profile = |steps: u64, stop: u64| {
        Analysis::build(Timeline::draw(|time| {
            for number in 0..steps {
                time.annotation(&format!("ProfilerStep#{number}"), |time| {
                    time.op("aten::mm", 300_000);
                    time.op(if stop == 0 { "aten::old" } else { "aten::new" }, 1_000);
                });
            }
            if stop > 0 {
                time.op("cudaDeviceSynchronize", stop);
            }
        }))
    };
    let page = compared(&profile(2, 0), &profile(4, 9_000_000));
    let compare = pane(&page, "compare");
    assert!(
        compare.contains("CPU time per step is 301\u{a0}us, as before."),
        "{compare}"
    );
    assert!(compare.contains("2 steps before, 4 steps now"));
    assert!(!compare.contains("cudaDeviceSynchronize"));
    assert!(
        compare.contains("they have 1 of 3 operators and runtime calls in common"),
        "{compare}"
    );
    let (document, _) = unpacked(&page);
    let table = table_of(&document, "compare");
    assert_eq!(table["columns"][3]["title"], "Before/step");
    let rows = table["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row[0] == name || row[0][0] == name);
    assert!(row("aten::mm").is_none(), "it takes as long in each step");
    assert_eq!(row("aten::new").unwrap()[4], 1000.0);
    // The page has no events of it to lead to.
    assert_eq!(row("aten::old").unwrap()[0], "aten::old");
}

/// ```text
/// main thread       |----run_backward----|
/// backward thread      |--MulBackward0--|
/// ```
#[test]
fn the_flame_graph_marks_the_wait_for_the_backward_thread() {
    let profile = |has_backward: bool| {
        let mut part = Part::new();
        let threads = [1, 2].map(|native| {
            part.add_thread(Thread {
                process: 1,
                native,
                name: StringTable::EMPTY,
                device: DeviceKind::Cpu,
            })
        });
        let name = "<built-in method run_backward of torch._C._EngineBase>";
        let engine = part.strings.intern(name);
        let kind = Category::PythonFunction;
        part.add_event(Event::new(kind, engine, threads[0], Nanos(0), Nanos(9_000)));
        let name = if has_backward {
            "autograd::engine::evaluate_function: MulBackward0"
        } else {
            "aten::mul"
        };
        let node = part.strings.intern(name);
        part.add_event(Event::new(
            Category::Operator,
            node,
            threads[1],
            Nanos(100),
            Nanos(8_000),
        ));
        report(&Analysis::build(part.into_profile().unwrap()))
    };
    for has_backward in [true, false] {
        let (document, _) = unpacked(&profile(has_backward));
        let mut strings = document["strings"].as_array().unwrap().iter();
        let is_told = strings.any(|text| text == "waiting for the backward thread");
        assert_eq!(is_told, has_backward);
    }
}

#[test]
fn a_comparison_names_what_is_new() {
    let before = Analysis::build(Timeline::draw(|time| time.op("aten::mm", 300)));
    let after = Analysis::build(Timeline::draw(|time| {
        time.op("aten::mm", 300);
        time.op("aten::sort", 500);
    }));
    let page = compared(&before, &after);
    assert!(page.contains("<h1>Compared with before.json</h1>"));
    let (document, _) = unpacked(&page);
    let table = table_of(&document, "compare");
    assert_eq!(table["rows"][0][0][0], "aten::sort");
    assert_eq!(table["rows"][0][2], 500.0);
}

#[test]
fn the_policy_names_the_hashes_of_what_runs() {
    let page = report(&steps());
    let (_, rest) = page
        .split_once("Content-Security-Policy\" content=\"")
        .unwrap();
    let (policy, _) = rest.split_once('"').unwrap();
    assert!(policy.starts_with("default-src &#39;none&#39;"), "{policy}");
    assert!(!policy.contains("unsafe"));
    assert_eq!(policy.matches("sha256-").count(), 3);
    assert!(
        !page.contains(" style=\""),
        "a style attribute would be refused"
    );
    assert!(
        !page.contains(" onclick=\""),
        "a listener attribute would be refused"
    );
}

#[test]
fn the_overview_for_notebooks_is_a_frame_without_scripts() {
    let frame = overview_frame(&steps());
    assert!(frame.starts_with("<iframe sandbox ") && frame.ends_with("</iframe>"));
    assert_eq!(frame.matches('<').count(), 2, "the page inside is escaped");
    assert!(!frame.contains("&lt;script"));
}
