//! How long certain events took, one by one: a mean hides that the first took all the time.

use mindprof_model::{DeviceKind, Nanos, Profile};

/// Returns how long the host's events took whose names begin so, in the order in which they began.
pub fn durations(profile: &Profile, prefix: &str) -> Vec<Nanos> {
    let strings = profile.strings().iter();
    let is_wanted: Vec<bool> = strings.map(|name| name.starts_with(prefix)).collect();
    let on_host = |thread: usize| profile.threads()[thread].device == DeviceKind::Cpu;
    let events = profile.events().iter();
    events
        .filter(|event| is_wanted[event.name.index()] && on_host(event.thread.index()))
        .map(|event| event.duration)
        .collect()
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    // wait#a   |-----|  |--|            0..50, 70..90
    // other            |----|           60..100
    #[test]
    fn events_come_in_their_order_with_those_inside_of_others() {
        let profile = Timeline::draw(|time| {
            time.scope("wait#a", |time| time.idle(50));
            time.idle(10);
            time.scope("other", |time| {
                time.idle(10);
                time.scope("wait#b", |time| time.idle(20));
                time.idle(10);
            });
        });
        assert_eq!(durations(&profile, "wait#"), [Nanos(50), Nanos(20)]);
        assert_eq!(durations(&profile, "absent"), []);
    }
}
