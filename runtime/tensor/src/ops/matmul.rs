//! The general matrix product, which selects `dot`, `mv`, `mm` or `bmm` by the ranks of its
//! operands, as torch does.

use crate::autocast::Casting;
use crate::dispatch::{Site, open};
use crate::shape::{broadcast, signed};
use crate::{Error, Result, Tensor};

static MATMUL: Site = Site::operator("aten::matmul");

impl Tensor {
    /// Multiplies vectors, matrices or batches of matrices; leading dimensions broadcast.
    ///
    /// # Errors
    /// Returns an error if an operand has no dimensions, the sizes do not match, the dtypes differ,
    /// or memory cannot be allocated.
    pub fn matmul(&self, other: &Self) -> Result<Self> {
        let _scope = open(&MATMUL, (self, other));
        if let Some(casting) = Casting::begin() {
            let other = casting.lower(other)?;
            return casting.lower(self)?.matmul(&other);
        }
        match (self.rank(), other.rank()) {
            (0, _) | (_, 0) => Err(Error::MatmulRank {
                left: self.rank(),
                right: other.rank(),
            }),
            (1, 1) => self.dot(other),
            (2, 1) => self.mv(other),
            (1, 2) => self.unsqueeze(0)?.mm(other)?.squeeze_in_place(0),
            (2, 2) => self.mm(other),
            _ if folds(self, other)? => folded(self, other),
            _ => batched(self, other),
        }
    }
}

/// Returns whether the leading dimensions of the larger operand can be merged into one long matrix
/// without a copy.
fn folds(left: &Tensor, right: &Tensor) -> Result<bool> {
    let larger = if left.rank() >= right.rank() {
        left.clone()
    } else {
        right.matrix_transpose()?
    };
    let smaller_rank = left.rank().min(right.rank());
    if larger.rank() < 3 || smaller_rank > 2 || left.rank() == 2 {
        return Ok(false);
    }
    let (dims, strides) = (larger.dims(), larger.strides());
    Ok(larger.count() == 0
        || (0..dims.len() - 2)
            .all(|index| strides[index] == strides[index + 1] * dims[index + 1] as isize))
}

/// Multiplies the larger operand, as one long matrix, by the smaller one.
fn folded(left: &Tensor, right: &Tensor) -> Result<Tensor> {
    let (larger, smaller) = if left.rank() >= right.rank() {
        (left.clone(), right)
    } else {
        (right.matrix_transpose()?, left)
    };
    let (&columns, leading) = larger
        .dims()
        .split_last()
        .expect("an operand that folds has dimensions");
    let rows: usize = leading.iter().product();
    let long = larger.reshape(&[rows as i64, columns as i64])?;
    let mut sizes = signed(leading);
    let product = if let &[_, width] = smaller.dims() {
        sizes.push(width as i64);
        long.mm(smaller)?
    } else {
        long.mv(smaller)?
    };
    product.unsafe_view(&sizes)
}

/// Multiplies matrix by matrix, after expanding both operands to the same leading dimensions.
fn batched(left: &Tensor, right: &Tensor) -> Result<Tensor> {
    let (left_batch, left_matrix) = split(left);
    let (right_batch, right_matrix) = split(right);
    let batch = broadcast(left_batch, right_batch)?;
    let batches: usize = batch.iter().product();
    let spread = |tensor: &Tensor, matrix: &[usize]| -> Result<Tensor> {
        let mut sizes = signed(&batch);
        sizes.extend(signed(matrix));
        let mut flat = signed(matrix);
        flat.insert(0, batches as i64);
        tensor.expand(&sizes)?.reshape(&flat)
    };
    let mut sizes = signed(&batch);
    let (&columns, rows) = left_matrix
        .split_last()
        .expect("an operand of a product has dimensions");
    let left_matrix = [rows.first().copied().unwrap_or(1), columns];
    let left = spread(left, &left_matrix)?;
    let right = spread(right, right_matrix)?;
    sizes.extend(signed(rows));
    let product = if let &[_, width] = right_matrix {
        sizes.push(width as i64);
        left.bmm(&right)?
    } else {
        left.bmm(&right.unsqueeze(2)?)?.squeeze(-1)?
    };
    product.unsafe_view(&sizes)
}

/// Splits sizes into the leading ones and those of the matrix or vector.
fn split(tensor: &Tensor) -> (&[usize], &[usize]) {
    tensor.dims().split_at(tensor.rank().saturating_sub(2))
}
