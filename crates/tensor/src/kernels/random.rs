//! Random numbers: one generator for the process, as torch has one per device.

use std::sync::{LazyLock, Mutex, PoisonError};

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Dxsm;

use super::Walk;
use crate::element::by_dtype;
use crate::storage;
use crate::{Element, Scalar, Tensor};

/// The seed that torch starts with.
const DEFAULT_SEED: u64 = 67_280_421_310_721;

static GENERATOR: LazyLock<Mutex<Pcg64Dxsm>> =
    LazyLock::new(|| Mutex::new(Pcg64Dxsm::seed_from_u64(DEFAULT_SEED)));

/// Restarts the generator.
pub(crate) fn manual_seed(seed: u64) {
    *GENERATOR.lock().unwrap_or_else(PoisonError::into_inner) = Pcg64Dxsm::seed_from_u64(seed);
}

/// Sets every element to a draw from the normal distribution.
pub(crate) fn fill_normal(destination: &Tensor, mean: f64, deviation: f64) {
    let walk = Walk::over(destination.dims(), [destination.layout()]);
    let mut generator = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    by_dtype!(destination.dtype(), T => {
        storage::write(destination.storage(), [], |own: &mut [T], []: [&[T]; 0]| {
            walk.each(|[place]| {
                let draw: f64 = StandardNormal.sample(&mut *generator);
                own[place] = T::from_scalar(Scalar::Float(draw.mul_add(deviation, mean)));
            });
        });
    });
}
