//! How much of each row's time was spent inside of certain events.

use std::collections::BTreeMap;

use mindprof_model::{Category, EventId, Nanos, StringId};
use rustc_hash::FxHashSet;

use crate::analysis::Analysis;

/// Returns by key how much of the rows' total time the events of these names took that ran inside of
/// theirs. Whoever shows rows without such events takes it off.
///
/// ```text
/// main           |------------------|        100
/// import torch      |--------|                50     of main: 50
/// ```
///
/// Events of these names are not looked for inside of each other.
pub fn time_inside(analysis: &Analysis, names: &[&str]) -> BTreeMap<String, Nanos> {
    let profile = analysis.profile();
    let names: FxHashSet<&str> = names.iter().copied().collect();
    let wanted: FxHashSet<StringId> = profile
        .strings()
        .iter()
        .enumerate()
        .filter(|(_, text)| names.contains(text))
        .map(|(index, _)| StringId::from_index(index))
        .collect();
    let mut found: BTreeMap<String, Nanos> = BTreeMap::new();
    for (index, event) in profile.events().iter().enumerate() {
        if !wanted.contains(&event.name) {
            continue;
        }
        let mut calls: FxHashSet<StringId> = FxHashSet::default();
        let mut at = analysis.tree().parent(EventId::from_index(index));
        while let Some(id) = at {
            let around = profile.event(id);
            let key = analysis.keys().key(around.name);
            // Of a function that calls itself the outermost call counts alone.
            let is_counted = around.category != Category::PythonFunction || calls.insert(key);
            if is_counted {
                let time = found
                    .entry(profile.strings().text(key).to_owned())
                    .or_default();
                *time = *time + event.duration;
            }
            at = analysis.tree().parent(id);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    // main     |--------------------|   0..100
    // setup      |---------|            10..60
    // import       |--|         |--|    20..30, 70..90
    #[test]
    fn an_event_counts_for_all_around_it() {
        let profile = Timeline::draw(|time| {
            time.scope("main", |time| {
                time.idle(10);
                time.annotation("setup", |time| {
                    time.idle(10);
                    time.annotation("import a", |time| time.idle(10));
                    time.idle(30);
                });
                time.idle(10);
                time.annotation("import b", |time| time.idle(20));
                time.idle(10);
            });
        });
        let names = ["import a", "import b", "import c"];
        let found = time_inside(&Analysis::build(profile), &names);
        let found: Vec<_> = found.iter().map(|(key, time)| (&**key, time.0)).collect();
        assert_eq!(found, [("main", 30), ("setup", 10)]);
    }
}
