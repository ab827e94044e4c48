//! Where large loops run on several threads: rayon's own pool, and in a forked child a pool of that
//! child's.
//!
//! A child has none of its parent's threads but all of their bookkeeping: work for the pool that
//! the parent had begun would wait for ever. So the child's work goes to threads that are begun
//! there, at the first such loop.
//!
//! Kernels split their work with [`share`], which rayon sees as one function for all of them: it
//! would else be compiled anew for each element type and each operator.

#![cfg_attr(
    unix,
    expect(
        unsafe_code,
        reason = "the hook after a fork is given to the C library, and the pool of a child is shared"
    )
)]

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

#[cfg(unix)]
pub(crate) use self::fork::in_parallel;
use crate::Result;

/// Up to here rows are cheaper to work on than to ask for one by one.
const ROWS_COUNT: usize = 1 << 12;

/// Gives each item to `work`, on as many threads as are free. Items are worth a lock each.
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

/// As [`share`], for work that may fail; returns an error if any did.
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

/// As [`share`], for rows of elements with their numbers; short rows are taken several at a time.
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

/// Runs the same work as often as there are threads, but at most so many times.
fn on_threads(most: usize, work: &(dyn Fn() + Sync)) {
    in_parallel(|| {
        (0..most.min(rayon::current_num_threads()))
            .into_par_iter()
            .with_max_len(1)
            .for_each(|_| work());
    });
}

/// Runs `work`, which may split itself among rayon's threads.
#[cfg(not(unix))]
#[inline]
pub(crate) fn in_parallel<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Sets how many threads large loops may use. Returns whether it could be: once such a loop has
/// run, the number stays.
///
/// There are never more than processors: others would only wait, and all are started at once.
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

    /// How many forks lie between this process and the one that first split a loop.
    // Relaxed: it changes in a child before that has a second thread.
    static FORKS: AtomicU32 = AtomicU32::new(0);

    static IS_WATCHED: OnceLock<()> = OnceLock::new();

    /// The pool of a child. Never freed: to end the threads of a parent's would be to wait for
    /// them.
    static CHILD: AtomicPtr<ChildPool> = AtomicPtr::new(ptr::null_mut());

    struct ChildPool {
        forks: u32,
        pool: ThreadPool,
    }

    /// Runs `work`, which may split itself among rayon's threads.
    #[inline]
    pub(crate) fn in_parallel<R: Send>(work: impl FnOnce() -> R + Send) -> R {
        IS_WATCHED.get_or_init(watch);
        match FORKS.load(Ordering::Relaxed) {
            0 => work(),
            forks => child_pool(forks).install(work),
        }
    }

    fn watch() {
        // SAFETY: the hook adds to a number, which a child may do. Where the system refuses, a
        // child is as it would be without.
        unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    }

    extern "C" fn count_fork() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the pool of this process, which it begins at the first call. No lock: one that
    /// another thread held at a fork would stay locked.
    #[cold]
    fn child_pool(forks: u32) -> &'static ThreadPool {
        // Acquire, here and below: pairs with the release of whoever made the pool.
        let known = CHILD.load(Ordering::Acquire);
        // SAFETY: what is stored is never freed.
        if let Some(child) = unsafe { known.as_ref() }
            && child.forks == forks
        {
            return &child.pool;
        }
        let pool = ThreadPoolBuilder::new()
            .build()
            .expect("a process that may fork may begin threads");
        let new = Box::into_raw(Box::new(ChildPool { forks, pool }));
        let stored = CHILD.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire);
        match stored {
            // SAFETY: as above; the box was given up to be stored.
            Ok(_) => unsafe { &(*new).pool },
            Err(first) => {
                // SAFETY: the box was not stored, so nobody else knows of it; its threads are this
                // process's own. What was stored instead is never freed.
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
