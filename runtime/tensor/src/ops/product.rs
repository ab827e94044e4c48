//! Products of matrices, batches of matrices and vectors: `mm`, `addmm`, `bmm`, `mv`, `dot`.

use smallvec::smallvec;

use super::arithmetic::kept;
use super::create::{Options, empty, result_space};
use crate::autocast::Casting;
use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::element::{Number, by_number};
use crate::error::reject;
use crate::kernels::{Matrix, Previous, multiply, rewrite, share_rows, widened};
use crate::storage;
use crate::{DType, Error, Result, Scalar, Tensor};

static ADDMM: Site = Site::operator("aten::addmm");
static ADDMV: Site = Site::operator("aten::addmv_");
static BMM: Site = Site::operator("aten::bmm");
static DOT: Site = Site::operator("aten::dot");
static GER: Site = Site::operator("aten::ger");
static MM: Site = Site::operator("aten::mm");
static MV: Site = Site::operator("aten::mv");
static OUTER: Site = Site::operator("aten::outer");
static RESOLVE_CONJ: Site = Site::operator("aten::resolve_conj");

node_site! {
    ADDMM_NODE = "AddmmBackward0";
    BMM_NODE = "BmmBackward0";
    DOT_NODE = "DotBackward0";
    MM_NODE = "MmBackward0";
    MV_NODE = "MvBackward0";
}

/// The number of multiplications below which a batch runs on one thread.
const PARALLEL_BATCH: usize = 1 << 18;

impl Tensor {
    /// Multiplies two matrices.
    ///
    /// # Errors
    /// Returns an error if an operand is not a matrix, the sizes do not match, the dtypes differ,
    /// or memory cannot be allocated.
    pub fn mm(&self, other: &Self) -> Result<Self> {
        let _scope = open(&MM, (self, other));
        if let Some(casting) = Casting::begin() {
            let other = casting.lower(other)?;
            return casting.lower(self)?.mm(&other);
        }
        differentiable(
            &MM_NODE,
            [self, other],
            || self.multiply_matrix(other),
            |_| {
                let kept = KeptPair::new(self, other);
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    // The second operand comes first, as in torch; traces show the order.
                    let by_right = gradients.when(1, || {
                        mm_right_gradient(gradient, kept.left()?, kept.right_strides)
                    })?;
                    let by_left = gradients.when(0, || {
                        mm_left_gradient(gradient, kept.right()?, kept.left_strides)
                    })?;
                    Ok(smallvec![by_left, by_right])
                })
            },
        )
    }

    /// Multiplies two matrices and adds a tensor that broadcasts to the product.
    ///
    /// # Errors
    /// Fails in the same cases as `mm`, and if the tensor does not broadcast to the product.
    pub fn addmm(&self, left: &Self, right: &Self) -> Result<Self> {
        let one = Scalar::Int(1);
        let _scope = open(&ADDMM, (self, left, right, one, one));
        if let Some(casting) = Casting::begin() {
            let (right, left) = (casting.lower(right)?, casting.lower(left)?);
            return casting.lower(self)?.addmm(&left, &right);
        }
        differentiable(
            &ADDMM_NODE,
            [self, left, right],
            || self.add_matrix_product(left, right),
            |_| {
                let kept = KeptPair::new(left, right);
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    Ok(smallvec![
                        gradients.needs(0).then(|| gradient.clone()),
                        gradients.when(1, || mm_left_gradient(
                            gradient,
                            kept.right()?,
                            kept.left_strides
                        ))?,
                        gradients.when(2, || mm_right_gradient(
                            gradient,
                            kept.left()?,
                            kept.right_strides
                        ))?
                    ])
                })
            },
        )
    }

    fn add_matrix_product(&self, left: &Self, right: &Self) -> Result<Self> {
        let (&[m, k], &[inner, n]) = (matrix_dims(left, "mat1")?, matrix_dims(right, "mat2")?);
        if k != inner {
            return reject!(
                Runtime,
                "mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {inner}x{n})"
            );
        }
        if left.dtype() != right.dtype() || self.dtype() != left.dtype() {
            return reject!(
                Runtime,
                "self and mat2 must have the same dtype, but got {} and {}",
                self.dtype().title(),
                right.dtype().title()
            );
        }
        implemented(left.dtype(), "addmm_impl_cpu_")?;
        let product = result_space(&[m, n], left.dtype())?;
        product.copy_(&self.expand_to(&[m, n])?)?;
        if product.count() == 0 || k == 0 {
            return Ok(product);
        }
        let (left, right) = prepare(&product, left, right)?;
        multiply_into(&product, &left, &right, Previous::Add)?;
        Ok(product)
    }

    fn multiply_matrix(&self, other: &Self) -> Result<Self> {
        let (&[m, k], &[inner, n]) = (matrix_dims(self, "self")?, matrix_dims(other, "mat2")?);
        if k != inner {
            return Err(Error::MmShapes {
                left: [m, k],
                right: [inner, n],
            });
        }
        let product = result_space(&[m, n], self.dtype())?;
        if self.dtype() != other.dtype() {
            return Err(Error::MmTypes {
                left: self.dtype(),
                right: other.dtype(),
            });
        }
        if m == 0 || n == 0 {
            return Ok(product);
        }
        if k == 0 {
            product.zero_()?;
            return Ok(product);
        }
        implemented(self.dtype(), "addmm_impl_cpu_")?;
        let (left, right) = prepare(&product, self, other)?;
        multiply_into(&product, &left, &right, Previous::Overwrite)?;
        Ok(product)
    }

    /// Multiplies two batches of matrices pairwise.
    ///
    /// # Errors
    /// Returns an error if an operand is not a batch of matrices, the sizes do not match, the
    /// dtypes differ, or memory cannot be allocated.
    pub fn bmm(&self, other: &Self) -> Result<Self> {
        let _scope = open(&BMM, (self, other));
        if let Some(casting) = Casting::begin() {
            let other = casting.lower(other)?;
            return casting.lower(self)?.bmm(&other);
        }
        differentiable(
            &BMM_NODE,
            [self, other],
            || self.multiply_batch(other),
            |_| {
                let kept = KeptPair::new(self, other);
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    let by_right =
                        gradients.when(1, || kept.left()?.transpose(1, 2)?.bmm(gradient))?;
                    let by_left =
                        gradients.when(0, || gradient.bmm(&kept.right()?.transpose(1, 2)?))?;
                    Ok(smallvec![by_left, by_right])
                })
            },
        )
    }

    fn multiply_batch(&self, other: &Self) -> Result<Self> {
        let &[batches, m, k] = self.dims() else {
            return Err(Error::BmmRank { operand: 1 });
        };
        let &[other_batches, inner, n] = other.dims() else {
            return Err(Error::BmmRank { operand: 2 });
        };
        if batches != other_batches || k != inner {
            return Err(Error::BmmShapes {
                expected: [batches, k],
                found: [other_batches, inner],
            });
        }
        let product = result_space(&[batches, m, n], self.dtype())?;
        drop(open(&RESOLVE_CONJ, (other,)));
        drop(open(&RESOLVE_CONJ, (self,)));
        if product.count() == 0 {
            return Ok(product);
        }
        if k == 0 {
            product.zero_()?;
            return Ok(product);
        }
        if self.dtype() != other.dtype() {
            return Err(Error::BmmTypes {
                left: self.dtype(),
                right: other.dtype(),
            });
        }
        implemented(self.dtype(), "bmm")?;
        multiply_into(&product, self, other, Previous::Overwrite)?;
        Ok(product)
    }

    /// Multiplies a matrix by a vector.
    ///
    /// # Errors
    /// Returns an error if the operands are not a matrix and a vector, the sizes do not match, the
    /// dtypes differ, or memory cannot be allocated.
    pub fn mv(&self, vector: &Self) -> Result<Self> {
        let _scope = open(&MV, (self, vector));
        differentiable(
            &MV_NODE,
            [self, vector],
            || self.multiply_vector(vector),
            |_| {
                let kept = KeptPair::new(self, vector);
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    Ok(smallvec![
                        gradients.when(0, || gradient.ger(kept.right()?))?,
                        gradients.when(1, || kept.left()?.t()?.mv(gradient))?
                    ])
                })
            },
        )
    }

    /// Returns the outer product of two vectors.
    fn ger(&self, other: &Self) -> Result<Self> {
        let _scope = open(&GER, (self, other));
        let _scope = open(&OUTER, (self, other));
        self.reshape(&[self.count() as i64, 1])?.mul(other)
    }

    fn multiply_vector(&self, vector: &Self) -> Result<Self> {
        let (&[rows, columns], &[size]) = (self.dims(), vector.dims()) else {
            return Err(Error::MvRank {
                matrix: self.rank(),
                vector: vector.rank(),
            });
        };
        let product = empty(&[rows as i64], vector.dtype(), &Options::like(vector))?;
        let _scope = open(
            &ADDMV,
            (&product, self, vector, Scalar::Int(0), Scalar::Int(1)),
        );
        if columns != size {
            return Err(Error::MvShapes {
                matrix: [rows, columns],
                vector: size,
            });
        }
        if self.dtype() != vector.dtype() {
            return Err(Error::MvTypes {
                matrix: self.dtype(),
                vector: vector.dtype(),
            });
        }
        if size == 0 {
            product.zero_()?;
            return Ok(product);
        }
        implemented(self.dtype(), "addmv_impl_cpu")?;
        let matrix = if lies(self, Major::Row) || lies(self, Major::Column) {
            self.clone()
        } else {
            self.contiguous()?
        };
        let column = vector.with_layout(vector.layout().unsqueezed(1)?)?;
        multiply_into(&product, &matrix, &column, Previous::Overwrite)?;
        Ok(product)
    }

    /// Returns the dot product of two vectors.
    ///
    /// # Errors
    /// Returns an error if an operand is not a vector, the sizes or dtypes differ, or memory cannot
    /// be allocated.
    pub fn dot(&self, other: &Self) -> Result<Self> {
        let _scope = open(&DOT, (self, other));
        differentiable(
            &DOT_NODE,
            [self, other],
            || self.multiply_vectors(other),
            |_| {
                let kept = KeptPair::new(self, other);
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    Ok(smallvec![
                        gradients.when(0, || gradient.mul(kept.right()?))?,
                        gradients.when(1, || gradient.mul(kept.left()?))?
                    ])
                })
            },
        )
    }

    fn multiply_vectors(&self, other: &Self) -> Result<Self> {
        let (&[size], &[other_size]) = (self.dims(), other.dims()) else {
            return Err(Error::DotRank {
                left: self.rank(),
                right: other.rank(),
            });
        };
        if self.dtype() != other.dtype() {
            return Err(Error::DotTypes {
                left: self.dtype(),
                right: other.dtype(),
            });
        }
        if size != other_size {
            return Err(Error::DotShapes {
                left: size,
                right: other_size,
            });
        }
        implemented(self.dtype(), "dot")?;
        let row = self.with_layout(self.layout().unsqueezed(0)?)?;
        let column = other.with_layout(other.layout().unsqueezed(1)?)?;
        let value = result_space(&[1, 1], self.dtype())?;
        multiply_into(&value, &row, &column, Previous::Overwrite)?;
        let product = empty(&[], self.dtype(), &Options::like(self))?;
        let value = value.to_scalars()?.first().copied();
        product.fill_(value.unwrap_or(Scalar::Int(0)))?;
        Ok(product)
    }
}

/// The saved operands of a tracked product.
struct KeptPair {
    left: Option<Saved>,
    right: Option<Saved>,
    left_strides: Major,
    right_strides: Major,
}

impl KeptPair {
    fn new(left: &Tensor, right: &Tensor) -> Self {
        Self {
            left: right.requires_grad().then(|| Saved::new(left)),
            right: left.requires_grad().then(|| Saved::new(right)),
            left_strides: major(left),
            right_strides: major(right),
        }
    }

    fn left(&self) -> Result<&Tensor> {
        kept(self.left.as_ref())
    }

    fn right(&self) -> Result<&Tensor> {
        kept(self.right.as_ref())
    }
}

fn major(tensor: &Tensor) -> Major {
    match (tensor.dims(), tensor.strides()) {
        (&[rows, _], &[1, column]) if column == rows as isize => Major::Column,
        _ => Major::Row,
    }
}

/// Returns the gradient of the first operand, in the operand's memory order.
fn mm_left_gradient(gradient: &Tensor, right: &Tensor, left: Major) -> Result<Tensor> {
    match left {
        Major::Row => gradient.mm(&right.t()?),
        Major::Column => right.mm(&gradient.t()?)?.t(),
    }
}

/// Returns the gradient of the second operand, in the operand's memory order.
fn mm_right_gradient(gradient: &Tensor, left: &Tensor, right: Major) -> Result<Tensor> {
    match right {
        Major::Row => left.t()?.mm(gradient),
        Major::Column => gradient.t()?.mm(left)?.t(),
    }
}

fn matrix_dims<'a>(tensor: &'a Tensor, operand: &'static str) -> Result<&'a [usize; 2]> {
    tensor.dims().try_into().map_err(|_| Error::MmRank {
        operand,
        rank: tensor.rank(),
    })
}

fn implemented(dtype: DType, kernel: &'static str) -> Result<()> {
    if dtype == DType::Bool {
        return Err(Error::NotImplemented { kernel, dtype });
    }
    Ok(())
}

/// The contiguous dimension of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Major {
    Row,
    Column,
}

/// Returns whether a matrix has a layout that BLAS accepts: one stride is one, and the other is at
/// least the length of a row.
fn lies(matrix: &Tensor, major: Major) -> bool {
    let (&[rows, columns], &[row_stride, column_stride]) = (matrix.dims(), matrix.strides()) else {
        return false;
    };
    match major {
        Major::Row => column_stride == 1 && row_stride >= columns.max(1) as isize,
        Major::Column => row_stride == 1 && column_stride >= rows.max(1) as isize,
    }
}

/// Returns the operands in layouts that a BLAS could take.
///
/// As in torch, the scopes show it: `resolve_conj` is opened for the product and for every operand
/// with the memory order of the product, and an operand in neither order is copied.
fn prepare(product: &Tensor, left: &Tensor, right: &Tensor) -> Result<(Tensor, Tensor)> {
    drop(open(&RESOLVE_CONJ, (product,)));
    let column_major = product.dims()[1] == 1 || lies(product, Major::Column);
    let (same, other) = if column_major {
        (Major::Column, Major::Row)
    } else {
        (Major::Row, Major::Column)
    };
    let ready = |operand: &Tensor| {
        if lies(operand, same) {
            drop(open(&RESOLVE_CONJ, (operand,)));
            Ok(operand.clone())
        } else if lies(operand, other) {
            Ok(operand.clone())
        } else {
            operand.duplicate_contiguous()
        }
    };
    if column_major {
        let left = ready(left)?;
        Ok((left, ready(right)?))
    } else {
        let right = ready(right)?;
        Ok((ready(left)?, right))
    }
}

/// Multiplies matrices, or batches of them, into a contiguous output.
fn multiply_into(
    product: &Tensor,
    left: &Tensor,
    right: &Tensor,
    previous: Previous,
) -> Result<()> {
    by_number!(product.dtype(), T => {
        let (left, right) = (&*widened::<T>(left)?, &*widened::<T>(right)?);
        rewrite::<T>(product, &|product| {
            storage::write(
                product.storage(),
                [left.storage(), right.storage()],
                |results: &mut [T], [a, b]: [&[T]; 2]| {
                    multiply_batches(results, (left, a), (right, b), previous);
                },
            );
            Ok(())
        })
    })
}

fn multiply_batches<T: Number>(
    results: &mut [T],
    (left, left_elements): (&Tensor, &[T]),
    (right, right_elements): (&Tensor, &[T]),
    previous: Previous,
) {
    let size = left.dims()[left.rank() - 2] * right.dims()[right.rank() - 1];
    if size == 0 {
        return;
    }
    let work = |batch: usize, result: &mut [T]| {
        multiply(
            matrix_at(left, left_elements, batch),
            matrix_at(right, right_elements, batch),
            result,
            previous,
        );
    };
    let batches = results.len() / size;
    if batches > 1 && results.len() * left.dims()[left.rank() - 1] >= PARALLEL_BATCH {
        share_rows(results, size, work);
    } else {
        for (batch, result) in results.chunks_mut(size).enumerate() {
            work(batch, result);
        }
    }
}

fn matrix_at<'a, T>(tensor: &Tensor, elements: &'a [T], batch: usize) -> Matrix<'a, T> {
    let (dims, strides) = (tensor.dims(), tensor.strides());
    let last = dims.len() - 1;
    let batch_stride = if last == 2 { strides[0] as usize } else { 0 };
    Matrix {
        elements: &elements[tensor.offset() + batch * batch_stride..],
        dims: [dims[last - 1], dims[last]],
        strides: [strides[last - 1] as usize, strides[last] as usize],
    }
}
