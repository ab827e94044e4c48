//! The autograd metadata of a tensor: whether it is tracked, where its gradient flows, and its
//! accumulated gradient.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::accumulate::leaf_node;
use super::hook::{Hook, HookId, new_id};
use super::node::{Edge, Node};
use crate::{Error, Result, Tensor};

/// The autograd metadata that all handles of a tensor share.
///
/// It is created when autograd first concerns itself with a tensor: most tensors have none.
pub(crate) struct Meta {
    requires_grad: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    grad: Option<Tensor>,
    /// The node and result index to which the gradient flows; `None` for leaves.
    edge: Option<Edge>,
    /// The accumulation node of a leaf, while a graph holds it.
    leaf: Weak<Node>,
    /// The hooks of a leaf; those of other tensors are stored in their nodes.
    hooks: Vec<(HookId, Hook)>,
    retains: bool,
    view: Option<ViewOf>,
}

/// The base of a view, and the version of the base for which the view's node is valid.
#[derive(Clone)]
pub(super) struct ViewOf {
    pub(super) base: Tensor,
    pub(super) version: u32,
}

impl Meta {
    pub(super) fn new(requires_grad: bool, edge: Option<Edge>) -> Arc<Self> {
        Arc::new(Self {
            requires_grad: AtomicBool::new(requires_grad),
            state: Mutex::new(State {
                edge,
                ..State::default()
            }),
        })
    }

    /// Creates the metadata of an untracked tensor.
    pub(crate) fn untracked() -> Arc<Self> {
        Self::new(false, None)
    }

    #[inline]
    pub(crate) fn requires_grad(&self) -> bool {
        // Relaxed: the program sets the flag before it uses the tensor; it guards nothing.
        self.requires_grad.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_grad(&self, grad: Option<Tensor>) {
        // The old gradient is dropped after the lock is released, since its destructor may run
        // arbitrary code.
        let before = std::mem::replace(&mut self.state().grad, grad);
        drop(before);
    }

    pub(super) fn grad(&self) -> Option<Tensor> {
        self.state().grad.clone()
    }

    pub(super) fn leaf_hooks(&self) -> Vec<Hook> {
        let hooks = &self.state().hooks;
        hooks.iter().map(|(_, hook)| hook.clone()).collect()
    }

    pub(super) fn view(&self) -> Option<ViewOf> {
        self.state().view.clone()
    }

    pub(super) fn set_view(&self, view: ViewOf) {
        self.state().view = Some(view);
    }

    /// Makes the tensor a result of a node.
    pub(super) fn set_edge(&self, edge: Edge) {
        self.requires_grad.store(true, Ordering::Relaxed);
        let before = self.state().edge.replace(edge);
        drop(before);
    }

    pub(super) fn edge(&self) -> Option<Edge> {
        self.state().edge.clone()
    }
}

impl fmt::Debug for Meta {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Meta")
            .field("requires_grad", &self.requires_grad())
            .finish_non_exhaustive()
    }
}

/// Returns the result index and the name of the node that produced a tensor, for messages.
pub(super) fn origin(tensor: &Tensor) -> Option<(usize, String)> {
    let edge = tensor.meta()?.edge()?;
    Some((edge.result, edge.node.text().to_owned()))
}

impl Tensor {
    /// Returns whether this tensor requires gradients.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.meta().is_some_and(|meta| meta.requires_grad())
    }

    /// Sets whether this leaf requires gradients.
    ///
    /// # Errors
    /// Returns an error if the elements are not floating-point, or the tensor is the
    /// result of a tracked operator.
    pub fn set_requires_grad(&self, requires_grad: bool) -> Result<()> {
        if !self.is_leaf() {
            return if requires_grad {
                Ok(())
            } else {
                Err(Error::RequiresGradOfResult)
            };
        }
        if !requires_grad {
            if let Some(meta) = self.meta() {
                meta.requires_grad.store(false, Ordering::Relaxed);
            }
            return Ok(());
        }
        if !self.dtype().is_float() {
            return Err(Error::RequiresGradOfIntegers);
        }
        let meta = self.meta_or_new();
        meta.requires_grad.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether this tensor is a leaf: not a result of a tracked operator.
    pub fn is_leaf(&self) -> bool {
        self.meta().is_none_or(|meta| meta.state().edge.is_none())
    }

    /// Returns the accumulated gradient.
    pub fn grad(&self) -> Option<Self> {
        self.meta()?.grad()
    }

    /// Replaces the gradient.
    ///
    /// # Errors
    /// Returns an error if the shape or the dtype of the gradient does not match.
    pub fn set_grad(&self, grad: Option<Self>) -> Result<()> {
        let Some(grad) = grad else {
            if let Some(meta) = self.meta() {
                meta.set_grad(None);
            }
            return Ok(());
        };
        if grad.dtype() != self.dtype() {
            return Err(Error::GradType {
                expected: self.dtype(),
                found: grad.dtype(),
            });
        }
        if grad.dims() != self.dims() {
            return Err(Error::GradShape {
                expected: self.dims().to_vec(),
                found: grad.dims().to_vec(),
            });
        }
        self.meta_or_new().set_grad(Some(grad));
        Ok(())
    }

    /// Returns the name of the node that produced this tensor.
    pub fn node_name(&self) -> Option<String> {
        self.gradient_edge()
            .filter(|_| !self.is_leaf())
            .map(|edge| edge.node.text().to_owned())
    }

    /// Makes this result keep its gradient, as leaves always do.
    ///
    /// # Errors
    /// Returns an error if the tensor is not tracked.
    pub fn retain_grad(&self) -> Result<()> {
        if !self.requires_grad() {
            return Err(Error::RetainWithoutGrad);
        }
        let meta = self.meta_or_new();
        if self.is_leaf() || meta.state().retains {
            return Ok(());
        }
        if let Some(edge) = self.gradient_edge() {
            meta.state().retains = true;
            edge.node
                .watch(|watchers| watchers.retained.push((edge.result, Arc::downgrade(&meta))));
        }
        Ok(())
    }

    /// Returns whether this result keeps its gradient.
    pub fn retains_grad(&self) -> bool {
        self.meta().is_some_and(|meta| meta.state().retains)
    }

    /// Registers a hook on the gradient of this tensor and returns a function that removes it.
    ///
    /// # Errors
    /// Returns an error if the tensor is not tracked.
    pub fn register_hook(&self, hook: Hook) -> Result<impl Fn() + Send + Sync + use<>> {
        if !self.requires_grad() {
            return Err(Error::HookWithoutGrad);
        }
        let id = new_id();
        let meta = self.meta_or_new();
        let edge = self.gradient_edge().filter(|_| !self.is_leaf());
        match &edge {
            Some(edge) => edge
                .node
                .watch(|watchers| watchers.hooks.push((edge.result, id, hook))),
            None => meta.state().hooks.push((id, hook)),
        }
        let (meta, node) = (
            Arc::downgrade(&meta),
            edge.map(|edge| Arc::downgrade(&edge.node)),
        );
        Ok(move || {
            if let Some(node) = node.as_ref().and_then(Weak::upgrade) {
                node.watch(|watchers| watchers.hooks.retain(|(_, other, _)| *other != id));
            }
            if let Some(meta) = meta.upgrade() {
                meta.state().hooks.retain(|(other, _)| *other != id);
            }
        })
    }

    /// Detaches this tensor from its graph, in place.
    ///
    /// # Errors
    /// Returns an error if this tensor is a view, as in torch.
    pub(crate) fn cut(&self) -> Result<()> {
        let Some(meta) = self.meta() else {
            return Ok(());
        };
        if meta.view().is_some() {
            return Err(Error::DetachView);
        }
        meta.requires_grad.store(false, Ordering::Relaxed);
        let before = meta.state().edge.take();
        drop(before);
        Ok(())
    }

    /// Returns the node and result index to which the gradient of this tensor flows, or `None` if
    /// it is untracked.
    pub(crate) fn gradient_edge(&self) -> Option<Edge> {
        let meta = self.meta()?;
        if !meta.requires_grad() {
            return None;
        }
        if let Some(view) = meta.view()
            && view.version != self.version()
        {
            super::in_place::renew_view(self, meta, &view);
        }
        let mut state = meta.state();
        if let Some(edge) = &state.edge {
            return Some(edge.clone());
        }
        let node = state.leaf.upgrade().unwrap_or_else(|| {
            let node = leaf_node(self, meta);
            state.leaf = Arc::downgrade(&node);
            node
        });
        Some(Edge { node, result: 0 })
    }
}
