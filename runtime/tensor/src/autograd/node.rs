//! Nodes of the graph: an operator leaves one behind so that its gradient can be computed.
//!
//! Edges point from a result's node to the nodes of its operands. A node saves elements inside its
//! formula, never tensors with nodes, so the graph has no cycles.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use mindprof_record::{Name, NameKind, OpenScope, Site, open};
use smallvec::SmallVec;

use super::accumulate::Leaf;
use super::hook::{Hook, HookId};
use super::meta::Meta;
use super::mode::{Forward, take_forward};
use crate::shape::Dims;
use crate::{DType, Error, Result, Tensor};

/// The gradients that a formula returns: one per operand, in order, or `None` if it was not needed.
pub(crate) type Outputs = SmallVec<[Option<Tensor>; 4]>;

/// The gradients that arrive at a node, and which operands need one in return.
pub(crate) struct Gradients<'a> {
    pub(crate) arrived: &'a [Option<Tensor>],
    needed: SmallVec<[bool; 4]>,
}

impl<'a> Gradients<'a> {
    /// Returns the gradient of the operator's only tracked result.
    pub(crate) fn only(&self) -> &'a Tensor {
        self.arrived
            .iter()
            .flatten()
            .next()
            .expect("a node runs when a gradient has arrived")
    }

    /// Returns whether the gradient of an operand is needed.
    pub(crate) fn needs(&self, operand: usize) -> bool {
        self.needed[operand]
    }

    /// Computes the gradient of an operand if it is needed.
    pub(crate) fn when(
        &self,
        operand: usize,
        compute: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Option<Tensor>> {
        self.needs(operand).then(compute).transpose()
    }
}

type Compute = Box<dyn Fn(&Gradients<'_>) -> Result<Outputs> + Send + Sync>;

/// Computes the gradients of an operator's operands from those of its results.
///
/// Operators build one when they attach a node. A formula that saves elements of the forward pass
/// is freed after it ran, unless the graph is retained.
pub(crate) struct Formula {
    compute: Compute,
    keeps_tensors: bool,
}

impl Formula {
    /// Creates a formula that saves nothing from the forward pass and can run any number of times.
    pub(crate) fn plain(
        compute: impl Fn(&Gradients<'_>) -> Result<Outputs> + Send + Sync + 'static,
    ) -> Self {
        Self {
            compute: Box::new(compute),
            keeps_tensors: false,
        }
    }

    /// Creates a formula that saves elements of the forward pass, which are freed after it ran.
    pub(crate) fn saving(
        compute: impl Fn(&Gradients<'_>) -> Result<Outputs> + Send + Sync + 'static,
    ) -> Self {
        Self {
            compute: Box::new(compute),
            keeps_tensors: true,
        }
    }

    /// Creates a formula for one operand that saves nothing from the forward pass.
    pub(crate) fn unary(
        compute: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Self {
        Self::plain(move |gradients| Ok(smallvec::smallvec![Some(compute(gradients.only())?)]))
    }

    /// Creates a formula for one operand that saves elements of the forward pass.
    pub(crate) fn unary_saving(
        compute: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Self {
        Self::saving(move |gradients| Ok(smallvec::smallvec![Some(compute(gradients.only())?)]))
    }
}

impl Formula {
    /// Wraps this formula in another computation, which can call it with different gradients.
    pub(super) fn around(
        self,
        outer: impl Fn(&Gradients<'_>, &Inner<'_>) -> Result<Outputs> + Send + Sync + 'static,
    ) -> Self {
        let Self {
            compute: inner,
            keeps_tensors,
        } = self;
        let compute: Compute = Box::new(move |gradients| {
            outer(gradients, &|arrived| {
                inner(&Gradients {
                    arrived,
                    needed: gradients.needed.clone(),
                })
            })
        });
        Self {
            compute,
            keeps_tensors,
        }
    }
}

/// The wrapped computation.
type Inner<'a> = dyn Fn(&[Option<Tensor>]) -> Result<Outputs> + 'a;

/// The names under which the nodes of an operator are recorded.
pub(crate) struct NodeSite {
    pub(crate) text: &'static str,
    pub(crate) evaluate: Site,
    pub(crate) apply: Site,
}

/// Declares the node names of operators.
macro_rules! node_site {
    ($($(#[$meta:meta])* $name:ident = $text:literal;)+) => {
        $($(#[$meta])* static $name: $crate::autograd::NodeSite = $crate::autograd::NodeSite {
            text: $text,
            evaluate: mindprof_record::Site::operator(
                concat!("autograd::engine::evaluate_function: ", $text)
            ),
            apply: mindprof_record::Site::backward($text),
        };)+
    };
}
pub(crate) use node_site;

/// The name of a node.
pub(super) enum NodeName {
    Static(&'static NodeSite),
    /// The node of a custom function.
    User {
        text: Box<str>,
        evaluate: Name,
        apply: Name,
    },
}

impl NodeName {
    pub(super) fn user(text: &str) -> Self {
        let evaluate = format!("autograd::engine::evaluate_function: {text}");
        Self::User {
            text: text.into(),
            evaluate: Name::intern(&evaluate, NameKind::Operator),
            apply: Name::intern(text, NameKind::Backward),
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Static(site) => site.text,
            Self::User { text, .. } => text,
        }
    }

    pub(super) fn open_evaluate(&self) -> Option<OpenScope> {
        open(match self {
            Self::Static(site) => site.evaluate.name(),
            Self::User { evaluate, .. } => *evaluate,
        })
    }

    pub(super) fn apply_name(&self) -> Name {
        match self {
            Self::Static(site) => site.apply.name(),
            Self::User { apply, .. } => *apply,
        }
    }
}

/// The shape and the dtype of one result of an operator, which its gradient must match.
#[derive(Clone, Debug)]
pub(super) struct ResultShape {
    pub(super) dims: Dims,
    pub(super) dtype: DType,
}

impl ResultShape {
    pub(super) fn of(tensor: &Tensor) -> Self {
        Self {
            dims: Dims::from_slice(tensor.dims()),
            dtype: tensor.dtype(),
        }
    }
}

/// The destination of a tensor's gradient: a node, and the index of the tensor among its results.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) node: Arc<Node>,
    pub(crate) result: usize,
}

/// The action of a node on the gradients that arrive.
pub(super) enum Action {
    /// Computes the gradients of the operands. The formula is `None` after it was freed.
    Formula(Mutex<Option<Formula>>),
    /// Accumulates into the gradient of a leaf.
    Accumulate(Leaf),
}

/// The hooks to call, and the tensors that retain their gradient, when a result's gradient arrives.
#[derive(Default)]
pub(super) struct Watchers {
    pub(super) hooks: Vec<(usize, HookId, Hook)>,
    pub(super) retained: Vec<(usize, Weak<Meta>)>,
}

/// A node of the autograd graph.
///
/// A tracked operator creates one for its results, and the node keeps the nodes of its operands
/// alive. The engine runs it when all gradients of its results have arrived.
pub(crate) struct Node {
    pub(super) name: NodeName,
    /// The forward operator; `None` for leaves, which run before all other nodes.
    pub(super) forward: Option<Forward>,
    pub(super) edges: SmallVec<[Option<Edge>; 4]>,
    pub(super) results: SmallVec<[ResultShape; 1]>,
    pub(super) action: Action,
    watchers: Mutex<Option<Box<Watchers>>>,
}

impl Node {
    pub(super) fn build(
        name: NodeName,
        edges: SmallVec<[Option<Edge>; 4]>,
        results: SmallVec<[ResultShape; 1]>,
        formula: Formula,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            forward: Some(take_forward()),
            edges,
            results,
            action: Action::Formula(Mutex::new(Some(formula))),
            watchers: Mutex::default(),
        })
    }

    pub(super) fn for_leaf(site: &'static NodeSite, shape: ResultShape, leaf: Leaf) -> Arc<Self> {
        Arc::new(Self {
            name: NodeName::Static(site),
            forward: None,
            edges: SmallVec::new(),
            results: smallvec::smallvec![shape],
            action: Action::Accumulate(leaf),
            watchers: Mutex::default(),
        })
    }

    /// Returns the name of the node.
    pub(crate) fn text(&self) -> &str {
        self.name.text()
    }

    /// Computes the gradients of the operands. Also returns the formula if nothing needs it any
    /// more.
    pub(super) fn apply(
        &self,
        formula: &Mutex<Option<Formula>>,
        arrived: &[Option<Tensor>],
        release: bool,
    ) -> Result<(Outputs, Option<Formula>)> {
        let gradients = Gradients {
            arrived,
            needed: self.edges.iter().map(Option::is_some).collect(),
        };
        let lock = || formula.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out while it runs, so that a user function can reenter.
        let own = lock().take().ok_or(Error::GraphFreed)?;
        let outputs = (own.compute)(&gradients);
        if release && own.keeps_tensors && outputs.is_ok() {
            return Ok((outputs?, Some(own)));
        }
        *lock() = Some(own);
        Ok((outputs?, None))
    }

    /// Changes the hooks and retained gradients.
    pub(super) fn watch<R>(&self, change: impl FnOnce(&mut Watchers) -> R) -> R {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        change(watchers.get_or_insert_default())
    }

    /// Runs hooks on the gradients that arrived and stores those that are retained.
    pub(super) fn notify(&self, arrived: &mut [Option<Tensor>]) -> Result<()> {
        let (hooks, retained) = {
            let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(watchers) = watchers.as_ref() else {
                return Ok(());
            };
            (watchers.hooks.clone(), watchers.retained.clone())
        };
        for (result, _, hook) in hooks {
            if let Some(gradient) = &arrived[result]
                && let Some(changed) = hook.call(gradient)?
            {
                arrived[result] = Some(changed);
            }
        }
        for (result, meta) in retained {
            if let (Some(gradient), Some(meta)) = (&arrived[result], meta.upgrade()) {
                meta.set_grad(Some(gradient.clone()));
            }
        }
        Ok(())
    }
}

impl Drop for Node {
    /// Drops long chains iteratively: dropping them recursively would overflow the stack.
    fn drop(&mut self) {
        let mut rest: Vec<Arc<Self>> = self
            .edges
            .drain(..)
            .flatten()
            .map(|edge| edge.node)
            .collect();
        while let Some(next) = rest.pop() {
            if let Some(mut node) = Arc::into_inner(next) {
                rest.extend(node.edges.drain(..).flatten().map(|edge| edge.node));
            }
        }
    }
}
