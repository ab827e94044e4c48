//! Work takes a detour over the CPU.

use mindprof_model::{EventId, Nanos};

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "host-fallback",
    cause: "tensors are copied to the CPU, computed there and copied back",
    remedy: "compute on the device: an operator of torch instead of .cpu() and .numpy()",
    price: Price::replay(0.03, (0.6, 1.1)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// A detour longer than this is not one function's.
const LONGEST: usize = 200;

/// Less time between the copies is not worth a detour.
const LEAST: Nanos = Nanos(20_000);

fn check(facts: &Facts<'_>) -> Outcome {
    let of = |copy: &str| {
        let copies = facts.named(&facts.kernels, |name| name.starts_with(copy));
        facts.outermost_operators(&copies)
    };
    let (away, back) = (of("Memcpy DtoH"), of("Memcpy HtoD"));
    if away.is_empty() || back.is_empty() {
        return Outcome::Clean;
    }
    let outer = facts.outer_operators();
    let mut found: Vec<EventId> = Vec::new();
    for &begin in &away {
        let Some(&end) = back.get(back.partition_point(|&id| id <= begin)) else {
            break;
        };
        let frame = facts.frames[begin.index()];
        let first = outer.partition_point(|&id| id < begin);
        let last = outer.partition_point(|&id| id <= end);
        let detour = &outer[first..last];
        let (start, until) = (facts.profile.event(begin), facts.profile.event(end));
        let between = until.start.saturating_sub(start.end());
        let device = facts.analysis.device_times();
        // Between both copies, one function works on the CPU alone.
        let is_on_host = |&id: &EventId| {
            facts.frames[id.index()] == frame
                && (id == begin || id == end || device.total(id).0 == 0)
        };
        let is_detour = frame.is_some()
            && start.thread == until.thread
            && between >= LEAST
            && detour.len() <= LONGEST
            && !facts.around(begin).is_loading
            && detour.iter().all(is_on_host);
        if is_detour && found.last().is_none_or(|&last| last < begin) {
            found.extend(between_events(facts, begin, end));
        }
    }
    if !facts.is_usual(&found) {
        return Outcome::Clean;
    }
    let blamed = facts.blamed(found.iter().map(|&id| (id, facts.duration(id))));
    Outcome::Found(Evidence {
        mending: facts.without(&found),
        events: facts.outermost(&found),
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

/// Returns the events of a thread from one to another, both included.
fn between_events(facts: &Facts<'_>, begin: EventId, end: EventId) -> Vec<EventId> {
    let thread = facts.profile.event(begin).thread;
    let until = facts.profile.event(end).end();
    let first = facts.events.partition_point(|&id| id < begin);
    let last = facts.events.partition_point(|&id| id <= end);
    let is_between = |id: &&EventId| {
        let event = facts.profile.event(**id);
        event.thread == thread && event.end() <= until
    };
    let between = facts.events[first..last].iter();
    between.filter(is_between).copied().collect()
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const AWAY: &str = "Memcpy DtoH (Device -> Pageable)";
    const BACK: &str = "Memcpy HtoD (Pageable -> Device)";

    fn detour(micros: u64, back: &str) -> mindprof_model::Profile {
        training(5, |time, _| {
            time.compute(10, 100);
            time.call("train.py(4): median", |time| {
                time.copy("aten::to", AWAY, 20, 1 << 10);
                time.op("aten::sort", micros);
                time.copy("aten::to", back, 20, 1 << 10);
            });
        })
    }

    #[test]
    fn a_detour_over_the_host_is_found() {
        let finding = found(detour(800, BACK), "host-fallback");
        assert_eq!(blamed(&finding), "median");
        assert!((0.4..0.6).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn a_short_detour_is_clean() {
        assert_eq!(outcome(detour(5, BACK), "host-fallback"), "clean");
    }

    // Results that stay on the CPU are no detour.
    #[test]
    fn results_for_the_host_are_another_cause() {
        assert_eq!(outcome(detour(800, AWAY), "host-fallback"), "clean");
    }
}
