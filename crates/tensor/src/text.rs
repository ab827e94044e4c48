//! A tensor as text, laid out as torch prints it: aligned columns, scientific notation where
//! numbers differ much, and only the edges of what is large.

use crate::{DType, Result, Scalar, Tensor};

/// How tensors are printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintOptions {
    /// Digits after the point.
    pub precision: usize,
    /// From how many elements on only the edges are shown.
    pub threshold: usize,
    /// How many elements of each edge are shown.
    pub edge_items: usize,
    /// The widest that a line gets.
    pub line_width: usize,
    /// Whether to use scientific notation; none decides by the elements.
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
    /// Returns the text of the elements, indented by as much as the caller has written already.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn to_text(&self, indent: usize, options: &PrintOptions) -> Result<String> {
        let summarise = self.count() > options.threshold;
        let own = self.untracked();
        let shown = if summarise {
            edges(&own, options.edge_items)?
        } else {
            own.clone()
        };
        let format = Format::build(self.dtype(), &shown.to_scalars(), options);
        lines(&own, indent, summarise, &format, options)
    }
}

/// Keeps the first and the last few places of every dimension.
fn edges(tensor: &Tensor, items: usize) -> Result<Tensor> {
    let mut edges = tensor.clone();
    for dimension in 0..tensor.rank() {
        let size = tensor.dims()[dimension];
        if size > 2 * items {
            let first = edges.with_layout(edges.layout().sliced(dimension, 0, items, 1)?)?;
            let last = edges.layout().sliced(dimension, size - items, size, 1)?;
            let last = edges.with_layout(last)?;
            edges = crate::ops::joined(&[first, last], dimension)?;
        }
    }
    Ok(edges)
}

fn lines(
    tensor: &Tensor,
    indent: usize,
    summarise: bool,
    format: &Format,
    options: &PrintOptions,
) -> Result<String> {
    let Some(&size) = tensor.dims().first() else {
        return Ok(tensor
            .to_scalars()
            .first()
            .map_or_else(String::new, |&value| format.text(value)));
    };
    let edge = options.edge_items;
    let cut = summarise && size > 2 * edge;
    let places = (0..size).filter(|&place| !cut || place < edge || place >= size - edge);
    if tensor.rank() == 1 {
        let values = tensor.to_scalars();
        let mut words: Vec<String> = places.map(|place| format.text(values[place])).collect();
        if cut {
            words.insert(edge, " ...".to_owned());
        }
        let width = options.line_width.saturating_sub(indent);
        let per_line = (width / (format.width + 2)).max(1);
        let lines: Vec<String> = words.chunks(per_line).map(|line| line.join(", ")).collect();
        let gap = format!(",\n{}", " ".repeat(indent + 1));
        return Ok(format!("[{}]", lines.join(&gap)));
    }
    let mut parts = Vec::new();
    for place in places {
        let row = tensor.with_layout(tensor.layout().selected(0, place)?)?;
        parts.push(lines(&row, indent + 1, summarise, format, options)?);
    }
    if cut {
        parts.insert(edge, "...".to_owned());
    }
    let breaks = "\n".repeat(tensor.rank() - 1);
    let gap = format!(",{breaks}{}", " ".repeat(indent + 1));
    Ok(format!("[{}]", parts.join(&gap)))
}

/// How each element is written: alike, and equally wide.
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

/// Writes a number as C does: `1.2346e+00`.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}
