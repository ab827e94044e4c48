//! Call stacks as a prefix tree: stacks with common callers share the memory for them.

use rustc_hash::FxHashMap;

use crate::{StackId, StringId};

/// The distinct call stacks of a profile, interned in a prefix tree. Programs call the same
/// functions again and again, so a stack costs one node however deep it is. Id zero always means
/// "no stack".
///
/// ```text
/// main ── step ── forward      a stack is one node: its innermost frame and the stack of its caller
///           └──── backward
/// ```
#[derive(Clone, Debug)]
pub struct StackTable {
    nodes: Vec<Node>,
    ids: FxHashMap<(u32, u32), StackId>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    caller: StackId,
    frame: StringId,
}

impl StackTable {
    /// Creates a table without stacks.
    pub fn new() -> Self {
        let root = Node {
            caller: StackId::NONE,
            frame: StringId::from_raw(0),
        };
        Self {
            nodes: vec![root],
            ids: FxHashMap::default(),
        }
    }

    /// Returns the stack of `frame` called from `caller`, adding it if it is new.
    pub fn push(&mut self, caller: StackId, frame: StringId) -> StackId {
        let next = StackId::from_index(self.nodes.len());
        let key = (caller.to_raw(), frame.to_raw());
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.nodes.push(Node { caller, frame });
        }
        id
    }

    /// Returns the stack of `frame` called from `caller`, or `None` if the table does not hold it.
    pub fn find(&self, caller: StackId, frame: StringId) -> Option<StackId> {
        self.ids.get(&(caller.to_raw(), frame.to_raw())).copied()
    }

    /// Returns the caller's stack and the innermost frame of a stack, or `None` for "no stack".
    ///
    /// # Panics
    /// Panics if `id` belongs to another profile.
    pub fn node(&self, id: StackId) -> Option<(StackId, StringId)> {
        let node = self.nodes[id.index()];
        (id != StackId::NONE).then_some((node.caller, node.frame))
    }

    /// Iterates over the frames of a stack, innermost first.
    ///
    /// # Panics
    /// Panics if `id` belongs to another profile.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = StringId> {
        let mut at = id;
        std::iter::from_fn(move || {
            if at == StackId::NONE {
                return None;
            }
            let node = self.nodes[at.index()];
            at = node.caller;
            Some(node.frame)
        })
    }

    /// Iterates over all stacks but "no stack" in the order of their ids, each as its caller's
    /// stack and its innermost frame. Callers come before their callees.
    pub fn nodes(&self) -> impl Iterator<Item = (StackId, StringId)> {
        let nodes = self.nodes.iter().skip(1);
        nodes.map(|node| (node.caller, node.frame))
    }

    /// Returns the number of stacks, "no stack" included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }
}

impl Default for StackTable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_callers() {
        let [main, step, forward] = [1, 2, 3].map(StringId::from_raw);
        let mut stacks = StackTable::new();
        let in_main = stacks.push(StackId::NONE, main);
        let in_step = stacks.push(in_main, step);
        let in_forward = stacks.push(in_step, forward);
        assert_eq!(stacks.push(in_main, step), in_step);
        assert_eq!(stacks.find(in_main, step), Some(in_step));
        assert_eq!(stacks.find(in_step, main), None);
        assert_eq!(stacks.len(), 4);
        assert_eq!(stacks.node(in_step), Some((in_main, step)));
        assert_eq!(stacks.node(StackId::NONE), None);
        let frames: Vec<_> = stacks.frames(in_forward).collect();
        assert_eq!(frames, [forward, step, main]);
        assert_eq!(stacks.frames(StackId::NONE).count(), 0);
    }
}
