//! The inputs of operators and kernels, as Ascend's files write them: `"4,1024;2"` with
//! `FLOAT16;INT64`, or JSON lists.

use mindprof_model::{DType, InputsEncoder};

/// Encodes inputs of these shapes and types. Returns whether there are any.
pub(crate) fn encode_inputs(encoder: &mut InputsEncoder, shapes: &str, dtypes: &str) -> bool {
    encoder.restart();
    let shapes = shapes.trim_matches('"');
    if is_nothing(shapes) && is_nothing(dtypes) {
        return false;
    }
    let shapes = lists(shapes);
    let mut dtypes = dtypes.split([';', ',']).map(dtype_of);
    for shape in &shapes {
        let dims = shape.split(',').map(str::trim).map(str::parse::<usize>);
        let dims = dims.collect::<Result<Vec<_>, _>>();
        match (dtypes.next().unwrap_or(DType::Unknown), dims) {
            (DType::Unknown, Err(_)) => encoder.other(),
            (dtype, dims) => encoder.tensor(dtype, &dims.unwrap_or_default(), &[]),
        }
    }
    true
}

/// Returns whether a field says that there is nothing to say.
fn is_nothing(field: &str) -> bool {
    matches!(field, "" | "N/A" | "NULL" | "UNDEFINED")
}

/// Splits the shapes of several tensors: `4,1025;2;2` or `[[4, 1025], [2], [2]]`.
fn lists(shapes: &str) -> Vec<&str> {
    let Some(inside) = shapes
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    else {
        return shapes.split(';').collect();
    };
    let mut lists = Vec::new();
    let mut rest = inside;
    while let Some((_, after)) = rest.split_once('[') {
        let (list, behind) = after.split_once(']').unwrap_or((after, ""));
        lists.push(list);
        rest = behind;
    }
    lists
}

/// Returns the element type with a name of CANN's or of C++.
fn dtype_of(name: &str) -> DType {
    let name = name.trim().trim_matches(['[', ']', '"', '\'']);
    let bare = name.strip_prefix("DT_").unwrap_or(name);
    match bare {
        "FLOAT" | "FLOAT32" => DType::F32,
        "FLOAT16" => DType::F16,
        "BF16" | "DT_BF16" | "BFLOAT16" => DType::BF16,
        "DOUBLE" => DType::F64,
        "INT8" => DType::I8,
        "INT16" => DType::I16,
        "INT32" => DType::I32,
        "INT64" => DType::I64,
        "UINT8" => DType::U8,
        "UINT16" => DType::U16,
        "UINT32" => DType::U32,
        "UINT64" => DType::U64,
        "BOOL" => DType::Bool,
        "COMPLEX64" => DType::C64,
        "COMPLEX128" => DType::C128,
        _ => DType::from_cpp_name(name),
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Input, InputsIter};

    use super::*;

    /// Returns the inputs as texts.
    fn describe(shapes: &str, dtypes: &str) -> Vec<String> {
        let mut encoder = InputsEncoder::default();
        encode_inputs(&mut encoder, shapes, dtypes);
        let inputs = InputsIter::new(encoder.words());
        let text = |input: Input<'_>| match input {
            Input::Tensor { dtype, dims, .. } => format!("{}{dims:?}", dtype.name()),
            _ => "-".into(),
        };
        inputs.map(text).collect()
    }

    #[test]
    fn fields_of_all_files_are_understood() {
        let three = ["int32[4, 1025]", "int64[2]", "int64[2]"];
        let types = "INT32;INT64;INT64";
        assert_eq!(describe("\"4,1025;2;2\"", types), three);
        assert_eq!(describe("[[4, 1025], [2], [2]]", types), three);
        // The second input is a scalar.
        let scalar = ["float32[1, 1024]", "float32[]"];
        assert_eq!(describe("1,1024;", "FLOAT;FLOAT"), scalar);
        assert_eq!(describe("8;", "c10::Half;Scalar"), ["float16[8]", "-"]);
        assert!(describe("N/A", "N/A").is_empty());
        assert!(describe("\"\"", "UNDEFINED").is_empty());
    }
}
