//! Names that the user makes up belong to the recording: they count against its budget and are
//! freed with it.

use std::fs;

use mindprof_model::{EventId, Flags, Links, LossCause, PassthroughKind, Profile};
use mindprof_record::{
    ARGUMENT_NUMBER, Name, NameKind, Options, Session, Site, open, open_range, scope,
    wants_module_hierarchies,
};
use proptest::prelude::*;

use super::{names, record};

fn range(text: &str) {
    if let Some(open) = open_range(text, NameKind::Annotation, |_| ()) {
        open.close();
    }
}

fn with_budget(budget_bytes: usize) -> Options {
    Options {
        budget_bytes,
        ..Options::default()
    }
}

/// Returns the number of resident pages of the process.
fn resident_pages() -> u64 {
    let statistics = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = statistics.split(' ').nth(1);
    resident.and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

#[test]
fn names_as_long_as_the_budget_are_lost_and_take_no_memory() {
    const RANGES: u64 = 1_000;
    let before = resident_pages();
    let mut text = "x".repeat(1 << 20);
    let profile = record(with_budget(1 << 20), || {
        for number in 0..RANGES {
            text.replace_range(..8, &format!("{number:08}"));
            range(&text);
        }
    });
    assert_eq!(profile.events().len(), 0);
    assert_eq!(profile.loss().count(LossCause::Names), RANGES);
    assert_eq!(profile.loss().total(), RANGES);
    let grown = resident_pages().saturating_sub(before) * 4096;
    assert!(grown < 64 << 20, "{grown} bytes");
}

#[test]
fn a_scope_can_be_named_when_it_ends() {
    let profile = record(Options::default(), || {
        let mut open = open_range("step 3", NameKind::Annotation, |_| ()).expect("it is recorded");
        open.set_async();
        range("inside");
        open.rename("after the last step", NameKind::Annotation);
        open.close();
    });
    assert_eq!(names(&profile), ["after the last step", "inside"]);
    assert!(profile.events()[0].flags.contains(Flags::ASYNC));
}

#[test]
fn a_scope_that_outlives_its_recording_is_not_named_in_the_next() {
    let session = Session::start(Options::default());
    let mut open = open_range("first", NameKind::Annotation, |_| ()).expect("it is recorded");
    drop(session.stop());
    let profile = record(Options::default(), || {
        open.rename("second", NameKind::Annotation);
        open.close();
    });
    assert_eq!(names(&profile), Vec::<String>::new());
}

#[test]
fn operators_are_recorded_after_any_number_of_names() {
    static OP: Site = Site::operator("names::never seen before");
    drop(record(with_budget(32 << 20), || {
        (0..1_100_000).for_each(|number| range(&number.to_string()));
    }));
    let profile = record(Options::default(), || {
        drop(scope(&OP));
        range("a new name");
    });
    assert_eq!(names(&profile), ["names::never seen before", "a new name"]);
    assert_eq!(profile.loss().total(), 0);
}

#[test]
fn each_capture_keeps_its_names_whatever_comes_after() {
    let capture = |own: usize| {
        let session = Session::start(Options::default());
        for number in 0..100 {
            range("shared");
            range(&format!("{own} {number}"));
        }
        session.stop()
    };
    let expect_own = |profile: &Profile, own: usize| {
        let of_number = |number| ["shared".to_owned(), format!("{own} {number}")];
        let expected: Vec<String> = (0..100).flat_map(of_number).collect();
        assert_eq!(names(profile), expected);
    };
    let first = capture(1);
    drop(capture(2));
    let third = capture(3);
    let copy = first.clone();
    drop(first);
    expect_own(&copy.assemble(), 1);
    drop(copy);
    let fourth = capture(4);
    expect_own(&third.assemble(), 3);
    expect_own(&fourth.assemble(), 4);
}

#[test]
fn windows_of_one_recording_share_its_names() {
    let outer = Session::start(Options::default());
    range("shared");
    let inner = Session::start(Options::default());
    range("shared");
    let outer = outer.stop().assemble();
    range("last");
    assert_eq!(names(&outer), ["shared", "shared"]);
    assert_eq!(names(&inner.stop().assemble()), ["shared", "last"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn ranges_of_any_names_in_are_ranges_out_and_lost(
        budget_bytes in 0_usize..200_000,
        lengths in prop::collection::vec(0_usize..2_000, 1..300),
    ) {
        let profile = record(with_budget(budget_bytes), || {
            for (number, length) in lengths.iter().enumerate() {
                range(&format!("{number} {}", "x".repeat(*length)));
            }
        });
        let (kept, lost) = (profile.events().len(), profile.loss().total() as usize);
        prop_assert_eq!(kept + lost, lengths.len());
        let texts: usize = names(&profile).iter().map(|name| name.len()).sum();
        prop_assert!(texts + 32 * kept <= budget_bytes);
    }
}

/// ```text
/// outer   |-----------------|    in modules
///  inner     |------|            in modules, one deeper
/// other                      |--| in none
/// ```
#[test]
fn the_modules_of_an_operator_are_kept_for_those_who_ask() {
    let name = |text| Name::intern(text, NameKind::Operator);
    let asking = Session::start(Options {
        module_hierarchies: true,
        ..Options::default()
    });
    let other = Session::start(Options::default());
    assert!(wants_module_hierarchies());
    let outer = open(name("outer")).expect("a window is open");
    outer.set_module_hierarchy("TOP(C)::forward.");
    let inner = open(name("inner")).expect("a window is open");
    inner.set_module_hierarchy("TOP(C)::forward.A0(A)::forward.");
    inner.close();
    outer.close();
    let last = open(name("other")).expect("a window is open");
    last.set_module_hierarchy("");
    last.close();
    let found = |session: Session| {
        let profile = session.stop().assemble();
        let ids = (0..profile.events().len() as u32).map(EventId::from_raw);
        let texts = ids.map(|id| profile.module_hierarchy(id).map(str::to_owned));
        texts.collect::<Vec<_>>()
    };
    assert_eq!(found(other), [None, None, None]);
    assert_eq!(
        found(asking)
            .iter()
            .map(Option::as_deref)
            .collect::<Vec<_>>(),
        [
            Some("TOP(C)::forward."),
            Some("TOP(C)::forward.A0(A)::forward."),
            None
        ]
    );
}

/// ```text
/// outer   |-----------------|    two numbers
///  inner     |------|            the same text, other numbers
///  other              |--|       a text without numbers
///  last                    |     none
/// ```
#[test]
fn scopes_have_arguments_whose_numbers_differ() {
    let name = |text| Name::intern(text, NameKind::Operator);
    let session = Session::start(Options::default());
    let text = format!(r#""Seq":{ARGUMENT_NUMBER},"In":"[{ARGUMENT_NUMBER}, {ARGUMENT_NUMBER}]""#);
    let outer = open(name("outer")).expect("a window is open");
    outer.set_arguments(&text, &[1, 0, u64::MAX]);
    let inner = open(name("inner")).expect("a window is open");
    inner.set_arguments(&text, &[2, 3, 4]);
    inner.close();
    let other = open(name("other")).expect("a window is open");
    other.set_arguments(r#""dtype":"Float""#, &[]);
    other.close();
    let last = open(name("last")).expect("a window is open");
    last.set_arguments("", &[]);
    last.close();
    let nested = Session::start(Options::default());
    outer.close();
    assert!(arguments(&nested.stop().assemble()).is_empty());
    assert_eq!(
        arguments(&session.stop().assemble()),
        [
            Some(r#""Seq":1,"In":"[0, 18446744073709551615]""#.to_owned()),
            Some(r#""Seq":2,"In":"[3, 4]""#.to_owned()),
            Some(r#""dtype":"Float""#.to_owned()),
            None,
        ]
    );
}

#[test]
fn an_open_scope_has_its_arguments_and_one_of_an_ended_recording_has_none() {
    let session = Session::start(Options::default());
    let scope = open(Name::intern("op", NameKind::Operator)).expect("a window is open");
    scope.set_arguments(r#""a":1"#, &[]);
    let profile = session.stop().assemble();
    assert_eq!(arguments(&profile), [Some(r#""a":1"#.to_owned())]);
    let session = Session::start(Options::default());
    scope.set_arguments(r#""a":2"#, &[]);
    scope.close();
    assert!(session.stop().assemble().passthrough().is_empty());
}

fn arguments(profile: &Profile) -> Vec<Option<String>> {
    let passthrough = profile.passthrough();
    let of = |index| {
        let text = passthrough.of(PassthroughKind::Arguments, index)?;
        Some(passthrough.texts.text(text))
    };
    (0..profile.events().len()).map(of).collect()
}

#[test]
fn numbers_of_events_go_on_from_one_recording_to_the_next() {
    let name = Name::intern("op", NameKind::Operator);
    let numbers = [2, 3].map(|count| {
        let session = Session::start(Options::default());
        for _ in 0..count {
            open(name).expect("a window is open").close();
        }
        let profile = session.stop().assemble();
        let ids = (0..count).map(EventId::from_raw);
        ids.map(|id| profile.scope_number(id, &Links::default()))
            .collect::<Vec<_>>()
    });
    // Under a sanitizer, the tests of one process follow each other.
    let first = numbers[0][0];
    let expected = [[0, 1].to_vec(), [2, 3, 4].to_vec()];
    assert_eq!(
        numbers,
        expected.map(|numbers| numbers
            .iter()
            .map(|number| first + number)
            .collect::<Vec<_>>())
    );
}
