//! Tensors that a formula saves for the backward pass, with a check that they were not modified.

use super::meta::origin;
use crate::{Error, Result, Tensor};

/// A tensor saved for the backward pass, with its version at that time.
///
/// Formulas keep their operands in this form, so that a later in-place write is detected rather
/// than silently giving wrong gradients.
pub(crate) struct Saved {
    tensor: Tensor,
    version: u32,
    origin: Option<Box<(usize, String)>>,
}

impl Saved {
    /// Saves an operand.
    pub(crate) fn new(tensor: &Tensor) -> Self {
        Self {
            tensor: tensor.untracked(),
            version: tensor.version(),
            origin: origin(tensor).map(Box::new),
        }
    }

    /// Saves a result, whose node is about to be created.
    pub(crate) fn result(tensor: &Tensor, node: &'static super::NodeSite) -> Self {
        Self {
            tensor: tensor.untracked(),
            version: tensor.version(),
            origin: Some(Box::new((0, node.text.to_owned()))),
        }
    }

    /// Returns the tensor if it was not modified since.
    ///
    /// # Errors
    /// Returns an error if the tensor was modified since it was saved.
    pub(crate) fn get(&self) -> Result<&Tensor> {
        let version = self.tensor.version();
        if version != self.version {
            return Err(Error::SavedModified {
                dtype: self.tensor.dtype(),
                dims: self.tensor.dims().to_vec(),
                origin: match self.origin.as_deref() {
                    Some((result, node)) => format!(", which is output {result} of {node},"),
                    None => String::new(),
                },
                version,
                expected: self.version,
            });
        }
        Ok(&self.tensor)
    }
}
