//! Writes to indices along a dimension: `scatter` and `scatter_add`.

use smallvec::smallvec;

use super::create::result_space;
use super::extreme::index_type;
use super::sorting::show_index_type;
use crate::autograd::{Formula, NodeSite, Saved, differentiable, in_place, node_site};
use crate::dispatch::{Site, open};
use crate::error::reject;
use crate::kernels::{self, Put};
use crate::layout::Layout;
use crate::shape::{Dims, Strides, dimension_index};
use crate::{Error, Operand, Result, Scalar, Tensor};

static COPY: Site = Site::operator("aten::copy_");
static SCATTER: Site = Site::operator("aten::scatter");
static SCATTER_ADD: Site = Site::operator("aten::scatter_add");
static SCATTER_ADD_IN_PLACE: Site = Site::operator("aten::scatter_add_");
static SCATTER_IN_PLACE: Site = Site::operator("aten::scatter_");

node_site! {
    SCATTER_NODE = "ScatterBackward0";
    SCATTER_VALUE_NODE = "ScatterBackward1";
    SCATTER_ADD_NODE = "ScatterAddBackward0";
}

impl Tensor {
    /// Returns a copy with elements of `source`, or a number, written to indices along a dimension.
    ///
    /// # Errors
    /// Returns an error if the index does not hold integers, its shape does not match, or an index
    /// is out of range.
    pub fn scatter<'a>(
        &self,
        dimension: i64,
        index: &Self,
        source: impl Into<Operand<'a>>,
    ) -> Result<Self> {
        match source.into() {
            Operand::Tensor(source) => {
                let _scope = open(&SCATTER, (self, dimension, index, source));
                self.scattered(&SCATTER_NODE, dimension, index, source, Put::Replace)
            }
            Operand::Scalar(value) => {
                let _scope = open(&SCATTER, (self, dimension, index, value));
                let source = self.spread_value(index, value)?;
                self.scattered(&SCATTER_VALUE_NODE, dimension, index, &source, Put::Replace)
            }
        }
    }

    /// Writes elements of `source`, or a number, to indices along a dimension.
    ///
    /// # Errors
    /// Fails in the same cases as `scatter`.
    pub fn scatter_<'a>(
        &self,
        dimension: i64,
        index: &Self,
        source: impl Into<Operand<'a>>,
    ) -> Result<()> {
        match source.into() {
            Operand::Tensor(source) => {
                let _scope = open(&SCATTER_IN_PLACE, (self, dimension, index, source));
                self.scatter_into(&SCATTER_NODE, dimension, index, source, Put::Replace)
            }
            Operand::Scalar(value) => {
                let _scope = open(&SCATTER_IN_PLACE, (self, dimension, index, value));
                let source = self.spread_value(index, value)?;
                self.scatter_into(&SCATTER_VALUE_NODE, dimension, index, &source, Put::Replace)
            }
        }
    }

    /// Returns a copy with elements of `source` added at indices along a dimension.
    ///
    /// # Errors
    /// Fails in the same cases as `scatter`.
    pub fn scatter_add(&self, dimension: i64, index: &Self, source: &Self) -> Result<Self> {
        let _scope = open(&SCATTER_ADD, (self, dimension, index, source));
        self.scattered(&SCATTER_ADD_NODE, dimension, index, source, Put::Add)
    }

    /// Adds elements of `source` at indices along a dimension.
    ///
    /// # Errors
    /// Fails in the same cases as `scatter`.
    pub fn scatter_add_(&self, dimension: i64, index: &Self, source: &Self) -> Result<()> {
        let _scope = open(&SCATTER_ADD_IN_PLACE, (self, dimension, index, source));
        self.scatter_into(&SCATTER_ADD_NODE, dimension, index, source, Put::Add)
    }

    fn scattered(
        &self,
        node: &'static NodeSite,
        dimension: i64,
        index: &Self,
        source: &Self,
        put: Put,
    ) -> Result<Self> {
        self.check_scatter(dimension, index, source)?;
        differentiable(
            node,
            [self, source],
            || {
                let result = result_space(self.dims(), self.dtype())?;
                kernels::copy_into(&result, self);
                drop(open(&COPY, (&result, self, false)));
                show_index_type(index);
                result.write_along(dimension, index, source, put)?;
                Ok(result)
            },
            |_| scatter_formula(dimension, index, put),
        )
    }

    fn scatter_into(
        &self,
        node: &'static NodeSite,
        dimension: i64,
        index: &Self,
        source: &Self,
        put: Put,
    ) -> Result<()> {
        self.check_scatter(dimension, index, source)?;
        if self.layout().repeats() {
            return Err(Error::OverlappingWrite);
        }
        if self.meets(index) || self.meets(source) {
            return Err(Error::OverlappingRead);
        }
        in_place(
            node,
            self,
            [source],
            || {
                show_index_type(index);
                self.write_along(dimension, index, source, put)
            },
            || scatter_formula(dimension, index, put),
        )
    }

    fn check_scatter(&self, dimension: i64, index: &Self, source: &Self) -> Result<()> {
        index_type(index, "scatter")?;
        let at = dimension_index(dimension, self.rank())?;
        let rank = self.rank().max(1);
        if index.count() > 0 && (index.rank().max(1) != rank || source.rank().max(1) != rank) {
            return reject!(
                Runtime,
                "Index tensor must have the same number of dimensions as self tensor"
            );
        }
        if source.dtype() != self.dtype() {
            return reject!(
                Runtime,
                "scatter(): Expected self.dtype to be equal to src.dtype"
            );
        }
        let fits = index
            .dims()
            .iter()
            .zip(source.dims())
            .all(|(own, other)| own <= other);
        if !fits {
            return reject!(
                Runtime,
                "Expected index {:?} to be no larger than self {:?} apart from dimension {at} and to be no larger \
                 size than src {:?}",
                index.dims(),
                self.dims(),
                source.dims()
            );
        }
        Ok(())
    }

    fn write_along(&self, dimension: i64, index: &Self, source: &Self, put: Put) -> Result<()> {
        let at = dimension_index(dimension, self.rank())?;
        let places = kernels::along(self, at, index)?;
        let dims = Dims::from_slice(index.dims());
        let strides = Strides::from_slice(&source.strides()[..dims.len()]);
        let piece = source.with_layout(Layout::strided(dims, strides, source.offset())?)?;
        let mut packed = kernels::pack(&piece)?;
        // Two tensors can interleave in one storage without overlapping, so the source is copied.
        if packed.shares_storage(self) {
            let copy = result_space(packed.dims(), packed.dtype())?;
            kernels::copy_into(&copy, &packed);
            packed = copy;
        }
        kernels::put(self, &places, &packed, put);
        Ok(())
    }

    /// Creates a source that holds one number for all indices.
    fn spread_value(&self, index: &Self, value: Scalar) -> Result<Self> {
        let source = result_space(index.dims(), self.dtype())?;
        kernels::fill(&source, value);
        Ok(source)
    }
}

fn scatter_formula(dimension: i64, index: &Tensor, put: Put) -> Formula {
    let index = Saved::new(index);
    Formula::saving(move |gradients| {
        let gradient = gradients.only();
        let index = index.get()?;
        let own = gradients.when(0, || match put {
            Put::Replace => gradient.scatter(dimension, index, Scalar::Int(0)),
            Put::Add => Ok(gradient.clone()),
        })?;
        let source = gradients.when(1, || gradient.gather(dimension, index))?;
        Ok(smallvec![own, source])
    })
}
