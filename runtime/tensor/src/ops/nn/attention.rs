//! `scaled_dot_product_attention`: one fused kernel if possible, otherwise matrix products and a
//! softmax.

use smallvec::smallvec;

use crate::autocast::Casting;
use crate::autograd::{Formula, Saved, differentiable_first, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::element::by_float;
use crate::error::reject;
use crate::kernels::{self, Attention};
use crate::ops::create::{Options, empty, empty_like};
use crate::{DType, Result, Scalar, Tensor, Triangle};

static ATTENTION: Site = Site::operator("aten::scaled_dot_product_attention");
static FLASH: Site = Site::operator("aten::_scaled_dot_product_flash_attention_for_cpu");
static FLASH_BACKWARD: Site =
    Site::operator("aten::_scaled_dot_product_flash_attention_for_cpu_backward");
static MATH: Site = Site::operator("aten::_scaled_dot_product_attention_math");

node_site! {
    FLASH_NODE = "ScaledDotProductFlashAttentionForCpuBackward0";
}

impl Tensor {
    /// Returns the values weighted by how well the keys match the queries, which this tensor holds.
    ///
    /// # Errors
    /// Returns an error if the shapes or the dtypes do not match.
    pub fn attention(
        &self,
        key: &Self,
        value: &Self,
        mask: Option<&Self>,
        dropout: f64,
        causal: bool,
        scale: Option<f64>,
    ) -> Result<Self> {
        let _scope = open(
            &ATTENTION,
            (self, key, value, mask, dropout, causal, scale, false),
        );
        if let Some(casting) = Casting::begin() {
            let mask = casting.lower_optional(mask)?;
            let (value, key) = (casting.lower(value)?, casting.lower(key)?);
            let query = casting.lower(self)?;
            return query.attention(&key, &value, mask.as_ref(), dropout, causal, scale);
        }
        if self.rank() < 2 || key.rank() < 2 || value.rank() < 2 {
            return reject!(
                Runtime,
                "scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, but \
                 got query.dim: {}, key.dim: {} and value.dim: {} instead.",
                self.rank(),
                key.rank(),
                value.rank()
            );
        }
        if self.dtype() != key.dtype() || self.dtype() != value.dtype() {
            return reject!(
                Runtime,
                "Expected query, key, and value to have the same dtype, but got query.dtype: {}, key.dtype: {}, and \
                 value.dtype: {} instead.",
                self.dtype().native_name(),
                key.dtype().native_name(),
                value.dtype().native_name()
            );
        }
        if mask.is_some() && causal {
            return reject!(
                Runtime,
                "scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            );
        }
        let same = self.rank() == 4
            && key.dims() == value.dims()
            && self.dims()[..2] == key.dims()[..2]
            && self.dims()[3] == key.dims()[3];
        if same && mask.is_none() && dropout == 0.0 && self.dtype().is_float() && key.count() > 0 {
            return self.flash(key, value, causal, scale);
        }
        self.attention_by_parts(key, value, mask, dropout, causal, scale)
    }

    fn flash(&self, key: &Self, value: &Self, causal: bool, scale: Option<f64>) -> Result<Self> {
        let _scope = open(&FLASH, (self, key, value, 0.0, causal, Absent, scale));
        let shape = Attention {
            batch: self.dims()[0],
            heads: self.dims()[1],
            queries: self.dims()[2],
            keys: key.dims()[2],
            width: self.dims()[3],
            causal,
            scale: scale.unwrap_or(1.0 / (self.dims()[3] as f64).sqrt()),
        };
        let [result, _] = differentiable_first(
            &FLASH_NODE,
            [self, key, value],
            || flash_forward([self, key, value], shape),
            |[result, sums]| {
                let kept = [self, key, value, sums].map(Saved::new);
                let result = Saved::result(result, &FLASH_NODE);
                Formula::saving(move |gradients| {
                    let [query, key, value, sums] = [
                        kept[0].get()?,
                        kept[1].get()?,
                        kept[2].get()?,
                        kept[3].get()?,
                    ];
                    let known = [gradients.only(), query, key, value, result.get()?, sums];
                    let [query, key, value] = flash_backward(known, shape, scale)?;
                    Ok(smallvec![Some(query), Some(key), Some(value)])
                })
            },
        )?;
        Ok(result)
    }

    fn attention_by_parts(
        &self,
        key: &Self,
        value: &Self,
        mask: Option<&Self>,
        dropout: f64,
        causal: bool,
        scale: Option<f64>,
    ) -> Result<Self> {
        let _scope = open(
            &MATH,
            (self, key, value, mask, dropout, causal, Absent, scale),
        );
        let width = self.dims()[self.rank() - 1] as f64;
        // Both factors are scaled, so that the product of large ones does not overflow.
        let root = Scalar::Float(scale.unwrap_or(1.0 / width.sqrt()).sqrt());
        let scores = self.mul(root)?.matmul(&key.transpose(-2, -1)?.mul(root)?)?;
        let scores = if causal {
            let rank = scores.rank();
            let sizes = [
                scores.dims()[rank - 2] as i64,
                scores.dims()[rank - 1] as i64,
            ];
            let open_places =
                Self::ones(&sizes, Some(DType::Bool))?.triangle(Triangle::Lower, 0)?;
            scores.masked_fill(
                &open_places.bitwise_not()?,
                Scalar::Float(f64::NEG_INFINITY),
            )?
        } else {
            match mask {
                Some(mask) if mask.dtype() == DType::Bool => {
                    scores.masked_fill(&mask.bitwise_not()?, Scalar::Float(f64::NEG_INFINITY))?
                }
                Some(mask) => scores.add(mask)?,
                None => scores,
            }
        };
        let weights = scores.softmax(-1, None)?.dropout(dropout, true)?;
        weights.matmul(value)
    }
}

fn flash_forward([query, key, value]: [&Tensor; 3], shape: Attention) -> Result<[Tensor; 2]> {
    let result = empty_like(query)?;
    let by_rows = result.transpose(1, 2)?;
    let options = Options::like(query);
    let sizes = [shape.batch, shape.queries, shape.heads].map(|size| size as i64);
    let sums = empty(&sizes, query.dtype().computed(), &options)?;
    for operand in [query, key, value] {
        operand.transpose(1, 2)?;
    }
    let scores = shape.queries.min(64) * shape.keys;
    drop(empty(&[1, scores as i64], query.dtype(), &options)?);
    drop(empty(&[1, 0], query.dtype(), &options)?);
    let packed = [
        kernels::pack(query)?,
        kernels::pack(key)?,
        kernels::pack(value)?,
    ];
    by_float!(query.dtype(), "flash_attention", T => {
        let [query, key, value] = packed.each_ref().map(Tensor::to_vec::<T>);
        let operands = [query?, key?, value?];
        let (values, logarithms) = kernels::attention_forward(operands.each_ref().map(Vec::as_slice), shape)?;
        let source = Tensor::from_slice(&values, &crate::shape::signed(result.dims()))?;
        kernels::copy_into(&result, &source);
        let source = Tensor::from_slice(
            &logarithms,
            &[shape.batch, shape.heads, shape.queries].map(|size| size as i64),
        )?;
        let target = sums.with_layout(sums.layout().transposed(1, 2)?)?;
        kernels::copy_into(&target, &source);
        Ok(())
    })?;
    let result = by_rows.transpose(1, 2)?;
    let sums = sums.transpose(1, 2)?;
    Ok([result, sums])
}

fn flash_backward(
    known: [&Tensor; 6],
    shape: Attention,
    scale: Option<f64>,
) -> Result<[Tensor; 3]> {
    let [gradient, query, key, value, result, sums] = known;
    let _scope = open(
        &FLASH_BACKWARD,
        (
            gradient,
            query,
            key,
            value,
            result,
            sums,
            0.0,
            shape.causal,
            Absent,
            scale,
        ),
    );
    for operand in known {
        operand.transpose(1, 2)?;
    }
    let room = |rows: usize| {
        let sizes = [shape.batch, rows, shape.heads, shape.width].map(|size| size as i64);
        Tensor::zeros(&sizes, Some(query.dtype()))
    };
    let rooms = [room(shape.queries)?, room(shape.keys)?, room(shape.keys)?];
    let options = Options::like(query);
    let scores = (shape.queries * shape.keys) as i64;
    for sizes in [[1, scores], [1, 0], [1, shape.keys as i64]] {
        drop(empty(&sizes, query.dtype(), &options)?);
    }
    by_float!(query.dtype(), "flash_attention_backward", T => {
        let [gradient, query, key, value, result, sums] = known.map(Tensor::to_vec::<T>);
        let operands = [gradient?, query?, key?, value?, result?, sums?];
        let gradients = kernels::attention_gradient(operands.each_ref().map(Vec::as_slice), shape)?;
        for (room, values) in rooms.iter().zip(gradients) {
            let target = room.with_layout(room.layout().transposed(1, 2)?)?;
            let source = Tensor::from_slice(&values, &crate::shape::signed(target.dims()))?;
            kernels::copy_into(&target, &source);
        }
        Ok(())
    })?;
    let [query, key, value] = rooms;
    Ok([
        query.transpose(1, 2)?,
        key.transpose(1, 2)?,
        value.transpose(1, 2)?,
    ])
}
