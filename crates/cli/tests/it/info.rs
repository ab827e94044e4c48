//! `mindprof info`.

use std::path::Path;

use crate::program::{device_golden, golden_of, run};

#[test]
fn a_trace_of_the_host_is_told() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let text = run([Path::new("info"), &trace]).printed();
    let expected = "\
Span: 30.613ms
Events: 771
  cpu_op: 254
  user_annotation: 2
  python_function: 515
Memory records: 88

Threads: 1
  Process  Thread  Name  Events      Busy
  -------  ------  ----  ------  --------
";
    assert!(text.starts_with(&expected[..60]), "{text}");
    assert!(text.contains("\nSteps: 2\n  Step  "), "{text}");
    assert!(text.contains("\n  with_stack: 1\n"), "{text}");
    assert!(text.ends_with("\nEvents lost: 0\nRepairs: 0\n"), "{text}");
}

#[test]
fn a_trace_with_a_device_is_told_as_json() {
    let trace = device_golden("gpt-full");
    let json = run([Path::new("info"), &trace, Path::new("--json")]).json();
    assert_eq!(json["events"], 6513);
    assert_eq!(json["categories"]["kernel"], 312);
    assert_eq!(json["categories"]["cpu_op"], 2668);
    assert_eq!(json["memory_records"], 780);
    let stream = &json["streams"][0];
    assert_eq!(
        (&stream["device"], &stream["thread"]),
        (&"cuda".into(), &7.into())
    );
    assert_eq!(json["threads"][0]["name"], "pt_autograd_0");
    assert_eq!(json["steps"][1]["number"], 2);
    assert_eq!(
        json["metadata"]["deviceProperties"][0]["name"],
        "NVIDIA H200"
    );
    assert_eq!(json["lost"]["total"], 0);
    assert_eq!(json["repairs"], serde_json::json!({}));
}
