//! What operators cost while nothing is recorded.

use divan::{Bencher, black_box};
use mindtorch_tensor::{Scalar, Tensor};

fn main() {
    divan::main();
}

#[divan::bench]
fn add_4x4(bencher: Bencher) {
    let x = Tensor::ones(&[4, 4], None).expect("shapes fit");
    bencher.bench(|| black_box(&x).add(black_box(&x)).expect("shapes fit"));
}

#[divan::bench]
fn add_number_4x4(bencher: Bencher) {
    let x = Tensor::ones(&[4, 4], None).expect("shapes fit");
    bencher.bench(|| {
        black_box(&x)
            .add(black_box(Scalar::Int(2)))
            .expect("shapes fit")
    });
}

#[divan::bench]
fn matmul_4x4(bencher: Bencher) {
    let x = Tensor::ones(&[4, 4], None).expect("shapes fit");
    bencher.bench(|| black_box(&x).matmul(black_box(&x)).expect("shapes fit"));
}

#[divan::bench]
fn transpose_4x4(bencher: Bencher) {
    let x = Tensor::ones(&[4, 4], None).expect("shapes fit");
    bencher.bench(|| black_box(&x).t().expect("shapes fit"));
}

#[divan::bench]
fn matmul_512_one_thread(bencher: Bencher) {
    let x = Tensor::randn(&[512, 512], None).expect("shapes fit");
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a pool of one thread");
    bencher.bench(|| pool.install(|| black_box(&x).matmul(black_box(&x)).expect("shapes fit")));
}
