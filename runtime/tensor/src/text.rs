//! Formats tensors as text the way torch prints them: aligned columns, scientific notation for
//! values of very different magnitude, and a summary of large tensors.

use crate::{DType, Result, Scalar, Tensor};

/// The settings of tensor printing, as set by `torch.set_printoptions`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintOptions {
    /// The number of digits after the decimal point.
    pub precision: usize,
    /// The number of elements above which the output is summarized.
    pub threshold: usize,
    /// The number of elements shown at each edge of a summarized dimension.
    pub edge_items: usize,
    /// The maximum width of a line.
    pub line_width: usize,
    /// Whether to use scientific notation; `None` decides by the elements.
    pub scientific: Option<bool>,
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self {
            precision: 4,
            threshold: 1000,
            edge_items: 3,
            line_width: 80,
            scientific: None,
        }
    }
}

impl Tensor {
    /// Returns the elements as text, indented by the `indent` columns that the caller has already
    /// written.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn to_text(&self, indent: usize, options: &PrintOptions) -> Result<String> {
        let own = self.untracked();
        let edge = (self.count() > options.threshold).then_some(options.edge_items);
        let mut shown = Vec::new();
        gather(&own, edge, &mut shown)?;
        let format = Format::build(self.dtype(), &shown, options);
        lines(&own, indent, edge, &format, options)
    }
}

/// Returns how many indices are shown at each end of a dimension, or `None` if all are.
fn cut(size: usize, edge: Option<usize>) -> Option<usize> {
    edge.filter(|&edge| size > edge.saturating_mul(2))
}

/// Returns the indices of a dimension that are shown.
fn places(size: usize, cut: Option<usize>) -> impl Iterator<Item = usize> {
    let first = cut.unwrap_or(size);
    (0..first).chain(size - cut.unwrap_or(0)..size)
}

/// Returns the elements of a vector that are shown.
fn shown_values(row: &Tensor, cut: Option<usize>) -> Result<Vec<Scalar>> {
    let Some(edge) = cut else {
        return row.to_scalars();
    };
    let size = row.dims()[0];
    let mut values = row
        .with_layout(row.layout().sliced(0, 0, edge, 1)?)?
        .to_scalars()?;
    let last = row.layout().sliced(0, size - edge, size, 1)?;
    values.extend(row.with_layout(last)?.to_scalars()?);
    Ok(values)
}

/// Collects all elements that are shown, without reading the others.
fn gather(tensor: &Tensor, edge: Option<usize>, shown: &mut Vec<Scalar>) -> Result<()> {
    if edge.is_none() {
        *shown = tensor.to_scalars()?;
        return Ok(());
    }
    let Some(&size) = tensor.dims().first() else {
        shown.extend(tensor.to_scalars()?);
        return Ok(());
    };
    let cut = cut(size, edge);
    if tensor.rank() == 1 {
        shown.extend(shown_values(tensor, cut)?);
        return Ok(());
    }
    for place in places(size, cut) {
        let row = tensor.with_layout(tensor.layout().selected(0, place)?)?;
        gather(&row, edge, shown)?;
    }
    Ok(())
}

fn lines(
    tensor: &Tensor,
    indent: usize,
    edge: Option<usize>,
    format: &Format,
    options: &PrintOptions,
) -> Result<String> {
    let Some(&size) = tensor.dims().first() else {
        return Ok(tensor
            .to_scalars()?
            .first()
            .map_or_else(String::new, |&value| format.text(value)));
    };
    let cut = cut(size, edge);
    if tensor.rank() == 1 {
        let values = shown_values(tensor, cut)?;
        let mut words: Vec<String> = values.iter().map(|&value| format.text(value)).collect();
        if let Some(edge) = cut {
            words.insert(edge, " ...".to_owned());
        }
        let width = options.line_width.saturating_sub(indent);
        let per_line = (width / (format.width + 2)).max(1);
        let lines: Vec<String> = words.chunks(per_line).map(|line| line.join(", ")).collect();
        let gap = format!(",\n{}", " ".repeat(indent + 1));
        return Ok(format!("[{}]", lines.join(&gap)));
    }
    let mut parts = Vec::new();
    for place in places(size, cut) {
        let row = tensor.with_layout(tensor.layout().selected(0, place)?)?;
        parts.push(lines(&row, indent + 1, edge, format, options)?);
    }
    if let Some(edge) = cut {
        parts.insert(edge, "...".to_owned());
    }
    let breaks = "\n".repeat(tensor.rank() - 1);
    let gap = format!(",{breaks}{}", " ".repeat(indent + 1));
    Ok(format!("[{}]", parts.join(&gap)))
}

/// The format shared by all elements, which gives them equal width.
struct Format {
    float: bool,
    whole: bool,
    scientific: bool,
    precision: usize,
    width: usize,
}

impl Format {
    fn build(dtype: DType, values: &[Scalar], options: &PrintOptions) -> Self {
        let mut format = Self {
            float: dtype.is_float(),
            whole: true,
            scientific: false,
            precision: options.precision,
            width: 1,
        };
        if !format.float {
            let widths = values.iter().map(|&value| format.text(value).len());
            format.width = widths.max().unwrap_or(1).max(1);
            return format;
        }
        let finite: Vec<f64> = values
            .iter()
            .map(|value| value.to_f64())
            .filter(|value| value.is_finite() && *value != 0.0)
            .collect();
        if !finite.is_empty() {
            let sizes = || finite.iter().map(|value| value.abs());
            let (lowest, highest) = (
                sizes().fold(f64::INFINITY, f64::min),
                sizes().fold(0.0, f64::max),
            );
            format.whole = finite.iter().all(|value| value.fract() == 0.0);
            format.scientific =
                highest / lowest > 1000.0 || highest > 1e8 || (!format.whole && lowest < 1e-4);
            let widths = finite.iter().map(|&value| format.bare(value).len());
            format.width = widths.max().unwrap_or(1);
        }
        if let Some(scientific) = options.scientific {
            format.scientific = scientific;
        }
        format
    }

    fn text(&self, value: Scalar) -> String {
        let text = match value {
            Scalar::Bool(true) => "True".to_owned(),
            Scalar::Bool(false) => "False".to_owned(),
            Scalar::Int(value) => value.to_string(),
            Scalar::Float(value) => self.bare(value),
        };
        format!("{text:>width$}", width = self.width)
    }

    fn bare(&self, value: f64) -> String {
        if value.is_nan() {
            return "nan".to_owned();
        }
        if value.is_infinite() {
            return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
        }
        if self.scientific {
            return scientific(value, self.precision);
        }
        if self.whole {
            return format!("{value:.0}.");
        }
        format!("{value:.precision$}", precision = self.precision)
    }
}

/// Formats a number as C does: `1.2346e+00`.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}
