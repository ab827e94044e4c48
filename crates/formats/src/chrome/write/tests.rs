use mindprof_model::{DeviceKind, Metadata, ProfileBuilder, StringTable, ThreadId, Timeline};
use serde_json::Value;

use super::*;

fn written(profile: &Profile) -> Value {
    let mut bytes = Vec::new();
    write_trace(profile, "trace.json", &mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn builder(metadata: Metadata) -> (ProfileBuilder, ThreadId) {
    let mut builder = ProfileBuilder::new();
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
    write_trace(&builder.build().unwrap(), "t", &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let line = text.lines().find(|line| line.contains("aten::mm")).unwrap();
    assert_eq!(
        line,
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":13555,\"tid\":13556,\
         \"ts\":3844538297287.281,\"dur\":47.390,\"args\":{\"External id\":1,\"Record function id\":0,\
         \"Sequence number\":7,\"Fwd thread id\":0,\"Ev Idx\":0}},"
    );
}

#[test]
fn an_empty_profile_is_a_trace() {
    let trace = written(&ProfileBuilder::new().build().unwrap());
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
    let trace = written(&builder.build().unwrap());
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
    write_trace_with(&builder.build().unwrap(), "t", &options, &mut bytes).unwrap();
    let trace: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(trace["both"], 2);
    assert_eq!(trace["tab\t日本"], "\u{1}");
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["name"] == "range"));
    assert!(events.iter().all(|event| event["name"] != "op"));
}
