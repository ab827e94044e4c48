//! Where large loops run on several threads: rayon's own pool, and in a forked child a pool of that
//! child's.
//!
//! A child has none of its parent's threads but all of their bookkeeping: work for the pool that
//! the parent had begun would wait for ever. So the child's work goes to threads that are begun
//! there, at the first such loop.

#![cfg_attr(
    unix,
    expect(
        unsafe_code,
        reason = "the hook after a fork is given to the C library, and the pool of a child is shared"
    )
)]

#[cfg(unix)]
pub(crate) use self::fork::in_parallel;

/// Runs `work`, which may split itself among rayon's threads.
#[cfg(not(unix))]
#[inline]
pub(crate) fn in_parallel<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Sets how many threads large loops may use. Returns whether it could be: once such a loop has
/// run, the number stays.
pub fn set_thread_count(count: usize) -> bool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count);
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
