//! Invalid calls fail with torch's exception and torch's message, and never panic.

use mindtorch_tensor::Exception::{Index, NotImplemented, Runtime};
use mindtorch_tensor::{DType, Exception, KeepDims, Result, Scalar, Tensor};

fn ones(sizes: &[i64]) -> Tensor {
    Tensor::ones(sizes, None).expect("the sizes are small")
}

fn integers(sizes: &[i64]) -> Tensor {
    Tensor::ones(sizes, Some(DType::I64)).expect("the sizes are small")
}

fn truths(sizes: &[i64]) -> Tensor {
    Tensor::ones(sizes, Some(DType::Bool)).expect("the sizes are small")
}

fn check(cases: Vec<(Result<Tensor>, Exception, &str)>) {
    for (result, exception, text) in cases {
        let error = result.expect_err(text);
        assert_eq!(
            (error.exception(), error.to_string()),
            (exception, text.to_owned())
        );
    }
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    check(vec![
        (
            ones(&[3, 3]).add(&ones(&[3, 4])),
            Runtime,
            "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
        ),
        (
            ones(&[4, 4]).expand(&[3, 4]),
            Runtime,
            "The expanded size of the tensor (3) must match the existing size (4) at non-singleton dimension 0.  \
             Target sizes: [3, 4].  Tensor sizes: [4, 4]",
        ),
        (
            ones(&[4, 4]).expand(&[4]),
            Runtime,
            "expand(torch.FloatTensor{[4, 4]}, size=[4]): the number of sizes provided (1) must be greater or equal \
             to the number of dimensions in the tensor (2)",
        ),
        (
            ones(&[4, 4]).expand(&[2, -1, 4, 4]),
            Runtime,
            "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 1",
        ),
        (
            ones(&[4, 4]).t().unwrap().view(&[16]),
            Runtime,
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across \
             two contiguous subspaces). Use .reshape(...) instead.",
        ),
        (
            ones(&[4, 4]).reshape(&[3, 5]),
            Runtime,
            "shape '[3, 5]' is invalid for input of size 16",
        ),
        (
            ones(&[3]).copy_(&ones(&[2, 3])).map(|()| ones(&[])),
            Runtime,
            "output with shape [3] doesn't match the broadcast shape [2, 3]",
        ),
        (
            ones(&[2, 4, 4]).t(),
            Runtime,
            "t() expects a tensor with <= 2 dimensions, but self is 3D",
        ),
    ]);
}

#[test]
fn dimensions_that_do_not_exist_are_index_errors() {
    let x = ones(&[4, 4]);
    let range = |range: &str, got: i64| {
        format!("Dimension out of range (expected to be in range of {range}, but got {got})")
    };
    check(vec![
        (
            x.sum(Some(&[2]), KeepDims::No, None),
            Index,
            &range("[-2, 1]", 2),
        ),
        (
            x.mean(Some(&[-3]), KeepDims::No, None),
            Index,
            &range("[-2, 1]", -3),
        ),
        (x.transpose(0, 2), Index, &range("[-2, 1]", 2)),
        (x.unsqueeze(4), Index, &range("[-3, 2]", 4)),
        (ones(&[]).transpose(0, 1), Index, &range("[-1, 0]", 1)),
        (
            x.sum(Some(&[0, -2]), KeepDims::No, None),
            Runtime,
            "dim 0 appears multiple times in the list of dims",
        ),
    ]);
}

#[test]
fn products_name_the_shapes_they_were_given() {
    let x = ones(&[4, 4]);
    check(vec![
        (
            ones(&[2, 3]).matmul(&ones(&[4, 5])),
            Runtime,
            "mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
        ),
        (
            ones(&[2, 3, 4]).matmul(&ones(&[3, 4])),
            Runtime,
            "mm: mat1 and mat2 shapes cannot be multiplied (6x4 and 3x4)",
        ),
        (
            ones(&[2, 3]).matmul(&ones(&[4])),
            Runtime,
            "size mismatch, got input (2), mat (2x3), vec (4)",
        ),
        (
            ones(&[4]).matmul(&ones(&[3])),
            Runtime,
            "inconsistent tensor size, expected tensor [4] and src [3] to have the same number of elements, but got \
             4 and 3 elements respectively",
        ),
        (
            ones(&[2, 3, 4]).matmul(&ones(&[2, 3, 4])),
            Runtime,
            "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 3].",
        ),
        (
            ones(&[2, 3, 4]).matmul(&ones(&[5, 4, 3])),
            Runtime,
            "The size of tensor a (2) must match the size of tensor b (5) at non-singleton dimension 0",
        ),
        (
            ones(&[]).matmul(&x),
            Runtime,
            "both arguments to matmul need to be at least 1D, but they are 0D and 2D",
        ),
        (
            x.mm(&ones(&[4])),
            Runtime,
            "mm: mat2 must be a matrix, got 1-D tensor",
        ),
        (
            x.mv(&x),
            Runtime,
            "vector + matrix @ vector expected, got 1, 2, 2",
        ),
        (x.bmm(&x), Runtime, "batch1 must be a 3D tensor"),
        (
            x.dot(&x),
            Runtime,
            "1D tensors expected, but got 2D and 2D tensors",
        ),
    ]);
}

#[test]
fn types_that_an_operator_cannot_take_are_named() {
    let (x, i) = (ones(&[4, 4]), integers(&[4, 4]));
    check(vec![
        (
            x.matmul(&i),
            Runtime,
            "expected m1 and m2 to have the same dtype, but got: float != long int",
        ),
        (
            x.matmul(&integers(&[4])),
            Runtime,
            "addmv input tensors must have the same dtype, but got Long, Float, and Long",
        ),
        (
            ones(&[4]).matmul(&integers(&[4])),
            Runtime,
            "dot : expected both vectors to have same dtype, but found Float and Long",
        ),
        (
            ones(&[2, 4, 4]).bmm(&integers(&[2, 4, 4])),
            Runtime,
            "expected scalar type Float but found Long",
        ),
        (
            truths(&[2, 2]).matmul(&truths(&[2, 2])),
            NotImplemented,
            "\"addmm_impl_cpu_\" not implemented for 'Bool'",
        ),
        (
            i.mean(None, KeepDims::No, None),
            NotImplemented,
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. \
             Got: Long",
        ),
        (
            Tensor::randn(&[2], Some(DType::I64)),
            NotImplemented,
            "\"normal_kernel_cpu\" not implemented for 'Long'",
        ),
        (
            truths(&[2]).sub(&truths(&[2])),
            NotImplemented,
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
             operator instead.",
        ),
        (
            i.add_scaled(&i, Scalar::Float(1.5)),
            Runtime,
            "For integral input tensors, argument alpha must not be a floating point number.",
        ),
        (
            x.add_scaled(&x, Scalar::Bool(true)),
            Runtime,
            "Boolean alpha only supported for Boolean results.",
        ),
        (
            i.fill_(Scalar::Float(1e30)).map(|()| ones(&[])),
            Runtime,
            "value cannot be converted to type int64_t without overflow",
        ),
        (
            Tensor::from_values(&[1e30], &[1], DType::I64),
            Runtime,
            "value cannot be converted to type int64 without overflow",
        ),
    ]);
}

#[test]
fn sizes_beyond_any_memory_are_errors() {
    check(vec![
        (
            Tensor::ones(&[-1, 2], None),
            Runtime,
            "Trying to create tensor with negative dimension -1: [-1, 2]",
        ),
        (
            Tensor::zeros(&[-1, 2], None),
            Runtime,
            "zeros: Dimension size must be non-negative.",
        ),
        (
            Tensor::ones(&[1 << 62, 4], None),
            Runtime,
            "Storage size calculation overflowed with sizes=[4611686018427387904, 4]",
        ),
        (
            Tensor::ones(&[1 << 61], None),
            Runtime,
            "Storage size calculation overflowed with sizes=[2305843009213693952]",
        ),
        (
            Tensor::zeros(&[0, 1 << 62, 4], None),
            Runtime,
            "Stride calculation overflowed",
        ),
        (
            Tensor::zeros(&[1 << 58], None),
            Runtime,
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 1152921504606846976 bytes. Error code \
             12 (Cannot allocate memory)",
        ),
        (
            ones(&[2, 2]).expand(&[1 << 40, 1 << 30, 2, 2]),
            Runtime,
            "numel: integer multiplication overflow",
        ),
        (
            ones(&[1]).expand(&[1 << 60]).unwrap().add(1.5),
            Runtime,
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4611686018427387904 bytes. Error code \
             12 (Cannot allocate memory)",
        ),
    ]);
}

#[test]
fn item_wants_exactly_one_element() {
    let text = |tensor: Tensor| tensor.item().unwrap_err().to_string();
    assert_eq!(
        text(ones(&[4, 4])),
        "a Tensor with 16 elements cannot be converted to Scalar"
    );
    assert_eq!(
        text(ones(&[0])),
        "a Tensor with 0 elements cannot be converted to Scalar"
    );
}

#[test]
fn copies_that_no_memory_holds_are_refused() {
    let wide = ones(&[1]).expand(&[1 << 60]).unwrap();
    let refused = [
        wide.to_f64_vec().map(drop),
        wide.to_scalars().map(drop),
        wide.to_bools().map(drop),
        wide.nonzero().map(drop),
        wide.unbind(0).map(drop),
    ];
    for result in refused {
        let text = result.unwrap_err().to_string();
        assert!(text.starts_with("DefaultCPUAllocator"), "{text}");
    }
}
