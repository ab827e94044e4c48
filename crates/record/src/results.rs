//! The tensors that scopes return: one record each in the thread's buffer, for execution traces.
//!
//! A result is written while its scope is open. It belongs to the innermost one, which is the first
//! scope after it among the thread's records that had begun by then.

use mindprof_model::Part;
use rustc_hash::FxHashMap;

use crate::capture::ThreadCapture;
use crate::clock::ticks;
use crate::gate::Gate;
use crate::inputs::InputsRewriter;
use crate::local;
use crate::name::Site;
use crate::raw::Record;

/// Stands for results among the names whose last lists a thread remembers.
static RESULT: Site = Site::operator("[result]");

/// Returns whether some window wants the results of scopes: one relaxed load.
#[inline]
pub fn wants_results() -> bool {
    Gate::load().wants_results()
}

/// Records a tensor, written by the closure, that the innermost open scope returns. Its storage
/// lies at `address`.
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

/// Adds what the scopes of a thread returned; `order` names the scopes' records in the order of the
/// part's events, of which the first is number `first`.
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
