//! The tensors that scopes return: one record each in the thread's buffer, for execution traces.
//!
//! A result is recorded while its scope is open and belongs to the innermost one. Since records lie
//! in end order, that is the first scope record after it that had begun by then.

use mindprof_model::Part;
use rustc_hash::FxHashMap;

use crate::capture::ThreadCapture;
use crate::clock::ticks;
use crate::gate::Gate;
use crate::inputs::InputsRewriter;
use crate::local;
use crate::name::Site;
use crate::raw::Record;

/// The name under which a thread remembers its last list of results.
static RESULT: Site = Site::operator("[result]");

/// Returns whether some window wants the results of scopes. Costs one relaxed load.
#[inline]
pub fn wants_results() -> bool {
    Gate::load().wants_results()
}

/// Records a tensor that the innermost open scope returns. The closure writes the tensor; its
/// storage lies at `address`.
#[cold]
pub fn result(address: u64, tensor: impl FnOnce(&mut InputsRewriter<'_>)) {
    let gate = Gate::load();
    if !gate.is_open() || !gate.wants_results() {
        return;
    }
    let list = local::intern_inputs(gate, RESULT.name(), tensor);
    if list != Record::NO_ROOM {
        let number = list & !(Record::HAS_STORAGES | Record::NEW_STORAGES);
        let record = Record::other(Record::RESULT, ticks(), address, 0, number);
        local::push_side_record(gate, record);
    }
}

/// Adds the results of a thread's scopes to the part. `order` lists the scopes' records in the
/// order of the part's events, the first of which is event number `first`.
pub(crate) fn add_results(thread: &ThreadCapture, order: &[u32], first: usize, part: &mut Part) {
    let places = order.iter().zip(first..);
    let places: FxHashMap<u32, usize> = places.map(|(&index, place)| (index, place)).collect();
    let mut waiting: Vec<&Record> = Vec::new();
    for (index, record) in (0..).zip(thread.records()) {
        if record.name == Record::RESULT {
            waiting.push(record);
        }
        if !record.is_scope() {
            continue;
        }
        let begins_before = |result: &&Record| result.start > record.start;
        let own = waiting.iter().position(begins_before);
        let own = waiting.split_off(own.unwrap_or(waiting.len()));
        if let (Some(&place), false) = (places.get(&index), own.is_empty()) {
            let words = own.iter().flat_map(|result| thread.inputs_words(result));
            let words: Vec<u64> = words.copied().collect();
            let addresses: Vec<u64> = own.iter().map(|result| result.end).collect();
            let tensors = part.inputs.intern(&words);
            part.set_results(place, tensors, &addresses);
        }
    }
}
