//! A fork while something records: the parent goes on as if nothing had happened, the child begins with no recording.
//!
//! Only the forking thread lives on in the child, so a lock that another thread held would stay locked there for ever. The
//! forking thread therefore takes every lock of the recorder before it forks and gives them back on both sides.

use std::cell::RefCell;
use std::sync::MutexGuard;

use crate::chunk::{self, SpareGuard};
use crate::local;
use crate::name::{self, NameTable};
use crate::recorder::{self, Recorder};

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// The locks, in the order in which they are taken everywhere.
struct Held {
    recorder: MutexGuard<'static, Recorder>,
    _names: MutexGuard<'static, NameTable>,
    _spare: SpareGuard,
}

/// Which side of a fork the caller is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkSide {
    /// The process that forked.
    Parent,
    /// The process that came about.
    Child,
}

/// Takes every lock of the recorder. To be called right before a fork, by the thread that forks.
pub fn before_fork() {
    let hold = |held: &RefCell<Option<Held>>| {
        let mut held = held.borrow_mut();
        // Called twice, the locks are here already.
        held.get_or_insert_with(|| Held {
            recorder: recorder::recorder(),
            _names: name::table(),
            _spare: chunk::spare_guard(),
        });
    };
    // A thread that is ending has no memory for guards any more: it forks as it is.
    let _ = HELD.try_with(hold);
}

/// Gives the locks back. To be called right after the fork, by the same thread, on both sides.
///
/// In the child nothing records any more: sessions that were open at the fork are closed and empty.
pub fn after_fork(side: ForkSide) {
    let held = HELD.try_with(|held| held.borrow_mut().take());
    let Ok(Some(mut held)) = held else { return };
    match side {
        ForkSide::Parent => {}
        ForkSide::Child => {
            let own = local::own_buffer();
            if let Some(buffer) = &own {
                buffer.rename();
            }
            held.recorder.start_over(own.as_ref());
        }
    }
}
