//! Copies of a profile without Python function calls, whose time thereby becomes self time of the
//! ranges around them.

use mindprof_model::{Category, Event, EventId, Nanos, Part, Profile, Selection};

use crate::analysis::Analysis;

/// Copies a profile without its Python function calls.
///
/// ```text
/// range |----------------|           range |----------------|   self: all but op
/// call    |-------------|      ==>
/// op          |---|                  op          |---|
/// ```
///
/// # Panics
/// Never: the copy has all tables of the profile, so every id stays valid.
pub fn without_calls(profile: &Profile) -> Profile {
    selected(profile, None)
}

/// Copies a profile without its Python function calls, and gives each event the stack that it
/// would show with them.
///
/// # Panics
/// Never, for the same reason as [`without_calls`].
pub fn stacks_without_calls(analysis: &Analysis) -> Profile {
    selected(analysis.profile(), Some(analysis))
}

fn selected(profile: &Profile, stacks: Option<&Analysis>) -> Profile {
    let part = Part::selected(profile, Nanos::ZERO, &mut AllButCalls { stacks });
    part.into_profile()
        .expect("the selection has all tables of the profile")
}

struct AllButCalls<'a> {
    /// The source of the events' stacks, if they are to be kept.
    stacks: Option<&'a Analysis>,
}

impl Selection for AllButCalls<'_> {
    fn event(&mut self, id: EventId, event: &Event) -> Option<Event> {
        if event.category == Category::PythonFunction {
            return None;
        }
        let mut kept = *event;
        if let Some(known) = self.stacks {
            kept.stack = known.stack(id);
        }
        Some(kept)
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{DeviceKind, LossCause, StringTable, Thread};

    use super::*;
    use crate::rows::averages::{GroupBy, averages};

    // range |----------|   0..100
    // call    |-------|    10..90
    // op        |--|       20..50
    #[test]
    fn the_time_of_calls_becomes_self_time_of_the_range_around_them() {
        let mut part = Part::new();
        let thread = part.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        let events = [
            (Category::Annotation, "range", 0, 100),
            (Category::PythonFunction, "a.py(1): call", 10, 80),
            (Category::Operator, "op", 20, 30),
        ];
        for (category, name, start, duration) in events {
            let name = part.strings.intern(name);
            part.add_event(Event::new(
                category,
                name,
                thread,
                Nanos(start),
                Nanos(duration),
            ));
        }
        part.add_loss(LossCause::Budget, 2);
        let profile = without_calls(&part.into_profile().expect("all names are there"));
        assert_eq!(profile.loss().total(), 2);
        let analysis = Analysis::build(profile);
        let rows = averages(&analysis, GroupBy::default()).rows;
        let own: Vec<_> = rows
            .iter()
            .map(|row| (row.key.as_str(), row.sums.self_cpu_total.0))
            .collect();
        assert_eq!(own, [("range", 70), ("op", 30)]);
    }
}
