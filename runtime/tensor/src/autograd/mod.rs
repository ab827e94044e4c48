//! Automatic differentiation: which operators attach a node to their results, and how gradients
//! flow back through the nodes.
//!
//! An operator calls [`differentiable`] with its computation and its gradient formula; `engine`
//! walks the nodes from a result to the leaves. Second derivatives are not supported, so nodes save
//! plain elements and never tensors with nodes of their own.

mod accumulate;
mod engine;
mod function;
mod hook;
mod in_place;
mod meta;
mod mode;
mod node;
mod saved;
mod track;
mod user;

pub use engine::RetainGraph;
pub use function::Function;
pub use hook::Hook;
pub use mode::{is_grad_enabled, set_grad_enabled};
pub use user::{Unused, backward, gradients};

pub(crate) use in_place::{in_place, link_view};
pub(crate) use meta::Meta;
pub(crate) use mode::{Below, is_tracking, next_sequence};
pub(crate) use node::{Formula, NodeSite, Outputs, node_site};
pub(crate) use saved::Saved;
pub(crate) use track::{
    differentiable, differentiable_first, differentiable_list, differentiable_view,
};
