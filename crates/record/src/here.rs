//! Where the calling thread's [`Local`] is, found without a call.
//!
//! In a library that is loaded at run time a thread-local variable is reached by a call that costs
//! a tenth of a scope, and a scope needs several. With the feature `loaded` a table lies in front of
//! it: each thread has a register that points to memory of its own, and owns the slot that this
//! pointer leads to, if it was free. A thread without a slot takes the long way.

#![cfg_attr(
    all(
        feature = "loaded",
        target_arch = "x86_64",
        target_os = "linux",
        not(loom)
    ),
    expect(
        unsafe_code,
        reason = "the register that tells threads apart is read by an instruction of its own"
    )
)]

use std::cell::Cell;
use std::ptr;

use crate::local::Local;

thread_local! {
    static HERE: Cell<*const Local> = const { Cell::new(ptr::null()) };
}

/// Returns what the thread has set last; null before, and when it has unset it.
#[inline]
pub(crate) fn get() -> *const Local {
    table::get().unwrap_or_else(|| HERE.get())
}

/// Remembers where the thread's [`Local`] is, until it is unset.
pub(crate) fn set(local: *const Local) {
    HERE.set(local);
    table::claim(local);
}

/// Forgets where the thread's [`Local`] was. Called before that ceases to be.
pub(crate) fn unset() {
    HERE.set(ptr::null());
    table::free();
}

#[cfg(unix)]
pub(crate) use self::table::{forget_others, trust_forks};

#[cfg(all(
    feature = "loaded",
    target_arch = "x86_64",
    target_os = "linux",
    not(loom)
))]
mod table {
    use std::arch::asm;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

    use super::Local;

    /// The slot of a thread is written by that thread alone from when it is claimed until it is
    /// free again, which is before the thread ends and its pointer can become another thread's.
    /// Relaxed everywhere: what a thread reads under its own pointer it has written itself.
    struct Slot {
        /// The pointer of the owner; zero while there is none.
        owner: AtomicUsize,
        local: AtomicPtr<Local>,
    }

    const SLOTS: usize = 64;

    static TABLE: [Slot; SLOTS] = [const {
        Slot {
            owner: AtomicUsize::new(0),
            local: AtomicPtr::new(ptr::null_mut()),
        }
    }; SLOTS];

    /// Whether forked children forget the slots of threads that they do not have.
    static IS_TRUSTED: AtomicBool = AtomicBool::new(false);

    /// Returns a number that no other living thread has.
    #[inline]
    fn own_pointer() -> usize {
        let pointer;
        // SAFETY: by the system's ABI the first word behind this register is its own address; the
        // instruction reads it and does nothing else.
        unsafe {
            asm!(
                "mov {}, qword ptr fs:[0]",
                out(reg) pointer,
                options(nostack, preserves_flags, readonly)
            );
        }
        pointer
    }

    /// Stacks, at whose ends these pointers lie, are an odd number of pages apart.
    #[inline]
    fn slot(pointer: usize) -> &'static Slot {
        &TABLE[pointer / 4096 % SLOTS]
    }

    #[inline]
    pub(super) fn get() -> Option<*const Local> {
        let pointer = own_pointer();
        let slot = slot(pointer);
        let is_own = slot.owner.load(Ordering::Relaxed) == pointer;
        is_own.then(|| slot.local.load(Ordering::Relaxed).cast_const())
    }

    pub(super) fn claim(local: *const Local) {
        let pointer = own_pointer();
        let slot = slot(pointer);
        let is_free = || {
            let claimed =
                (slot.owner).compare_exchange(0, pointer, Ordering::Relaxed, Ordering::Relaxed);
            claimed.is_ok()
        };
        let is_own = slot.owner.load(Ordering::Relaxed) == pointer;
        if is_own || (IS_TRUSTED.load(Ordering::Relaxed) && is_free()) {
            slot.local.store(local.cast_mut(), Ordering::Relaxed);
        }
    }

    pub(super) fn free() {
        let pointer = own_pointer();
        let slot = slot(pointer);
        if slot.owner.load(Ordering::Relaxed) == pointer {
            slot.local.store(ptr::null_mut(), Ordering::Relaxed);
            slot.owner.store(0, Ordering::Relaxed);
        }
    }

    /// Says that [`forget_others`] will be called in every child.
    pub(crate) fn trust_forks() {
        IS_TRUSTED.store(true, Ordering::Relaxed);
    }

    /// Frees the slots of other threads, in a forked child: it has none of them, and its own new
    /// ones can get their pointers.
    pub(crate) fn forget_others() {
        let own = own_pointer();
        for slot in &TABLE {
            if slot.owner.load(Ordering::Relaxed) != own {
                slot.local.store(ptr::null_mut(), Ordering::Relaxed);
                slot.owner.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(not(all(
    feature = "loaded",
    target_arch = "x86_64",
    target_os = "linux",
    not(loom)
)))]
mod table {
    use super::Local;

    #[inline]
    pub(super) fn get() -> Option<*const Local> {
        None
    }

    pub(super) fn claim(_local: *const Local) {}

    pub(super) fn free() {}

    pub(crate) fn trust_forks() {}

    pub(crate) fn forget_others() {}
}
