//! Finds the offsets of fields in torch's objects by searching sampled scopes for known values.
//!
//! The caller runs a few operators between [`Probe::begin`] and [`Probe::finish`] and passes their
//! known values ([`Facts`]). A field is accepted if exactly one offset holds the expected value in
//! every sample; otherwise probing fails and nothing is attached. Two are optional: without the
//! layout of complex numbers, the values of complex inputs are not recorded, and without the handle,
//! traces cannot be joined with execution traces.
//!
//! ```text
//! record_function("mindprof::probe")           a range: no sequence number
//! c = add(a, b, alpha=3)                       two tensors and an integer, sequence number of c
//! d = add(a, b, alpha=0.5)                     a floating-point number, sequence number of d
//! cat([a, b], 1)                               a list of tensors
//! sum(a, [0, 1], True)                         a list of integers, a truth value
//! index(a, [i, i])                             a list of optional tensors, of another type
//! full([1], 3 + 4j)                            a complex number (optional)
//! no_grad: neg(a)                              no sequence number
//! grad([c, d], [a])                            AddBackward0 twice, sequence numbers of c and d
//! ```

#![expect(unsafe_code, reason = "torch calls the probe with raw pointers")]

use std::cell::RefCell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::callback_lock;
use crate::error::{Error, Result};
use crate::layout::{ComplexNumbers, Layout, RECORD_BYTES, Tags, record_scope};
use crate::memory;
use crate::observer::Observer;
use crate::samples::{Sample, SampledList, SampledValue};
use crate::symbols::{Callback, Hears, RecordFunction, Symbols};
use crate::tensor::Tensors;
use crate::tensor_samples::TensorSamples;

/// The name of the probe's range.
pub(crate) const RANGE: &str = "mindprof::probe";

/// The complex number that an operator of the probe takes.
const COMPLEX: (f64, f64) = (3.0, 4.0);

/// A bound on memory; the probe's operators open fewer scopes.
const MOST_SAMPLES: usize = 256;

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

struct Running {
    symbols: Symbols,
    samples: Vec<Sample>,
}

/// Known facts about the operators that the caller ran. The probe looks for these values in torch's
/// objects.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The addresses of the tensors `a` and `b`.
    pub tensors: [u64; 2],
    /// The sequence numbers of the nodes of `c` and `d`.
    pub sequences: [u64; 2],
    /// Tensors of several kinds.
    pub samples: TensorSamples<'a>,
}

/// A probe that samples the scopes of the calling thread. [`Probe::finish`] turns the samples into
/// an observer.
pub struct Probe {
    symbols: Symbols,
    handle: Option<u64>,
}

impl Probe {
    /// Begins to sample the scopes of the calling thread.
    pub fn begin(symbols: Symbols) -> Self {
        let samples = Vec::new();
        RUNNING.set(Some(Running { symbols, samples }));
        let callback = Callback {
            needs_ids: true,
            ..Callback::new(take_sample, ignore_end, Hears::everything())
        };
        // SAFETY: the callbacks are static functions and never unwind.
        let handle = unsafe { (symbols.add_thread_local_callback)(callback) };
        Self {
            symbols,
            handle: Some(handle),
        }
    }

    /// Stops sampling and creates the observer. Must be called on the thread that called
    /// [`Probe::begin`], which holds Python's lock, so that no fork comes in between.
    ///
    /// # Errors
    /// If a field was not found or is ambiguous.
    pub fn finish(mut self, facts: &Facts<'_>) -> Result<&'static Observer> {
        self.stop();
        let running = RUNNING.take();
        let samples = running.map(|running| running.samples).unwrap_or_default();
        let layout = find_layout(&samples, facts, self.symbols.thread_number())?;
        let symbols = self.symbols.tensor;
        let tensors = Tensors {
            symbols,
            layout: facts.samples.find_layout(&symbols),
        };
        callback_lock::find_for_forks(&self.symbols);
        Ok(Observer::build(self.symbols, layout, tensors))
    }

    fn stop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.symbols.remove(handle);
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Observer {
    /// Checks that torch reports an allocation of `bytes` bytes, which `allocate` makes.
    ///
    /// # Errors
    /// If it does not.
    pub fn check_memory(&self, bytes: i64, allocate: impl FnOnce()) -> Result<()> {
        memory::check(&self.symbols, bytes, allocate)
    }
}

unsafe extern "C" fn take_sample(
    context: *mut *mut c_void,
    record: *const RecordFunction,
) -> *mut *mut c_void {
    let take = || {
        RUNNING.with_borrow_mut(|running| {
            let running = running.as_mut()?;
            if running.samples.len() < MOST_SAMPLES {
                // SAFETY: torch calls with the record of a beginning scope, which it keeps alive
                // until the callback returns.
                let sample = unsafe { Sample::take(record, &running.symbols) };
                running.samples.extend(sample);
            }
            Some(())
        })
    };
    let _ = catch_unwind(AssertUnwindSafe(take));
    // SAFETY: `context` is the return slot of torch's caller, valid for one pointer. There is no
    // context.
    unsafe { context.write(ptr::null_mut()) };
    context
}

unsafe extern "C" fn ignore_end(_record: *const RecordFunction, _context: *mut c_void) {}

/// The samples of the operators whose facts are known.
struct Known<'a> {
    range: &'a Sample,
    adds: [&'a Sample; 2],
    cat: &'a Sample,
    sum: &'a Sample,
    index: &'a Sample,
    neg: &'a Sample,
    backward: [&'a Sample; 2],
}

fn find_layout(samples: &[Sample], facts: &Facts<'_>, thread: u64) -> Result<Layout> {
    let known = Known::among(samples)?;
    let sequence = known.sequence(facts)?;
    let (inputs, list) = known.inputs(facts)?;
    let [one, two] = known
        .adds
        .map(|add| add.inputs_at(inputs).unwrap_or_default());
    let sum = known.sum.inputs_at(inputs).unwrap_or_default();
    let cat = known.cat.inputs_at(inputs).unwrap_or_default();
    let mut tags = find_tags(one, two, sum, cat, &list)?;
    tags.complex = find_complex(samples, inputs, &tags);
    known.check_other_lists(sum, inputs, &list, &tags)?;
    let forward_thread = known.forward_thread(sequence, thread)?;
    Ok(Layout {
        scope: known.scope()?,
        sequence,
        forward_thread,
        handle: find_handle(samples, forward_thread),
        inputs,
        tags,
        list_values: list.values_offset,
        list_type: list.type_offset,
        tensor_type: list.element_type,
    })
}

impl<'a> Known<'a> {
    fn among(samples: &'a [Sample]) -> Result<Self> {
        let named = |name, nth| {
            let mut found = samples.iter().filter(|sample| sample.name == name);
            found
                .nth(nth)
                .ok_or_else(|| wrong(&format!("no scope {name} was seen")))
        };
        Ok(Self {
            range: named(RANGE, 0)?,
            adds: [named("aten::add", 0)?, named("aten::add", 1)?],
            cat: named("aten::cat", 0)?,
            sum: named("aten::sum", 0)?,
            index: named("aten::index", 0)?,
            neg: named("aten::neg", 0)?,
            backward: [named("AddBackward0", 0)?, named("AddBackward0", 1)?],
        })
    }

    fn sequence(&self, facts: &Facts<'_>) -> Result<usize> {
        let [c, d] = facts.sequences;
        only("the sequence number", words(), |offset| {
            let [one, two] = self.backward.map(|node| node.word(offset));
            self.adds.map(|add| add.word(offset)) == facts.sequences
                && ([one, two] == [c, d] || [one, two] == [d, c])
                && [self.neg, self.range].map(|sample| sample.word(offset)) == [u64::MAX; 2]
        })
    }

    fn forward_thread(&self, sequence: usize, thread: u64) -> Result<usize> {
        only("the forward thread", words(), |offset| {
            let forward = [self.adds[0], self.adds[1], self.neg, self.range];
            offset != sequence
                && self.backward.map(|node| node.word(offset)) == [thread; 2]
                && forward.map(|sample| sample.word(offset)) == [0; 4]
        })
    }

    fn scope(&self) -> Result<usize> {
        only("the kind of scope", 0..RECORD_BYTES, |offset| {
            let operators = [self.adds[0], self.adds[1], self.cat, self.sum, self.neg];
            self.range.byte(offset) == record_scope::USER_SCOPE
                && self.backward.map(|node| node.byte(offset))
                    == [record_scope::BACKWARD_FUNCTION; 2]
                && operators.map(|sample| sample.byte(offset)) == [record_scope::FUNCTION; 5]
        })
    }

    /// Finds the inputs, and the layout of a list.
    fn inputs(&self, facts: &Facts<'_>) -> Result<(usize, SampledList)> {
        let [a, b] = facts.tensors;
        let begins_with = |values: &[SampledValue], tensors: &[u64]| {
            let payloads = values.iter().map(|value| value.payload);
            values.len() > tensors.len() && payloads.zip(tensors).all(|(one, other)| one == *other)
        };
        let inputs = only("the inputs", words(), |offset| {
            let is_there = |sample: &Sample, tensors: &[u64]| {
                let values = sample.inputs_at(offset);
                values.is_some_and(|values| begins_with(values, tensors))
            };
            self.adds.iter().all(|add| is_there(add, &[a, b]))
                && is_there(self.sum, &[a])
                && is_there(self.index, &[a])
        })?;
        let list = self.cat.inputs_at(inputs).and_then(|values| values.first());
        let lists = list.map(|value| value.lists.as_slice()).unwrap_or_default();
        let is_it = |list: &&SampledList| list.values.map(|(payload, _)| payload) == [a, b];
        let mut lists = lists.iter().filter(is_it);
        match (lists.next(), lists.next()) {
            (Some(list), None) if list.element_type != 0 => Ok((inputs, *list)),
            _ => Err(wrong("the values of a list were not found")),
        }
    }

    /// Checks that lists of integers and of optional tensors differ from lists of tensors.
    fn check_other_lists(
        &self,
        sum: &'a [SampledValue],
        inputs: usize,
        list: &SampledList,
        tags: &Tags,
    ) -> Result<()> {
        let at_same_place = |value: Option<&'a SampledValue>| -> Option<&'a SampledList> {
            let value = value.filter(|value| value.tag == tags.list)?;
            let mut lists = value.lists.iter();
            lists.find(|other| other.values_offset == list.values_offset)
        };
        let dims = at_same_place(sum.get(1));
        let is_dims = |dims: &SampledList| {
            dims.values == [(0, tags.int), (1, tags.int)] && dims.element_type != list.element_type
        };
        let index = self
            .index
            .inputs_at(inputs)
            .and_then(|values| values.get(1));
        let is_optional = |list_of_optional: &SampledList| {
            let tags_are_right = list_of_optional.values.map(|(_, tag)| tag) == [tags.tensor; 2];
            tags_are_right && list_of_optional.element_type != list.element_type
        };
        if dims.is_some_and(is_dims) && at_same_place(index).is_some_and(is_optional) {
            return Ok(());
        }
        Err(wrong(
            "lists of integers or of optional tensors were not found",
        ))
    }
}

/// Finds the tags of known values.
fn find_tags(
    with_int: &[SampledValue],
    with_double: &[SampledValue],
    sum: &[SampledValue],
    cat: &[SampledValue],
    list: &SampledList,
) -> Result<Tags> {
    let ([a, b, int], [_, _, double], [_, dims, bool, none]) = (with_int, with_double, sum) else {
        return Err(wrong("operators have unexpected arguments"));
    };
    let tags = Tags {
        tensor: a.tag,
        int: int.tag,
        double: double.tag,
        bool: bool.tag,
        list: dims.tag,
        complex: None,
    };
    let mut all = [
        tags.tensor,
        tags.int,
        tags.double,
        tags.bool,
        tags.list,
        none.tag,
    ];
    all.sort_unstable();
    let is_right = all.windows(2).all(|pair| pair[0] != pair[1])
        && b.tag == tags.tensor
        && int.payload == 3
        && double.payload == 0.5_f64.to_bits()
        && bool.payload as u8 == 1
        && cat.first().map(|value| value.tag) == Some(tags.list)
        && list.values.map(|(_, tag)| tag) == [tags.tensor; 2];
    if is_right {
        Ok(tags)
    } else {
        Err(wrong("the kinds of values were not found"))
    }
}

/// Finds the handle, which follows the forward thread and increases from scope to scope.
fn find_handle(samples: &[Sample], forward_thread: usize) -> Option<usize> {
    let handle = forward_thread + 8;
    let increases = |pair: &[Sample]| pair[0].word(handle) < pair[1].word(handle);
    let is_it = handle < RECORD_BYTES
        && samples.len() > 1
        && samples[0].word(handle) != 0
        && samples.windows(2).all(increases);
    is_it.then_some(handle)
}

/// Finds the layout of complex numbers, from the one that `full` took.
fn find_complex(samples: &[Sample], inputs: usize, tags: &Tags) -> Option<ComplexNumbers> {
    let full = samples.iter().find(|sample| sample.name == "aten::full")?;
    let value = full.inputs_at(inputs)?.get(1)?;
    let others = [tags.tensor, tags.int, tags.double, tags.bool, tags.list];
    if others.contains(&value.tag) {
        return None;
    }
    ComplexNumbers::find(value.tag, value.words?, COMPLEX)
}

/// Returns the offsets of all words.
fn words() -> impl Iterator<Item = usize> {
    (0..RECORD_BYTES).step_by(8)
}

/// Returns the only offset at which something holds.
fn only(
    what: &str,
    offsets: impl Iterator<Item = usize>,
    holds: impl Fn(usize) -> bool,
) -> Result<usize> {
    let found: Vec<usize> = offsets.filter(|&offset| holds(offset)).collect();
    match found.as_slice() {
        &[offset] => Ok(offset),
        [] => Err(wrong(&format!("{what} was not found"))),
        _ => Err(wrong(&format!("{what} is ambiguous: offsets {found:?}"))),
    }
}

fn wrong(what: &str) -> Error {
    Error::Layout(what.to_owned())
}
