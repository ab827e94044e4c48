//! Random operators: `randn`, `rand`, `randint` and their in-place variants.

use super::create::{Options, empty};
use crate::autograd::{Below, Formula, in_place, node_site};
use crate::dispatch::{Absent, Device, Site, open};
use crate::error::reject;
use crate::kernels;
use crate::{DType, Error, Result, Tensor};

static BERNOULLI: Site = Site::operator("aten::bernoulli_");
static NORMAL: Site = Site::operator("aten::normal_");
static RAND: Site = Site::operator("aten::rand");
static RANDINT: Site = Site::operator("aten::randint");
static RANDN: Site = Site::operator("aten::randn");
static RANDOM: Site = Site::operator("aten::random_");
static RANDPERM: Site = Site::operator("aten::randperm");
static UNIFORM: Site = Site::operator("aten::uniform_");

node_site! {
    BERNOULLI_NODE = "BernoulliBackward2";
    NORMAL_NODE = "NormalBackward0";
    RANDOM_NODE = "RandomBackward0";
    UNIFORM_NODE = "UniformBackward0";
}

/// Reseeds the generator that all random operators share.
pub fn manual_seed(seed: u64) {
    kernels::manual_seed(seed);
}

impl Tensor {
    /// Creates a tensor of draws from the standard normal distribution.
    ///
    /// # Errors
    /// Returns an error if a size is negative, the dtype is not floating-point, or memory cannot be
    /// allocated.
    pub fn randn(sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&RANDN, (sizes, dtype, Absent, Device, false));
        let _below = Below::enter();
        let actual = dtype.unwrap_or(DType::DEFAULT);
        let tensor = empty(sizes, actual, &Options::of(dtype).pinned(false))?;
        tensor.normal_(0.0, 1.0)?;
        Ok(tensor)
    }

    /// Creates a tensor of uniform draws from zero up to but excluding one.
    ///
    /// # Errors
    /// Returns an error if a size is negative, the dtype is not floating-point, or memory cannot be
    /// allocated.
    pub fn rand(sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&RAND, (sizes, dtype, Absent, Device, false));
        let _below = Below::enter();
        let actual = dtype.unwrap_or(DType::DEFAULT);
        let tensor = empty(sizes, actual, &Options::of(dtype).pinned(false))?;
        tensor.uniform_(0.0, 1.0)?;
        Ok(tensor)
    }

    /// Creates a tensor of uniform integers from `low` up to but excluding `high`.
    ///
    /// # Errors
    /// Returns an error if a size is negative, the range contains no integer, or memory cannot be
    /// allocated.
    pub fn randint(low: i64, high: i64, sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let actual = dtype.unwrap_or(DType::I64);
        let _scope = open(&RANDINT, (low, high, sizes, actual, Absent, Device, false));
        let _below = Below::enter();
        let tensor = empty(sizes, actual, &Options::of(Some(actual)).pinned(false))?;
        tensor.random_(low, high)?;
        Ok(tensor)
    }

    /// Creates a random permutation of the integers below `count`.
    ///
    /// # Errors
    /// Returns an error if the count is negative or memory cannot be allocated.
    pub fn randperm(count: i64) -> Result<Self> {
        let _scope = open(&RANDPERM, (count, DType::I64, Absent, Device, false));
        let _below = Below::enter();
        if count < 0 {
            return reject!(Runtime, "n must be non-negative, got{count}");
        }
        let tensor = empty(
            &[count],
            DType::I64,
            &Options::of(Some(DType::I64)).pinned(false),
        )?;
        kernels::fill_permutation(&tensor)?;
        Ok(tensor)
    }

    /// Fills this tensor with draws from a normal distribution.
    ///
    /// # Errors
    /// Returns an error if the dtype is not floating-point or the deviation is negative.
    pub fn normal_(&self, mean: f64, deviation: f64) -> Result<()> {
        let _scope = open(&NORMAL, (self, mean, deviation, Absent));
        self.check_float("normal_kernel_cpu")?;
        if deviation < 0.0 || deviation.is_nan() {
            return reject!(
                Runtime,
                "normal expects std >= 0.0, but found std {deviation}"
            );
        }
        in_place(
            &NORMAL_NODE,
            self,
            [],
            || {
                kernels::fill_normal(self, mean, deviation);
                Ok(())
            },
            || Formula::unary(Tensor::zeros_like),
        )
    }

    /// Fills this tensor with uniform draws from `low` up to but excluding `high`.
    ///
    /// # Errors
    /// Returns an error if the dtype is not floating-point or the range is empty.
    pub fn uniform_(&self, low: f64, high: f64) -> Result<()> {
        let _scope = open(&UNIFORM, (self, low, high, Absent));
        self.check_float("check_uniform_bounds")?;
        if low > high || low.is_nan() || high.is_nan() {
            return reject!(
                Runtime,
                "uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
            );
        }
        in_place(
            &UNIFORM_NODE,
            self,
            [],
            || {
                kernels::fill_uniform(self, low, high);
                Ok(())
            },
            || Formula::unary(Tensor::zeros_like),
        )
    }

    /// Fills this tensor with uniform integers from `low` up to but excluding `high`.
    ///
    /// # Errors
    /// Returns an error if the range contains no integer.
    pub fn random_(&self, low: i64, high: i64) -> Result<()> {
        let _scope = open(&RANDOM, (self, low, high, Absent));
        if low >= high {
            return reject!(
                Runtime,
                "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
            );
        }
        in_place(
            &RANDOM_NODE,
            self,
            [],
            || {
                kernels::fill_integers(self, low, high);
                Ok(())
            },
            || Formula::unary(Tensor::zeros_like),
        )
    }

    /// Sets each element to one with the given probability, and to zero otherwise.
    ///
    /// # Errors
    /// Returns an error if `probability` is not between zero and one.
    pub fn bernoulli_(&self, probability: f64) -> Result<()> {
        let _scope = open(&BERNOULLI, (self, probability, Absent));
        if !(0.0..=1.0).contains(&probability) {
            return reject!(
                Runtime,
                "bernoulli_ expects p to be in [0, 1], but got p={probability}"
            );
        }
        in_place(
            &BERNOULLI_NODE,
            self,
            [],
            || {
                kernels::fill_bernoulli(self, probability);
                Ok(())
            },
            || Formula::unary(Tensor::zeros_like),
        )
    }

    fn check_float(&self, kernel: &'static str) -> Result<()> {
        if self.dtype().is_float() {
            return Ok(());
        }
        Err(Error::NotImplemented {
            kernel,
            dtype: self.dtype(),
        })
    }
}
