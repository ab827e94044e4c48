//! Measures the cost of operators while nothing is recorded. Dropping a small result is part of the
//! measured time, as it is for a caller.

use divan::{Bencher, black_box};
use mindtorch_tensor::{KeepDims, Result, Scalar, Tensor};

fn main() {
    divan::main();
}

fn small(bencher: Bencher<'_, '_>, operator: impl Fn(&Tensor) -> Result<Tensor> + Sync) {
    let x = Tensor::ones(&[4, 4], None).expect("the sizes are small");
    bencher.bench(|| drop(black_box(operator(black_box(&x)))));
}

#[divan::bench(sample_size = 1000)]
fn add_4x4(bencher: Bencher<'_, '_>) {
    small(bencher, |x| x.add(x));
}

#[divan::bench(sample_size = 1000)]
fn add_number_4x4(bencher: Bencher<'_, '_>) {
    small(bencher, |x| x.add(Scalar::Int(2)));
}

#[divan::bench(sample_size = 1000)]
fn relu_4x4(bencher: Bencher<'_, '_>) {
    small(bencher, Tensor::relu);
}

#[divan::bench(sample_size = 1000)]
fn transpose_4x4(bencher: Bencher<'_, '_>) {
    small(bencher, Tensor::t);
}

#[divan::bench(sample_size = 1000)]
fn matmul_4x4(bencher: Bencher<'_, '_>) {
    small(bencher, |x| x.matmul(x));
}

#[divan::bench]
fn matmul_512_one_thread(bencher: Bencher<'_, '_>) {
    let x = Tensor::randn(&[512, 512], None).expect("the sizes are small");
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a pool of one thread");
    bencher.bench(|| pool.install(|| black_box(&x).matmul(black_box(&x))));
}

#[divan::bench(args = [1 << 16, 1 << 18, 1 << 20, 1 << 22])]
fn add(bencher: Bencher<'_, '_>, count: i64) {
    let x = Tensor::ones(&[count], None).expect("the sizes are small");
    bencher.bench(|| drop(black_box(x.add(&x))));
}

#[divan::bench(args = [1 << 16, 1 << 18, 1 << 20, 1 << 22])]
fn sum(bencher: Bencher<'_, '_>, count: i64) {
    let x = Tensor::ones(&[count], None).expect("the sizes are small");
    bencher.bench(|| drop(black_box(x.sum(None, KeepDims::No, None))));
}
