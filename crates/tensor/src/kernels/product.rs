//! Matrix products. Floats go to the `gemm` crate; integers, which are rare, to `ndarray`.
#![expect(
    unsafe_code,
    reason = "gemm takes pointers and strides, ndarray wrapping integers; this is the safe face over them"
)]

use std::any::TypeId;
use std::num::Wrapping;

use gemm::Parallelism;
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
    let parallelism = if m * n * k < PARALLEL_PRODUCTS {
        Parallelism::None
    } else {
        Parallelism::Rayon(0)
    };
    match T::DTYPE {
        DType::Bool | DType::BF16 => unreachable!("such products are refused, or computed wide"),
        DType::I32 => return multiply_integers::<T, i32>(left, right, product, adds),
        DType::I64 => return multiply_integers::<T, i64>(left, right, product, adds),
        DType::F32 | DType::F64 => {}
    }
    let mut multiply = || {
        // SAFETY: T is f32 or f64, which gemm knows. Every element that sizes and strides reach lies
        // inside of its slice: the assertion above says so for the operands, and the product is m
        // rows of n. The product is borrowed mutably, so it overlaps neither operand. It is
        // initialised.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                product.as_mut_ptr(),
                1,
                n as isize,
                adds,
                left.elements.as_ptr(),
                left.strides[1] as isize,
                left.strides[0] as isize,
                right.elements.as_ptr(),
                right.strides[1] as isize,
                right.strides[0] as isize,
                if adds { T::ONE } else { T::ZERO },
                T::ONE,
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
