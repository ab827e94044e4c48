//! The class of each work of a device: by its name or, if that says nothing, by its arguments.
//!
//! Kernels of communication libraries are known by name. Torch also writes the name of the collective
//! beside a kernel that was launched for one, which tells those of other libraries.

use mindprof_model::{Category, Event, EventId, PassthroughKind, Profile};
use rustc_hash::FxHashSet;

use crate::device::value_of;
use crate::step_split::StepClass;

/// The argument with the name of a collective, such as `allreduce`.
const COLLECTIVE: &str = "Collective name";

/// The classes of the works of a profile: kernel, copy, memset or communication.
///
/// [`StepClass::of_device_work`] knows a name only. This also knows the arguments of each kernel.
#[derive(Clone, Debug)]
pub struct WorkClasses {
    by_name: Vec<StepClass>,
    /// Kernels that communicate, although their names do not tell.
    collectives: FxHashSet<EventId>,
}

impl WorkClasses {
    /// Looks at the names and arguments of all works, in time linear in the number of events.
    pub fn build(profile: &Profile) -> Self {
        let names = profile.strings().iter();
        let by_name: Vec<StepClass> = names.map(StepClass::of_device_work).collect();
        let texts = &profile.passthrough().texts;
        let mut walk = profile.passthrough().walk(PassthroughKind::Arguments);
        // Texts that differ in their numbers alone share a pattern.
        let mut known: Vec<Option<bool>> = Vec::new();
        let mut collectives = FxHashSet::default();
        for (index, event) in profile.events().iter().enumerate() {
            let is_kernel = event.category == Category::Kernel
                && by_name[event.name.index()] == StepClass::Kernel;
            let Some(text) = is_kernel.then(|| walk.at(index)).flatten() else {
                continue;
            };
            let (pattern, text) = texts.pattern_of(text);
            if pattern.index() >= known.len() {
                known.resize(pattern.index() + 1, None);
            }
            if *known[pattern.index()].get_or_insert_with(|| names_collective(text)) {
                collectives.insert(EventId::from_index(index));
            }
        }
        Self {
            by_name,
            collectives,
        }
    }

    /// Returns the class of a kernel, copy or fill.
    pub fn of(&self, id: EventId, event: &Event) -> StepClass {
        if self.collectives.contains(&id) {
            return StepClass::Communication;
        }
        self.by_name[event.name.index()]
    }
}

/// Returns whether arguments name a collective.
fn names_collective(arguments: &str) -> bool {
    let value = value_of(arguments, COLLECTIVE).map(|begin| &arguments[begin..]);
    value.is_some_and(|value| value.starts_with('"') && !value.starts_with("\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_makes_a_collective() {
        for (arguments, is_named) in [
            (r#""device":0,"Collective name":"allreduce","Seq":7"#, true),
            (r#""device":0,"Collective name": "_allgather_base""#, true),
            (r#""Collective name":"","Seq":7"#, false),
            (r#""Collective name":null"#, false),
            (r#""kernel":"Collective name""#, false),
            ("", false),
        ] {
            assert_eq!(names_collective(arguments), is_named, "{arguments}");
        }
    }
}
