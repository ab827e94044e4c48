//! Collectives of NPUs send many small messages.

use mindprof_model::{EventId, Nanos, StringId};
use rustc_hash::FxHashMap;

use super::npu;
use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "small-messages",
    cause: "collectives send many small messages, whose time is latency",
    remedy: "fewer and larger ones: DistributedDataParallel(bucket_cap_mb=100), or one collective of a flattened tensor",
    price: Price::Unpriced { rank: 0.02 },
    needs: &[EventKind::Device],
    check,
};

/// Smaller messages do not use the bandwidth of a link.
const SMALL: f64 = 1_048_576.0;

/// So many of them in a step are many, and their time has to be this part of it.
const MANY: f64 = 10.0;
const MUCH: f64 = 0.05;

fn check(facts: &Facts<'_>) -> Outcome {
    if !npu::is_npu(facts) {
        return Outcome::Clean;
    }
    let collectives = facts.named(&facts.kernels, |name| name.starts_with("hcom_"));
    if facts.per_step(collectives.len()) < MANY {
        return Outcome::Clean;
    }
    let sized = |&id: &EventId| Some((id, message_bytes(facts, id)?));
    let known: Vec<(EventId, f64)> = collectives.iter().filter_map(sized).collect();
    if known.len() * 2 < collectives.len() {
        return Outcome::Unknown("the sizes of messages are not in this profile");
    }
    let is_small = |&&(_, bytes): &&(EventId, f64)| bytes < SMALL;
    let small: Vec<EventId> = known.iter().filter(is_small).map(|&(id, _)| id).collect();
    let is_much = least_time(facts, &small).0 as f64 >= MUCH * facts.base.0 as f64;
    if facts.per_step(small.len()) < MANY || !is_much {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        events: small,
        ..Evidence::default()
    })
}

/// Returns the time that collectives take without a wait for other ranks: each as long as the
/// shortest of its name.
fn least_time(facts: &Facts<'_>, collectives: &[EventId]) -> Nanos {
    let mut names: FxHashMap<StringId, (Nanos, u64)> = FxHashMap::default();
    for &id in collectives {
        let duration = facts.duration(id);
        let name = names.entry(facts.profile.event(id).name);
        let (least, count) = name.or_insert((duration, 0));
        *least = duration.min(*least);
        *count += 1;
    }
    let times = names.values().map(|(least, count)| least.0 * count);
    Nanos(times.sum())
}

/// Returns the bytes of a message, from the number and the type of its elements.
fn message_bytes(facts: &Facts<'_>, id: EventId) -> Option<f64> {
    let count = facts.argument(id, "count").filter(|&count| count >= 0.0)?;
    let size = match facts.argument_text(id, "data_type")?.as_str() {
        "INT8" | "UINT8" | "HIF8" | "FP8E4M3" | "FP8E5M2" => 1.0,
        "INT16" | "UINT16" | "FP16" | "BFP16" => 2.0,
        "INT32" | "UINT32" | "FP32" => 4.0,
        "INT64" | "UINT64" | "FP64" => 8.0,
        "INT128" => 16.0,
        _ => return None,
    };
    Some(count * size)
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn reducing(
        collectives: usize,
        count: u64,
        micros: impl Fn(usize) -> u64,
    ) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.on_npu();
            time.compute(10, 100);
            time.call("train.py(7): reduce", |time| {
                for number in 0..collectives {
                    let told = format!("\"data_type\": \"BFP16\", \"count\": {count}");
                    time.operator("c10d::allreduce_", |time| {
                        time.kernel_with("hcom_allReduce_", micros(number), &told);
                    });
                }
            });
            time.synchronize();
        })
    }

    #[test]
    fn many_small_messages_are_found() {
        let finding = found(reducing(20, 4_096, |_| 30), "small-messages");
        assert_eq!((blamed(&finding), finding.share), ("reduce", 0.0));
        assert_eq!(finding.name.as_deref(), Some("hcom_allReduce_"));
    }

    #[test]
    fn a_few_small_messages_are_clean() {
        assert_eq!(
            outcome(reducing(9, 4_096, |_| 30), "small-messages"),
            "clean"
        );
        // Half a million elements of two bytes are a large message.
        let large = reducing(20, 1 << 19, |_| 30);
        assert_eq!(outcome(large, "small-messages"), "clean");
    }

    // Small collectives that take long wait for another rank.
    #[test]
    fn waits_for_other_ranks_are_another_cause() {
        let profile = reducing(20, 4_096, |number| if number % 5 == 0 { 300 } else { 1 });
        assert_eq!(outcome(profile, "small-messages"), "clean");
    }

    #[test]
    fn messages_of_unknown_size_tell_nothing() {
        let profile = training(4, |time, _| {
            time.on_npu();
            for _ in 0..20 {
                time.launch("c10d::allreduce_", "hcom_allReduce_", 30);
            }
        });
        assert_eq!(outcome(profile, "small-messages"), "unknown");
    }
}
