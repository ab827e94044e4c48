use mindprof_answers::Summary;
use mindprof_model::Timeline;
use mindprof_trace::{PhaseCounts, Repairs};
use serde_json::Value;

use super::*;

fn of(profile: &Profile) -> (String, Value) {
    let summary = Summary::build(profile);
    let info = Info {
        profile,
        summary: &summary,
        repairs: &Repairs::default(),
        set_aside: &PhaseCounts::default(),
        left_out: &PhaseCounts::default(),
        unknown_categories: &[("FEE".into(), 2)],

        work: None,
    };
    (
        info_text(&info),
        serde_json::from_str(&info.json()).unwrap(),
    )
}

#[test]
fn a_profile_is_told_in_lines() {
    let profile = Timeline::draw(|time| {
        time.annotation("ProfilerStep#3", |time| time.op("mm", 2_000));
        time.thread(22);
        time.op("relu", 1_000);
    });
    let (text, json) = of(&profile);
    assert_eq!(
        text,
        "\
Span: 2.000us
Events: 3
  cpu_op: 2
  user_annotation: 1

Threads: 2
  Process  Thread  Name  Events     Busy
  -------  ------  ----  ------  -------
        1       1             2  2.000us
        1      22             1  1.000us

Steps: 1
  Step    Start  Duration
  ----  -------  --------
     3  0.000us   2.000us

Events lost: 0
Repairs: 0
Unknown category, shown as CPU events: 2 of FEE
"
    );
    assert_eq!(json["unknown_categories"]["FEE"], 2);
    assert_eq!(json["categories"]["cpu_op"], 2);
    assert_eq!(json["threads"][1]["thread"], 22);
    assert_eq!(json["steps"][0]["duration_us"], 2.0);
    assert_eq!(json["lost"]["total"], 0);
}
