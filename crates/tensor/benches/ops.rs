//! What operators cost while nothing is recorded.

use divan::{Bencher, black_box};
use mindtorch_tensor::{Scalar, Tensor};

fn main() {
    divan::main();
}

#[divan::bench]
fn add_4x4(bencher: Bencher) {
    let x = Tensor::ones(&[4, 4], None).unwrap();
    bencher.bench(|| black_box(&x).add(black_box(&x)).unwrap());
}

#[divan::bench]
fn add_number_4x4(bencher: Bencher) {
    let x = Tensor::ones(&[4, 4], None).unwrap();
    bencher.bench(|| black_box(&x).add(black_box(Scalar::Int(2))).unwrap());
}

#[divan::bench]
fn matmul_4x4(bencher: Bencher) {
    let x = Tensor::ones(&[4, 4], None).unwrap();
    bencher.bench(|| black_box(&x).matmul(black_box(&x)).unwrap());
}

#[divan::bench]
fn transpose_4x4(bencher: Bencher) {
    let x = Tensor::ones(&[4, 4], None).unwrap();
    bencher.bench(|| black_box(&x).t().unwrap());
}
