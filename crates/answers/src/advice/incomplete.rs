//! Rules that cannot tell, because the events that they look at are missing from the profile.
//!
//! Missing work looks like fast work: a trace without its kernels would pass for a healthy run.

use super::Confidence;
use super::rule::{Outcome, Price, Rule};
use crate::completeness::{Completeness, EventKind};
use crate::verdict::{MOST_LOST, Refusal, missing_from};

/// The gaps of a profile, which decide on the conclusions that a rule may draw. [`super::Advice`]
/// collects them once for all rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    /// The reasons for which the profile is incomplete.
    pub(super) what: Vec<Refusal>,
    /// The kinds of events of which too many are missing.
    kinds: Vec<EventKind>,
    /// Whether the profile shows that there is a device, and none of its work.
    is_device_unrecorded: bool,
}

impl Missing {
    pub(super) fn of(facts: &Completeness) -> Self {
        Self {
            what: missing_from(facts, false, MOST_LOST),
            kinds: facts.doubtful_kinds(MOST_LOST),
            is_device_unrecorded: facts.names_device && facts.devices.is_empty(),
        }
    }

    /// Returns the conclusion that the recorded events allow a rule to draw. Without the work of a device nobody knows
    /// what the CPU waits for, so that no time is saved for sure. Missing events of the CPU leave the
    /// findings about the others, which are less sure.
    pub(super) fn limit(&self, rule: &Rule, outcome: Outcome) -> Outcome {
        let is_missing = |kind: &EventKind| self.kinds.contains(kind);
        let is_priced = matches!(rule.price, Price::Replay { .. });
        match outcome {
            Outcome::Unknown(_) => outcome,
            Outcome::Found(mut evidence) => {
                let needs_device = is_priced || rule.needs.contains(&EventKind::Device);
                if needs_device && is_missing(&EventKind::Device) {
                    return Outcome::Unknown(missing_text(EventKind::Device));
                }
                if !self.kinds.is_empty() {
                    evidence.confidence = Some(Confidence::Low);
                }
                Outcome::Found(evidence)
            }
            Outcome::Clean => match rule.needs.iter().find(|kind| is_missing(kind)) {
                Some(&kind) => Outcome::Unknown(missing_text(kind)),
                None if self.is_device_unrecorded && rule.needs.contains(&EventKind::Device) => {
                    Outcome::Unknown(
                        "no work of the device was recorded: \
                         activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
                    )
                }
                None => Outcome::Clean,
            },
        }
    }
}

const fn missing_text(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Cpu => "CPU events are missing from this trace",
        EventKind::Device => "device work is missing from this trace",
        EventKind::PythonCall => "Python calls are missing from this trace",
    }
}

#[cfg(test)]
mod tests {
    use mindprof_analyze::SLIM_KEY;
    use mindprof_model::{LossCause, Profile};

    use crate::advice::Confidence;
    use crate::advice::rules::kit::*;
    use crate::verdict::Refusal;

    /// Steps whose launches have their kernels, or lack them.
    fn launching(has_kernels: bool) -> Profile {
        training(4, |time, _| {
            for _ in 0..10 {
                if has_kernels {
                    time.compute(1, 100);
                } else {
                    time.operator("aten::mm", |time| time.runtime("cudaLaunchKernel", 10));
                }
            }
        })
    }

    #[test]
    fn launches_without_their_kernels_are_no_clean_run() {
        assert_eq!(advise(launching(true)).incomplete, []);
        let advice = advise(launching(false));
        let lacking = Refusal::LacksDeviceWork {
            is_second: false,
            missing: 40,
            launches: 40,
        };
        assert_eq!(advice.incomplete, [lacking]);
        assert!(advice.findings.iter().all(|found| found.share <= 0.0));
        for rule in [
            "tensor-cores",
            "device-idle",
            "launch-bound",
            "input-transfer",
        ] {
            assert!(!advice.clean.contains(&rule), "{rule}");
            assert_eq!(outcome(launching(false), rule), "unknown");
        }
        assert!(
            advice
                .json()
                .contains("\"incomplete\":[\"lacks_device_work\"]")
        );
    }

    // The launches between these calls run later, as a graph.
    #[test]
    fn captured_launches_need_no_kernels() {
        let advice = advise(training(4, |time, _| {
            time.compute(10, 100);
            time.runtime("cudaStreamBeginCapture_v10000", 2);
            for _ in 0..20 {
                time.runtime("cudaLaunchKernel", 10);
            }
            time.runtime("cudaStreamEndCapture_v10000", 2);
        }));
        assert_eq!(advice.incomplete, []);
    }

    // The engine of autograd launches the backward pass of a captured step on its own thread.
    #[test]
    fn launches_that_other_threads_capture_need_no_kernels() {
        let advice = advise(training(4, |time, _| {
            time.compute(10, 100);
            time.runtime("cudaStreamBeginCapture_v10000", 2);
            time.beside("torch/autograd/graph.py(1): engine", |time| {
                for _ in 0..20 {
                    time.runtime("cudaLaunchKernel", 10);
                }
            });
            time.idle(300);
            time.runtime("cudaStreamEndCapture_v10000", 2);
        }));
        assert_eq!(advice.incomplete, []);
    }

    /// Steps with one operator and a note about the profile.
    fn noted(key: &str, note: &str) -> Profile {
        training(4, |time, _| {
            time.compute(10, 100);
            time.note(key, note);
        })
    }

    #[test]
    fn a_damaged_trace_says_nothing_about_what_it_lacks() {
        let damaged = || noted("mindprof_damage", "{\"cuts\":1,\"altered\":0}");
        let is_second = false;
        assert_eq!(
            advise(damaged()).incomplete,
            [Refusal::Damaged { is_second }]
        );
        for rule in ["tensor-cores", "data-loading"] {
            assert_eq!(outcome(damaged(), rule), "unknown", "{rule}");
        }
        assert_eq!(outcome(damaged(), "bad-capture"), "clean");
    }

    // A window of time keeps everything in it; a limit of durations leaves holes.
    #[test]
    fn whole_steps_of_a_longer_recording_can_be_judged() {
        let cut = |cause: &str| {
            let text =
                format!("{{\"events\":900,\"kept\":90,\"clipped\":2,\"cut\":{{\"{cause}\":810}}}}");
            noted(SLIM_KEY, &text)
        };
        let (is_second, kept, events) = (false, 90, 900);
        for cause in ["window", "duration"] {
            let expected = Refusal::Cut {
                is_second,
                kept,
                events,
            };
            assert_eq!(advise(cut(cause)).incomplete, [expected], "{cause}");
        }
        assert_eq!(outcome(cut("window"), "tensor-cores"), "clean");
        assert_eq!(outcome(cut("duration"), "tensor-cores"), "unknown");
    }

    #[test]
    fn lost_python_calls_concern_the_rules_about_python() {
        let lost = || {
            training(4, |time, _| {
                let next = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
                time.range(next, |time| time.idle(5_000));
                time.python("train.py(4): count", 20);
                time.op("aten::mm", 5_000);
                time.lose(LossCause::Unseen, 100);
            })
        };
        assert_eq!(outcome(lost(), "python-bound"), "unknown");
        assert_eq!(outcome(lost(), "optimizer-loop"), "clean");
        let finding = found(lost(), "data-loading");
        assert_eq!(finding.confidence, Confidence::Low);
    }

    #[test]
    fn a_device_without_recorded_work_is_unknown() {
        let card = "[{\"id\": 0, \"name\": \"NVIDIA H200\"}]";
        let profile = || {
            training(4, |time, _| {
                time.note("deviceProperties", card);
                time.op("aten::mm", 500);
            })
        };
        assert_eq!(advise(profile()).incomplete, []);
        assert_eq!(outcome(profile(), "tensor-cores"), "unknown");
        assert_eq!(outcome(profile(), "optimizer-loop"), "clean");
    }
}
