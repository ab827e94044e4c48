//! Counts the bytes of live storages.
//!
//! Each thread counts its allocations and frees in a counter of its own, so that operators do not
//! contend for a shared one. The sum over all threads is the answer, even if one thread frees what
//! another allocated.

use std::cell::OnceCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mindprof_record::fast_thread_local;

/// Allocations less frees of threads that are ending and have given their counter back.
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// The head of the list of counters.
///
/// The list only grows, so that it can be read without a lock: every profiled allocation asks for
/// the sum.
static FIRST: OnceLock<&'static Counter> = OnceLock::new();

fast_thread_local! {
    static OWN: OnceCell<Own> = OnceCell::new()
}

/// Returns the bytes of all live storages in this process.
pub fn live_bytes() -> usize {
    // Relaxed: a statistic that orders nothing.
    let mut sum = ENDED.load(Ordering::Relaxed);
    let mut next = &FIRST;
    while let Some(counter) = next.get() {
        sum = sum.wrapping_add(counter.bytes.load(Ordering::Relaxed));
        next = &counter.next;
    }
    sum
}

/// Counts allocated bytes.
#[inline]
pub(crate) fn add(bytes: usize) {
    change(bytes);
}

/// Counts freed bytes.
#[inline]
pub(crate) fn subtract(bytes: usize) {
    change(bytes.wrapping_neg());
}

#[inline]
fn change(difference: usize) {
    let counted = OWN.try_with(|own| {
        let Own(own) = own.get_or_init(Own::take);
        // Only this thread writes its counter, so a load and a store are enough. Relaxed: see
        // `live_bytes`.
        let bytes = own.bytes.load(Ordering::Relaxed);
        own.bytes
            .store(bytes.wrapping_add(difference), Ordering::Relaxed);
    });
    if counted.is_err() {
        // Relaxed: see `live_bytes`.
        ENDED.fetch_add(difference, Ordering::Relaxed);
    }
}

/// The allocations less frees of one thread and of the earlier owners of the counter, wrapping
/// around zero.
struct Counter {
    bytes: AtomicUsize,
    is_taken: AtomicBool,
    next: OnceLock<&'static Counter>,
}

impl Counter {
    /// Takes a counter that an ended thread has released, or appends a new one to the list.
    fn take() -> &'static Self {
        let mut next = &FIRST;
        while let Some(counter) = next.get() {
            // Acquire: pairs with the release of the counter's previous owner, so that its last
            // count is visible.
            if !counter.is_taken.swap(true, Ordering::Acquire) {
                return counter;
            }
            next = &counter.next;
        }
        let added: &Self = Box::leak(Box::new(Self {
            bytes: AtomicUsize::new(0),
            is_taken: AtomicBool::new(true),
            next: OnceLock::new(),
        }));
        // If another thread was faster, move on to the new end of the list.
        while next.set(added).is_err() {
            if let Some(counter) = next.get() {
                next = &counter.next;
            }
        }
        added
    }
}

/// The counter of the current thread, released when the thread ends.
struct Own(&'static Counter);

impl Own {
    #[cold]
    fn take() -> Self {
        Self(Counter::take())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `Counter::take`.
        self.0.is_taken.store(false, Ordering::Release);
    }
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

    #[test]
    fn a_thread_takes_the_counter_of_one_that_has_ended() {
        let address = |own: &OnceCell<Own>| {
            let Own(own) = own.get_or_init(Own::take);
            std::ptr::from_ref(*own) as usize
        };
        let take = move || thread::spawn(move || OWN.try_with(address).unwrap());
        let first = take().join().unwrap();
        assert_eq!(take().join().unwrap(), first);
    }
}
