//! The shapes of the inputs of an event as text.

use mindprof_analyze::dims;
use mindprof_model::{InputsId, InputsTable};
use mindprof_trace::integers_text;

/// Returns the shapes of a list of inputs, such as `[[3, 4], []]`. Inputs that are not tensors have
/// the shape `[]`.
pub fn shapes_text(inputs: &InputsTable, id: InputsId) -> String {
    let shapes = inputs.inputs(id).map(|input| integers_text(dims(&input)));
    let shapes: Vec<String> = shapes.collect();
    format!("[{}]", shapes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mindprof_model::{DType, InputsEncoder};

    #[test]
    fn only_tensors_show_their_dims() {
        let mut encoder = InputsEncoder::default();
        encoder.tensor(DType::F32, &[3, 4], &[4, 1]);
        encoder.tensor_list(1);
        encoder.tensor(DType::F32, &[2], &[1]);
        encoder.int(1);
        let mut inputs = InputsTable::new();
        let id = inputs.intern(encoder.words());
        assert_eq!(shapes_text(&inputs, id), "[[3, 4], [], []]");
        assert_eq!(shapes_text(&inputs, InputsId::NONE), "[]");
    }
}
