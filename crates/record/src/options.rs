//! What a window wants to have recorded.

/// What a window wants.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether scopes keep the shapes and values they were given.
    pub inputs: bool,
    /// Whether memory that the host takes and gives back is recorded.
    pub memory: bool,
    /// Whether scopes keep the tensors that they return; then inputs tell offsets too.
    pub results: bool,
    /// Which calls of the host's language are recorded, as the host tells of them.
    pub calls: Calls,
    /// How many bytes the recording may hold. The newest events beyond it are dropped and counted.
    /// While several windows are open, the largest of their budgets is in force.
    pub budget_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inputs: false,
            memory: false,
            results: false,
            calls: Calls::None,
            budget_bytes: 256 << 20,
        }
    }
}

/// Which calls of the host's language a window wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Calls {
    /// None.
    #[default]
    None,
    /// Calls of modules.
    Modules,
    /// All calls, and by whom scopes are called.
    All,
}
