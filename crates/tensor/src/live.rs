//! How many bytes live in storages.
//!
//! Each thread counts what it allocates and frees in a counter of its own, without the price of a shared one on every
//! operator; the sum over all threads is the answer, even where one thread frees what another allocated.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What threads that have ended, or are ending, leave behind.
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// The counters of the threads that have any.
static COUNTERS: Mutex<Vec<Weak<Counter>>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: Arc<Counter> = register();
}

/// Returns the bytes of all tensors' storages that are alive in this process.
pub fn live_bytes() -> usize {
    let counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    // Relaxed: a statistic that orders nothing. The lock keeps a counter from ending between the two reads.
    let running = counters.iter().filter_map(Weak::upgrade);
    let running = running.fold(0_usize, |sum, counter| {
        sum.wrapping_add(counter.bytes.load(Ordering::Relaxed))
    });
    running.wrapping_add(ENDED.load(Ordering::Relaxed))
}

/// Counts bytes that begin to live.
#[inline]
pub(crate) fn add(bytes: usize) {
    change(bytes);
}

/// Counts bytes that cease to live.
#[inline]
pub(crate) fn subtract(bytes: usize) {
    change(bytes.wrapping_neg());
}

#[inline]
fn change(difference: usize) {
    let counted = OWN.try_with(|own| {
        // Only this thread writes its counter, so a load and a store are enough. Relaxed: see `live_bytes`.
        let bytes = own.bytes.load(Ordering::Relaxed);
        own.bytes
            .store(bytes.wrapping_add(difference), Ordering::Relaxed);
    });
    if counted.is_err() {
        // Relaxed: see `live_bytes`.
        ENDED.fetch_add(difference, Ordering::Relaxed);
    }
}

/// One thread's allocations less its frees, wrapping around zero.
struct Counter {
    bytes: AtomicUsize,
}

impl Drop for Counter {
    fn drop(&mut self) {
        // Relaxed: see `live_bytes`.
        ENDED.fetch_add(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

fn register() -> Arc<Counter> {
    let counter = Arc::new(Counter {
        bytes: AtomicUsize::new(0),
    });
    let mut counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    counters.retain(|counter| counter.strong_count() > 0);
    counters.push(Arc::downgrade(&counter));
    counter
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_one_thread_adds_another_may_subtract() {
        let before = live_bytes();
        add(100);
        thread::spawn(move || {
            subtract(40);
            assert_eq!(live_bytes().wrapping_sub(before), 60);
        })
        .join()
        .unwrap();
        assert_eq!(
            live_bytes().wrapping_sub(before),
            60,
            "the thread has ended"
        );
        subtract(60);
        assert_eq!(live_bytes(), before);
    }
}
