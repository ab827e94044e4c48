//! The device that a profile was recorded on: its memory and its limits.
//!
//! A trace lists the properties of its devices; the limits of known cards come from the data sheets
//! of their makers, for dense matrices.

use mindprof_model::DType;
use serde::Deserialize;

use crate::advice::facts::Facts;

/// A device, as a trace lists it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Card {
    name: String,
    /// The size of its memory in bytes.
    #[serde(rename = "totalGlobalMem")]
    pub(super) memory: u64,
}

/// How fast a card is at best.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Operations per second of products of 16-bit floats, in units of 10¹².
    half: f64,
    /// The same in 32-bit floats, without tensor cores.
    single: f64,
    /// The same in 64-bit floats.
    double: f64,
    /// The bytes that its memory moves per second, in units of 10¹².
    memory: f64,
}

/// Cards by a part of their names. The more specific names come first.
const CARDS: [(&str, Limits); 16] = [
    ("B200", limits(2250.0, 80.0, 40.0, 8.0)),
    ("H200", limits(989.0, 67.0, 67.0, 4.8)),
    ("H100 PCIe", limits(756.0, 51.0, 51.0, 2.0)),
    ("H100", limits(989.0, 67.0, 67.0, 3.35)),
    ("A100", limits(312.0, 19.5, 19.5, 1.55)),
    ("A10G", limits(70.0, 31.5, 0.5, 0.6)),
    ("A10", limits(125.0, 31.2, 0.5, 0.6)),
    ("L40S", limits(362.0, 91.6, 1.4, 0.864)),
    ("L4", limits(121.0, 30.3, 0.5, 0.3)),
    ("V100", limits(125.0, 15.7, 7.8, 0.9)),
    ("T4", limits(65.0, 8.1, 0.25, 0.32)),
    ("RTX 4090", limits(165.0, 82.6, 1.3, 1.0)),
    ("RTX 3090", limits(71.0, 35.6, 0.56, 0.936)),
    ("MI300X", limits(1307.0, 163.4, 163.4, 5.3)),
    ("MI250", limits(191.5, 47.9, 47.9, 1.6)),
    ("MI210", limits(181.0, 45.3, 45.3, 1.6)),
];

const fn limits(half: f64, single: f64, double: f64, memory: f64) -> Limits {
    Limits {
        half,
        single,
        double,
        memory,
    }
}

impl Card {
    /// Returns the first device that a profile lists.
    pub(super) fn of(facts: &Facts<'_>) -> Option<Self> {
        let listed = facts.profile.metadata().get("deviceProperties")?;
        let cards: Vec<Self> = serde_json::from_str(listed).ok()?;
        cards.into_iter().next()
    }

    /// Returns the limits of a known card.
    pub(super) fn limits(&self) -> Option<Limits> {
        let known = CARDS.iter().find(|(name, _)| self.name.contains(name));
        known.map(|&(_, limits)| limits)
    }
}

impl Limits {
    /// Returns the seconds that a product takes at least.
    pub(super) fn least_seconds(&self, dtype: DType, operations: u64, bytes: u64) -> Option<f64> {
        let speed = match dtype {
            DType::F16 | DType::BF16 => self.half,
            DType::F32 => self.single,
            DType::F64 => self.double,
            _ => return None,
        };
        let (operations, bytes) = (operations as f64 / 1e12, bytes as f64 / 1e12);
        Some((operations / speed).max(bytes / self.memory))
    }

    /// Returns how long operations on 32-bit floats take, compared with 64-bit floats.
    pub(super) fn single_to_double(&self) -> f64 {
        (self.double / self.single).min(0.5)
    }
}
