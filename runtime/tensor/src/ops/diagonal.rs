//! Diagonals: extracts one from a matrix, or builds a matrix from one.

use crate::autograd::{Formula, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::error::reject;
use crate::layout::Layout;
use crate::shape::{Dims, Strides, signed};
use crate::{Result, Tensor};

static DIAG: Site = Site::operator("aten::diag");
static DIAGONAL: Site = Site::operator("aten::diagonal");
static DIAGONAL_BACKWARD: Site = Site::operator("aten::diagonal_backward");
static DIAGONAL_COPY: Site = Site::operator("aten::diagonal_copy");
static DIAG_EMBED: Site = Site::operator("aten::diag_embed");

node_site! {
    DIAGONAL_COPY_NODE = "DiagonalBackward0_copy";
    DIAG_EMBED_NODE = "DiagEmbedBackward0";
}

impl Tensor {
    /// Returns a diagonal of a matrix, or a matrix with a vector as its diagonal.
    ///
    /// # Errors
    /// Returns an error if the tensor is neither a matrix nor a vector, or memory cannot be allocated.
    pub fn diag(&self, diagonal: i64) -> Result<Self> {
        let _scope = open(&DIAG, (self, diagonal));
        match self.rank() {
            1 => self.diag_embed(diagonal),
            2 => self.diagonal_copy(diagonal),
            rank => reject!(Runtime, "diag(): Supports 1D or 2D tensors. Got {rank}D"),
        }
    }

    fn diagonal_copy(&self, diagonal: i64) -> Result<Self> {
        let _scope = open(&DIAGONAL_COPY, (self, diagonal, 0_i64, 1_i64));
        differentiable(
            &DIAGONAL_COPY_NODE,
            [self],
            || self.diagonal(diagonal)?.duplicate_contiguous(),
            |_| {
                let sizes = signed(self.dims());
                Formula::unary(move |gradient| {
                    let arguments = (gradient, sizes.as_slice(), diagonal, 0_i64, 1_i64);
                    let _scope = open(&DIAGONAL_BACKWARD, arguments);
                    let whole = Self::zeros(&sizes, Some(gradient.dtype()))?;
                    whole.diagonal(diagonal)?.copy_(gradient)?;
                    Ok(whole)
                })
            },
        )
    }

    fn diag_embed(&self, diagonal: i64) -> Result<Self> {
        let _scope = open(&DIAG_EMBED, (self, diagonal, 0_i64, 1_i64));
        differentiable(
            &DIAG_EMBED_NODE,
            [self],
            || {
                let size = (self.count() as i64).checked_add(diagonal.saturating_abs());
                let size = size.ok_or(crate::Error::CountOverflow)?;
                let whole = Self::zeros(&[size, size], Some(self.dtype()))?;
                whole.diagonal(diagonal)?.copy_(self)?;
                Ok(whole)
            },
            |_| Formula::unary(move |gradient| gradient.diagonal(diagonal)),
        )
    }

    /// Returns an untracked view of a diagonal of a matrix.
    fn diagonal(&self, diagonal: i64) -> Result<Self> {
        let _scope = open(&DIAGONAL, (self, diagonal, 0_i64, 1_i64));
        let (rows, columns) = (self.dims()[0] as i64, self.dims()[1] as i64);
        let (row, column) = ((-diagonal).max(0), diagonal.max(0));
        let length = (rows - row).min(columns - column).max(0);
        let (down, across) = (self.strides()[0], self.strides()[1]);
        // A diagonal outside of the matrix is empty and has no offset.
        let offset = match length {
            0 => 0,
            _ => row as usize * down as usize + column as usize * across as usize,
        };
        let layout = Layout::strided(
            Dims::from_slice(&[length as usize]),
            Strides::from_slice(&[down + across]),
            self.offset() + offset,
        )?;
        self.untracked().as_layout(layout)
    }
}
