//! Forks during a recording: the parent records on as if nothing had happened, and the child starts
//! without a recording.
//!
//! Only the forking thread exists in the child, so a lock held by another thread would stay locked
//! there forever. The forking thread therefore takes every lock of the recorder right before the
//! fork and releases them on both sides. The hooks are installed in the C library
//! (`pthread_atfork`), because a language runtime may let other threads run between its own hooks
//! and the fork: a thread that waited for these locks while holding the runtime's would block the
//! fork forever.

#![cfg_attr(
    unix,
    expect(
        unsafe_code,
        reason = "the C library takes the fork hooks as raw functions"
    )
)]

#[cfg(unix)]
pub(crate) use self::hooks::watch;

/// Does nothing: processes do not fork on this platform.
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
    use crate::samples::{self, Samples};

    thread_local! {
        static LOCKS: RefCell<Option<ForkLocks>> = const { RefCell::new(None) };
    }

    /// All locks of the recorder, in the order in which they are taken everywhere.
    struct ForkLocks {
        recorder: MutexGuard<'static, Recorder>,
        registry: MutexGuard<'static, Registry>,
        samples: MutexGuard<'static, Samples>,
        names: MutexGuard<'static, NameTable>,
        spare: SpareGuard,
    }

    /// Installs the hooks around every later fork of the process. Only the first call has an
    /// effect.
    pub(crate) fn watch() {
        static WATCHED: Once = Once::new();
        // Miri supports neither forks nor hooks.
        if cfg!(miri) {
            return;
        }
        WATCHED.call_once(|| {
            // SAFETY: the hooks are `extern "C"` functions that live as long as the process and
            // never unwind. They only take and release locks, which the forking thread may do on
            // both sides. If the system refuses them, forks behave as they would without hooks.
            unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        });
    }

    extern "C" fn before() {
        let hold = |locks: &RefCell<Option<ForkLocks>>| {
            locks.replace(Some(ForkLocks {
                recorder: recorder::recorder(),
                registry: registry::registry(),
                samples: samples::samples(),
                names: name::table(),
                spare: chunk::spare_guard(),
            }));
        };
        // A thread that is exiting cannot hold the guards any more; it forks without them.
        let _ = LOCKS.try_with(hold);
    }

    extern "C" fn in_parent() {
        drop(release());
    }

    /// Forgets the recording: sessions that were open at the fork are closed and empty.
    extern "C" fn in_child() {
        let Some(mut locks) = release() else { return };
        // The buffers of threads that do not exist in the child are dropped and return their
        // chunks, and the recording drops its names. Both need these locks.
        drop(locks.names);
        drop(locks.spare);
        let own = local::own_buffer();
        if let Some(buffer) = &own {
            buffer.rename();
        }
        locks.samples.clear();
        locks.recorder.start_over();
        locks.registry.start_over(own);
    }

    fn release() -> Option<ForkLocks> {
        LOCKS.try_with(RefCell::take).ok().flatten()
    }
}
