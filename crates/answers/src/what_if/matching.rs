//! Finds the events that a pattern matches, and everything inside of them.

use mindprof_analyze::Analysis;
use mindprof_model::{Category, EventId, Flags, Nanos, Profile, ScopeKind, is_backward_wrapper};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::NotChanged;
use super::pattern::{Pattern, short_name};
use crate::step_times::loop_thread;
use crate::time_selection::distance;

/// The names that a pattern matches, and the number of events that change with them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matched {
    /// The pattern.
    pub pattern: String,
    /// The factor of the time.
    pub factor: f64,
    /// The number of events of such names.
    pub events: usize,
    /// The number of events that change: those, and the ones inside of them.
    pub changed: usize,
    /// The names, the most frequent first.
    pub names: Vec<MatchedName>,
}

/// A name that a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatchedName {
    /// The name.
    pub name: String,
    /// The number of events of this name.
    pub events: usize,
}

/// The number of names that are listed of a pattern.
const LISTED: usize = 5;

/// The nesting of all events of a profile, across threads and devices.
pub(super) struct Matching<'a> {
    analysis: &'a Analysis,
    profile: &'a Profile,
    /// By event, the event around it: on its thread, or for backward work on a thread of its own
    /// the call that waits for it.
    around: Vec<Option<EventId>>,
}

impl<'a> Matching<'a> {
    pub(super) fn build(analysis: &'a Analysis) -> Self {
        let profile = analysis.profile();
        Self {
            analysis,
            profile,
            around: around(analysis),
        }
    }

    /// Returns the events that change with a pattern, and what it matches.
    pub(super) fn events(&self, text: &str) -> Result<(Vec<EventId>, Matched), NotChanged> {
        let pattern = Pattern::new(text);
        let mut matched = Matched {
            pattern: text.into(),
            factor: 1.0,
            events: 0,
            changed: 0,
            names: Vec::new(),
        };
        let events = self.inside(|name| pattern.matches(name));
        if events.is_empty() {
            return Err(NotChanged::NoMatch {
                pattern: text.into(),
                similar: self.similar(text),
            });
        }
        let is_named: Vec<bool> = self.names(|name| pattern.matches(name));
        let mut names: FxHashMap<&str, usize> = FxHashMap::default();
        for event in self
            .profile
            .events()
            .iter()
            .filter(|event| is_work(event.category))
        {
            if is_named[event.name.index()] {
                let name = self.profile.name(event);
                *names.entry(short_name(name).unwrap_or(name)).or_default() += 1;
                matched.events += 1;
            }
        }
        let mut names: Vec<MatchedName> = names
            .into_iter()
            .map(|(name, events)| MatchedName {
                name: name.into(),
                events,
            })
            .collect();
        names.sort_by(|a, b| b.events.cmp(&a.events).then_with(|| a.name.cmp(&b.name)));
        names.truncate(LISTED);
        matched.names = names;
        matched.changed = events.len();
        Ok((events, matched))
    }

    /// Returns the events of some names and everything inside of them: on their threads, on the
    /// threads that they wait for, on devices, and backward work of what they called.
    pub(super) fn inside(&self, is_meant: impl Fn(&str) -> bool) -> Vec<EventId> {
        let is_named = self.names(is_meant);
        let mut by_stack = vec![false];
        for (caller, frame) in self.profile.stacks().nodes() {
            by_stack.push(by_stack[caller.index()] || is_named[frame.index()]);
        }
        let has_stacks = by_stack.contains(&true);
        let events = self.profile.events();
        let mut is_inside = Vec::with_capacity(events.len());
        for (index, event) in events.iter().enumerate() {
            let id = EventId::from_index(index);
            let is_in = is_named[event.name.index()] && is_work(event.category)
                || self.around[index].is_some_and(|around| is_inside[around.index()])
                || has_stacks && by_stack[self.analysis.charged_stack(id).index()];
            is_inside.push(is_in);
        }
        for (index, event) in events.iter().enumerate() {
            let id = EventId::from_index(index);
            if event.category == Category::Kernel {
                let correlation = self.analysis.correlation();
                let owner = correlation.owner(id);
                let launch = owner.or_else(|| correlation.launch(self.profile, id));
                is_inside[index] |= launch.is_some_and(|launch| is_inside[launch.index()]);
            }
        }
        let inside = is_inside.into_iter().enumerate();
        inside
            .filter(|(_, is_in)| *is_in)
            .map(|(index, _)| EventId::from_index(index))
            .collect()
    }

    fn names(&self, is_meant: impl Fn(&str) -> bool) -> Vec<bool> {
        self.profile.strings().iter().map(is_meant).collect()
    }

    /// Returns a pattern that matches something, in place of one that does not: the same with
    /// asterisks, or the most similar name.
    fn similar(&self, text: &str) -> Option<String> {
        let mut is_offered = vec![false; self.profile.strings().len()];
        for event in self.profile.events() {
            is_offered[event.name.index()] |= is_work(event.category);
        }
        let texts = self.profile.strings().iter().zip(is_offered);
        let texts = texts.filter_map(|(text, is_offered)| is_offered.then_some(text));
        let names: Vec<&str> = texts.map(|text| short_name(text).unwrap_or(text)).collect();
        let wanted = text.to_lowercase();
        let around = wanted.trim_matches('*');
        if !around.is_empty()
            && names
                .iter()
                .any(|name| name.to_lowercase().contains(around))
        {
            return Some(format!("*{}*", text.trim_matches('*')));
        }
        let nearest = names
            .iter()
            .filter(|known| known.len().abs_diff(wanted.len()) <= 3)
            .map(|known| (distance(&known.to_lowercase(), &wanted), *known))
            .min();
        nearest
            .filter(|(distance, known)| *distance * 3 <= known.len().max(3))
            .map(|(_, known)| known.into())
    }
}

/// Returns whether events of a category take time that can change.
const fn is_work(category: Category) -> bool {
    match category {
        Category::Operator
        | Category::Annotation
        | Category::PythonFunction
        | Category::Runtime
        | Category::Kernel => true,
        Category::DeviceAnnotation | Category::Other => false,
    }
}

/// Returns the event around each event.
///
/// ```text
/// loop      |backward---------------|
/// engine      |node|  |node|               both are inside of `backward`
/// ```
fn around(analysis: &Analysis) -> Vec<Option<EventId>> {
    let profile = analysis.profile();
    let main = loop_thread(profile);
    let is_wrapper: Vec<bool> = profile.strings().iter().map(is_backward_wrapper).collect();
    let mut open: Vec<(Nanos, EventId)> = Vec::new();
    let mut found = Vec::with_capacity(profile.events().len());
    for (index, event) in profile.events().iter().enumerate() {
        let id = EventId::from_index(index);
        let is_loop = Some(event.thread) == main;
        while open.last().is_some_and(|(end, _)| *end <= event.start) {
            open.pop();
        }
        let parent = analysis.tree().parent(id);
        let is_backward = event.scope == ScopeKind::Backward || is_wrapper[event.name.index()];
        found.push(match parent {
            Some(parent) => Some(parent),
            None if is_backward && !is_loop => open.last().map(|(_, waiting)| *waiting),
            None => None,
        });
        if is_loop && !event.flags.contains(Flags::ASYNC) {
            open.push((event.end(), id));
        }
    }
    found
}
