//! The linear layer: a product with a transposed weight, plus a bias.

use std::borrow::Cow;

use crate::autocast::Casting;
use crate::dispatch::{Site, open};
use crate::error::reject;
use crate::shape::signed;
use crate::{Result, Tensor};

static LINEAR: Site = Site::operator("aten::linear");

impl Tensor {
    /// Multiplies the last dimension by the transposed weight and adds a bias.
    ///
    /// # Errors
    /// Returns an error if the sizes do not match or the dtypes differ.
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
        if self.rank() == 2 {
            return bias.addmm(self, &weight.t()?);
        }
        let bias = if bias.rank() == 1 {
            Cow::Borrowed(bias)
        } else {
            Cow::Owned(bias.squeeze_all()?)
        };
        match self.dims().split_last() {
            Some((&width, leading)) if self.is_contiguous() && bias.rank() == 1 => {
                let rows = leading.iter().product::<usize>() as i64;
                let long = self.view(&[rows, width as i64])?;
                let product = bias.addmm(&long, &weight.t()?)?;
                let mut sizes = signed(leading);
                sizes.push(weight.dims()[0] as i64);
                product.unsafe_view(&sizes)
            }
            Some(_) | None => {
                let product = self.matmul(&weight.t()?)?;
                product.add_(&*bias)?;
                Ok(product)
            }
        }
    }
}
