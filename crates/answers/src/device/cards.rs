//! The limits of device models: dense floating-point operations per second by dtype, and
//! bytes per second of their memory.
//!
//! The figures are those of the makers' data sheets: the peak at boost clock for dense matrices. Half
//! of a rate counts if a data sheet lists it with sparsity only.

use mindprof_model::DType;
use serde::Serialize;

/// The limits of a device model for dense matrices, in units of 10^12 operations and 10^9 bytes per
/// second. A rate is zero if the model has no such units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Card {
    /// The name of the model.
    pub model: &'static str,
    /// The rate of double precision, on tensor cores or matrix cores if they have it.
    pub float64_tflops: f64,
    /// The rate of single precision without tensor cores. AMD's matrix cores compute in it as well
    /// and count.
    pub float32_tflops: f64,
    /// The rate of single precision that tensor cores round to TF32.
    pub tf32_tflops: f64,
    /// The rate of `float16` on tensor cores, with sums in single precision.
    pub float16_tflops: f64,
    /// The rate of `bfloat16` on tensor cores, with sums in single precision.
    pub bfloat16_tflops: f64,
    /// The rate of 8-bit floats on tensor cores, with sums in single precision.
    pub float8_tflops: f64,
    /// The bandwidth of the memory.
    pub memory_gb_per_s: f64,
}

/// A rule that tells a model by the words in a device's name.
struct Rule {
    /// Words that the name has, all of them.
    words: &'static [&'static str],
    /// The least memory of the device in GiB.
    least_gib: u64,
    card: Card,
}

const fn card(model: &'static str, tflops: [f64; 6], memory_gb_per_s: f64) -> Card {
    let [float64, float32, tf32, float16, bfloat16, float8] = tflops;
    Card {
        model,
        float64_tflops: float64,
        float32_tflops: float32,
        tf32_tflops: tf32,
        float16_tflops: float16,
        bfloat16_tflops: bfloat16,
        float8_tflops: float8,
        memory_gb_per_s,
    }
}

const fn rule(words: &'static [&'static str], least_gib: u64, card: Card) -> Rule {
    Rule {
        words,
        least_gib,
        card,
    }
}

/// The rules. The first one that fits counts, so that special models stand before general ones.
/// The rates are those of float64, float32, TF32, float16, bfloat16 and float8.
const RULES: [Rule; 24] = {
    const HOPPER_SXM: [f64; 6] = [66.9, 66.9, 494.7, 989.4, 989.4, 1978.9];
    const HOPPER_NVL: [f64; 6] = [60.0, 60.0, 417.5, 835.5, 835.5, 1670.5];
    const BLACKWELL: [f64; 6] = [37.0, 75.0, 1_100.0, 2_250.0, 2_250.0, 4_500.0];
    // A device is one of the two dies of an MI250X; one of an MI250 has the same name.
    const CDNA2: [f64; 6] = [47.9, 47.9, 0.0, 191.5, 191.5, 0.0];
    const CDNA3: [f64; 6] = [163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9];
    const AMPERE: [f64; 6] = [19.5, 19.5, 156.0, 312.0, 312.0, 0.0];
    const VOLTA: [f64; 6] = [7.8, 15.7, 0.0, 125.0, 0.0, 0.0];
    const VOLTA_PCIE: [f64; 6] = [7.0, 14.0, 0.0, 112.0, 0.0, 0.0];
    [
        rule(&["B200"], 0, card("B200", BLACKWELL, 7_700.0)),
        rule(&["H200", "NVL"], 0, card("H200 NVL", HOPPER_NVL, 4_800.0)),
        rule(&["H200"], 0, card("H200", HOPPER_SXM, 4_800.0)),
        rule(&["H100", "NVL"], 0, card("H100 NVL", HOPPER_NVL, 3_938.0)),
        rule(
            &["H100", "PCIe"],
            0,
            card(
                "H100 PCIe",
                [51.2, 51.2, 378.0, 756.0, 756.0, 1513.0],
                2_039.0,
            ),
        ),
        rule(&["H100", "HBM3"], 0, card("H100 SXM", HOPPER_SXM, 3_352.0)),
        rule(&["H100", "SXM"], 0, card("H100 SXM", HOPPER_SXM, 3_352.0)),
        rule(
            &["A100", "80GB", "PCIe"],
            0,
            card("A100 80GB PCIe", AMPERE, 1_935.0),
        ),
        rule(&["A100"], 60, card("A100 80GB", AMPERE, 2_039.0)),
        rule(&["A100"], 0, card("A100 40GB", AMPERE, 1_555.0)),
        rule(
            &["V100S"],
            0,
            card("V100S PCIe", [8.2, 16.4, 0.0, 130.0, 0.0, 0.0], 1_134.0),
        ),
        rule(&["V100", "PCIE"], 0, card("V100 PCIe", VOLTA_PCIE, 900.0)),
        rule(&["V100"], 0, card("V100", VOLTA, 900.0)),
        rule(
            &["L40S"],
            0,
            card("L40S", [1.4, 91.6, 183.0, 362.0, 362.0, 733.0], 864.0),
        ),
        rule(
            &["L4"],
            0,
            card("L4", [0.5, 30.3, 60.0, 121.0, 121.0, 242.0], 300.0),
        ),
        rule(
            &["A10"],
            0,
            card("A10", [0.49, 31.2, 62.5, 125.0, 125.0, 0.0], 600.0),
        ),
        rule(
            &["A10G"],
            0,
            card("A10G", [0.55, 35.0, 35.0, 70.0, 70.0, 0.0], 600.0),
        ),
        rule(
            &["T4"],
            0,
            card("T4", [0.25, 8.1, 0.0, 65.0, 0.0, 0.0], 320.0),
        ),
        rule(
            &["RTX", "4090", "D"],
            0,
            card(
                "RTX 4090 D",
                [1.1, 73.5, 73.5, 147.0, 147.0, 294.0],
                1_008.0,
            ),
        ),
        rule(
            &["RTX", "4090"],
            0,
            card("RTX 4090", [1.3, 82.6, 82.6, 165.2, 165.2, 330.3], 1_008.0),
        ),
        rule(
            &["RTX", "3090"],
            0,
            card("RTX 3090", [0.56, 35.6, 35.6, 71.0, 71.0, 0.0], 936.0),
        ),
        rule(&["MI300X"], 0, card("MI300X", CDNA3, 5_300.0)),
        rule(&["MI250X"], 0, card("MI250X, one die", CDNA2, 1_638.0)),
        rule(
            &["MI210"],
            0,
            card("MI210", [45.3, 45.3, 0.0, 181.0, 181.0, 0.0], 1_638.0),
        ),
    ]
};

impl Card {
    /// Returns the limits of the device with this name and so many bytes of memory, or `None` if
    /// the model is not in the table.
    pub fn of(name: &str, memory_bytes: u64) -> Option<Self> {
        let words: Vec<&str> = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let has = |wanted: &&str| words.iter().any(|word| word.eq_ignore_ascii_case(wanted));
        let gib = memory_bytes >> 30;
        let rule = RULES
            .iter()
            .find(|rule| gib >= rule.least_gib && rule.words.iter().all(has))?;
        Some(rule.card)
    }

    /// Returns the largest number of operations per second on this dtype, or `None` if the card has
    /// no units for it. `float32` on tensor cores is TF32.
    pub fn flops_per_s(&self, dtype: DType, units: MathUnits) -> Option<f64> {
        let tflops = match (dtype, units) {
            (DType::F64, _) => self.float64_tflops,
            (DType::F32, MathUnits::TensorCores) => self.tf32_tflops,
            (DType::F32, MathUnits::Others) => self.float32_tflops,
            (DType::F16, _) => self.float16_tflops,
            (DType::BF16, _) => self.bfloat16_tflops,
            (
                DType::F8E4M3FN | DType::F8E4M3FNUZ | DType::F8E5M2 | DType::F8E5M2FNUZ,
                MathUnits::TensorCores,
            ) => self.float8_tflops,
            _ => 0.0,
        };
        (tflops > 0.0).then_some(tflops * 1e12)
    }

    /// Returns the largest number of bytes per second to and from the memory.
    pub fn bytes_per_s(&self) -> f64 {
        self.memory_gb_per_s * 1e9
    }
}

/// The units of a device that compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MathUnits {
    /// Tensor cores: matrix products of low precision.
    TensorCores,
    /// Everything else.
    Others,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_lead_to_their_models() {
        let gib = 1 << 30;
        for (name, memory, model) in [
            ("NVIDIA H200", 140 * gib, Some("H200")),
            ("NVIDIA H100 80GB HBM3", 79 * gib, Some("H100 SXM")),
            ("NVIDIA H100 PCIe", 79 * gib, Some("H100 PCIe")),
            ("NVIDIA A100-SXM4-80GB", 79 * gib, Some("A100 80GB")),
            ("NVIDIA A100 80GB PCIe", 79 * gib, Some("A100 80GB PCIe")),
            ("NVIDIA A100-PG509-200", 39 * gib, Some("A100 40GB")),
            ("Tesla V100-DGXS-32GB", 31 * gib, Some("V100")),
            ("Tesla V100-PCIE-16GB", 15 * gib, Some("V100 PCIe")),
            ("NVIDIA L4", 22 * gib, Some("L4")),
            ("NVIDIA L40S", 44 * gib, Some("L40S")),
            ("NVIDIA A10", 22 * gib, Some("A10")),
            ("Tesla T4", 14 * gib, Some("T4")),
            ("NVIDIA GeForce RTX 4090", 23 * gib, Some("RTX 4090")),
            ("NVIDIA GeForce RTX 3090", 23 * gib, Some("RTX 3090")),
            ("NVIDIA A10G", 22 * gib, Some("A10G")),
            ("NVIDIA H100 NVL", 93 * gib, Some("H100 NVL")),
            ("NVIDIA H200 NVL", 140 * gib, Some("H200 NVL")),
            ("NVIDIA B200", 179 * gib, Some("B200")),
            ("AMD Instinct MI300X", 191 * gib, Some("MI300X")),
            (
                "AMD Instinct MI250X/MI250",
                63 * gib,
                Some("MI250X, one die"),
            ),
            // Other models, whose names begin alike.
            ("NVIDIA GB200", 185 * gib, None),
            ("NVIDIA L40", 44 * gib, None),
            ("AMD Radeon Graphics", 63 * gib, None),
        ] {
            let found = Card::of(name, memory).map(|card| card.model);
            assert_eq!(found, model, "{name}");
        }
    }

    #[test]
    fn float32_on_tensor_cores_is_tf32() {
        let card = Card::of("NVIDIA A100-SXM4-40GB", 39 << 30).unwrap();
        let limit = |dtype, units| card.flops_per_s(dtype, units);
        assert_eq!(limit(DType::F32, MathUnits::Others), Some(19.5e12));
        assert_eq!(limit(DType::F32, MathUnits::TensorCores), Some(156e12));
        assert_eq!(limit(DType::F8E5M2, MathUnits::TensorCores), None);
        assert_eq!(limit(DType::I64, MathUnits::Others), None);
    }
}
