//! A node of the graph: what an operator leaves behind so that its gradient can be computed.
//!
//! Edges point from a result's node to the nodes of the operands. A node keeps its operands'
//! elements inside of its formula, never tensors with nodes, so that the graph has no circles.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use mindprof_record::{Name, NameKind, OpenScope, Site, open};
use smallvec::SmallVec;

use super::accumulate::Leaf;
use super::hook::{Hook, HookId};
use super::meta::Meta;
use super::mode::{Forward, take_forward};
use crate::shape::Dims;
use crate::{DType, Error, Result, Tensor};

/// What a formula returns: one gradient per operand, in order; none where it was not needed.
pub(crate) type Outputs = SmallVec<[Option<Tensor>; 4]>;

/// The gradients that arrive at a node, and what is wanted from it.
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

    /// Returns whether anyone waits for the gradient of an operand.
    pub(crate) fn needs(&self, operand: usize) -> bool {
        self.needed[operand]
    }

    /// Computes the gradient of an operand if anyone waits for it.
    pub(crate) fn when(
        &self,
        operand: usize,
        compute: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Option<Tensor>> {
        self.needs(operand).then(compute).transpose()
    }
}

type Compute = Box<dyn Fn(&Gradients<'_>) -> Result<Outputs> + Send + Sync>;

/// How gradients of results become gradients of operands.
pub(crate) struct Formula {
    compute: Compute,
    keeps_tensors: bool,
}

impl Formula {
    /// A formula that needs no elements of the forward computation; it can run any number of times.
    pub(crate) fn plain(
        compute: impl Fn(&Gradients<'_>) -> Result<Outputs> + Send + Sync + 'static,
    ) -> Self {
        Self {
            compute: Box::new(compute),
            keeps_tensors: false,
        }
    }

    /// A formula that keeps elements of the forward computation, which are freed after it ran.
    pub(crate) fn saving(
        compute: impl Fn(&Gradients<'_>) -> Result<Outputs> + Send + Sync + 'static,
    ) -> Self {
        Self {
            compute: Box::new(compute),
            keeps_tensors: true,
        }
    }

    /// A formula for one operand that needs no elements of the forward computation.
    pub(crate) fn unary(
        compute: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Self {
        Self::plain(move |gradients| Ok(smallvec::smallvec![Some(compute(gradients.only())?)]))
    }

    /// A formula for one operand that keeps elements of the forward computation.
    pub(crate) fn unary_saving(
        compute: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Self {
        Self::saving(move |gradients| Ok(smallvec::smallvec![Some(compute(gradients.only())?)]))
    }
}

impl Formula {
    /// Puts a computation around this one, which it may call with other gradients.
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

/// The computation that another one was put around.
type Inner<'a> = dyn Fn(&[Option<Tensor>]) -> Result<Outputs> + 'a;

/// The names under which the nodes of one operator are recorded.
pub(crate) struct NodeSite {
    pub(crate) text: &'static str,
    pub(crate) evaluate: Site,
    pub(crate) apply: Site,
}

/// Names the nodes of an operator.
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

/// What a node is called.
pub(super) enum NodeName {
    Static(&'static NodeSite),
    /// A node of a function that the user wrote.
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

/// The shape and the type of one result of an operator: what its gradient has to have, too.
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

/// Where the gradient of a tensor goes: a node, and which of the node's results the tensor is.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) node: Arc<Node>,
    pub(crate) result: usize,
}

/// What a node does with the gradients that arrive.
pub(super) enum Action {
    /// Computes the gradients of the operands; none after the formula was freed.
    Formula(Mutex<Option<Formula>>),
    /// Adds to the gradient of a leaf.
    Accumulate(Leaf),
}

/// What is called, or kept, when the gradient of a result arrives.
#[derive(Default)]
pub(super) struct Watchers {
    pub(super) hooks: Vec<(usize, HookId, Hook)>,
    pub(super) retained: Vec<(usize, Weak<Meta>)>,
}

/// A node of the graph.
pub(crate) struct Node {
    pub(super) name: NodeName,
    /// None for leaves, which come before all others.
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

    /// Returns the node's name.
    pub(crate) fn text(&self) -> &str {
        self.name.text()
    }

    /// Computes the gradients of the operands. Returns the formula too if nobody needs it any more.
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
        // Taken out while it runs, so that a user's function may come back here.
        let own = lock().take().ok_or(Error::GraphFreed)?;
        let outputs = (own.compute)(&gradients);
        if release && own.keeps_tensors && outputs.is_ok() {
            return Ok((outputs?, Some(own)));
        }
        *lock() = Some(own);
        Ok((outputs?, None))
    }

    /// Changes what is told of arriving gradients.
    pub(super) fn watch<R>(&self, change: impl FnOnce(&mut Watchers) -> R) -> R {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        change(watchers.get_or_insert_default())
    }

    /// Runs hooks over the gradients that have arrived and keeps those that someone retains.
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
    /// Takes long chains apart one by one: a node that drops the next one inside of itself would
    /// need a stack as deep as the chain.
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
