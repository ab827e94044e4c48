//! Dropout: sets random elements to zero.

use crate::dispatch::{Site, open};
use crate::error::reject;
use crate::ops::create::empty_like;
use crate::{Result, Scalar, Tensor};

static DROPOUT: Site = Site::operator("aten::dropout");

impl Tensor {
    /// In training, sets elements to zero with a probability and scales up the others; otherwise
    /// returns the tensor unchanged.
    ///
    /// # Errors
    /// Returns an error if `probability` is not between zero and one.
    pub fn dropout(&self, probability: f64, training: bool) -> Result<Self> {
        let _scope = open(&DROPOUT, (self, probability, training));
        if !(0.0..=1.0).contains(&probability) {
            return reject!(
                Runtime,
                "dropout probability has to be between 0 and 1, but got {probability}"
            );
        }
        if probability == 0.0 || !training || self.count() == 0 {
            return Ok(self.clone());
        }
        if probability >= 1.0 {
            return self.mul(Scalar::Int(0));
        }
        let noise = empty_like(self)?;
        noise.bernoulli_(1.0 - probability)?;
        noise.div_in_place(Scalar::Float(1.0 - probability))?;
        self.mul(&noise)
    }
}
