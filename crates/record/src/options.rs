//! The options of a window: what it records.

use crate::limit::Only;

/// The options of a [`Session`](crate::Session): what is recorded beside scopes, and how much
/// memory that may take. If several sessions are open, each thread records the union of their
/// options, and each capture keeps only what its own session asked for.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct Options {
    /// Whether scopes record their inputs: shapes, dtypes and values.
    pub inputs: bool,
    /// Whether allocations and frees are recorded.
    pub memory: bool,
    /// Whether scopes record the tensors they return; inputs then include storage offsets.
    pub results: bool,
    /// Whether the profile names the overloads of operators, if the framework reports them.
    pub overloads: bool,
    /// Whether operators record the calls of `TorchScript` modules that they run in, if the framework
    /// reports them.
    pub module_hierarchies: bool,
    /// The operators that are recorded.
    pub only: Only,
    /// Which calls of the program's language are recorded. The stack provider reports them.
    pub calls: Calls,
    /// The byte budget of the recording. Once it is spent, events are dropped and counted.
    /// While several windows are open, the largest of their budgets applies.
    pub budget_bytes: usize,
    /// Which events are kept once the budget is spent.
    pub keep: Keep,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inputs: false,
            memory: false,
            results: false,
            overloads: false,
            module_hierarchies: false,
            only: Only::ALL,
            calls: Calls::None,
            budget_bytes: 256 << 20,
            keep: Keep::First,
        }
    }
}

/// Which events of a window are kept if they do not all fit into the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The first ones. Events that come later are lost.
    #[default]
    First,
    /// The last ones. The profile begins later than the window did, and what came before is summed
    /// up by name ([`mindprof_model::WholeRun`]).
    Last,
}

/// Which calls of the program's language (Python functions) a window wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Calls {
    /// No calls.
    #[default]
    None,
    /// Calls of modules (`torch.nn.Module` and its like) only.
    Modules,
    /// No calls, but the call stack of every scope, and samples of what each thread does in between.
    /// Calls are estimated from both.
    Sampled,
    /// All calls, and the call stack of every scope.
    All,
}
