//! The arguments of CPU events: those a profile has a place for, and those kept as text.

use mindprof_model::module_number;
use mindprof_model::{
    Category, Event, Flags, ForwardThread, InputsId, InputsIter, Links, ScopeKind, StackId,
    ThreadId,
};

use super::passthrough::keys_of;
use super::vocabulary::Role;
use super::{Collector, python};
use crate::chrome::event::{RawArguments, Texts};
use crate::chrome::inputs::RawInputs;
use crate::chrome::integer::{integer_of, number_of};
use crate::chrome::keys::{ArgumentKey, ArgumentKeys};
use crate::scan::Fragment;

/// The lists that describe inputs.
const INPUT_LISTS: [ArgumentKey; 5] = [
    ArgumentKey::Dims,
    ArgumentKey::Types,
    ArgumentKey::Strides,
    ArgumentKey::Values,
    ArgumentKey::ListTypes,
];

impl Collector {
    /// Adds the arguments of an event, some of which may have been added before. Returns those that
    /// the profile cannot reproduce.
    pub(super) fn add_arguments(
        &mut self,
        kept: &mut Event,
        links: &mut Links,
        role: Role,
        (arguments, texts): (&RawArguments<'_>, &Texts),
    ) -> ArgumentKeys {
        let said = arguments.said;
        if said.contains(ArgumentKey::External) {
            links.external = number_of(arguments.value(ArgumentKey::External));
        }
        if said.contains(ArgumentKey::Correlation) {
            links.correlation = number_of(arguments.value(ArgumentKey::Correlation));
        }
        let mut left = said.without(keys_of(kept.category));
        if arguments.value(ArgumentKey::Finished) == b"false" {
            kept.flags = kept.flags.union(Flags::UNFINISHED);
            left.remove(ArgumentKey::Finished);
        }
        if matches!(kept.category, Category::Operator | Category::Annotation) {
            let forward_thread = arguments.value(ArgumentKey::ForwardThread);
            if said.contains(ArgumentKey::ForwardThread) {
                let forward: u32 = number_of(forward_thread);
                let number = forward.checked_sub(1).map(ThreadId::from_raw);
                // By number until all threads are known.
                links.set_forward_thread(number.map_or(ForwardThread::Unknown, ForwardThread::At));
            }
            if number_of::<u64>(forward_thread) > 0 && role != Role::BackwardWrapper {
                kept.scope = ScopeKind::Backward;
            }
            left.add_all(self.add_scope_arguments(kept, arguments, texts));
        }
        left.add_all(unlinked(arguments, *links, kept.category));
        left
    }

    /// Adds the arguments that only CPU scopes have, like [`Self::add_arguments`].
    fn add_scope_arguments(
        &mut self,
        kept: &mut Event,
        arguments: &RawArguments<'_>,
        texts: &Texts,
    ) -> ArgumentKeys {
        let said = arguments.said;
        let mut told = ArgumentKeys::SIMPLE;
        if arguments.value(ArgumentKey::Finished) == b"false" {
            told.add(ArgumentKey::Finished);
        }
        if arguments.value(ArgumentKey::Asynchronous) == b"true" {
            kept.flags = kept.flags.union(Flags::ASYNC);
            told.add(ArgumentKey::Asynchronous);
        }
        if said.contains(ArgumentKey::Sequence) {
            kept.set_sequence(integer_of(arguments.value(ArgumentKey::Sequence)));
        }
        if kept.sequence().is_some() {
            told.add(ArgumentKey::Sequence);
            told.add(ArgumentKey::ForwardThread);
        }
        if arguments.value(ArgumentKey::RecordFunction) == b"0" {
            told.add(ArgumentKey::RecordFunction);
        }
        if said.contains(ArgumentKey::Dims) {
            let (inputs, untold) = self.inputs(arguments, texts);
            kept.inputs = inputs;
            if inputs != InputsId::NONE {
                told.add_all(ArgumentKeys::INPUTS.without(untold));
            }
        }
        if said.contains(ArgumentKey::CallStack) {
            kept.stack = self.stack(arguments.text(ArgumentKey::CallStack), texts);
            if kept.stack != StackId::NONE {
                told.add(ArgumentKey::CallStack);
            }
        }
        said.within(keys_of(kept.category)).without(told)
    }

    /// Adds the arguments of a Python call, like [`Self::add_arguments`].
    pub(super) fn add_call(
        &mut self,
        kept: &mut Event,
        arguments: &RawArguments<'_>,
        texts: &Texts,
    ) -> ArgumentKeys {
        kept.stack = self.stack(arguments.text(ArgumentKey::CallStack), texts);
        let has_stack = kept.stack != StackId::NONE;
        let call = python::Call {
            event: self.events.len() as u32,
            number: number_of(arguments.value(ArgumentKey::Python)),
            caller: number_of(arguments.value(ArgumentKey::PythonParent)),
        };
        let has_line = has_stack && self.python.is_line(call, kept.stack);
        self.python.add(call, kept, &mut self.part.stacks);
        let mut left = ArgumentKeys::NONE;
        if arguments.said.contains(ArgumentKey::CallStack) && !has_stack {
            left.add(ArgumentKey::CallStack);
        }
        if arguments.said.contains(ArgumentKey::PythonParent) && call.caller == 0 {
            left.add(ArgumentKey::PythonParent);
        }
        let strings = &self.part.strings;
        if arguments.said.contains(ArgumentKey::PythonModule)
            && integer_of(arguments.value(ArgumentKey::PythonModule))
                != module_number(strings.text(kept.name))
        {
            left.add(ArgumentKey::PythonModule);
        }
        let call_from = arguments.text(ArgumentKey::CallFrom);
        if call_from != Fragment::NONE {
            let frame = self.part.stacks.frames(kept.stack).next();
            let vocabulary = &mut self.vocabulary;
            let is_told = has_line
                && frame
                    .is_some_and(|frame| vocabulary.is_line_of(call_from, texts, frame, strings));
            if !is_told {
                left.add(ArgumentKey::CallFrom);
            }
        }
        left
    }

    /// Interprets each distinct set of input lists once. Also returns the lists that cannot be
    /// reproduced from the result, such as those with unknown types.
    fn inputs(&mut self, arguments: &RawArguments<'_>, texts: &Texts) -> (InputsId, ArgumentKeys) {
        let lists = INPUT_LISTS.map(|key| arguments.text(key));
        if let Some(&known) = self.inputs.get(&lists) {
            return known;
        }
        let [dims, types, strides, values, list_types] = lists.map(|list| texts.text(list));
        let raw = RawInputs {
            dims,
            types,
            strides,
            values,
            list_types,
        };
        self.encoder.restart();
        raw.encode(&mut self.encoder);
        let told = raw.are_told(InputsIter::new(self.encoder.words()));
        let mut untold = ArgumentKeys::NONE;
        for (key, is_told) in INPUT_LISTS.into_iter().zip(told) {
            if !is_told {
                untold.add(key);
            }
        }
        let id = self.part.inputs.intern(self.encoder.words());
        self.inputs.insert(lists, (id, untold));
        (id, untold)
    }

    pub(super) fn stack(&mut self, fragment: Fragment, texts: &Texts) -> StackId {
        if fragment == Fragment::NONE {
            return StackId::NONE;
        }
        self.vocabulary.stack(fragment, texts, &mut self.part)
    }
}

/// Returns the correlation arguments that the links of an event cannot reproduce.
fn unlinked(arguments: &RawArguments<'_>, links: Links, category: Category) -> ArgumentKeys {
    let mut left = ArgumentKeys::NONE;
    if links.correlation == 0 {
        left.add(ArgumentKey::Correlation);
    }
    // Scopes with a zero get a new number when they are written.
    let is_scope = matches!(category, Category::Operator | Category::Annotation);
    if links.external == 0 && !(is_scope && arguments.value(ArgumentKey::External) == b"0") {
        left.add(ArgumentKey::External);
    }
    arguments.said.within(left)
}
