//! Embedding: looks up rows of a table.

use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::error::reject;
use crate::kernels::{self, Put};
use crate::ops::extreme::index_type;
use crate::shape::signed;
use crate::storage::reserve;
use crate::{Result, Tensor};

static EMBEDDING: Site = Site::operator("aten::embedding");
static EMBEDDING_BACKWARD: Site = Site::operator("aten::embedding_backward");
static EMBEDDING_DENSE_BACKWARD: Site = Site::operator("aten::embedding_dense_backward");

node_site! {
    EMBEDDING_NODE = "EmbeddingBackward0";
}

impl Tensor {
    /// Returns the rows of this table at the given indices. The row at `padding` gets no gradient.
    ///
    /// # Errors
    /// Returns an error if the table is not a matrix, the index does not hold integers, or a row
    /// index is out of range.
    pub fn embedding(&self, index: &Self, padding: Option<i64>) -> Result<Self> {
        let padding = padding.unwrap_or(-1);
        let _scope = open(&EMBEDDING, (self, index, padding, false, false));
        if self.rank() != 2 {
            return reject!(Runtime, "'weight' must be 2-D");
        }
        index_type(index, "embedding")?;
        let (rows, width) = (self.dims()[0], self.dims()[1]);
        for place in index.to_vec::<i64>()? {
            if place < 0 || place >= rows as i64 {
                return reject!(
                    Index,
                    "index out of range in self: index {place} of an embedding with {rows} rows"
                );
            }
        }
        differentiable(
            &EMBEDDING_NODE,
            [self],
            || {
                if index.rank() == 1 {
                    return self.index_select(0, index);
                }
                let flat = index.reshape(&[-1])?;
                let mut sizes = signed(index.dims());
                sizes.push(width as i64);
                self.index_select(0, &flat)?.view(&sizes)
            },
            |_| {
                let kept = Saved::new(index);
                Formula::unary_saving(move |gradient| {
                    let index = kept.get()?;
                    let count = rows as i64;
                    let _scope = open(
                        &EMBEDDING_BACKWARD,
                        (gradient, index, count, padding, false, false),
                    );
                    let _scope = open(
                        &EMBEDDING_DENSE_BACKWARD,
                        (gradient, index, count, padding, false),
                    );
                    let result = Self::zeros(&[count, width as i64], Some(gradient.dtype()))?;
                    let flat = gradient
                        .contiguous()?
                        .view(&[index.count() as i64, width as i64])?;
                    let mut places = reserve(flat.count())?;
                    let mut sources = reserve(flat.count())?;
                    for (row, place) in index.to_vec::<i64>()?.into_iter().enumerate() {
                        if place != padding {
                            let (start, source) = (place as usize * width, row * width);
                            places.extend(start..start + width);
                            let source = flat.offset() + source;
                            sources.extend(source..source + width);
                        }
                    }
                    if sources.len() == flat.count() {
                        kernels::put(&result, &places, &flat, Put::Add);
                    } else {
                        let used = kernels::take(&flat, &sources, &[sources.len()])?;
                        kernels::put(&result, &places, &used, Put::Add);
                    }
                    Ok(result)
                })
            },
        )
    }
}
