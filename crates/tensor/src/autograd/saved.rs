//! Elements that a formula needs later, with the version they had.

use super::meta::origin;
use crate::{Error, Result, Tensor};

/// A tensor as it was when it was saved.
pub(crate) struct Saved {
    tensor: Tensor,
    version: u32,
    origin: Option<Box<(usize, String)>>,
}

impl Saved {
    /// Keeps the elements of an operand.
    pub(crate) fn new(tensor: &Tensor) -> Self {
        Self {
            tensor: tensor.untracked(),
            version: tensor.version(),
            origin: origin(tensor).map(Box::new),
        }
    }

    /// Keeps the elements of a result, whose node is about to be made.
    pub(crate) fn result(tensor: &Tensor, node: &'static super::NodeSite) -> Self {
        Self {
            tensor: tensor.untracked(),
            version: tensor.version(),
            origin: Some(Box::new((0, node.text.to_owned()))),
        }
    }

    /// Returns the tensor.
    ///
    /// # Errors
    /// Returns an error if it was written to since.
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
