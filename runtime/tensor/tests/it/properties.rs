//! Property tests: operators agree with index-by-index reference implementations, for arbitrary
//! shapes, strides and dtypes.

use mindtorch_tensor::{DType, KeepDims, Tensor};
use proptest::prelude::*;

/// Generates sizes.
fn sizes(rank: std::ops::Range<usize>) -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(0_i64..5, rank)
}

/// Creates a tensor of distinct small integers, optionally with two dimensions swapped.
fn strided(sizes: &[i64], exchange: Option<(usize, usize)>) -> Tensor {
    let rank = sizes.len();
    let exchange = exchange
        .filter(|_| rank > 0)
        .map(|(a, b)| (a % rank, b % rank));
    let mut stored = sizes.to_vec();
    if let Some((first, second)) = exchange {
        stored.swap(first, second);
    }
    let count: i64 = stored.iter().product();
    let values: Vec<f32> = (0..count).map(|value| (value % 23) as f32 - 7.0).collect();
    let tensor = Tensor::from_slice(&values, &stored).expect("as many values as sizes say");
    match exchange {
        Some((first, second)) => tensor
            .transpose(first as i64, second as i64)
            .expect("both dimensions exist"),
        None => tensor,
    }
}

/// Returns all indices of a shape in row-major order.
fn indices(dims: &[usize]) -> Vec<Vec<usize>> {
    dims.iter().fold(vec![Vec::new()], |prefixes, &dim| {
        prefixes
            .iter()
            .flat_map(|prefix| (0..dim).map(move |index| [prefix.as_slice(), &[index]].concat()))
            .collect()
    })
}

/// Reads one element, broadcasting dimensions of size one.
fn at(tensor: &Tensor, values: &[f64], index: &[usize]) -> f64 {
    let own = &index[index.len() - tensor.rank()..];
    let place = tensor
        .dims()
        .iter()
        .zip(own)
        .fold(0, |place, (&dim, &index)| {
            place * dim + if dim == 1 { 0 } else { index }
        });
    values[place]
}

proptest! {
    #[test]
    fn addition_equals_index_by_index(
        dims in sizes(0..5),
        ones in prop::collection::vec(any::<[bool; 2]>(), 5),
        drop_leading in 0_usize..5,
        exchanges in any::<[Option<(usize, usize)>; 2]>(),
    ) {
        let squash = |side: usize| -> Vec<i64> {
            dims.iter().zip(&ones).map(|(&dim, ones)| if ones[side] { 1 } else { dim }).collect()
        };
        let (left, right) = (squash(0), squash(1));
        let right = &right[drop_leading.min(right.len())..];
        let (left, right) = (strided(&left, exchanges[0]), strided(right, exchanges[1]));
        let sum = left.add(&right).unwrap();
        let (a, b, found) = (left.to_f64_vec().unwrap(), right.to_f64_vec().unwrap(), sum.to_f64_vec().unwrap());
        let expected: Vec<f64> = indices(sum.dims())
            .iter()
            .map(|index| at(&left, &a, index) + at(&right, &b, index))
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn sums_equal_index_by_index(
        dims in sizes(0..5),
        reduced in prop::collection::vec(any::<bool>(), 5),
        exchange in any::<Option<(usize, usize)>>(),
        keep in any::<bool>(),
    ) {
        let tensor = strided(&dims, exchange);
        let list: Vec<i64> = (0..dims.len()).filter(|&d| reduced[d]).map(|d| d as i64).collect();
        let all = list.is_empty();
        let keep = if keep { KeepDims::Yes } else { KeepDims::No };
        let values = tensor.to_f64_vec().unwrap();
        let kept = |index: &[usize]| -> Vec<usize> {
            index.iter().zip(&reduced).filter(|(_, r)| !all && !**r).map(|(&i, _)| i).collect()
        };
        let mut expected = std::collections::BTreeMap::new();
        for index in indices(tensor.dims()) {
            *expected.entry(kept(&index)).or_insert(0.0) += at(&tensor, &values, &index);
        }
        let sum = tensor.sum(Some(&list), keep, None).unwrap();
        if tensor.count() == 0 {
            prop_assert!(sum.to_f64_vec().unwrap().iter().all(|&x| x == 0.0));
        } else {
            prop_assert_eq!(sum.to_f64_vec().unwrap(), expected.into_values().collect::<Vec<_>>());
        }
    }

    #[test]
    fn products_equal_three_loops(
        (m, k, n) in (0_i64..6, 0_i64..6, 0_i64..6),
        batch in prop::collection::vec(1_i64..3, 0..3),
        ones in any::<[bool; 2]>(),
        transposed in any::<[bool; 2]>(),
    ) {
        let operand = |side: usize, rows: i64, columns: i64| {
            let mut dims: Vec<i64> = batch.iter().map(|&dim| if ones[side] { 1 } else { dim }).collect();
            dims.extend([rows, columns]);
            let rank = dims.len();
            strided(&dims, transposed[side].then_some((rank - 1, rank - 2)))
        };
        let (left, right) = (operand(0, m, k), operand(1, k, n));
        let product = left.matmul(&right).unwrap();
        let (a, b, found) = (left.to_f64_vec().unwrap(), right.to_f64_vec().unwrap(), product.to_f64_vec().unwrap());
        let expected: Vec<f64> = indices(product.dims())
            .iter()
            .map(|index| {
                let rank = index.len();
                (0..k as usize)
                    .map(|inner| {
                        let (mut x, mut y) = (index.clone(), index.clone());
                        (x[rank - 1], y[rank - 2]) = (inner, inner);
                        at(&left, &a, &x) * at(&right, &b, &y)
                    })
                    .sum()
            })
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_reshape_keeps_the_elements_in_order(dims in sizes(0..5), exchange in any::<Option<(usize, usize)>>()) {
        let tensor = strided(&dims, exchange);
        let flat = tensor.reshape(&[tensor.count() as i64]).unwrap();
        prop_assert_eq!(flat.to_f64_vec().unwrap(), tensor.to_f64_vec().unwrap());
        let back = flat.reshape(&dims).unwrap();
        prop_assert_eq!(back.to_f64_vec().unwrap(), tensor.to_f64_vec().unwrap());
        prop_assert_eq!(tensor.duplicate().unwrap().to_f64_vec().unwrap(), tensor.to_f64_vec().unwrap());
    }

    #[test]
    fn a_product_of_integers_wraps_index_by_index(
        [m, k, n] in any::<[u8; 3]>().prop_map(|sizes| sizes.map(|size| i64::from(size % 5))),
        seed in any::<i64>(),
        transposed in any::<bool>(),
    ) {
        let number = |index: i64| seed.wrapping_mul(index + 1).wrapping_add(index);
        let values = |count: i64| (0..count).map(number).collect::<Vec<i64>>();
        let left = Tensor::from_slice(&values(m * k), &[m, k]).unwrap();
        let right = if transposed {
            Tensor::from_slice(&values(k * n), &[n, k]).unwrap().t().unwrap()
        } else {
            Tensor::from_slice(&values(k * n), &[k, n]).unwrap()
        };
        let (a, b) = (left.to_vec::<i64>().unwrap(), right.to_vec::<i64>().unwrap());
        let mut expected = Vec::new();
        for row in 0..m {
            for column in 0..n {
                expected.push((0..k).fold(0_i64, |sum, inner| {
                    let (x, y) = (a[(row * k + inner) as usize], b[(inner * n + column) as usize]);
                    sum.wrapping_add(x.wrapping_mul(y))
                }));
            }
        }
        prop_assert_eq!(left.mm(&right).unwrap().to_vec::<i64>().unwrap(), expected);
    }

    #[test]
    fn narrow_elements_are_computed_wide_and_rounded_once(x in any::<f32>(), y in any::<f32>()) {
        let one = |value: f32| Tensor::from_slice(&[value], &[1]).unwrap();
        let narrow = |value: f32| one(value).to(DType::BF16).unwrap();
        let (x, y) = (rounded(x), rounded(y));
        let value = |tensor: Tensor| tensor.to_vec::<f32>().unwrap()[0].to_bits();
        let expected = [x + y, x - y, x * y, x / y].map(|value| rounded(value).to_bits());
        let found = [
            narrow(x).add(&narrow(y)),
            narrow(x).sub(&narrow(y)),
            narrow(x).mul(&narrow(y)),
            narrow(x).div(&narrow(y)),
        ]
        .map(|result| value(result.unwrap()));
        for (found, expected) in found.into_iter().zip(expected) {
            let (found, expected) = (f32::from_bits(found), f32::from_bits(expected));
            prop_assert!(found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()));
        }
    }
}

/// Rounds to the nearest `bfloat16`, ties to even.
fn rounded(value: f32) -> f32 {
    if value.is_nan() {
        return f32::NAN;
    }
    let bits = value.to_bits();
    f32::from_bits((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff_0000)
}
