//! Matrix products. Floats go to the `gemm` family of crates, of which those for complex numbers are left
//! out because they take as long to build as all others; integers, which are rare, go to `ndarray`.
#![expect(
    unsafe_code,
    reason = "gemm takes pointers and strides, ndarray wrapping integers; this is the safe face over them"
)]

use std::any::TypeId;
use std::num::Wrapping;

use gemm_common::Parallelism;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, LinalgScalar, ShapeBuilder};
use num_traits::{One, Zero};

use crate::DType;
use crate::element::Number;
use crate::kernels::in_parallel;

/// Below this many multiplications a second thread costs more than it saves.
const PARALLEL_PRODUCTS: usize = 1 << 18;

/// A matrix somewhere in a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a, T> {
    /// The elements from the matrix's first one on.
    pub(crate) elements: &'a [T],
    /// Rows and columns.
    pub(crate) dims: [usize; 2],
    /// Strides of rows and columns.
    pub(crate) strides: [usize; 2],
}

impl<T> Matrix<'_, T> {
    fn transposed(self) -> Self {
        let ([rows, columns], [row_stride, column_stride]) = (self.dims, self.strides);
        Self {
            elements: self.elements,
            dims: [columns, rows],
            strides: [column_stride, row_stride],
        }
    }

    fn fits(&self) -> bool {
        let [rows, columns] = self.dims;
        rows == 0
            || columns == 0
            || (rows - 1) * self.strides[0] + (columns - 1) * self.strides[1] < self.elements.len()
    }
}

/// What becomes of the elements that are there before a product is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Previous {
    /// The product replaces them.
    Overwrite,
    /// The product is added to them.
    Add,
}

/// Writes the product of two matrices, row by row, into `product`.
///
/// # Panics
/// When the inner sizes differ, or a matrix reaches beyond its slice.
pub(crate) fn multiply<T: Number>(
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
    product: &mut [T],
    previous: Previous,
) {
    let adds = previous == Previous::Add;
    let ([m, k], [inner, n]) = (left.dims, right.dims);
    assert!(k == inner && product.len() == m * n && left.fits() && right.fits());
    if m == 0 || n == 0 || k == 0 {
        if !adds {
            product.fill(T::ZERO);
        }
        return;
    }
    match T::DTYPE {
        DType::Bool | DType::BF16 => unreachable!("such products are refused, or computed wide"),
        DType::I32 => multiply_integers::<T, i32>(left, right, product, adds),
        DType::I64 => multiply_integers::<T, i64>(left, right, product, adds),
        DType::F32 => multiply_floats::<T, f32>(left, right, product, adds),
        DType::F64 => multiply_floats::<T, f64>(left, right, product, adds),
    }
}

/// A kernel of the `gemm` family: rows, columns and inner size; the product with the strides of its columns
/// and rows, and whether it is read; both operands with theirs; the factors of what was there and of the
/// product; three conjugations, which mean nothing here; threads.
type Kernel<F> = unsafe fn(
    usize,
    usize,
    usize,
    *mut F,
    isize,
    isize,
    bool,
    *const F,
    isize,
    isize,
    *const F,
    isize,
    isize,
    F,
    F,
    bool,
    bool,
    bool,
    Parallelism,
);

/// A float that the `gemm` family multiplies.
trait Float: Number {
    /// Returns the kernel for the processor that the program runs on.
    fn kernel() -> Kernel<Self>;
}

impl Float for f32 {
    fn kernel() -> Kernel<Self> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }
}

impl Float for f64 {
    fn kernel() -> Kernel<Self> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }
}

/// Multiplies matrices of floats, none of whose sizes is 0.
fn multiply_floats<T: Number, F: Float>(
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
    product: &mut [T],
    adds: bool,
) {
    assert_eq!(TypeId::of::<T>(), TypeId::of::<F>());
    let ([rows, inner], [_, columns]) = (left.dims, right.dims);
    // Kernels write columns, and the product lies in rows: its transpose, of swapped and transposed
    // operands, lies in columns. A single column is both.
    let (first, second, [m, n], [column_stride, row_stride]) = if columns > 1 {
        (
            right.transposed(),
            left.transposed(),
            [columns, rows],
            [columns, 1],
        )
    } else {
        (left, right, [rows, columns], [1, columns])
    };
    let parallelism = if m * n * inner < PARALLEL_PRODUCTS {
        Parallelism::None
    } else {
        Parallelism::Rayon(0)
    };
    let mut multiply = || {
        // SAFETY: T is F. Every element that sizes and strides reach lies inside of its slice: the
        // caller asserts so for the operands, and the product has rows times columns elements. The
        // product is borrowed mutably, so it overlaps neither operand. It is initialised.
        unsafe {
            F::kernel()(
                m,
                n,
                inner,
                product.as_mut_ptr().cast(),
                column_stride as isize,
                row_stride as isize,
                adds,
                first.elements.as_ptr().cast(),
                first.strides[1] as isize,
                first.strides[0] as isize,
                second.elements.as_ptr().cast(),
                second.strides[1] as isize,
                second.strides[0] as isize,
                if adds { F::ONE } else { F::ZERO },
                F::ONE,
                false,
                false,
                false,
                parallelism,
            );
        }
    };
    match parallelism {
        Parallelism::None => multiply(),
        Parallelism::Rayon(_) => in_parallel(multiply),
    }
}

/// Multiplies matrices of integers, which wrap around.
fn multiply_integers<T: Number, I: 'static>(
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
    product: &mut [T],
    adds: bool,
) where
    Wrapping<I>: LinalgScalar,
{
    let dims = [left.dims[0], right.dims[1]];
    let mut product = ArrayViewMut2::from_shape(dims, wrapping_mut::<T, I>(product))
        .expect("the product has rows times columns elements");
    let scale = if adds {
        Wrapping::one()
    } else {
        Wrapping::zero()
    };
    let (left, right) = (view::<T, I>(left), view::<T, I>(right));
    general_mat_mul(Wrapping::one(), &left, &right, scale, &mut product);
}

fn view<T: Number, I: 'static>(matrix: Matrix<'_, T>) -> ArrayView2<'_, Wrapping<I>> {
    let shape = matrix.dims.strides(matrix.strides);
    ArrayView2::from_shape(shape, wrapping::<T, I>(matrix.elements))
        .expect("a matrix lies inside of its slice")
}

/// Looks at integers as integers that wrap.
fn wrapping<T: Number, I: 'static>(elements: &[T]) -> &[Wrapping<I>] {
    assert_eq!(TypeId::of::<T>(), TypeId::of::<I>());
    // SAFETY: T is I, and `Wrapping` is declared to lie in memory as what it wraps.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), elements.len()) }
}

/// As [`wrapping`], for writing.
fn wrapping_mut<T: Number, I: 'static>(elements: &mut [T]) -> &mut [Wrapping<I>] {
    assert_eq!(TypeId::of::<T>(), TypeId::of::<I>());
    // SAFETY: as in `wrapping`; the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), elements.len()) }
}
