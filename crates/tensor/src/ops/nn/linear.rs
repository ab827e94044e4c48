//! `linear`: a product with a transposed matrix, and a sum.

use crate::autocast::Casting;
use crate::dispatch::{Site, open};
use crate::error::reject;
use crate::shape::signed;
use crate::{Result, Tensor};

static LINEAR: Site = Site::operator("aten::linear");

impl Tensor {
    /// Multiplies the last dimension by a matrix of output rows, and adds a vector.
    ///
    /// # Errors
    /// When the sizes do not fit or the types differ.
    pub fn linear(&self, weight: &Self, bias: Option<&Self>) -> Result<Self> {
        let _scope = open(&LINEAR, (self, weight, bias));
        if let Some(casting) = Casting::begin() {
            let bias = casting.lower_optional(bias)?;
            let weight = casting.lower(weight)?;
            return casting.lower(self)?.linear(&weight, bias.as_ref());
        }
        if weight.rank() > 2 || weight.rank() == 0 {
            return reject!(
                Runtime,
                "linear(): weight must be a matrix, found sizes {:?}",
                weight.dims()
            );
        }
        let Some(bias) = bias else {
            return self.matmul(&weight.t()?);
        };
        if self.rank() == 2 && weight.rank() == 2 {
            return bias.addmm(self, &weight.t()?);
        }
        if self.rank() == 3 && self.is_contiguous() && weight.rank() == 2 {
            let width = self.dims()[2];
            let rows = (self.dims()[0] * self.dims()[1]) as i64;
            let product = self
                .view(&[rows, width as i64])
                .and_then(|long| bias.addmm(&long, &weight.t()?))?;
            let mut sizes = signed(self.dims());
            sizes[2] = weight.dims()[0] as i64;
            return product.unsafe_view(&sizes);
        }
        let product = self.matmul(&weight.t()?)?;
        product.add_(bias)?;
        Ok(product)
    }
}
