//! A stand-in for torch's manager of callbacks, and the search for its lock.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::search::find;
use crate::stand_in;
use crate::symbols::{Callback, Symbols};

/// The fields of torch's manager, in their order.
#[repr(C)]
struct Manager {
    version: u64,
    list: [*mut Entry; 3],
    lock: libc::pthread_mutex_t,
}

#[repr(C)]
struct Entry {
    callback: Callback,
    is_enabled: bool,
    handle: u64,
}

/// The manager, behind other words.
#[repr(C)]
struct Memory {
    before: [u64; 5],
    manager: UnsafeCell<Manager>,
}

// SAFETY: the functions below access the manager only while they hold its lock.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory {
    before: [1, 8, 16, 32, 7],
    manager: UnsafeCell::new(Manager {
        version: 1,
        list: [std::ptr::null_mut(); 3],
        lock: libc::PTHREAD_MUTEX_INITIALIZER,
    }),
};

/// Whether the functions hold the lock, as torch's do.
static USES_LOCK: AtomicBool = AtomicBool::new(true);

fn locked<T>(action: impl FnOnce(&mut Manager) -> T) -> T {
    let manager = MEMORY.manager.get();
    let uses_lock = USES_LOCK.load(Ordering::Relaxed);
    // SAFETY: the manager is static. If the lock is not used, the test has a single thread that
    // changes the manager.
    unsafe {
        if uses_lock {
            libc::pthread_mutex_lock(&raw mut (*manager).lock);
        }
        let result = action(&mut *manager);
        if uses_lock {
            libc::pthread_mutex_unlock(&raw mut (*manager).lock);
        }
        result
    }
}

extern "C" fn add(callback: Callback) -> u64 {
    locked(|manager| {
        manager.version += 1;
        let entry = Box::leak(Box::new(Entry {
            callback,
            is_enabled: true,
            handle: 5,
        }));
        let begin: *mut Entry = entry;
        manager.list = [begin, begin.wrapping_add(1), begin.wrapping_add(1)];
        entry.handle
    })
}

extern "C" fn remove(_handle: u64) {
    locked(|manager| {
        manager.version += 1;
        manager.list[1] = manager.list[0];
    });
}

extern "C" fn has_callbacks() -> bool {
    locked(|manager| manager.list[0] != manager.list[1])
}

fn symbols() -> Symbols {
    let mut symbols = stand_in::symbols(|_| false).expect("the stand-in has all symbols");
    symbols.add_global_callback = add;
    symbols.remove_callback = remove;
    symbols.has_global_callbacks = Some(has_callbacks);
    symbols
}

fn memory() -> [Range<u64>; 1] {
    first_bytes(size_of::<Memory>() as u64)
}

#[expect(
    clippy::single_range_in_vec_init,
    reason = "a library may have several ranges"
)]
fn first_bytes(count: u64) -> [Range<u64>; 1] {
    let begin = &raw const MEMORY as u64;
    [begin..begin + count]
}

#[test]
fn the_lock_behind_the_list_is_found() {
    let found = find(&symbols(), &memory());
    let lock = found.expect("torch waits for it");
    // SAFETY: only the address is computed.
    assert_eq!(lock, unsafe { &raw mut (*MEMORY.manager.get()).lock });
    assert!(
        !has_callbacks(),
        "the lock is free again, and the list empty"
    );
}

#[test]
fn a_lock_that_nobody_waits_for_is_refused() {
    USES_LOCK.store(false, Ordering::Relaxed);
    let found = find(&symbols(), &memory());
    USES_LOCK.store(true, Ordering::Relaxed);
    assert_eq!(found, None);
}

#[test]
fn other_memory_has_no_list() {
    assert_eq!(find(&symbols(), &first_bytes(40)), None);
}

#[test]
fn without_a_function_that_takes_the_lock_nothing_is_searched() {
    let mut symbols = symbols();
    symbols.has_global_callbacks = None;
    assert_eq!(find(&symbols, &memory()), None);
}
