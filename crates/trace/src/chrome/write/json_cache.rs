//! JSON that many events share, formatted once.

use mindprof_model::{
    Category, DeviceKind, Event, InputsIter, Profile, StackId, StackTable, StringId, activity_name,
};
use rustc_hash::FxHashMap;

use crate::chrome::inputs::{
    inputs_arguments, inputs_lists, keyword_arguments, list_types_argument,
};
use crate::chrome::keys::{ArgumentKey, ArgumentKeys};
use crate::chrome::text::{call_place, json_string};
use mindprof_analyze::PATH_LEVELS;

/// The limit for stack texts kept for later events. For deep stacks that never repeat, they would
/// exceed the trace itself.
const KEPT_STACK_BYTES: usize = 32 << 20;

/// The JSON formatted so far, by name, stack and inputs.
///
/// The writer copies these pieces into its text, so that an event costs only the formatting of its
/// numbers.
pub(super) struct JsonCache<'a> {
    profile: &'a Profile,
    /// The kind of the devices, if there are any.
    device: Option<DeviceKind>,
    /// By name, the start of an event in the category in which the name was first seen.
    heads: Vec<Option<(Category, Box<str>)>>,
    /// The starts of events in further categories.
    other_heads: FxHashMap<(StringId, Category), Box<str>>,
    inputs: Vec<String>,
    stacks: Vec<Option<Box<str>>>,
    /// The number of frames in each stack.
    depths: Vec<u32>,
    /// By stack, the argument with the line of its innermost frame.
    call_places: Vec<Option<Box<str>>>,
    stack_bytes: usize,
    /// The last stack that was too large to keep.
    passing_stack: Box<str>,
}

impl<'a> JsonCache<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        let mut devices = profile.threads().iter().map(|thread| thread.device);
        Self {
            profile,
            device: devices.find(|&device| device != DeviceKind::Cpu),
            heads: vec![None; profile.strings().len()],
            other_heads: FxHashMap::default(),
            inputs: inputs_json(profile),
            stacks: vec![None; profile.stacks().len()],
            depths: depths(profile.stacks()),
            call_places: vec![None; profile.stacks().len()],
            stack_bytes: 0,
            passing_stack: "".into(),
        }
    }

    /// Returns whether a stack has more frames than anyone looks at.
    pub(super) fn is_deep(&self, stack: StackId) -> bool {
        self.depths[stack.index()] as usize > PATH_LEVELS
    }

    /// Returns the category name of an event.
    pub(super) fn category(&self, event: &Event) -> &'static str {
        activity_name(event.category, self.profile.name(event), self.device)
    }

    /// Returns the start of an event up to its name.
    pub(super) fn head(&mut self, event: &Event) -> &str {
        let (profile, device) = (self.profile, self.device);
        let make = || -> Box<str> {
            let name = profile.name(event);
            let category = activity_name(event.category, name, device);
            let name = json_string(name);
            format!(",\n{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":{name}").into()
        };
        let slot = &mut self.heads[event.name.index()];
        let (category, head) = slot.get_or_insert_with(|| (event.category, make()));
        if *category == event.category {
            return head;
        }
        let key = (event.name, event.category);
        self.other_heads.entry(key).or_insert_with(make)
    }

    /// Returns the input arguments of an event, each followed by a comma.
    pub(super) fn inputs(&self, event: &Event) -> &str {
        &self.inputs[event.inputs.index()]
    }

    /// Returns the input arguments without the lists that are kept as text.
    pub(super) fn inputs_without(&self, event: &Event, keys: ArgumentKeys) -> String {
        if self.inputs(event).is_empty() {
            return String::new();
        }
        let inputs = self.profile.inputs().inputs(event.inputs);
        let has_storages = !self.profile.storages().is_empty();
        let lists = inputs_lists(inputs.clone());
        let lists = lists.map(|(key, list)| (key, format!("\"{key}\":{list}")));
        let list_types = list_types_argument(inputs).filter(|_| has_storages);
        let list_types = list_types.map(|text| (ArgumentKey::ListTypes.name(), text));
        let lists = lists.into_iter().chain(list_types);
        lists
            .filter(|(key, _)| !keys.contains(ArgumentKey::of(key.as_bytes())))
            .flat_map(|(_, list)| [list, ",".into()])
            .collect()
    }

    /// Returns the argument with the line of a stack's innermost frame, followed by a comma.
    pub(super) fn call_place(&mut self, stack: StackId) -> &str {
        let profile = self.profile;
        self.call_places[stack.index()].get_or_insert_with(|| {
            let frame = profile.stacks().frames(stack).next();
            frame.map_or_else(Box::default, |frame| {
                call_place_json(profile.strings().text(frame))
            })
        })
    }

    /// Returns the argument of a stack, innermost frame first, followed by a comma.
    pub(super) fn stack(&mut self, stack: StackId) -> &str {
        if stack == StackId::NONE {
            return "";
        }
        let slot = &mut self.stacks[stack.index()];
        if slot.is_none() {
            let json = stack_json(self.profile, stack);
            if self.stack_bytes + json.len() > KEPT_STACK_BYTES {
                self.passing_stack = json;
                return &self.passing_stack;
            }
            self.stack_bytes += json.len();
            *slot = Some(json);
        }
        slot.as_deref().unwrap_or_default()
    }
}

fn call_place_json(frame: &str) -> Box<str> {
    call_place(frame).map_or_else(Box::default, |place| {
        format!("\"CallFrom\":{},", json_string(&place)).into()
    })
}

fn depths(stacks: &StackTable) -> Vec<u32> {
    let mut depths = vec![0];
    for (caller, _) in stacks.nodes() {
        depths.push(depths[caller.index()] + 1);
    }
    depths
}

/// Formats the arguments of each distinct list of inputs. Storage addresses are useful only with
/// sizes, so the types of tensors in lists are included as well.
fn inputs_json(profile: &Profile) -> Vec<String> {
    let has_storages = !profile.storages().is_empty();
    let json = |words: &[u64]| {
        let inputs = InputsIter::new(words);
        let lists = (inputs.clone().next().is_some()).then(|| inputs_arguments(inputs.clone()));
        let list_types = list_types_argument(inputs.clone()).filter(|_| has_storages);
        let keywords = keyword_arguments(inputs).into_iter();
        let keywords = keywords.map(|(name, value)| format!("{}:{value}", json_string(&name)));
        lists
            .into_iter()
            .chain(list_types)
            .chain(keywords)
            .flat_map(|argument| [argument, ",".into()])
            .collect()
    };
    profile.inputs().iter().map(json).collect()
}

fn stack_json(profile: &Profile, stack: StackId) -> Box<str> {
    let frames = profile.stacks().frames(stack);
    let text: String = frames
        .flat_map(|frame| [profile.strings().text(frame), ";"])
        .collect();
    format!("\"Call stack\":{},", json_string(&text)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_call_is_the_line_of_its_frame() {
        for (frame, expected) in [
            ("a/b.py(12): f", "\"CallFrom\":\"a/b.py:12\","),
            (
                "C:\\b (1).py(3): <lambda>",
                "\"CallFrom\":\"C:\\\\b (1).py:3\",",
            ),
            ("<built-in function len>", ""),
            ("nn.Module: Linear_0", ""),
        ] {
            assert_eq!(&*call_place_json(frame), expected);
        }
    }
}
