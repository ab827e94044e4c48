//! Runs large loops on rayon's global pool or, in a forked child process, on a pool of its own.
//!
//! A forked child inherits the pool without its threads, so work submitted to it would never run;
//! the child starts new threads at its first parallel loop. Kernels split their work with
//! [`share`], a single function from rayon's point of view, which keeps rayon's code from being
//! compiled for each element type and operator.

#![cfg_attr(
    unix,
    expect(
        unsafe_code,
        reason = "registers a fork handler with the C library, and shares the pool of a forked child"
    )
)]

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

#[cfg(unix)]
pub(crate) use self::fork::in_parallel;
use crate::Result;

/// The number of elements up to which a batch of rows is cheaper to process than to lock for row by
/// row.
const ROWS_COUNT: usize = 1 << 12;

/// Calls `work` with each item, on as many threads as are free. Taking an item costs a lock, so
/// items should be large.
pub(crate) fn share<I: ExactSizeIterator + Send>(items: I, work: impl Fn(I::Item) + Sync) {
    let count = items.len();
    if count < 2 {
        return items.for_each(work);
    }
    let items = Mutex::new(items);
    let next = || {
        let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
        items.next()
    };
    on_threads(count, &|| {
        while let Some(item) = next() {
            work(item);
        }
    });
}

/// Shares items as [`share`] does, for fallible work; returns an error if any call failed.
pub(crate) fn try_share<I: ExactSizeIterator + Send>(
    items: I,
    work: impl Fn(I::Item) -> Result<()> + Sync,
) -> Result<()> {
    let outcome = Mutex::new(Ok(()));
    share(items, |item| {
        if let Err(error) = work(item) {
            *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
        }
    });
    outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Shares numbered rows of elements as [`share`] does; short rows are taken several at a time.
pub(crate) fn share_rows<T: Send>(
    elements: &mut [T],
    width: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let shares = 4 * rayon::current_num_threads();
    let count = (ROWS_COUNT / width)
        .min(elements.len() / width / shares)
        .max(1);
    let pieces = elements.chunks_mut(width * count).enumerate();
    share(pieces, |(index, piece)| {
        for (row, elements) in piece.chunks_mut(width).enumerate() {
            work(index * count + row, elements);
        }
    });
}

/// Runs the same work once per thread, but at most `most` times.
fn on_threads(most: usize, work: &(dyn Fn() + Sync)) {
    in_parallel(|| {
        (0..most.min(rayon::current_num_threads()))
            .into_par_iter()
            .with_max_len(1)
            .for_each(|_| work());
    });
}

/// Runs `work`, which may use rayon's parallel iterators.
#[cfg(not(unix))]
#[inline]
pub(crate) fn in_parallel<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Sets the number of threads for large loops, capped at the number of processors.
///
/// Returns `false` if the number is already fixed because a parallel loop has run.
pub fn set_thread_count(count: usize) -> bool {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count.min(processors));
    pool.build_global().is_ok()
}

#[cfg(unix)]
mod fork {
    use std::ptr;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

    use rayon::{ThreadPool, ThreadPoolBuilder};

    /// The number of forks between this process and the one that first ran a parallel loop.
    // Relaxed: it changes in a child before the child has a second thread.
    static FORKS: AtomicU32 = AtomicU32::new(0);

    static IS_WATCHED: OnceLock<()> = OnceLock::new();

    /// The pool of a forked child. It is never freed: dropping a pool inherited from the parent
    /// would wait for threads that do not exist.
    static CHILD: AtomicPtr<ChildPool> = AtomicPtr::new(ptr::null_mut());

    struct ChildPool {
        forks: u32,
        pool: ThreadPool,
    }

    /// Runs `work`, which may use rayon's parallel iterators.
    #[inline]
    pub(crate) fn in_parallel<R: Send>(work: impl FnOnce() -> R + Send) -> R {
        IS_WATCHED.get_or_init(watch);
        match FORKS.load(Ordering::Relaxed) {
            0 => work(),
            forks => child_pool(forks).install(work),
        }
    }

    fn watch() {
        // SAFETY: the handler only increments an atomic, which is async-signal-safe. If
        // registration fails, a child behaves as if the handler did not exist.
        unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    }

    extern "C" fn count_fork() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the pool of this process and creates it on the first call.
    ///
    /// It takes no lock, because a lock that another thread holds during a fork stays locked in the
    /// child.
    #[cold]
    fn child_pool(forks: u32) -> &'static ThreadPool {
        // Acquire, here and below: pairs with the release of the thread that stored the pool.
        let known = CHILD.load(Ordering::Acquire);
        // SAFETY: `CHILD` is null or holds a pointer from `Box::into_raw` that is never freed.
        if let Some(child) = unsafe { known.as_ref() }
            && child.forks == forks
        {
            return &child.pool;
        }
        let pool = ThreadPoolBuilder::new()
            .build()
            .expect("a process that can fork can start threads");
        let new = Box::into_raw(Box::new(ChildPool { forks, pool }));
        let stored = CHILD.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire);
        match stored {
            // SAFETY: `new` came from `Box::into_raw` and is now stored in `CHILD`, whose pools are
            // never freed.
            Ok(_) => unsafe { &(*new).pool },
            Err(first) => {
                // SAFETY: the exchange failed, so `new` was not published and this is its only
                // owner; its threads belong to this process and can be joined. `first` was read
                // from `CHILD`, whose pools are never freed.
                unsafe {
                    drop(Box::from_raw(new));
                    &(*first).pool
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn each_row_is_worked_on_once_whatever_its_width() {
        for (rows, width) in [(1, 5), (3, 1), (1000, 7), (3, 10_000), (100_000, 1)] {
            let mut elements = vec![0; rows * width];
            share_rows(&mut elements, width, |row, elements| {
                for element in elements {
                    *element += row + 1;
                }
            });
            let places = elements.iter().enumerate();
            assert!(
                places
                    .into_iter()
                    .all(|(place, &found)| found == place / width + 1)
            );
        }
    }

    #[test]
    fn one_failure_is_enough() {
        let outcome = try_share(0..100, |item| match item {
            77 => Err(Error::StrideOverflow),
            _ => Ok(()),
        });
        assert_eq!(outcome, Err(Error::StrideOverflow));
        assert_eq!(try_share(0..100, |_| Ok(())), Ok(()));
    }
}
