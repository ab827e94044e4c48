//! Matrix products.
//!
//! Floats use the `gemm` family of crates, without its crates for complex numbers, which take as
//! long to build as all others together. Integers, which are rare, use three nested loops.
#![expect(
    unsafe_code,
    reason = "gemm takes pointers and strides; this module is the safe wrapper around it"
)]

use std::any::TypeId;

use gemm_common::Parallelism;

use crate::DType;
use crate::element::Number;
use crate::kernels::in_parallel;

/// The number of multiplications below which a second thread costs more than it saves.
const PARALLEL_PRODUCTS: usize = 1 << 18;

/// A strided matrix within a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a, T> {
    /// The elements, starting with the first one of the matrix.
    pub(crate) elements: &'a [T],
    /// Rows and columns.
    pub(crate) dims: [usize; 2],
    /// The strides of rows and columns.
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

/// How to treat the elements that the output already has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Previous {
    /// Replace them with the product.
    Overwrite,
    /// Add the product to them.
    Add,
}

/// Writes the row-major product of two matrices into `product`.
///
/// # Panics
/// Panics if the inner sizes differ, or a matrix reaches beyond its slice.
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
        DType::Bool | DType::BF16 => {
            unreachable!("boolean products are rejected, and bfloat16 is widened")
        }
        DType::I32 | DType::I64 => multiply_integers(left, right, product, adds),
        DType::F32 => multiply_floats::<T, f32>(left, right, product, adds),
        DType::F64 => multiply_floats::<T, f64>(left, right, product, adds),
    }
}

/// A kernel of the `gemm` family.
///
/// Its parameters are: rows, columns and inner size; the output with its column and row strides,
/// and whether it is read; both operands with their strides; the factors of the previous output and
/// of the product; three conjugation flags, which real numbers ignore; and the parallelism.
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

/// A float type that the `gemm` family supports.
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

/// Multiplies float matrices, none of whose sizes is zero.
fn multiply_floats<T: Number, F: Float>(
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
    product: &mut [T],
    adds: bool,
) {
    assert_eq!(TypeId::of::<T>(), TypeId::of::<F>());
    let ([rows, inner], [_, columns]) = (left.dims, right.dims);
    // Kernels write column-major output, but the product is row-major. Its transpose, the product
    // of the swapped and transposed operands, is column-major. A single column is both.
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
        // SAFETY: `T` and `F` are the same type (asserted above). Every element that sizes and
        // strides reach lies inside its slice: `multiply` asserts it for the operands, and the
        // product has rows times columns elements. The product is initialized and mutably borrowed,
        // so it overlaps neither operand.
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

/// Multiplies integer matrices, none of whose sizes is zero; overflow wraps.
fn multiply_integers<T: Number>(
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
    product: &mut [T],
    adds: bool,
) {
    if !adds {
        product.fill(T::ZERO);
    }
    let ([_, inner], [_, columns]) = (left.dims, right.dims);
    for (row, results) in product.chunks_mut(columns).enumerate() {
        for step in 0..inner {
            let factor = left.elements[row * left.strides[0] + step * left.strides[1]];
            let others = &right.elements[step * right.strides[0]..];
            for (column, result) in results.iter_mut().enumerate() {
                let product = factor.times(others[column * right.strides[1]]);
                *result = result.plus(product);
            }
        }
    }
}
