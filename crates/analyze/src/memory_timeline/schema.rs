//! Which of its inputs an operator writes to, as the schemas of torch's operators say.

use mindprof_model::{Category, Event, ScopeKind};

/// What a name says of an operator's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schema {
    /// It is no operator's: nothing is known.
    None,
    /// The inputs at these places, one bit each, are written to.
    Writes(u32),
}

/// Operators that write to other inputs than their name says, with the places of these, one bit
/// each.
///
/// A name that ends in an underscore says "to the first"; any other "to none".
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
    /// Returns the schema of an operator's name: one with a namespace, which is not the engine's
    /// own.
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
        Self::Writes(exception.map_or(u32::from(in_place), |(_, places)| *places))
    }

    /// Returns whether the input at `place` is written to; none if that is not known.
    pub(super) const fn writes(self, place: u32) -> Option<bool> {
        match self {
            Self::None => None,
            Self::Writes(places) => Some(place < 32 && places >> place & 1 == 1),
        }
    }

    /// Returns whether an event with this schema is one operation, whatever it calls: a backward
    /// node or an operator.
    pub(super) fn is_operation(self, event: &Event) -> bool {
        event.category == Category::Operator
            && (event.scope == ScopeKind::Backward || self != Self::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_written() {
        let writes = |name| {
            let schema = Schema::of(name);
            [0, 1, 2].map(|place| schema.writes(place))
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
}
