//! Operators that look at the same elements in another shape, and `reshape`, which copies where no view can.

use crate::dispatch::{Absent, Site, open};
use crate::layout::Layout;
use crate::shape::{Dims, Strides, dimension_index, infer_view, signed};
use crate::{Error, Result, Tensor};

static ALIAS: Site = Site::operator("aten::alias");
static AS_STRIDED: Site = Site::operator("aten::as_strided");
static AS_STRIDED_IN_PLACE: Site = Site::operator("aten::as_strided_");
static EXPAND: Site = Site::operator("aten::expand");
static MATRIX_TRANSPOSE: Site = Site::operator("aten::mT");
static RESHAPE: Site = Site::operator("aten::reshape");
static RESHAPE_ALIAS: Site = Site::operator("aten::_reshape_alias");
static SQUEEZE: Site = Site::operator("aten::squeeze");
static SQUEEZE_IN_PLACE: Site = Site::operator("aten::squeeze_");
static T: Site = Site::operator("aten::t");
static TRANSPOSE: Site = Site::operator("aten::transpose");
static UNSAFE_VIEW: Site = Site::operator("aten::_unsafe_view");
static UNSQUEEZE: Site = Site::operator("aten::unsqueeze");
static VIEW: Site = Site::operator("aten::view");

impl Tensor {
    /// Exchanges the two dimensions of a matrix; a vector or a number stays as it is.
    ///
    /// # Errors
    /// When there are more than two dimensions.
    pub fn t(&self) -> Result<Self> {
        let _scope = open(&T, (self,));
        match self.rank() {
            0 | 1 => self.transpose(0, 0),
            2 => self.transpose(0, 1),
            rank => Err(Error::NotAMatrix { rank }),
        }
    }

    /// Exchanges two dimensions.
    ///
    /// # Errors
    /// When one of them does not exist.
    pub fn transpose(&self, first: i64, second: i64) -> Result<Self> {
        let _scope = open(&TRANSPOSE, (self, first, second));
        let first = dimension_index(first, self.rank())?;
        let second = dimension_index(second, self.rank())?;
        if first == second {
            let _scope = open(&ALIAS, (self,));
            return Ok(self.clone());
        }
        self.as_layout(self.layout().transposed(first, second)?)
    }

    /// Repeats dimensions of size one, and adds leading ones, without copying. Minus one keeps a size.
    ///
    /// # Errors
    /// When a dimension with another size would have to be repeated.
    pub fn expand(&self, sizes: &[i64]) -> Result<Self> {
        let _scope = open(&EXPAND, (self, sizes, false));
        self.as_layout(self.layout().expanded(sizes, self.dtype())?)
    }

    /// Looks at the elements in another shape. One size may be minus one and is inferred.
    ///
    /// # Errors
    /// When the shape holds another number of elements, or cannot be had without copying.
    pub fn view(&self, sizes: &[i64]) -> Result<Self> {
        let _scope = open(&VIEW, (self, sizes));
        self.viewed(sizes)?.ok_or(Error::ViewNeedsCopy)
    }

    /// Gives the elements another shape, copying only if there is no view. One size may be minus one and is inferred.
    ///
    /// # Errors
    /// When the shape holds another number of elements.
    pub fn reshape(&self, sizes: &[i64]) -> Result<Self> {
        let _scope = open(&RESHAPE, (self, sizes));
        let dims = infer_view(sizes, self.count())?;
        if self.is_contiguous() {
            return self.view(sizes);
        }
        let sizes = signed(&dims);
        if let Some(view) = self.viewed(&sizes)? {
            let _scope = open(&RESHAPE_ALIAS, (self, sizes.as_slice(), view.strides()));
            return Ok(view);
        }
        self.duplicate_contiguous()?.unsafe_view(&sizes)
    }

    /// Adds a dimension of size one.
    ///
    /// # Errors
    /// When there is no such place.
    pub fn unsqueeze(&self, dimension: i64) -> Result<Self> {
        let _scope = open(&UNSQUEEZE, (self, dimension));
        let at = dimension_index(dimension, self.rank() + 1)?;
        self.as_layout(self.layout().unsqueezed(at)?)
    }

    /// Removes a dimension if its size is one.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn squeeze(&self, dimension: i64) -> Result<Self> {
        let _scope = open(&SQUEEZE, (self, dimension));
        let at = dimension_index(dimension, self.rank())?;
        self.as_layout(self.layout().squeezed(at)?)
    }

    /// Looks at the storage with other sizes and strides, starting where this tensor starts.
    pub(crate) fn as_strided(&self, dims: &[usize], strides: &[isize]) -> Result<Self> {
        let layout = Layout::strided(
            Dims::from_slice(dims),
            Strides::from_slice(strides),
            self.offset(),
        )?;
        self.as_layout(layout)
    }

    /// Exchanges the last two dimensions.
    pub(super) fn matrix_transpose(&self) -> Result<Self> {
        let _scope = open(&MATRIX_TRANSPOSE, (self,));
        self.transpose(-2, -1)
    }

    /// Removes a dimension of a tensor that nobody else holds.
    pub(super) fn squeeze_in_place(self, dimension: i64) -> Result<Self> {
        let _scope = open(&SQUEEZE_IN_PLACE, (&self, dimension));
        let at = dimension_index(dimension, self.rank())?;
        let layout = self.layout().squeezed(at)?;
        let _scope = open(
            &AS_STRIDED_IN_PLACE,
            (&self, layout.dims(), layout.strides(), Absent),
        );
        self.with_layout(layout)
    }

    /// Gives a tensor that nobody else holds another shape.
    pub(super) fn unsafe_view(self, sizes: &[i64]) -> Result<Self> {
        let _scope = open(&UNSAFE_VIEW, (&self, sizes));
        self.viewed(sizes)?.ok_or(Error::ViewNeedsCopy)
    }

    fn as_layout(&self, layout: Layout) -> Result<Self> {
        let _scope = open(&AS_STRIDED, (self, layout.dims(), layout.strides(), Absent));
        self.with_layout(layout)
    }

    fn viewed(&self, sizes: &[i64]) -> Result<Option<Self>> {
        let dims = infer_view(sizes, self.count())?;
        self.layout()
            .view_strides(&dims)
            .map(|strides| self.with_layout(Layout::strided(dims, strides, self.offset())?))
            .transpose()
    }
}
