//! Checks on real traces that backward work is charged to the line of its forward operator.

use mindprof_analyze::{Analysis, FlowKind, FlowSide};
use mindprof_answers::OwnCode;
use mindprof_model::{EventId, Place, Profile, StackId};
use mindprof_trace::read_trace;

use crate::corpus::Session;

/// The backward time of a profile whose forward operator the arrows of the trace name.
#[derive(Default)]
struct BackwardTime {
    all: u64,
    /// The part that is charged to the user's line of the forward operator.
    charged: u64,
}

impl BackwardTime {
    fn of(analysis: &Analysis) -> Self {
        let profile = analysis.profile();
        let ids = || (0..profile.events().len()).map(EventId::from_index);
        let end = |id: EventId| {
            let end = analysis.flows().end_at(id, profile.event(id));
            end.filter(|end| end.kind == FlowKind::Backward)
        };
        let mut forwards = std::collections::HashMap::new();
        for id in ids() {
            if let Some(end) = end(id).filter(|end| end.side == FlowSide::Tail) {
                forwards.insert(end.number, id);
            }
        }
        let mut times = Self::default();
        // By event, the forward operator of the node that it is or runs in.
        let mut inside: Vec<Option<EventId>> = Vec::new();
        for id in ids() {
            let node = end(id).filter(|end| end.side == FlowSide::Head);
            let forward = node.and_then(|end| forwards.get(&end.number).copied());
            let around = analysis.tree().parent(id);
            let forward = forward.or_else(|| around.and_then(|around| inside[around.index()]));
            inside.push(forward);
            let Some(forward) = forward else { continue };
            let time = analysis.tree().self_time(id).0;
            times.all += time;
            let expected = own_line(profile, analysis.profile().event(forward).stack);
            let expected = expected.or_else(|| own_line(profile, analysis.charged_stack(forward)));
            if own_line(profile, analysis.charged_stack(id)) == expected {
                times.charged += time;
            }
        }
        times
    }
}

/// Returns the innermost frame of the user's own code.
fn own_line(profile: &Profile, stack: StackId) -> Option<&str> {
    let own = OwnCode::default();
    let frames = profile.stacks().frames(stack);
    let mut frames = frames.map(|frame| profile.strings().text(frame));
    frames.find(|frame| Place::parse(frame).is_some_and(|place| own.contains(place.file)))
}

#[test]
fn backward_time_is_charged_to_the_line_of_the_forward_operator() {
    let mut tested = 0;
    for session in Session::ALL {
        let profile = read_trace(&session.trace()).unwrap();
        if profile.stacks().is_empty() {
            continue;
        }
        let times = BackwardTime::of(&Analysis::build(profile));
        assert!(times.charged * 100 >= times.all * 95, "{session:?}");
        tested += usize::from(times.all > 0);
    }
    assert_eq!(tested, 3);
}
