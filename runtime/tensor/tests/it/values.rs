//! Checks the results of operators against values computed by hand.

use mindtorch_tensor::{DType, KeepDims, Scalar, Tensor, manual_seed};

fn tensor(values: &[f32], sizes: &[i64]) -> Tensor {
    Tensor::from_slice(values, sizes).expect("as many values as sizes say")
}

fn integers(values: &[i64], sizes: &[i64]) -> Tensor {
    Tensor::from_slice(values, sizes).expect("as many values as sizes say")
}

#[test]
fn constructors_give_what_they_say() {
    assert_eq!(
        Tensor::ones(&[2], None).unwrap().to_vec::<f32>().unwrap(),
        [1.0; 2]
    );
    let zeros = Tensor::zeros(&[2, 0], Some(DType::I64)).unwrap();
    assert_eq!((zeros.dtype(), zeros.count()), (DType::I64, 0));
    let full = Tensor::full(&[2], Scalar::Int(7), None).unwrap();
    assert_eq!(
        (full.dtype(), full.to_vec::<i64>().unwrap()),
        (DType::I64, vec![7; 2])
    );
    let converted = Tensor::from_values(&[1.9, -1.9], &[2], DType::I64).unwrap();
    assert_eq!(converted.to_vec::<i64>().unwrap(), [1, -1]);
}

#[test]
fn arithmetic_broadcasts() {
    let column = tensor(&[1.0, 2.0], &[2, 1]);
    let row = tensor(&[10.0, 20.0, 30.0], &[3]);
    let sum = column.add(&row).unwrap();
    assert_eq!(sum.dims(), [2, 3]);
    assert_eq!(
        sum.to_vec::<f32>().unwrap(),
        [11.0, 21.0, 31.0, 12.0, 22.0, 32.0]
    );
    assert_eq!(row.sub(&row).unwrap().to_vec::<f32>().unwrap(), [0.0; 3]);
    assert_eq!(
        row.mul(2_i64).unwrap().to_vec::<f32>().unwrap(),
        [20.0, 40.0, 60.0]
    );
    assert_eq!(
        row.rsub(Scalar::Int(1)).unwrap().to_vec::<f32>().unwrap(),
        [-9.0, -19.0, -29.0]
    );
    let scaled = row.add_scaled(&row, Scalar::Int(2)).unwrap();
    assert_eq!(scaled.to_vec::<f32>().unwrap(), [30.0, 60.0, 90.0]);
}

#[test]
fn integers_divide_to_fractions_and_wrap_otherwise() {
    let three = integers(&[3, -3], &[2]);
    let halves = three.div(2_i64).unwrap();
    assert_eq!(
        (halves.dtype(), halves.to_vec::<f32>().unwrap()),
        (DType::F32, vec![1.5, -1.5])
    );
    assert_eq!(
        three.div(0_i64).unwrap().to_vec::<f32>().unwrap(),
        [f32::INFINITY, f32::NEG_INFINITY]
    );
    let most = integers(&[i64::MAX], &[1]).add(1_i64).unwrap();
    assert_eq!(most.to_vec::<i64>().unwrap(), [i64::MIN]);
    assert_eq!(three.add(1.5).unwrap().dtype(), DType::F32);
}

#[test]
fn elements_convert_as_c_converts_them() {
    let floats = tensor(&[3.7, -3.7, 1e30, f32::NAN, -1e30], &[5]);
    assert_eq!(
        floats.to(DType::I64).unwrap().to_vec::<i64>().unwrap(),
        [3, -3, i64::MIN, i64::MIN, i64::MIN]
    );
    assert_eq!(
        floats.to(DType::I32).unwrap().to_vec::<i32>().unwrap(),
        [3, -3, i32::MIN, i32::MIN, i32::MIN]
    );
    assert_eq!(
        floats.to(DType::Bool).unwrap().to_bools().unwrap(),
        [true; 5]
    );
}

#[test]
fn unary_operators_keep_what_is_not_a_number() {
    let mixed = tensor(&[1.5, f32::NAN, -2.0], &[3]);
    let relu = mixed.relu().unwrap().to_vec::<f32>().unwrap();
    assert!(relu[1].is_nan());
    assert_eq!(vec![relu[0], relu[2]], [1.5, 0.0]);
    assert_eq!(
        integers(&[-4, 4], &[2])
            .relu()
            .unwrap()
            .to_vec::<i64>()
            .unwrap(),
        [0, 4]
    );
    assert_eq!(
        integers(&[-4, 4], &[2])
            .neg()
            .unwrap()
            .to_vec::<i64>()
            .unwrap(),
        [4, -4]
    );
    assert_eq!(
        integers(&[-4, 2], &[2])
            .reciprocal()
            .unwrap()
            .to_vec::<f32>()
            .unwrap(),
        [-0.25, 0.5]
    );
}

#[test]
fn sums_and_means_go_along_dimensions() {
    let values: Vec<f32> = (0_u8..24).map(f32::from).collect();
    let block = tensor(&values, &[2, 3, 4]);
    let sum = |dims: &[i64]| {
        block
            .sum(Some(dims), KeepDims::No, None)
            .unwrap()
            .to_vec::<f32>()
            .unwrap()
    };
    assert_eq!(sum(&[2]), [6.0, 22.0, 38.0, 54.0, 70.0, 86.0]);
    assert_eq!(sum(&[0, 2]), [60.0, 92.0, 124.0]);
    assert_eq!(sum(&[-2]), [12.0, 15.0, 18.0, 21.0, 48.0, 51.0, 54.0, 57.0]);
    assert_eq!(sum(&[]), [276.0]);
    let kept = block.mean(Some(&[1]), KeepDims::Yes, None).unwrap();
    assert_eq!(kept.dims(), [2, 1, 4]);
    assert_eq!(
        kept.to_vec::<f32>().unwrap(),
        [4.0, 5.0, 6.0, 7.0, 16.0, 17.0, 18.0, 19.0]
    );
    let empty = Tensor::zeros(&[0], None).unwrap();
    assert_eq!(
        empty
            .sum(None, KeepDims::No, None)
            .unwrap()
            .to_vec::<f32>()
            .unwrap(),
        [0.0]
    );
    assert!(
        empty
            .mean(None, KeepDims::No, None)
            .unwrap()
            .to_vec::<f32>()
            .unwrap()[0]
            .is_nan()
    );
}

#[test]
fn long_sums_lose_nothing_that_matters() {
    let count = 1 << 22;
    let tenths = Tensor::full(&[count], Scalar::Float(0.1), None).unwrap();
    let sum = tenths
        .sum(None, KeepDims::No, None)
        .unwrap()
        .to_f64_vec()
        .unwrap()[0];
    let exact = f64::from(0.1_f32) * count as f64;
    assert!((sum - exact).abs() / exact < 1e-6, "{sum} is not {exact}");
    let columns = tenths.view(&[count / 4, 4]).unwrap();
    for sum in columns
        .sum(Some(&[0]), KeepDims::No, None)
        .unwrap()
        .to_f64_vec()
        .unwrap()
    {
        assert!(
            (sum * 4.0 - exact).abs() / exact < 1e-6,
            "{sum} is no quarter of {exact}"
        );
    }
}

#[test]
fn views_share_their_storage() {
    let matrix = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let transposed = matrix.t().unwrap();
    assert_eq!(
        transposed.to_vec::<f32>().unwrap(),
        [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
    );
    assert!(transposed.shares_storage(&matrix));
    transposed.fill_(Scalar::Int(9)).unwrap();
    assert_eq!(matrix.to_vec::<f32>().unwrap(), [9.0; 6]);
    let copy = transposed.reshape(&[-1]).unwrap();
    assert!(!copy.shares_storage(&matrix));
    assert!(
        transposed
            .reshape(&[3, 2, 1])
            .unwrap()
            .shares_storage(&matrix)
    );
}

#[test]
fn a_tensor_can_be_copied_into_its_own_transpose() {
    let matrix = tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
    matrix.copy_(&matrix.t().unwrap()).unwrap();
    assert_eq!(matrix.to_vec::<f32>().unwrap(), [1.0, 3.0, 2.0, 4.0]);
}

#[test]
fn products_follow_the_dimensions() {
    let matrix = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let vector = tensor(&[1.0, 10.0, 100.0], &[3]);
    assert_eq!(
        matrix.matmul(&vector).unwrap().to_vec::<f32>().unwrap(),
        [321.0, 654.0]
    );
    assert_eq!(
        vector.matmul(&vector).unwrap().item().unwrap(),
        Scalar::Float(10101.0)
    );
    let square = matrix.matmul(&matrix.t().unwrap()).unwrap();
    assert_eq!(square.to_vec::<f32>().unwrap(), [14.0, 32.0, 32.0, 77.0]);
    let left = tensor(&[1.0, 10.0], &[2]).matmul(&matrix).unwrap();
    assert_eq!(
        (left.dims(), left.to_vec().unwrap()),
        ([3].as_slice(), vec![41.0_f32, 52.0, 63.0])
    );
    let counts = integers(&[1, 2, 3, 4], &[2, 2]);
    assert_eq!(
        counts.matmul(&counts).unwrap().to_vec::<i64>().unwrap(),
        [7, 10, 15, 22]
    );
}

#[test]
fn a_seed_repeats_its_draws() {
    let draw = |seed| {
        manual_seed(seed);
        Tensor::randn(&[1000], None).unwrap().to_f64_vec().unwrap()
    };
    let first = draw(1);
    assert_eq!(first, draw(1));
    assert_ne!(first, draw(2));
    let mean = first.iter().sum::<f64>() / 1000.0;
    let variance = first.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1000.0;
    assert!(
        mean.abs() < 0.15 && (variance - 1.0).abs() < 0.2,
        "{mean} {variance}"
    );
}
