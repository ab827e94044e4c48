//! Random numbers, from one generator per process, as torch has one per device.

use std::sync::{LazyLock, Mutex, PoisonError};

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Dxsm;

use super::Walk;
use crate::element::by_dtype;
use crate::storage;
use crate::{Element, Result, Scalar, Tensor};

/// Torch's default seed.
const DEFAULT_SEED: u64 = 67_280_421_310_721;

static GENERATOR: LazyLock<Mutex<Pcg64Dxsm>> =
    LazyLock::new(|| Mutex::new(Pcg64Dxsm::seed_from_u64(DEFAULT_SEED)));

/// Reseeds the generator.
pub(crate) fn manual_seed(seed: u64) {
    *GENERATOR.lock().unwrap_or_else(PoisonError::into_inner) = Pcg64Dxsm::seed_from_u64(seed);
}

/// Fills a tensor with draws from a normal distribution.
pub(crate) fn fill_normal(destination: &Tensor, mean: f64, deviation: f64) {
    fill_drawn(destination, |generator| {
        let draw: f64 = StandardNormal.sample(generator);
        Scalar::Float(draw.mul_add(deviation, mean))
    });
}

/// Fills a tensor with uniform draws from `low` up to but excluding `high`.
pub(crate) fn fill_uniform(destination: &Tensor, low: f64, high: f64) {
    fill_drawn(destination, |generator| {
        // A 32-bit float holds 24 bits, so no draw is rounded up to the end of the range.
        let draw = f64::from(generator.next_u32() >> 8) / f64::from(1_u32 << 24);
        Scalar::Float(low + draw * (high - low))
    });
}

/// Fills a tensor with uniform integers from `low` up to but excluding `high`.
pub(crate) fn fill_integers(destination: &Tensor, low: i64, high: i64) {
    fill_drawn(destination, |generator| {
        Scalar::Int(generator.random_range(low..high))
    });
}

/// Sets each element to one with the given probability, and to zero otherwise.
pub(crate) fn fill_bernoulli(destination: &Tensor, probability: f64) {
    fill_drawn(destination, |generator| {
        Scalar::Int(i64::from(generator.random_bool(probability)))
    });
}

/// Fills a vector with a random permutation of its indices.
pub(crate) fn fill_permutation(destination: &Tensor) -> Result<()> {
    let mut places: Vec<i64> = storage::reserve(destination.count())?;
    places.extend(0..destination.count() as i64);
    let mut generator = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    for index in (1..places.len()).rev() {
        places.swap(index, generator.random_range(0..=index));
    }
    drop(generator);
    let mut places = places.into_iter();
    fill_drawn(destination, move |_| {
        Scalar::Int(places.next().unwrap_or_default())
    });
    Ok(())
}

fn fill_drawn(destination: &Tensor, mut draw: impl FnMut(&mut Pcg64Dxsm) -> Scalar) {
    let walk = Walk::over(destination.dims(), [destination.layout()]);
    let mut generator = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    by_dtype!(destination.dtype(), T => {
        storage::write(destination.storage(), [], |own: &mut [T], []: [&[T]; 0]| {
            walk.each(|[place]| own[place] = T::from_scalar(draw(&mut generator)));
        });
    });
}
