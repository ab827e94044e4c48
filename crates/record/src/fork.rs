//! A fork while something records: the parent goes on as if nothing had happened, the child begins
//! with no recording.
//!
//! Only the forking thread lives on in the child, so a lock that another thread locks would stay
//! locked there for ever. The forking thread therefore takes every lock of the recorder right
//! before the fork and gives them back on both sides. The C library calls the hooks, because a
//! language runtime may let other threads run between its own hooks and the fork: one that waited
//! for these locks while holding the runtime's would never let the fork happen.

#![cfg_attr(
    unix,
    expect(
        unsafe_code,
        reason = "the hooks around a fork are given to the C library"
    )
)]

#[cfg(unix)]
pub(crate) use self::hooks::watch;

/// Does nothing: processes do not fork here.
#[cfg(not(unix))]
pub(crate) fn watch() {}

#[cfg(unix)]
mod hooks {
    use std::cell::RefCell;
    use std::sync::{MutexGuard, Once};

    use crate::chunk::{self, SpareGuard};
    use crate::local;
    use crate::name::{self, NameTable};
    use crate::recorder::{self, Recorder};
    use crate::registry::{self, Registry};

    thread_local! {
        static LOCKS: RefCell<Option<ForkLocks>> = const { RefCell::new(None) };
    }

    /// The locks, in the order in which they are taken everywhere.
    struct ForkLocks {
        recorder: MutexGuard<'static, Recorder>,
        registry: MutexGuard<'static, Registry>,
        names: MutexGuard<'static, NameTable>,
        spare: SpareGuard,
    }

    /// Has the hooks called around every fork of the process from now on.
    pub(crate) fn watch() {
        static WATCHED: Once = Once::new();
        // Miri has no forks, and no hooks for them.
        if cfg!(miri) {
            return;
        }
        WATCHED.call_once(|| {
            // SAFETY: the hooks take and give back locks, which the thread that forks may do on
            // both sides, and never unwind. Where the system refuses, forks are as they
            // would be without hooks.
            unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        });
    }

    extern "C" fn before() {
        let hold = |locks: &RefCell<Option<ForkLocks>>| {
            locks.replace(Some(ForkLocks {
                recorder: recorder::recorder(),
                registry: registry::registry(),
                names: name::table(),
                spare: chunk::spare_guard(),
            }));
        };
        // A thread that is ending has no memory for guards any more: it forks as it is.
        let _ = LOCKS.try_with(hold);
    }

    extern "C" fn in_parent() {
        drop(release());
    }

    /// Forgets what was being recorded: sessions that were open at the fork are closed and empty.
    extern "C" fn in_child() {
        let Some(mut locks) = release() else { return };
        // The buffers of threads that are no more end here, and give their chunks back; so does the
        // recording, with its names.
        drop(locks.names);
        drop(locks.spare);
        let own = local::own_buffer();
        if let Some(buffer) = &own {
            buffer.rename();
        }
        locks.recorder.start_over();
        locks.registry.start_over(own);
    }

    fn release() -> Option<ForkLocks> {
        LOCKS.try_with(RefCell::take).ok().flatten()
    }
}
