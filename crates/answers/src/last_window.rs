//! The last part of a profile, for files that may hold only so many records.

use mindprof_model::{Nanos, Profile};

use crate::steps::Steps;

/// Returns the window at the end of a profile that holds at most `most` events and memory records,
/// or `None` if all of them fit. It begins with a step if one begins in it.
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
    if events.len() + memory.len() <= most {
        return None;
    }
    let (mut event, mut record) = (events.len(), memory.len());
    let mut begin = profile.span();
    for _ in 0..most {
        let last_event = event.checked_sub(1).map(|index| events[index].start);
        let last_record = record.checked_sub(1).map(|index| memory.time(index));
        if last_event >= last_record {
            event -= 1;
        } else {
            record -= 1;
        }
        begin = last_event.max(last_record).unwrap_or_default();
    }
    let steps = Steps::build(profile);
    let starts = steps.complete().iter().map(|step| step.start);
    let step = starts.filter(|&start| start >= begin).min();
    Some((step.unwrap_or(begin), Nanos(u64::MAX)))
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
