//! The floating-point operations and the least memory traffic of operators, from the shapes of
//! their inputs.
//!
//! Matrix products and convolutions are counted as in the table's FLOPs ([`Flops`]). Attention,
//! backward convolutions and elementwise operators are added here. All other operators are not
//! counted.

use mindprof_analyze::{Analysis, Flops};
use mindprof_model::{Category, DType, EventId, Input, InputsId, StringId};
use rustc_hash::FxHashMap;

use crate::input_dtypes::first_dtype;

/// The counts of one operator call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OperatorCount {
    pub(crate) flops: u64,
    /// The bytes of the inputs and the outputs, each once, or `None` if a dtype is unknown.
    pub(crate) bytes: Option<u64>,
    /// The dtype of the first input.
    pub(crate) dtype: DType,
}

/// Counts operators. Calls with the same name and inputs are counted once.
pub(crate) struct OperatorCounts<'a> {
    analysis: &'a Analysis,
    formulas: Vec<Option<Formula>>,
    flops: Flops,
    known: FxHashMap<(StringId, InputsId), Option<OperatorCount>>,
}

impl<'a> OperatorCounts<'a> {
    pub(crate) fn new(analysis: &'a Analysis) -> Self {
        let strings = analysis.profile().strings();
        Self {
            analysis,
            formulas: strings.iter().map(Formula::of).collect(),
            flops: Flops::new(strings),
            known: FxHashMap::default(),
        }
    }

    /// Returns the innermost operator around a kernel's launch that is counted, and its counts.
    pub(crate) fn operator_of(&mut self, kernel: EventId) -> Option<(EventId, OperatorCount)> {
        let mut at = self.analysis.correlation().owner(kernel);
        while let Some(id) = at {
            if self.analysis.profile().event(id).category != Category::Operator {
                return None;
            }
            if let Some(count) = self.count(id) {
                return Some((id, count));
            }
            at = self.analysis.tree().parent(id);
        }
        None
    }

    fn count(&mut self, id: EventId) -> Option<OperatorCount> {
        let profile = self.analysis.profile();
        let event = profile.event(id);
        let formula = self.formulas[event.name.index()]?;
        if event.inputs == InputsId::NONE {
            return None;
        }
        let flops = &mut self.flops;
        let known = self.known.entry((event.name, event.inputs));
        *known.or_insert_with(|| {
            let inputs: Vec<Input<'_>> = profile.inputs().inputs(event.inputs).collect();
            let flops = match formula {
                Formula::Product(_) | Formula::Convolution => flops.count(profile, id),
                _ => 0,
            };
            let dtype = first_dtype(profile.inputs().inputs(event.inputs))?;
            let (flops, bytes) = formula.count(&inputs, flops)?;
            Some(OperatorCount {
                flops,
                bytes,
                dtype,
            })
        })
    }
}

/// How an operator is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Formula {
    /// A product of the matrices at this position and the next.
    Product(usize),
    /// A product of 8-bit floats.
    ScaledProduct,
    /// A two-dimensional convolution.
    Convolution,
    /// The gradients of a convolution.
    ConvolutionBackward,
    /// Attention of query, key and value from this position on. The flag at the second position
    /// tells whether half of it is masked.
    Attention(usize, usize),
    /// The gradients of attention.
    AttentionBackward(usize),
    /// One operation per element of the output, which is as large as the largest input.
    Elementwise,
    /// No operation: the first input is overwritten with the others.
    Overwrite,
}

impl Formula {
    fn of(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("aten::")? {
            "mm" | "bmm" => Self::Product(0),
            "addmm" | "baddbmm" => Self::Product(1),
            "_scaled_mm" => Self::ScaledProduct,
            "conv2d" => Self::Convolution,
            "convolution_backward" => Self::ConvolutionBackward,
            "_scaled_dot_product_flash_attention" => Self::Attention(0, 4),
            "_scaled_dot_product_efficient_attention" | "_scaled_dot_product_cudnn_attention" => {
                Self::Attention(0, 6)
            }
            "_scaled_dot_product_flash_attention_backward"
            | "_scaled_dot_product_efficient_attention_backward" => Self::AttentionBackward(11),
            "_scaled_dot_product_cudnn_attention_backward" => Self::AttentionBackward(14),
            "add" | "add_" | "sub" | "sub_" | "mul" | "mul_" | "div" | "div_" | "neg" | "exp"
            | "sqrt" | "rsqrt" | "tanh" | "sigmoid" | "relu" | "relu_" | "gelu" | "silu"
            | "clamp_min_" | "threshold_backward" | "gelu_backward" | "silu_backward"
            | "tanh_backward" => Self::Elementwise,
            "copy_" | "fill_" | "zero_" => Self::Overwrite,
            _ => return None,
        })
    }

    /// Returns the operations and the bytes of a call. `flops` is what the table counts.
    fn count(self, inputs: &[Input<'_>], flops: u64) -> Option<(u64, Option<u64>)> {
        match self {
            Self::Product(first) => {
                let (left, right) = (tensor(inputs, first)?, tensor(inputs, first + 1)?);
                let rows = left.elements() / left.dims.last()?.max(&1);
                let out = rows.saturating_mul(*right.dims.last()?);
                let bytes = sum([left.bytes(), right.bytes(), left.bytes_of(out)]);
                (flops > 0).then_some((flops, bytes))
            }
            Self::ScaledProduct => {
                let (left, right) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
                let columns = *right.dims.last()?;
                let flops = multiply(&[2, left.elements(), columns]);
                // The dtype of the output is not among the inputs.
                Some((flops, None))
            }
            Self::Convolution => {
                let (input, weight) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
                let per_output = multiply(weight.dims.get(1..)?).saturating_mul(2);
                let out = flops.checked_div(per_output)?;
                let bytes = sum([input.bytes(), weight.bytes(), input.bytes_of(out)]);
                (flops > 0).then_some((flops, bytes))
            }
            Self::ConvolutionBackward => {
                let [gradient, input, weight] = [0, 1, 2].map(|at| tensor(inputs, at));
                let (gradient, input, weight) = (gradient?, input?, weight?);
                if !matches!(inputs.get(7), Some(Input::Bool(false))) {
                    return None;
                }
                let Some(Input::BoolList(mask)) = inputs.get(10) else {
                    return None;
                };
                let wanted = mask.iter().take(2).filter(|wanted| **wanted != 0).count() as u64;
                let each = multiply(weight.dims.get(1..)?);
                let flops = multiply(&[2, wanted, gradient.elements(), each]);
                let outputs = [input, weight].into_iter().zip(mask.iter());
                let outputs = outputs.filter(|(_, wanted)| **wanted != 0);
                let outputs: Vec<_> = outputs.map(|(output, _)| output.bytes()).collect();
                let read = [gradient.bytes(), input.bytes(), weight.bytes()];
                Some((flops, sum(read.into_iter().chain(outputs))))
            }
            Self::Attention(first, causal) => attention(inputs, first, causal, 2),
            Self::AttentionBackward(causal) => attention(inputs, 1, causal, 5),
            Self::Elementwise => {
                let read: Vec<Tensor<'_>> = tensors(inputs).collect();
                let out = read.iter().max_by_key(|tensor| tensor.elements())?;
                let bytes = read.iter().map(Tensor::bytes);
                let written = out.bytes_of(out.elements());
                Some((out.elements(), sum(bytes.chain([written]))))
            }
            Self::Overwrite => {
                tensor(inputs, 0)?;
                Some((0, sum(tensors(inputs).map(|tensor| tensor.bytes()))))
            }
        }
    }
}

/// Counts attention as so many products of queries and keys.
fn attention(
    inputs: &[Input<'_>],
    first: usize,
    causal: usize,
    products: u64,
) -> Option<(u64, Option<u64>)> {
    let [query, key, value] = [0, 1, 2].map(|at| tensor(inputs, first + at));
    let (query, key, value) = (query?, key?, value?);
    let ([batch, heads, rows, depth], [_, _, columns, _]) = (query.dims, key.dims) else {
        return None;
    };
    let Some(Input::Bool(is_causal)) = inputs.get(causal) else {
        return None;
    };
    let all = multiply(&[2, products, *batch, *heads, *rows, *columns, *depth]);
    let flops = if *is_causal { all / 2 } else { all };
    let (q, k, v) = (query.bytes(), key.bytes(), value.bytes());
    let bytes = if products > 2 {
        // Read: the gradient, the output and the inputs. Written: the gradients of the inputs.
        sum([q, q, q, k, v, q, k, v])
    } else {
        sum([q, k, v, q])
    };
    Some((flops, bytes))
}

/// A tensor among the inputs.
#[derive(Clone, Copy, Debug)]
struct Tensor<'a> {
    dtype: DType,
    dims: &'a [u64],
    strides: &'a [u64],
}

impl Tensor<'_> {
    fn elements(&self) -> u64 {
        multiply(self.dims)
    }

    /// Returns the bytes of its memory. A dimension without a stride is the same memory again.
    fn bytes(&self) -> Option<u64> {
        let is_there = |axis: usize| self.strides.get(axis).is_none_or(|stride| *stride != 0);
        let dims = self.dims.iter().enumerate();
        let dims = dims
            .filter(|(axis, _)| is_there(*axis))
            .map(|(_, dim)| *dim);
        self.bytes_of(dims.fold(1, u64::saturating_mul))
    }

    /// Returns the bytes of so many elements of its dtype.
    fn bytes_of(&self, elements: u64) -> Option<u64> {
        let size = self.dtype.bytes();
        (size > 0).then(|| elements.saturating_mul(size))
    }
}

fn tensor<'a>(inputs: &[Input<'a>], position: usize) -> Option<Tensor<'a>> {
    match inputs.get(position)? {
        Input::Tensor {
            dtype,
            dims,
            strides,
            ..
        } => Some(Tensor {
            dtype: *dtype,
            dims,
            strides,
        }),
        _ => None,
    }
}

fn tensors<'a, 'b>(inputs: &'b [Input<'a>]) -> impl Iterator<Item = Tensor<'a>> + 'b {
    (0..inputs.len()).filter_map(|position| tensor(inputs, position))
}

fn multiply(factors: &[u64]) -> u64 {
    factors.iter().copied().fold(1, u64::saturating_mul)
}

fn sum(parts: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    let mut parts = parts.into_iter();
    parts.try_fold(0_u64, |sum, part| Some(sum.saturating_add(part?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dims: &'static [u64], strides: &'static [u64]) -> Input<'static> {
        Input::Tensor {
            dtype: DType::F32,
            dims,
            strides,
            offset: 0,
        }
    }

    fn count(name: &str, inputs: &[Input<'_>], flops: u64) -> Option<(u64, Option<u64>)> {
        Formula::of(name).unwrap().count(inputs, flops)
    }

    #[test]
    fn products_read_both_matrices_and_write_one() {
        let inputs = [tensor(&[4, 8], &[8, 1]), tensor(&[8, 2], &[2, 1])];
        let bytes = 4 * (32 + 16 + 8);
        assert_eq!(count("aten::mm", &inputs, 128), Some((128, Some(bytes))));
        // No shapes that fit: not counted.
        assert_eq!(count("aten::mm", &inputs, 0), None);
    }

    #[test]
    fn a_broadcast_input_is_read_once() {
        let inputs = [tensor(&[4, 8], &[8, 1]), tensor(&[4, 8], &[0, 1])];
        let bytes = 4 * (32 + 8 + 32);
        assert_eq!(count("aten::add", &inputs, 0), Some((32, Some(bytes))));
        assert_eq!(count("aten::copy_", &inputs, 0), Some((0, Some(4 * 40))));
    }

    #[test]
    fn attention_with_a_causal_mask_counts_half() {
        let shape = || tensor(&[2, 3, 16, 8], &[]);
        let call = |flag| {
            let inputs = [shape(), shape(), shape(), Input::Float(0.0), flag];
            count("aten::_scaled_dot_product_flash_attention", &inputs, 0).map(|(flops, _)| flops)
        };
        let all = 4 * 2 * 3 * 16 * 16 * 8;
        assert_eq!(call(Input::Bool(false)), Some(all));
        assert_eq!(call(Input::Bool(true)), Some(all / 2));
        assert_eq!(call(Input::Other), None, "the flag was not recorded");
    }

    #[test]
    fn a_backward_convolution_counts_the_gradients_that_are_wanted() {
        let call = |mask: &'static [u64]| {
            let mut inputs = vec![
                tensor(&[1, 8, 4, 4], &[]),
                tensor(&[1, 3, 4, 4], &[]),
                tensor(&[8, 3, 3, 3], &[]),
            ];
            inputs.extend((3..7).map(|_| Input::Other));
            inputs.extend([Input::Bool(false), Input::Other, Input::Int(1)]);
            inputs.push(Input::BoolList(mask));
            count("aten::convolution_backward", &inputs, 0).map(|(flops, _)| flops)
        };
        let one = 2 * (8 * 16) * 27;
        assert_eq!(call(&[1, 1, 0]), Some(2 * one));
        assert_eq!(call(&[0, 1, 1]), Some(one));
    }
}
