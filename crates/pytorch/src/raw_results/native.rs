//! Raw events read directly from torch's memory.
//!
//! [`NativeLayout::learn`] finds out how results lie in memory, on a small result whose events a
//! slower source can describe too, and compares the two. [`NativeEvents`] then reads other results
//! by that layout.

use mindprof_model::{DeviceKind, InputsEncoder, Part, StackId, StringId, StringTable};

use super::arguments::arguments;
use super::source::{RawEvent, RawEvents, ReferenceEvents};
use crate::error::{Error, Result};
use crate::kineto::{KinetoEvents, KinetoLayout, ResultInMemory};
use crate::kineto_facts::KinetoFacts;
use crate::kineto_inputs::KinetoValues;

/// The layout of results of the torch in this process.
///
/// It is learnt once per process and valid for every later result, because the layout depends only
/// on the build of libtorch.
#[derive(Clone, Copy)]
pub struct NativeLayout {
    results: KinetoLayout,
    /// `None` if inputs are not read from memory.
    values: Option<KinetoValues>,
    /// The activity types of ranges that users name, on the CPU and on devices.
    annotations: [u8; 2],
}

impl NativeLayout {
    /// Learns the layout, except for inputs, from a result that `reference` describes too. The
    /// result must contain a user annotation.
    ///
    /// # Errors
    /// If the result does not look as expected or differs from what `reference` says, or if an
    /// accessor of `reference` fails.
    pub fn learn<S: ReferenceEvents>(
        reference: &S,
        result: ResultInMemory<'_>,
    ) -> std::result::Result<Self, S::Error> {
        let results = KinetoLayout::find(result, reference.len() as u64)?;
        Self::learn_with(results, reference, result)
    }

    /// As [`NativeLayout::learn`], with a known layout of results.
    pub(super) fn learn_with<S: ReferenceEvents>(
        results: KinetoLayout,
        reference: &S,
        result: ResultInMemory<'_>,
    ) -> std::result::Result<Self, S::Error> {
        let layout = Self {
            results,
            values: None,
            annotations: [u8::MAX; 2],
        };
        let mut native = NativeEvents::open(&layout, result, no_inputs)?;
        if native.len() != reference.len() {
            return Err(different("number", 0).into());
        }
        for position in 0..reference.len() {
            if reference.event(position)?.is_annotation {
                let on_cpu = native.facts.event(position).activity;
                // Kineto numbers the two activity types consecutively.
                native.layout.annotations = [on_cpu, on_cpu.wrapping_add(1)];
            }
        }
        let mut strings = StringTable::new();
        if native.names(&mut strings)? != reference.names(&mut strings)? {
            return Err(different("names", 0).into());
        }
        for position in 0..reference.len() {
            compare(&native, reference, position)?;
        }
        Ok(native.layout)
    }

    /// Learns the layout of inputs too. The result must contain scalars and lists of integers as
    /// inputs, and `reference` must tell their values.
    ///
    /// # Errors
    /// As for [`NativeLayout::learn`].
    pub fn with_inputs<S: ReferenceEvents>(
        self,
        reference: &S,
        result: ResultInMemory<'_>,
    ) -> std::result::Result<Self, S::Error> {
        let native = NativeEvents::open(&self, result, no_inputs)?;
        let values = KinetoValues::learn(&native.events, &reference.known_values()?)?;
        compare_inputs(&native, &values, reference)?;
        Ok(Self {
            values: Some(values),
            ..self
        })
    }
}

/// The fallback for inputs while a layout is being learnt, when nobody asks for inputs.
#[expect(clippy::unnecessary_wraps, reason = "a fallback for inputs may fail")]
fn no_inputs(_: usize, _: &mut InputsEncoder) -> Result<()> {
    Ok(())
}

fn compare<F, S: RawEvents>(
    native: &NativeEvents<'_, F>,
    reference: &S,
    position: usize,
) -> std::result::Result<(), S::Error> {
    let expected = RawEvent {
        // Memory does not tell it; the name does where it matters.
        activity: None,
        ..reference.event(position)?
    };
    if native.raw_event(position)? != expected {
        return Err(different("facts", position).into());
    }
    if native.events.bytes(position) != reference.bytes(position)? {
        return Err(different("bytes", position).into());
    }
    // Equal stacks of one part have the same id.
    let mut part = Part::new();
    if native.read_stack(position, &mut part) != reference.stack(position, &mut part)? {
        return Err(different("stacks", position).into());
    }
    Ok(())
}

fn compare_inputs<F, S: RawEvents>(
    native: &NativeEvents<'_, F>,
    values: &KinetoValues,
    reference: &S,
) -> std::result::Result<(), S::Error> {
    let (mut found, mut expected) = (InputsEncoder::default(), InputsEncoder::default());
    for position in 0..reference.len() {
        found.restart();
        expected.restart();
        if native.events.has_keywords(position) {
            continue;
        }
        native.events.inputs(position).write(values, &mut found);
        reference.inputs(position, &mut expected)?;
        if found.words() != expected.words() {
            return Err(different("inputs", position).into());
        }
    }
    Ok(())
}

fn different(what: &'static str, position: usize) -> Error {
    Error::Different { what, position }
}

/// The events of one result, read from torch's memory.
///
/// `F` encodes the inputs of an event that memory does not tell: keyword arguments, or all inputs
/// if the layout of values is unknown.
pub struct NativeEvents<'a, F> {
    events: KinetoEvents<'a>,
    facts: KinetoFacts,
    layout: NativeLayout,
    other_inputs: F,
}

impl<'a, F> NativeEvents<'a, F> {
    /// Opens a result.
    ///
    /// # Errors
    /// If the memory does not look like a result with this start time.
    pub fn open(
        layout: &NativeLayout,
        result: ResultInMemory<'a>,
        other_inputs: F,
    ) -> Result<Self> {
        let events = layout.results.open(result)?;
        Ok(Self {
            facts: KinetoFacts::read(&events),
            events,
            layout: *layout,
            other_inputs,
        })
    }

    fn raw_event(&self, position: usize) -> Result<RawEvent> {
        let event = self.facts.event(position);
        let device = DeviceKind::from_number(event.device.into());
        Ok(RawEvent {
            start_ns: event.start_ns.into(),
            end_ns: event.end_ns.into(),
            start_thread: event.start_thread,
            end_thread: event.end_thread,
            forward_thread: event.forward_thread,
            scope: event.scope.into(),
            sequence: event.sequence.into(),
            device: device.ok_or_else(|| different("devices", position))?,
            device_index: event.device_index.into(),
            resource: event.resource.into(),
            correlation: event.correlation.into(),
            linked: event.linked.into(),
            external: event.external.map(i128::from),
            is_async: event.is_async,
            is_hidden: event.is_hidden,
            is_annotation: self.layout.annotations.contains(&event.activity),
            is_python: event.is_python,
            activity: None,
        })
    }

    fn read_stack(&self, position: usize, part: &mut Part) -> StackId {
        let mut stack = StackId::NONE;
        for frame in self.events.stack(position).rev() {
            let frame = part.strings.intern(&String::from_utf8_lossy(frame));
            stack = part.stacks.push(stack, frame);
        }
        stack
    }
}

impl<E, F> RawEvents for NativeEvents<'_, F>
where
    E: From<Error>,
    F: Fn(usize, &mut InputsEncoder) -> std::result::Result<(), E>,
{
    type Error = E;

    fn len(&self) -> usize {
        self.events.len()
    }

    fn names(&self, strings: &mut StringTable) -> std::result::Result<Vec<StringId>, E> {
        Ok(self.facts.names(strings))
    }

    fn event(&self, position: usize) -> std::result::Result<RawEvent, E> {
        Ok(self.raw_event(position)?)
    }

    fn bytes(&self, position: usize) -> std::result::Result<i64, E> {
        Ok(self.events.bytes(position))
    }

    fn stack(&self, position: usize, part: &mut Part) -> std::result::Result<StackId, E> {
        Ok(self.read_stack(position, part))
    }

    fn arguments(&self, position: usize) -> std::result::Result<Option<String>, E> {
        let read = |text: &[u8]| std::str::from_utf8(text).ok().and_then(arguments);
        Ok(self.events.with_metadata(position, read).flatten())
    }

    fn inputs(&self, position: usize, inputs: &mut InputsEncoder) -> std::result::Result<(), E> {
        match &self.layout.values {
            Some(values) if !self.events.has_keywords(position) => {
                self.events.inputs(position).write(values, inputs);
                Ok(())
            }
            _ => (self.other_inputs)(position, inputs),
        }
    }
}
