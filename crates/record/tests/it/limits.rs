//! Limits on the operators that are recorded.
//!
//! ```text
//! step    |----------------------|      a range
//! conv      |-------------|             an operator
//! pad         |--| mm |-|      add |-|  operators
//! ```

use std::thread;

use mindprof_model::{OperatorLimit, Profile};
use mindprof_record::{Name, NameKind, Only, Options, Session, Site, open, scope};

use super::{names, record};

static STEP: Site = Site::annotation("step");
static CONV: Site = Site::operator("aten::conv2d");
static PAD: Site = Site::operator("aten::pad");
static MM: Site = Site::operator("aten::mm");
static ADD: Site = Site::operator("aten::add");

fn only(words: &[&str]) -> Options {
    let limit = OperatorLimit::parse(words.iter().copied()).expect("a limit");
    Options {
        only: Only::admitted_by(limit),
        ..Options::default()
    }
}

fn step() {
    let _step = scope(&STEP);
    {
        let _conv = scope(&CONV);
        drop(scope(&PAD));
        drop(scope(&MM));
    }
    drop(scope(&ADD));
}

fn count(profile: &Profile, name: &str) -> usize {
    names(profile)
        .into_iter()
        .filter(|&found| found == name)
        .count()
}

#[test]
fn ranges_alone_are_recorded() {
    assert_eq!(names(&record(only(&["ranges"]), step)), ["step"]);
}

#[test]
fn operators_are_chosen_by_name_wherever_they_are() {
    let profile = record(only(&["aten::conv*", "*::mm"]), step);
    assert_eq!(names(&profile), ["step", "aten::conv2d", "aten::mm"]);
}

#[test]
fn depth_counts_operators_and_no_ranges() {
    let profile = record(only(&["depth=1"]), step);
    assert_eq!(names(&profile), ["step", "aten::conv2d", "aten::add"]);
    let profile = record(only(&["depth=1", "aten::[mp]*"]), step);
    assert_eq!(names(&profile), ["step"], "what is not recorded counts too");
    let all = ["step", "aten::conv2d", "aten::pad", "aten::mm", "aten::add"];
    assert_eq!(names(&record(only(&["depth=2"]), step)), all);
}

#[test]
fn drawn_operators_come_with_all_that_is_inside_them() {
    let profile = record(only(&["share=0.25"]), || (0..20_000).for_each(|_| step()));
    assert_eq!(count(&profile, "step"), 20_000);
    let convolutions = count(&profile, "aten::conv2d");
    assert_eq!(count(&profile, "aten::pad"), convolutions);
    assert_eq!(count(&profile, "aten::mm"), convolutions);
    // Fifteen standard deviations on either side.
    for drawn in [convolutions, count(&profile, "aten::add")] {
        assert!((4_080..5_920).contains(&drawn), "{drawn} of 20,000");
    }
}

#[test]
fn a_profile_says_what_it_is_limited_to() {
    let profile = record(only(&["aten::conv*", "depth=3"]), step);
    let limit = OperatorLimit::read(profile.metadata()).unwrap();
    assert_eq!(limit.to_string(), "aten::conv*, depth=3");
    let profile = record(Options::default(), step);
    assert_eq!(OperatorLimit::read(profile.metadata()), None);
    assert_eq!(profile.events().len(), 5, "the next recording has no limit");
}

#[test]
fn windows_with_different_limits_each_have_what_they_want() {
    let whole = Session::start(Options::default());
    let ranges = Session::start(only(&["ranges"]));
    let shallow = Session::start(only(&["depth=1"]));
    let by_name = Session::start(only(&["aten::m?"]));
    step();
    let ranges = ranges.stop().assemble();
    let shallow = shallow.stop().assemble();
    let by_name = by_name.stop().assemble();
    step();
    assert_eq!(names(&ranges), ["step"]);
    assert_eq!(names(&shallow), ["step", "aten::conv2d", "aten::add"]);
    assert_eq!(names(&by_name), ["step", "aten::mm"]);
    assert_eq!(whole.stop().assemble().events().len(), 10);
}

#[test]
fn a_share_is_drawn_once_whoever_records_beside_it() {
    let part = || (0..10_000).for_each(|_| step());
    let sampled = Session::start(only(&["share=0.25"]));
    part();
    let whole = Session::start(Options::default());
    part();
    assert_eq!(whole.stop().assemble().events().len(), 50_000);
    part();
    let profile = sampled.stop().assemble();
    let convolutions = count(&profile, "aten::conv2d");
    assert_eq!(count(&profile, "aten::mm"), convolutions);
    // Fifteen standard deviations on either side of 7,500.
    assert!(
        (6_370..8_630).contains(&convolutions),
        "{convolutions} of 30,000"
    );
}

#[test]
fn an_operator_that_ends_on_another_thread_encloses_nothing_afterwards() {
    let launch = Name::intern("launch", NameKind::Operator);
    let profile = record(only(&["depth=1", "aten::*"]), || {
        let elsewhere = open(launch).unwrap();
        assert!(elsewhere.is_left_out());
        drop(scope(&ADD));
        thread::spawn(|| elsewhere.close()).join().unwrap();
        drop(scope(&MM));
    });
    assert_eq!(names(&profile), ["aten::mm"]);
}

#[test]
fn an_asynchronous_operator_encloses_nothing() {
    let launch = Name::intern("launch", NameKind::Operator);
    let profile = record(only(&["depth=1"]), || {
        let mut open = open(launch).unwrap();
        open.set_async();
        drop(scope(&ADD));
        open.close();
        drop(scope(&MM));
    });
    assert_eq!(names(&profile), ["launch", "aten::add", "aten::mm"]);
}

#[test]
fn operators_left_out_take_no_room() {
    let options = Options {
        budget_bytes: 1 << 16,
        ..only(&["aten::pad"])
    };
    let profile = record(options, || (0..100_000).for_each(|_| drop(scope(&ADD))));
    assert_eq!((profile.events().len(), profile.loss().total()), (0, 0));
}
