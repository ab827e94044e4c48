//! The arguments of host events: what a profile holds of them, and what it cannot hold as it is.

use mindprof_analyze::module_number;
use mindprof_model::{Category, Event, Flags, InputsId, Links, StackId};

use super::rest::keys_of;
use super::{Collector, python};
use crate::chrome::event::{RawArguments, Texts};
use crate::chrome::inputs::RawInputs;
use crate::chrome::integer::{integer_of, number_of};
use crate::chrome::keys::{ArgumentKey, ArgumentKeys};
use crate::scan::Fragment;

impl Collector {
    /// Takes the arguments of a host's scope. Returns those that the profile cannot hold as they
    /// are.
    pub(super) fn add_arguments(
        &mut self,
        kept: &mut Event,
        arguments: &RawArguments<'_>,
        texts: &Texts,
    ) -> ArgumentKeys {
        let finished = arguments.value(ArgumentKey::Finished);
        let asynchronous = arguments.value(ArgumentKey::Asynchronous);
        let mut told = ArgumentKeys::SIMPLE;
        if finished == b"false" {
            kept.flags = kept.flags.union(Flags::UNFINISHED);
            told.add(ArgumentKey::Finished);
        }
        if asynchronous == b"true" {
            kept.flags = kept.flags.union(Flags::ASYNC);
            told.add(ArgumentKey::Asynchronous);
        }
        kept.set_sequence(integer_of(arguments.value(ArgumentKey::Sequence)));
        if kept.sequence().is_some() {
            told.add(ArgumentKey::Sequence);
            told.add(ArgumentKey::ForwardThread);
        }
        if arguments.value(ArgumentKey::RecordFunction) == b"0" {
            told.add(ArgumentKey::RecordFunction);
        }
        kept.inputs = self.inputs(arguments, texts);
        if kept.inputs != InputsId::NONE {
            told.add_all(ArgumentKeys::INPUTS);
        }
        kept.stack = self.stack(arguments.text(ArgumentKey::CallStack), texts);
        if kept.stack != StackId::NONE {
            told.add(ArgumentKey::CallStack);
        }
        arguments.said.within(keys_of(kept.category)).without(told)
    }

    /// Takes the arguments of a call of a Python function, as [`Self::add_arguments`].
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
        self.python.add(call, kept, &mut self.profile.stacks);
        let mut left = ArgumentKeys::NONE;
        if arguments.said.contains(ArgumentKey::CallStack) && !has_stack {
            left.add(ArgumentKey::CallStack);
        }
        if arguments.said.contains(ArgumentKey::PythonParent) && call.caller == 0 {
            left.add(ArgumentKey::PythonParent);
        }
        let strings = &self.profile.strings;
        if arguments.said.contains(ArgumentKey::PythonModule)
            && integer_of(arguments.value(ArgumentKey::PythonModule))
                != module_number(strings.text(kept.name))
        {
            left.add(ArgumentKey::PythonModule);
        }
        let call_from = arguments.text(ArgumentKey::CallFrom);
        if call_from != Fragment::NONE {
            let frame = self.profile.stacks.frames(kept.stack).next();
            let meanings = &mut self.meanings;
            let is_told = has_line
                && frame.is_some_and(|frame| meanings.is_line_of(call_from, texts, frame, strings));
            if !is_told {
                left.add(ArgumentKey::CallFrom);
            }
        }
        left
    }

    /// Understands each distinct text of inputs once.
    fn inputs(&mut self, arguments: &RawArguments<'_>, texts: &Texts) -> InputsId {
        let lists = [
            ArgumentKey::Dims,
            ArgumentKey::Types,
            ArgumentKey::Strides,
            ArgumentKey::Values,
            ArgumentKey::ListTypes,
        ]
        .map(|key| arguments.text(key));
        if lists[0] == Fragment::NONE {
            return InputsId::NONE;
        }
        if let Some(&id) = self.inputs.get(&lists) {
            return id;
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
        let id = self.profile.inputs.intern(self.encoder.words());
        self.inputs.insert(lists, id);
        id
    }

    pub(super) fn stack(&mut self, fragment: Fragment, texts: &Texts) -> StackId {
        if fragment == Fragment::NONE {
            return StackId::NONE;
        }
        self.meanings.stack(fragment, texts, &mut self.profile)
    }
}

/// Returns the numbers that tie an event to others which its links cannot hold as they are.
pub(super) fn unlinked(
    arguments: &RawArguments<'_>,
    links: Links,
    category: Category,
) -> ArgumentKeys {
    let mut left = ArgumentKeys::NONE;
    if links.correlation == 0 {
        left.add(ArgumentKey::Correlation);
    }
    // Scopes get a number anew where theirs is zero.
    let is_scope = matches!(category, Category::Operator | Category::Annotation);
    if links.external == 0 && !(is_scope && arguments.value(ArgumentKey::External) == b"0") {
        left.add(ArgumentKey::External);
    }
    arguments.said.within(left)
}
