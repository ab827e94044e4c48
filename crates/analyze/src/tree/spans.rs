//! The time spans of single events. A mean would hide that the first of them took all the time.

use mindprof_model::{DeviceKind, Nanos, Profile, Thread};

/// The begin, end and thread of one event, as [`spans`] returns them.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// The time at which it began.
    pub begin: Nanos,
    /// The time at which it ended.
    pub end: Nanos,
    /// The thread that it ran on.
    pub thread: &'a Thread,
}

/// Returns the spans of the CPU events whose names begin with `prefix`, in start order.
pub fn spans<'a>(profile: &'a Profile, prefix: &str) -> Vec<Span<'a>> {
    let strings = profile.strings().iter();
    let is_wanted: Vec<bool> = strings.map(|name| name.starts_with(prefix)).collect();
    let events = profile.events().iter();
    events
        .filter(|event| is_wanted[event.name.index()])
        .map(|event| Span {
            begin: event.start,
            end: event.end(),
            thread: &profile.threads()[event.thread.index()],
        })
        .filter(|span| span.thread.device == DeviceKind::Cpu)
        .collect()
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    // wait#a   |-----|                  0..50
    // other            |----|           60..100
    // wait#b            |--|            70..90
    #[test]
    fn spans_are_in_start_order_and_include_nested_events() {
        let profile = Timeline::draw(|time| {
            time.scope("wait#a", |time| time.idle(50));
            time.idle(10);
            time.scope("other", |time| {
                time.idle(10);
                time.scope("wait#b", |time| time.idle(20));
                time.idle(10);
            });
        });
        let found = |prefix| -> Vec<(u64, u64)> {
            let spans = spans(&profile, prefix).into_iter();
            spans.map(|span| (span.begin.0, span.end.0)).collect()
        };
        assert_eq!(found("wait#"), [(0, 50), (70, 90)]);
        assert_eq!(found("absent"), []);
    }
}
