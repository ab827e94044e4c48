//! The events that scopes become.

use std::panic::catch_unwind;

use mindprof_model::{Category, DType, Flags, Input, ScopeKind};
use mindprof_record::{
    Name, NameKind, Options, Session, Site, is_recording, open, scope, scope_with,
};
use proptest::prelude::*;

use super::{names, record};

static OUTER: Site = Site::operator("outer");
static INNER: Site = Site::operator("inner");

#[test]
fn children_lie_inside_their_parents() {
    let profile = record(Options::default(), || {
        let _outer = scope(&OUTER);
        for _ in 0..3 {
            let _inner = scope(&INNER);
        }
    });
    assert_eq!(names(&profile), ["outer", "inner", "inner", "inner"]);
    let outer = profile.events()[0];
    for inner in &profile.events()[1..] {
        assert!(outer.start <= inner.start && inner.end() <= outer.end());
    }
    assert!(outer.end() <= profile.span());
}

#[test]
fn nothing_is_recorded_without_a_window() {
    assert!(!is_recording());
    drop(scope(&OUTER));
    let profile = record(Options::default(), || ());
    drop(scope(&OUTER));
    assert_eq!(names(&profile), [""; 0]);
    assert!(profile.threads().is_empty());
}

#[test]
fn a_recording_that_begins_while_inputs_are_written_is_whole() {
    let with_inputs = || Options {
        inputs: true,
        ..Options::default()
    };
    let (mut first, mut second) = (Some(Session::start(with_inputs())), None);
    drop(scope_with(&OUTER, |inputs| inputs.int(1)));
    drop(scope_with(&OUTER, |inputs| {
        let before = first.take().unwrap().stop().assemble();
        assert_eq!(names(&before), ["outer"]);
        second = Some(Session::start(with_inputs()));
        drop(scope_with(&INNER, |inputs| inputs.int(2)));
        inputs.int(3);
    }));
    drop(scope_with(&INNER, |inputs| inputs.int(3)));
    let profile = second.unwrap().stop().assemble();
    // The scope that began in the first recording is in neither; the one inside has no inputs.
    assert_eq!(names(&profile), ["inner", "inner"]);
    let inputs = |index: usize| profile.inputs().inputs(profile.events()[index].inputs);
    assert_eq!(inputs(0).count(), 0);
    assert!(matches!(inputs(1).collect::<Vec<_>>()[..], [Input::Int(3)]));
}

#[test]
fn a_scope_that_is_open_when_the_window_closes_has_its_inputs() {
    let options = Options {
        inputs: true,
        ..Options::default()
    };
    let session = Session::start(options);
    let _outer = scope_with(&OUTER, |inputs| inputs.int(1));
    let _inner = scope_with(&INNER, |inputs| inputs.int(2));
    let profile = session.stop().assemble();
    let inputs = |index: usize| profile.inputs().inputs(profile.events()[index].inputs);
    assert_eq!(names(&profile), ["outer", "inner"]);
    assert!(matches!(inputs(0).collect::<Vec<_>>()[..], [Input::Int(1)]));
    assert!(matches!(inputs(1).collect::<Vec<_>>()[..], [Input::Int(2)]));
}

#[test]
fn a_panic_closes_the_scope() {
    let profile = record(Options::default(), || {
        let _outer = scope(&OUTER);
        let panicked = catch_unwind(|| {
            let _inner = scope(&INNER);
            panic!("on purpose");
        });
        assert!(panicked.is_err());
    });
    assert_eq!(names(&profile), ["outer", "inner"]);
    assert!(
        profile
            .events()
            .iter()
            .all(|event| event.flags == Flags::NONE)
    );
}

#[test]
fn a_scope_still_open_ends_with_the_window_and_says_so() {
    let session = Session::start(Options::default());
    let outer = scope(&OUTER);
    drop(scope(&INNER));
    let profile = session.stop().assemble();
    drop(outer);
    assert_eq!(names(&profile), ["outer", "inner"]);
    let outer = profile.events()[0];
    assert_eq!(outer.flags, Flags::UNFINISHED);
    assert_eq!(outer.end(), profile.span());
    assert_eq!(profile.loss().total(), 0);
}

#[test]
fn a_scope_opened_before_the_window_is_not_in_it() {
    let first = Session::start(Options::default());
    let before = scope(&OUTER);
    drop(first.stop());
    let profile = record(Options::default(), || {
        drop(scope(&INNER));
        drop(before);
    });
    assert_eq!(names(&profile), ["inner"]);
}

#[test]
fn a_scope_closed_on_another_thread_is_marked() {
    let profile = record(Options::default(), || {
        let name = Name::intern("handed over", NameKind::Annotation);
        let handed_over = open(name).unwrap();
        std::thread::spawn(move || handed_over.close())
            .join()
            .unwrap();
        drop(scope(&OUTER));
    });
    assert_eq!(names(&profile), ["handed over", "outer"]);
    assert_eq!(profile.events()[0].flags, Flags::ASYNC);
    assert_eq!(profile.events()[1].flags, Flags::NONE);
}

#[test]
fn scopes_closed_out_of_turn_are_all_there() {
    let profile = record(Options::default(), || {
        let first = open(Name::intern("first", NameKind::Annotation)).unwrap();
        let second = open(Name::intern("second", NameKind::Annotation)).unwrap();
        first.close();
        drop(scope(&INNER));
        second.close();
    });
    assert_eq!(names(&profile), ["first", "second", "inner"]);
    assert!(
        profile
            .events()
            .iter()
            .all(|event| event.flags == Flags::NONE)
    );
}

#[test]
fn kind_sequence_and_inputs_arrive() {
    static NODE: Site = Site::backward("AddBackward0");
    let options = Options {
        inputs: true,
        ..Options::default()
    };
    let profile = record(options, || {
        let mut node = scope_with(&NODE, |inputs| {
            inputs.tensor(DType::F32, &[2, 3], &[3, 1]);
            inputs.int(1);
        });
        node.set_sequence(7);
    });
    let event = profile.events()[0];
    assert_eq!(
        (event.category, event.scope),
        (Category::Operator, ScopeKind::Backward)
    );
    assert_eq!(event.sequence(), Some(7));
    let inputs: Vec<Input<'_>> = profile.inputs().inputs(event.inputs).collect();
    assert!(matches!(
        inputs[0],
        Input::Tensor {
            dtype: DType::F32,
            dims: [2, 3],
            strides: [3, 1],
            offset: 0
        }
    ));
    assert!(matches!(inputs[1], Input::Int(1)));
}

#[test]
fn inputs_are_not_asked_for_unless_wanted() {
    let profile = record(Options::default(), || {
        drop(scope_with(&OUTER, |_| {
            unreachable!("no window wants inputs")
        }));
    });
    assert_eq!(names(&profile), ["outer"]);
}

/// A tree of scopes to run: each node holds its children.
#[derive(Clone, Debug)]
struct Nest(Vec<Nest>);

impl Nest {
    fn run(&self) {
        let _scope = scope(&INNER);
        self.0.iter().for_each(Self::run);
    }

    fn size(&self) -> usize {
        1 + self.0.iter().map(Self::size).sum::<usize>()
    }

    fn depths(&self, depth: usize, out: &mut Vec<usize>) {
        out.push(depth);
        self.0.iter().for_each(|child| child.depths(depth + 1, out));
    }
}

fn any_nest() -> impl Strategy<Value = Nest> {
    let leaf = Just(Nest(Vec::new()));
    leaf.prop_recursive(100, 200, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Nest)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_tree_of_scopes_comes_out_as_it_ran(nest in any_nest()) {
        let profile = record(Options::default(), || nest.run());
        prop_assert_eq!(profile.events().len(), nest.size());
        let mut depths = Vec::new();
        nest.depths(0, &mut depths);
        let mut open: Vec<u64> = Vec::new();
        for (event, depth) in profile.events().iter().zip(depths) {
            open.truncate(depth);
            prop_assert!(open.last().is_none_or(|end| event.end().0 <= *end));
            open.push(event.end().0);
        }
    }
}
