//! Matrix products. Floats go to the `gemm` crate; integers, which are rare, to three plain loops.
#![expect(
    unsafe_code,
    reason = "gemm takes pointers and strides; this is the safe face over them"
)]

use std::any::TypeId;

use gemm::Parallelism;

use crate::element::Number;

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
    let float = [TypeId::of::<f32>(), TypeId::of::<f64>()].contains(&TypeId::of::<T>());
    if !float {
        return multiply_plainly(left, right, product, adds);
    }
    // SAFETY: T is f32 or f64, which gemm knows. Every element that sizes and strides reach lies inside of its slice:
    // the assertion above says so for the operands, and the product is m rows of n. The product is borrowed mutably,
    // so it overlaps neither operand. It is initialised.
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
}

fn multiply_plainly<T: Number>(
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
    product: &mut [T],
    adds: bool,
) {
    let ([rows, depth], width) = (left.dims, right.dims[1]);
    if !adds {
        product.fill(T::ZERO);
    }
    for row in 0..rows {
        let results = &mut product[row * width..(row + 1) * width];
        for inner in 0..depth {
            let x = left.elements[row * left.strides[0] + inner * left.strides[1]];
            for (column, result) in results.iter_mut().enumerate() {
                let y = right.elements[inner * right.strides[0] + column * right.strides[1]];
                *result = result.plus(x.times(y));
            }
        }
    }
}
