//! The last part of a profile, for files that may hold only so many records.

use mindprof_model::{Event, Nanos, Profile};

use crate::steps::Steps;

/// The number of frames that count as one record: an operator is written with its stack.
const FRAMES: u32 = 32;

/// Returns the window at the end of a profile that holds at most `most` events and memory records,
/// or `None` if all of them fit. It begins with a step if one begins in it. An event with a deep
/// stack counts as several, because it takes as much time and room to write.
///
/// The end of a run is what a program does when it has settled, and so the part to keep.
///
/// ```text
/// events    | || | |  || | | || |
/// steps     |-----|------|------|
/// most = 6           | | | | || |
/// window                 |------|
/// ```
pub fn last_window(profile: &Profile, most: usize) -> Option<(Nanos, Nanos)> {
    let (events, memory) = (profile.events(), profile.memory());
    let weights = weights(profile);
    let weight = |event: &Event| weights[event.stack.index()];
    let all: usize = events.iter().map(weight).sum();
    if all + memory.len() <= most {
        return None;
    }
    let (mut event, mut record) = (events.len(), memory.len());
    let mut begin = profile.span();
    let mut left = most;
    loop {
        let last_event = event.checked_sub(1).map(|index| &events[index]);
        let last_record = record.checked_sub(1).map(|index| memory.time(index));
        let event_start = last_event.map(|event| event.start);
        let taken = match last_event {
            Some(last) if event_start >= last_record => {
                event -= 1;
                weight(last)
            }
            Some(_) | None => {
                record = record.saturating_sub(1);
                1
            }
        };
        let Some(fewer) = left.checked_sub(taken) else {
            break;
        };
        left = fewer;
        begin = event_start.max(last_record).unwrap_or_default();
    }
    let steps = Steps::build(profile);
    let starts = steps.complete().iter().map(|step| step.start);
    let step = starts.filter(|&start| start >= begin).min();
    Some((step.unwrap_or(begin), Nanos(u64::MAX)))
}

/// Returns for each stack the number of records that an event with it counts as.
fn weights(profile: &Profile) -> Vec<usize> {
    let mut depths = vec![0_u32];
    for (caller, _) in profile.stacks().nodes() {
        depths.push(depths[caller.index()] + 1);
    }
    let weights = depths
        .into_iter()
        .map(|depth| 1 + (depth / FRAMES) as usize);
    weights.collect()
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    // steps  |----------|----------|----------|   0..30, 30..60, 60..90
    // mm      |--|--|--|  |--|--|--|  ...
    #[test]
    fn a_window_begins_with_a_step() {
        let profile = Timeline::draw(|time| {
            for number in 0..3 {
                time.annotation(&format!("ProfilerStep#{number}"), |time| {
                    for _ in 0..3 {
                        time.op("aten::mm", 10);
                    }
                });
            }
        });
        assert_eq!(last_window(&profile, 12), None);
        let begin = |most| last_window(&profile, most).unwrap().0;
        assert_eq!(begin(6), Nanos(60));
        assert_eq!(begin(4), Nanos(60));
        assert_eq!(begin(2), Nanos(70));
    }
}
