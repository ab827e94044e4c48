//! Names by which torch marks structure in a recording: wrappers around backward nodes, and calls
//! of modules.
//!
//! Readers recognize them while they build a part, and the analysis while it links events, so both
//! ask here.

/// The name of the scope that torch opens around a backward node; the node's own name follows.
const BACKWARD_WRAPPER: &str = "autograd::engine::evaluate_function";

/// The beginning of the name of a call of a module: `nn.Module: Linear_0`.
const MODULE: &str = "nn.Module: ";

/// Returns whether a scope of this name wraps a node of the backward graph.
pub fn is_backward_wrapper(name: &str) -> bool {
    name.starts_with(BACKWARD_WRAPPER)
}

/// Returns the name of the backward node that a wrapper of this name contains.
pub fn wrapped_node(name: &str) -> Option<&str> {
    name.strip_prefix(BACKWARD_WRAPPER)?.strip_prefix(": ")
}

/// Returns the number of the instance that a call of this name belongs to, if it calls a module.
pub fn module_number(name: &str) -> Option<u32> {
    let (_, number) = name.strip_prefix(MODULE)?.rsplit_once('_')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_numbered_by_the_end_of_its_name() {
        assert_eq!(module_number("nn.Module: Linear_12"), Some(12));
        assert_eq!(module_number("nn.Module: My_Block_0"), Some(0));
        assert_eq!(module_number("train.py(3): step_1"), None);
        assert_eq!(module_number("nn.Module: Linear"), None);
    }
}
