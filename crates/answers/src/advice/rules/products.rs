//! The sizes of matrix products, from the shapes of their inputs.

use mindprof_model::{DType, EventId};

use crate::advice::facts::Facts;

/// A product of two matrices, possibly of several pairs: `rows` × `inner` by `inner` × `columns`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) dtype: DType,
    pairs: u64,
    rows: u64,
    pub(super) inner: u64,
    pub(super) columns: u64,
}

impl Product {
    /// Returns the product that an operator of this name computes.
    pub(super) fn of(facts: &Facts<'_>, id: EventId) -> Option<Self> {
        let first = match facts.name(id) {
            "aten::mm" | "aten::bmm" => 0,
            "aten::addmm" | "aten::baddbmm" => 1,
            _ => return None,
        };
        let tensors = facts.tensors(id);
        let (&(dtype, left), &(_, right)) = (tensors.get(first)?, tensors.get(first + 1)?);
        match (left, right) {
            (&[rows, inner], &[_, columns]) => Some(Self {
                dtype,
                pairs: 1,
                rows,
                inner,
                columns,
            }),
            (&[pairs, rows, inner], &[_, _, columns]) => Some(Self {
                dtype,
                pairs,
                rows,
                inner,
                columns,
            }),
            _ => None,
        }
    }

    /// Returns the rows of the left matrix, or of all left matrices.
    pub(super) const fn rows(&self) -> u64 {
        self.pairs * self.rows
    }

    /// Returns whether a name is that of an operator that computes a product.
    pub(super) fn is_name(name: &str) -> bool {
        matches!(
            name,
            "aten::mm" | "aten::bmm" | "aten::addmm" | "aten::baddbmm"
        )
    }

    /// Returns the floating-point operations.
    pub(super) const fn operations(&self) -> u64 {
        2 * self.pairs * self.rows * self.inner * self.columns
    }

    /// Returns the bytes of the two matrices and their product.
    pub(super) fn bytes(&self) -> u64 {
        let size = match self.dtype {
            DType::F64 => 8,
            DType::F32 => 4,
            _ => 2,
        };
        let matrices =
            self.rows * self.inner + self.inner * self.columns + self.rows * self.columns;
        self.pairs * matrices * size
    }
}
