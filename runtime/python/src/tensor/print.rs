//! The `repr` of a tensor, in torch's format.

use std::sync::{Mutex, PoisonError};

use mindtorch_tensor as host;
use mindtorch_tensor::PrintOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::scalar::check_depth;
use super::{DType, Tensor};
use crate::error::Error;

static OPTIONS: Mutex<Option<PrintOptions>> = Mutex::new(None);

fn options() -> PrintOptions {
    let options = OPTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    options.unwrap_or_default()
}

/// Sets how tensors are printed; omitted options keep their value.
#[pyfunction]
#[pyo3(signature = (precision = None, threshold = None, edgeitems = None, linewidth = None, profile = None, sci_mode = None))]
pub(crate) fn set_printoptions(
    precision: Option<usize>,
    threshold: Option<f64>,
    edgeitems: Option<usize>,
    linewidth: Option<usize>,
    profile: Option<&str>,
    sci_mode: Option<bool>,
) {
    let start = match profile {
        Some("default") => PrintOptions::default(),
        Some("short") => PrintOptions {
            precision: 2,
            edge_items: 2,
            ..PrintOptions::default()
        },
        Some("full") => PrintOptions {
            threshold: usize::MAX,
            ..PrintOptions::default()
        },
        _ => options(),
    };
    let changed = PrintOptions {
        precision: precision.unwrap_or(start.precision),
        threshold: threshold.map_or(start.threshold, |threshold| threshold as usize),
        edge_items: edgeitems.unwrap_or(start.edge_items),
        line_width: linewidth.unwrap_or(start.line_width),
        scientific: sci_mode,
    };
    *OPTIONS.lock().unwrap_or_else(PoisonError::into_inner) = Some(changed);
}

/// Returns the current print options.
#[pyfunction]
#[pyo3(name = "_print_options")]
pub(crate) fn print_options(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let options = options();
    let known = PyDict::new(py);
    known.set_item("precision", options.precision)?;
    known.set_item("threshold", options.threshold)?;
    known.set_item("edgeitems", options.edge_items)?;
    known.set_item("linewidth", options.line_width)?;
    known.set_item("sci_mode", options.scientific)?;
    Ok(known)
}

#[pymethods]
impl Tensor {
    fn __repr__(&self) -> PyResult<String> {
        const PREFIX: &str = "tensor(";
        check_depth(self.0.rank())?;
        let options = options();
        let mut suffixes = Vec::new();
        let elements = if self.0.count() == 0 {
            if self.0.rank() != 1 {
                suffixes.push(format!("size={}", tuple_text(self.0.dims())));
            }
            "[]".to_owned()
        } else {
            let text = self.0.to_text(PREFIX.len(), &options);
            text.map_err(Error::from)?
        };
        let usual = match self.0.dtype() {
            host::DType::F32 => true,
            host::DType::I64 | host::DType::Bool => self.0.count() != 0,
            host::DType::BF16 | host::DType::F64 | host::DType::I32 => false,
        };
        if !usual {
            suffixes.push(format!("dtype={}", DType(self.0.dtype()).__repr__()));
        }
        if let Some(node) = self.0.node_name() {
            suffixes.push(format!("grad_fn=<{node}>"));
        } else if self.0.requires_grad() {
            suffixes.push("requires_grad=True".to_owned());
        }
        Ok(with_suffixes(
            format!("{PREFIX}{elements}"),
            &suffixes,
            PREFIX.len(),
            options.line_width,
        ))
    }
}

fn tuple_text(dims: &[usize]) -> String {
    let words: Vec<String> = dims.iter().map(ToString::to_string).collect();
    match words.as_slice() {
        [one] => format!("({one},)"),
        _ => format!("({})", words.join(", ")),
    }
}

/// Appends suffixes such as the dtype, on the same line if there is room.
fn with_suffixes(
    mut text: String,
    suffixes: &[String],
    indent: usize,
    line_width: usize,
) -> String {
    let mut length = match text.rfind('\n') {
        Some(place) => text.len() - place + 1,
        None => text.len() + 2,
    };
    for suffix in suffixes {
        if length + suffix.len() + 2 > line_width {
            text += ",\n";
            text += &" ".repeat(indent);
            length = indent + suffix.len();
        } else {
            text += ", ";
            length += suffix.len() + 2;
        }
        text += suffix;
    }
    text + ")"
}
