//! Owners of device work in traces without usable external ids: the operator that was running when
//! the runtime call was made.
//!
//! Some versions of Kineto, and some tools that cut traces, write the correlation id in place of
//! the external id. Read as the id of a scope, it matches no scope or a wrong one.

use mindprof_model::{Category, Event, EventId, Flags, Nanos, Profile};
use rustc_hash::{FxHashMap, FxHashSet};

/// The origins of a profile whose device work has no usable external ids.
///
/// [`super::correlate::Correlation`] checks it before it trusts external ids, and takes
/// [`Self::owners`] for the origins listed here. Merged profiles may mix both kinds, so each origin
/// is judged by itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unnumbered {
    origins: FxHashSet<usize>,
}

impl Unnumbered {
    /// Finds the origins in which every external id of a kernel is missing or repeats the
    /// correlation id. An origin without runtime calls offers nothing better, so its ids are used.
    pub(crate) fn find(profile: &Profile) -> Self {
        let mut is_unusable: FxHashMap<usize, bool> = FxHashMap::default();
        let mut with_calls: FxHashSet<usize> = FxHashSet::default();
        for (id, event) in events(profile) {
            let origin = profile.origin(event.thread);
            if event.category == Category::Runtime {
                with_calls.insert(origin);
            }
            if event.category == Category::Kernel {
                let links = profile.links(id).unwrap_or_default();
                let repeats = links.external == 0 || links.external == links.correlation;
                *is_unusable.entry(origin).or_insert(true) &= repeats;
            }
        }
        let origins = is_unusable
            .into_iter()
            .filter(|(_, is_unusable)| *is_unusable);
        let origins = origins.map(|(origin, _)| origin);
        Self {
            origins: origins
                .filter(|origin| with_calls.contains(origin))
                .collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    pub(crate) fn has(&self, profile: &Profile, event: &Event) -> bool {
        self.origins.contains(&profile.origin(event.thread))
    }

    /// Returns the operator of each runtime call and each kernel in these origins: the innermost
    /// one around the runtime call.
    ///
    /// ```text
    /// aten::linear       |-------------------------|
    /// aten::addmm          |----------------|          the innermost around the call
    /// cudaLaunchKernel          |---|                  correlation 9
    /// gemm kernel                       |-------|      correlation 9: launched by aten::addmm
    /// ```
    pub(crate) fn owners(&self, profile: &Profile) -> FxHashMap<EventId, EventId> {
        let mut open: Vec<Vec<(Nanos, EventId)>> = vec![Vec::new(); profile.threads().len()];
        let mut owners = FxHashMap::default();
        let mut callers: FxHashMap<u32, EventId> = FxHashMap::default();
        let correlation = |id| profile.links(id).map_or(0, |links| links.correlation);
        for (id, event) in events(profile).filter(|(_, event)| self.has(profile, event)) {
            let stack = &mut open[event.thread.index()];
            while stack.pop_if(|(end, _)| *end <= event.start).is_some() {}
            if is_operator(event) {
                stack.push((event.end(), id));
            } else if event.category == Category::Runtime {
                let around = stack.iter().rfind(|(end, _)| event.end() <= *end);
                if let Some(&(_, operator)) = around {
                    owners.insert(id, operator);
                    callers.insert(correlation(id), operator);
                }
            }
        }
        callers.remove(&0);
        for (id, event) in events(profile) {
            if event.category == Category::Kernel && self.has(profile, event) {
                let found = callers.get(&correlation(id));
                owners.extend(found.map(|&operator| (id, operator)));
            }
        }
        owners
    }
}

fn events(profile: &Profile) -> impl Iterator<Item = (EventId, &Event)> {
    let events = profile.events().iter().enumerate();
    events.map(|(index, event)| (EventId::from_index(index), event))
}

fn is_operator(event: &Event) -> bool {
    event.category == Category::Operator
        && !event.flags.contains(Flags::ASYNC)
        && !event.flags.contains(Flags::HIDDEN)
}

#[cfg(test)]
mod tests {
    use mindprof_model::{DeviceKind, Links, Part, StringTable, Thread};

    use super::*;
    use crate::links::correlate::Correlation;
    use crate::parts::merge::merge;

    type Row = (Category, &'static str, u64, u64, u32, u32);

    /// The events of one process: CPU thread 1 and stream 7, each with its two ids.
    fn part(events: &[Row]) -> Part {
        let mut part = Part::new();
        let mut thread = |native, device| {
            part.add_thread(Thread {
                process: 1,
                native,
                name: StringTable::EMPTY,
                device,
            })
        };
        let (host, stream) = (thread(1, DeviceKind::Cpu), thread(7, DeviceKind::Cuda));
        for &(category, name, start, end, external, correlation) in events {
            let name = part.strings.intern(name);
            let on_device = category == Category::Kernel;
            let thread = if on_device { stream } else { host };
            let event = Event::new(category, name, thread, Nanos(start), Nanos(end - start));
            part.add_linked_event(event, Links::new(external, correlation));
        }
        part
    }

    /// Returns the name of each kernel and runtime call with that of its owner.
    fn owners(profile: &Profile) -> Vec<(String, String)> {
        let correlation = Correlation::build(profile);
        let name = |id: EventId| profile.name(profile.event(id)).to_owned();
        events(profile)
            .filter(|(_, event)| matches!(event.category, Category::Kernel | Category::Runtime))
            .map(|(id, _)| {
                (
                    name(id),
                    correlation.owner(id).map_or_else(String::new, name),
                )
            })
            .collect()
    }

    // linear    |-----------------------|        0..30   external id 9, equal to a correlation id
    // addmm       |-----------|                  2..15   external id 3
    // launch         |--|                        5..8    correlation 9
    // launch                      |--|          20..23   correlation 3
    // launch                               |-|  40..42   correlation 4, in nothing
    // gemm               |-----|                10..18   correlation 9
    // relu                             |--|     30..33   correlation 3: not of addmm
    // lone                                   |  43..44   correlation 4
    const REPEATED: [Row; 8] = [
        (Category::Operator, "linear", 0, 30, 9, 0),
        (Category::Operator, "addmm", 2, 15, 3, 0),
        (Category::Runtime, "launch gemm", 5, 8, 9, 9),
        (Category::Kernel, "gemm", 10, 18, 9, 9),
        (Category::Runtime, "launch relu", 20, 23, 3, 3),
        (Category::Kernel, "relu", 30, 33, 3, 3),
        (Category::Runtime, "launch lone", 40, 42, 4, 4),
        (Category::Kernel, "lone", 43, 44, 4, 4),
    ];
    const BY_TIME: [(&str, &str); 6] = [
        ("launch gemm", "addmm"),
        ("gemm", "addmm"),
        ("launch relu", "linear"),
        ("relu", "linear"),
        ("launch lone", ""),
        ("lone", ""),
    ];

    fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let pair = |(one, other): &(&str, &str)| ((*one).into(), (*other).into());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn external_ids_that_repeat_the_correlation_are_ignored() {
        let profile = part(&REPEATED).into_profile().unwrap();
        assert_eq!(owners(&profile), named(&BY_TIME));
    }

    #[test]
    fn one_distinct_external_id_makes_all_of_them_count() {
        let mut events = REPEATED;
        events[7].4 = 2;
        let profile = part(&events).into_profile().unwrap();
        let gemm = owners(&profile)[1].clone();
        assert_eq!(gemm, ("gemm".into(), "linear".into()));
    }

    #[test]
    fn external_ids_count_without_runtime_calls() {
        let without_calls: Vec<Row> = REPEATED
            .into_iter()
            .filter(|row| row.0 != Category::Runtime)
            .collect();
        let profile = part(&without_calls).into_profile().unwrap();
        let expected = [("gemm", "linear"), ("relu", "addmm"), ("lone", "")];
        assert_eq!(owners(&profile), named(&expected));
    }

    #[test]
    fn each_rank_is_judged_by_itself() {
        let mut told = REPEATED;
        told[0].4 = 100;
        told[3].4 = 100;
        let profile = merge([part(&told), part(&REPEATED), part(&REPEATED)]).unwrap();
        let mut found = owners(&profile);
        found.sort();
        let count = |pair: (&str, &str)| {
            let pair = (pair.0.to_owned(), pair.1.to_owned());
            found.iter().filter(|found| **found == pair).count()
        };
        assert_eq!(count(("gemm", "linear")), 1, "by its id: {found:?}");
        assert_eq!(count(("gemm", "addmm")), 2, "by time: {found:?}");
    }
}
