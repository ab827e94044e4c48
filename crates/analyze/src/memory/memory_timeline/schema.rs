//! The inputs that an operator writes to, according to the schemas of torch's operators.

use std::sync::LazyLock;

use mindprof_model::{Category, Event, ScopeKind};
use rustc_hash::FxHashMap;

/// The schema of an operator, reduced to which inputs it writes to. It is derived from the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schema {
    /// The name is not an operator's.
    None,
    /// The inputs at the positions of the set bits are written to. If the number of inputs is that
    /// of one of the overloads, so are the last ones.
    Writes(u32, &'static [OutOverload]),
}

/// An overload that writes its results into its last arguments, as with `out=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOverload {
    arguments: u16,
    results: u16,
}

/// By name, the overloads of torch's operators that write to their last inputs.
///
/// A line of the table consists of the number of arguments, the number of results among them, and
/// the names of the operators that have such an overload. No other overload with the same number of
/// arguments takes tensors at these positions. The table therefore omits `max` and `min` with two
/// arguments, the second of which may be a tensor to compare with.
static OUT_OVERLOADS: LazyLock<FxHashMap<&str, Vec<OutOverload>>> = LazyLock::new(|| {
    let mut overloads: FxHashMap<_, Vec<_>> = FxHashMap::default();
    for line in include_str!("out_overloads.txt").lines() {
        let mut words = line.split(' ');
        let [arguments, results] = [(); 2].map(|()| {
            let number = words.next().and_then(|word| word.parse().ok());
            number.expect("lines of the table begin with two numbers")
        });
        for name in words {
            let known = overloads.entry(name).or_default();
            known.push(OutOverload { arguments, results });
        }
    }
    overloads
});

/// Operators that write to other inputs than their names imply, with one bit per position.
///
/// A name that ends in an underscore implies the first input, any other name no input.
const EXCEPTIONS: &[(&str, u32)] = &[
    ("_amp_foreach_non_finite_check_and_unscale_", 0b11),
    ("_amp_update_scale_", 0b11),
    ("_batch_norm_with_update", 0b1_1000),
    ("_cummax_helper", 0b110),
    ("_cummin_helper", 0b110),
    ("_fused_adagrad_", 0b1111),
    ("_fused_adam_", 0b1_1111),
    ("_fused_adamw_", 0b1_1111),
    ("_fused_moving_avg_obs_fq_helper", 0b111_1000),
    ("_fused_sgd_", 0b111),
    ("_native_batch_norm_legit", 0b1_1000),
    ("_no_grad_embedding_renorm_", 0),
    ("fused_moving_avg_obs_fake_quant", 0b111_1000),
    ("record_stream", 0b1),
    ("rrelu_with_noise", 0b10),
    ("rrelu_with_noise_", 0b11),
    ("set_data", 0b1),
];

impl Schema {
    /// Returns the schema of a name. Operators have a namespace other than that of the autograd
    /// engine.
    pub(super) fn of(name: &str) -> Self {
        let Some((namespace, base)) = name.rsplit_once("::") else {
            return Self::None;
        };
        if namespace.starts_with("autograd") || namespace == "torch::autograd" {
            return Self::None;
        }
        let exception = EXCEPTIONS.iter().find(|(known, _)| *known == base);
        let in_place = base.ends_with('_') && !base.ends_with("__")
            || base.starts_with("__i") && base.ends_with("__");
        let places = exception.map_or(u32::from(in_place), |(_, places)| *places);
        let overloads = OUT_OVERLOADS.get(base).filter(|_| namespace == "aten");
        Self::Writes(places, overloads.map_or(&[], Vec::as_slice))
    }

    /// Returns whether the input at `place` of so many `arguments` is written to, or `None` if that
    /// is not known.
    pub(super) fn writes(self, place: u16, arguments: u16) -> Option<bool> {
        match self {
            Self::None => None,
            Self::Writes(places, overloads) => {
                let is_result = |overload: &OutOverload| {
                    overload.arguments == arguments && place >= arguments - overload.results
                };
                let is_named = place < 32 && places >> place & 1 == 1;
                Some(is_named || overloads.iter().any(is_result))
            }
        }
    }

    /// Returns whether an event with this schema is an operation: a backward node or an operator.
    pub(super) fn is_operation(self, event: &Event) -> bool {
        event.category == Category::Operator
            && (event.scope == ScopeKind::Backward || self != Self::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_imply_which_inputs_are_written() {
        let writes = |name| {
            let schema = Schema::of(name);
            [0, 1, 2].map(|place| schema.writes(place, 3))
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(writes("aten::add"), [no, no, no]);
        assert_eq!(writes("aten::add_"), [yes, no, no]);
        assert_eq!(writes("aten::__ior__"), [yes, no, no]);
        assert_eq!(writes("aten::__or__"), [no, no, no]);
        assert_eq!(writes("aten::_fused_sgd_"), [yes, yes, yes]);
        assert_eq!(writes("torch::autograd::AccumulateGrad"), [None; 3]);
        assert_eq!(
            writes("autograd::engine::evaluate_function: AddBackward0"),
            [None; 3]
        );
        assert_eq!(writes("AddBackward0"), [None; 3]);
    }

    #[test]
    fn out_arguments_are_written() {
        let written = |name, arguments| -> Vec<u16> {
            let places = 0..arguments;
            places
                .filter(|&place| Schema::of(name).writes(place, arguments) == Some(true))
                .collect()
        };
        // add(self, other, alpha), add(self, other, alpha, out)
        assert_eq!(written("aten::add", 3), []);
        assert_eq!(written("aten::add", 4), [3]);
        // max(self, other), max(self, other, out), max(self, dim, keepdim, max, max_values)
        assert_eq!(written("aten::max", 2), []);
        assert_eq!(written("aten::max", 3), [2]);
        assert_eq!(written("aten::max", 5), [3, 4]);
        assert_eq!(written("own::add", 4), []);
    }
}
