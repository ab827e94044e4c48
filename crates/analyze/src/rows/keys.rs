//! Keys of rows: the names under which events are compared and grouped.

use mindprof_model::{StringId, StringTable, is_step_event, step_number};

/// The key under which memory records outside all events are shown.
pub const MEMORY_KEY: &str = mindprof_model::MEMORY_EVENT;

/// The key of events that mark a failed allocation.
pub const OUT_OF_MEMORY_KEY: &str = mindprof_model::OUT_OF_MEMORY_EVENT;

const STEP_KEY: &str = "ProfilerStep*";

/// A map from each name of a profile to its key.
///
/// A key is usually the name itself, but all profiler steps (`ProfilerStep#1`, `ProfilerStep#2`, …)
/// share the key `ProfilerStep*`, as in torch, so that they form one row.
#[derive(Clone, Debug)]
pub struct Keys {
    ids: Vec<StringId>,
}

impl Keys {
    /// Builds the map for the names in `strings`.
    pub fn build(strings: &StringTable) -> Self {
        let mut step = strings.find(STEP_KEY);
        let ids = strings
            .iter()
            .enumerate()
            .map(|(index, name)| {
                let id = StringId::from_index(index);
                if is_step_event(name) {
                    *step.get_or_insert(id)
                } else {
                    id
                }
            })
            .collect();
        Self { ids }
    }

    /// Returns the key of a name, as the id of the name that represents its group.
    ///
    /// # Panics
    /// If `name` belongs to another profile.
    pub fn key(&self, name: StringId) -> StringId {
        self.ids[name.index()]
    }

    /// Returns the text of a name's key.
    pub fn text(name: &str) -> &str {
        if is_step_event(name) { STEP_KEY } else { name }
    }

    /// Returns the number of the profiler step that a name denotes, or `None` if it denotes none.
    pub fn step_number(name: &str) -> Option<u64> {
        step_number(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_steps_share_one_key() {
        let mut strings = StringTable::new();
        let first = strings.intern("ProfilerStep#1");
        let second = strings.intern("ProfilerStep#2");
        let other = strings.intern("ProfilerSteps");
        let keys = Keys::build(&strings);
        assert_eq!(keys.key(second), keys.key(first));
        assert_eq!(keys.key(other), other);
        assert_eq!(Keys::text("ProfilerStep#2"), "ProfilerStep*");
        assert_eq!(Keys::text("ProfilerSteps"), "ProfilerSteps");
    }

    #[test]
    fn a_literal_step_key_is_the_same_key() {
        let mut strings = StringTable::new();
        let step = strings.intern("ProfilerStep#1");
        let literal = strings.intern("ProfilerStep*");
        assert_eq!(Keys::build(&strings).key(step), literal);
    }
}
