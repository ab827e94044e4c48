//! The part of each row's time that was spent inside events of certain keys.

use mindprof_model::{EventId, Nanos};
use rustc_hash::{FxHashMap, FxHashSet};

use super::groups::{GroupBy, Groups, is_left_out};
use super::recursion::OutermostCalls;
use crate::analysis::{Analysis, Item};
use crate::rows::keys::Keys;

/// Returns, for each row that [`super::averages`] returns for `group_by`, how much of its total CPU
/// time was spent in events with one of `keys` that ran inside its events. A caller that hides such
/// events subtracts these times from the rows around them.
///
/// ```text
/// main           |------------------|        100
/// import torch      |--------|                50     of main: 50
/// ```
///
/// If events with these keys are nested, each of them counts in full for the rows around it.
pub fn time_inside(analysis: &Analysis, group_by: GroupBy, keys: &[&str]) -> Vec<Nanos> {
    let around = time_by_event(analysis, keys);
    let mut groups = Groups::new(analysis, group_by);
    let mut outermost = OutermostCalls::default();
    let mut times: Vec<Nanos> = Vec::new();
    let mut memory_row = None;
    for item in analysis.items() {
        let (row, time) = match item {
            Item::Event(id) => {
                let event = analysis.profile().event(id);
                if is_left_out(event, group_by) {
                    continue;
                }
                let row = groups.row_of(analysis, id, event, times.len());
                let is_counted = !outermost.is_inside(event, row);
                let time = around.get(&id).filter(|_| is_counted).copied();
                (row, time.unwrap_or_default())
            }
            Item::Memory(_) => (*memory_row.get_or_insert(times.len()), Nanos::ZERO),
        };
        if row == times.len() {
            times.push(Nanos::ZERO);
        }
        times[row] = times[row] + time;
    }
    times
}

/// Returns, for each event, the time of the events with these keys that ran inside it.
fn time_by_event(analysis: &Analysis, keys: &[&str]) -> FxHashMap<EventId, Nanos> {
    let profile = analysis.profile();
    let keys: FxHashSet<&str> = keys.iter().copied().collect();
    let is_wanted = |name: &str| keys.contains(Keys::text(name));
    let wanted: Vec<bool> = profile.strings().iter().map(is_wanted).collect();
    let mut times: FxHashMap<EventId, Nanos> = FxHashMap::default();
    for (index, event) in profile.events().iter().enumerate() {
        if !wanted[event.name.index()] {
            continue;
        }
        let mut at = analysis.tree().parent(EventId::from_index(index));
        while let Some(id) = at {
            let time = times.entry(id).or_default();
            *time = *time + event.duration;
            at = analysis.tree().parent(id);
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Profile, Timeline};

    use super::*;
    use crate::rows::averages::averages;

    fn found(profile: Profile, keys: &[&str]) -> Vec<(String, u64)> {
        let analysis = Analysis::build(profile);
        let group_by = GroupBy::default();
        let rows = averages(&analysis, group_by).rows;
        let times = time_inside(&analysis, group_by, keys);
        assert_eq!(rows.len(), times.len());
        let found = rows.into_iter().zip(times);
        found.map(|(row, time)| (row.key, time.0)).collect()
    }

    // main     |--------------------|   0..100
    // setup      |---------|            10..60
    // import       |--|         |--|    20..30, 70..90
    #[test]
    fn an_event_counts_for_every_event_around_it() {
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
        let expected = [
            ("main", 30),
            ("setup", 10),
            ("import a", 0),
            ("import b", 0),
        ];
        let expected = expected.map(|(key, time)| (key.to_owned(), time));
        assert_eq!(found(profile, &names), expected);
    }

    // f        |----|  |----------|     0..20, 30..70
    // import              |--|          40..50
    #[test]
    fn events_without_one_inside_add_nothing() {
        let profile = Timeline::draw(|time| {
            time.scope("f", |time| time.idle(20));
            time.idle(10);
            time.scope("f", |time| {
                time.idle(10);
                time.annotation("import a", |time| time.idle(10));
                time.idle(20);
            });
        });
        let expected = [("f", 10), ("import a", 0)];
        let expected = expected.map(|(key, time)| (key.to_owned(), time));
        assert_eq!(found(profile, &["import a"]), expected);
    }
}
