//! Runs computations at the same time. Conclusions about large profiles consist of parts that do not
//! depend on each other.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, ScopedJoinHandle, available_parallelism, scope};

/// The largest number of threads: memory is not faster for more.
const MOST_THREADS: usize = 4;

/// Returns the results of both functions. The second one runs on a thread of its own if the system
/// has one to spare.
pub(crate) fn beside<A, B: Send>(
    first: impl FnOnce() -> A,
    second: impl Fn() -> B + Sync,
) -> (A, B) {
    scope(|scope| match named().spawn_scoped(scope, &second) {
        Ok(thread) => {
            let first = first();
            (first, result(thread))
        }
        Err(_) => (first(), second()),
    })
}

/// Returns the results of a function for each item, in order.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut results = Vec::new();
        loop {
            // Only the number itself is shared, so no other memory has to be ordered.
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return results;
            };
            results.push((index, of(item)));
        }
    };
    let processors = available_parallelism().map_or(1, NonZeroUsize::get);
    let others = processors.min(MOST_THREADS).min(items.len());
    let mut results = scope(|scope| {
        let threads = (1..others).filter_map(|_| named().spawn_scoped(scope, work).ok());
        let threads: Vec<_> = threads.collect();
        let mut results = work();
        results.extend(threads.into_iter().flat_map(result));
        results
    });
    results.sort_unstable_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn named() -> Builder {
    Builder::new().name("mindprof-answer".into())
}

fn result<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_results_come_back() {
        assert_eq!(beside(|| 1, || "two"), (1, "two"));
    }

    #[test]
    fn results_are_in_the_order_of_their_items() {
        let items: Vec<u64> = (0..1_000).collect();
        let squares = each(&items, |item| item * item);
        assert_eq!(
            squares,
            items.iter().map(|item| item * item).collect::<Vec<_>>()
        );
        assert!(each(&[0_u8; 0], |item| *item).is_empty());
    }
}
