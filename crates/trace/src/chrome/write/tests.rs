use mindprof_model::{
    DeviceKind, Links, LossCause, Metadata, Part, StackId, StringTable, Thread, ThreadId, Timeline,
};
use serde_json::Value;

use super::*;

fn written(profile: &Profile) -> Value {
    let mut bytes = Vec::new();
    write_trace(profile, "trace.json", &mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn builder(metadata: Metadata) -> (Part, ThreadId) {
    let mut builder = Part::new();
    builder.metadata = metadata;
    builder.reference_unix_ns = 1_794_701_564_297_286_281;
    let thread = builder.add_thread(Thread {
        process: 13555,
        native: 13556,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    (builder, thread)
}

#[test]
fn an_operator_has_torchs_keys_and_exact_times() {
    let (mut builder, thread) = builder(Metadata::default());
    let name = builder.strings.intern("aten::mm");
    let mut event = Event::new(
        Category::Operator,
        name,
        thread,
        Nanos(1_000),
        Nanos(47_390),
    );
    event.set_sequence(Some(7));
    builder.add_event(event);
    let mut bytes = Vec::new();
    write_trace(&builder.into_profile().unwrap(), "t", &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let line = text.lines().find(|line| line.contains("aten::mm")).unwrap();
    assert_eq!(
        line,
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":13555,\"tid\":13556,\
         \"ts\":3844538297287.281,\"dur\":47.390,\"args\":{\"External id\":1,\"Record function id\":0,\
         \"Sequence number\":7,\"Fwd thread id\":0,\"Ev Idx\":0}}"
    );
}

#[test]
fn an_empty_profile_is_a_trace() {
    let trace = written(&Part::new().into_profile().unwrap());
    assert_eq!(trace["schemaVersion"], 1);
    assert_eq!(trace["traceName"], "trace.json");
    assert_eq!(trace["deviceProperties"], Value::Array(vec![]));
    assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 4);
}

#[test]
fn names_of_any_language_and_control_characters_stay() {
    let name = "日本 \"quoted\" \\ \n\t\u{0}\u{7f}\u{2028} 🙂";
    let trace = written(&Timeline::draw(|time| time.op(name, 5)));
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["name"] == name));
}

#[test]
fn metadata_that_is_no_json_becomes_a_string() {
    let mut metadata = Metadata::default();
    metadata.set("good", "{\"a\": [1]}");
    metadata.set("bad", "say \"hi\" \\");
    metadata.set("traceEvents", "1");
    let (mut builder, _) = builder(metadata);
    builder.add_loss(LossCause::Budget, 3);
    let trace = written(&builder.into_profile().unwrap());
    assert_eq!(trace["good"]["a"][0], 1);
    assert_eq!(trace["bad"], "say \"hi\" \\");
    assert_eq!(trace["user_traceEvents"], 1);
    assert_eq!(trace["mindprof"]["lost"]["budget"], 3);
    assert_eq!(trace["baseTimeNanoseconds"], 1_790_857_026_000_000_000_u64);
}

#[test]
fn metadata_of_the_file_wins_and_categories_can_be_left_out() {
    let mut of_profile = Metadata::default();
    of_profile.set("both", "1");
    let (mut builder, thread) = builder(of_profile);
    for (category, name) in [(Category::Operator, "op"), (Category::Annotation, "range")] {
        let name = builder.strings.intern(name);
        builder.add_event(Event::new(category, name, thread, Nanos(0), Nanos(5)));
    }
    let mut options = TraceOptions {
        leave_out: vec![Category::Operator],
        ..TraceOptions::default()
    };
    options.metadata.set("both", "2");
    options.metadata.set("tab\t日本", "\u{1}");
    let mut bytes = Vec::new();
    write_trace_with(&builder.into_profile().unwrap(), "t", &options, &mut bytes).unwrap();
    let trace: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(trace["both"], 2);
    assert_eq!(trace["tab\t日本"], "\u{1}");
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["name"] == "range"));
    assert!(events.iter().all(|event| event["name"] != "op"));
}

fn event<'a>(trace: &'a Value, name: &str) -> &'a Value {
    let mut events = trace["traceEvents"].as_array().unwrap().iter();
    events.find(|event| event["name"] == name).unwrap()
}

#[test]
fn crossing_events_are_drawn_beside_their_thread() {
    // range |-----------|         0..10
    //   call      |--------|      6..15
    let (mut builder, thread) = builder(Metadata::default());
    for (category, name, start, length) in [
        (Category::Annotation, "range", 0, 10),
        (Category::PythonFunction, "call", 6, 9),
    ] {
        let name = builder.strings.intern(name);
        let (start, length) = (Nanos(start), Nanos(length));
        builder.add_event(Event::new(category, name, thread, start, length));
    }
    let trace = written(&builder.into_profile().unwrap());
    assert_eq!(event(&trace, "call")["tid"], 13556);
    assert_eq!(event(&trace, "range")["tid"], 13557);
    let overflow = &trace["mindprof"]["spare_tracks"];
    assert_eq!(
        overflow.to_string(),
        "[{\"of\":13556,\"pid\":13555,\"tid\":13557}]"
    );
    let names = trace["traceEvents"].as_array().unwrap().iter();
    let names: Vec<_> = names
        .filter(|event| event["name"] == "thread_name")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["thread 13556", "thread 13556, overlapping 1"]);
}

#[test]
fn python_calls_name_their_callers_on_their_own_thread() {
    // thread 0   outer |--------------|      0..20
    //            nn.Module: Linear_3 |--|    4..8
    // thread 1   other    |------|           2..10
    let (mut builder, thread) = builder(Metadata::default());
    let second = builder.add_thread(Thread {
        native: 1,
        ..builder.threads()[0]
    });
    let outer = builder.strings.intern("outer");
    let in_outer = builder.stacks.push(StackId::NONE, outer);
    for (name, thread, start, length, stack) in [
        ("outer", thread, 0, 20, StackId::NONE),
        ("other", second, 2, 8, StackId::NONE),
        ("nn.Module: Linear_3", thread, 4, 4, in_outer),
    ] {
        let name = builder.strings.intern(name);
        let (start, length) = (Nanos(start), Nanos(length));
        let mut event = Event::new(Category::PythonFunction, name, thread, start, length);
        event.stack = stack;
        builder.add_event(event);
    }
    let trace = written(&builder.into_profile().unwrap());
    let numbers = |name: &str| {
        let arguments = &event(&trace, name)["args"];
        ["Python id", "Python parent id", "Python module id"].map(|key| arguments[key].as_u64())
    };
    assert_eq!(numbers("outer"), [Some(1), None, None]);
    assert_eq!(numbers("other"), [Some(2), None, None]);
    assert_eq!(numbers("nn.Module: Linear_3"), [Some(3), Some(1), Some(3)]);
}

#[test]
fn python_calls_say_the_line_they_were_made_from() {
    // a.py(1): outer |--------------|   0..20
    //   inner    |--|                   4..8, called in line 7
    let (mut builder, thread) = builder(Metadata::default());
    let line = builder.strings.intern("a.py(7): outer");
    let in_outer = builder.stacks.push(StackId::NONE, line);
    for (name, start, length, stack) in [
        ("a.py(1): outer", 0, 20, StackId::NONE),
        ("a.py(3): inner", 4, 4, in_outer),
    ] {
        let name = builder.strings.intern(name);
        let (start, length) = (Nanos(start), Nanos(length));
        let mut event = Event::new(Category::PythonFunction, name, thread, start, length);
        event.stack = stack;
        builder.add_event(event);
    }
    let trace = written(&builder.into_profile().unwrap());
    let inner = &event(&trace, "a.py(3): inner")["args"];
    assert_eq!(
        (&inner["CallFrom"], &inner["Python parent id"]),
        (&"a.py:7".into(), &1.into())
    );
    assert_eq!(
        event(&trace, "a.py(1): outer")["args"]["CallFrom"],
        Value::Null
    );
}

#[test]
fn arrows_lead_from_calls_to_the_work_of_devices() {
    let (mut builder, thread) = builder(Metadata::default());
    for (category, name, correlation) in [
        (Category::Runtime, "cudaLaunchKernel", 6),
        (Category::Runtime, "cudaDeviceSynchronize", 7),
        (Category::Kernel, "first", 6),
        (Category::Kernel, "second", 6),
    ] {
        let name = builder.strings.intern(name);
        let event = Event::new(category, name, thread, Nanos(0), Nanos(2));
        builder.add_linked_event(event, Links::new(0, correlation));
    }
    let trace = written(&builder.into_profile().unwrap());
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let ends: Vec<_> = events
        .filter(|event| event["cat"] == "ac2g")
        .map(|event| (event["ph"].as_str().unwrap(), event["id"].as_u64().unwrap()))
        .collect();
    assert_eq!(ends, [("s", 6), ("f", 6), ("f", 6)]);
}

#[test]
fn devices_stay_of_their_kind() {
    for device in [
        DeviceKind::Cuda,
        DeviceKind::PrivateUse1,
        DeviceKind::Xpu,
        DeviceKind::Hpu,
    ] {
        let (mut builder, _) = builder(Metadata::default());
        let stream = builder.add_thread(Thread {
            process: 0,
            native: 7,
            name: StringTable::EMPTY,
            device,
        });
        let name = builder.strings.intern("work");
        builder.add_event(Event::new(
            Category::Kernel,
            name,
            stream,
            Nanos(0),
            Nanos(2),
        ));
        let mut bytes = Vec::new();
        write_trace(&builder.into_profile().unwrap(), "t", &mut bytes).unwrap();
        let again = crate::read_trace(&bytes).unwrap();
        let thread = again.events()[0].thread;
        assert_eq!(again.threads()[thread.index()].device, device);
    }
}

/// Nested calls, each with the number of its caller. The names of all callers with every call would
/// take megabytes.
#[test]
fn deep_calls_take_room_by_their_number() {
    let calls: Vec<String> = (1..=2_000)
        .map(|number| {
            let (start, duration) = (number, 10_000 - 2 * number);
            let caller = number - 1;
            format!(
                r#"{{"ph":"X","cat":"python_function","name":"deep.py({number}): f","pid":1,"tid":1,"ts":{start},"dur":{duration},"args":{{"Python id":{number},"Python parent id":{caller}}}}}"#
            )
        })
        .collect();
    let trace = format!("[{}]", calls.join(","));
    let profile = crate::read_trace(trace.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    write_trace(&profile, "deep.json", &mut bytes).unwrap();
    // The size is quadratic up to the depth at which names end, and not beyond.
    let square = 500 * 500 / 2 * "deep.py(1000): f;".len();
    assert!(bytes.len() < 2 * square, "{}", bytes.len());
    let again = crate::read_trace(&bytes).unwrap();
    let frames = |profile: &Profile| {
        let last = profile.events().last().unwrap();
        profile.stacks().frames(last.stack).count()
    };
    assert_eq!((frames(&profile), frames(&again)), (1_999, 1_999));
}
