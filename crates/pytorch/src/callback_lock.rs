//! torch's lock of its list of global callbacks, which a thread holds while it forks.
//!
//! After a recording begins or ends, every thread takes this lock in its next operator. A child
//! forked at that moment would wait forever for a thread that it does not have. No symbol names the
//! lock, so it is searched for once, through a callback that makes torch's list recognizable, and
//! verified before it is used. If it is not found, forks are as dangerous as they are in torch.

#![cfg_attr(
    all(target_os = "linux", target_arch = "x86_64"),
    expect(
        unsafe_code,
        reason = "a lock of torch's is taken by an address that was searched for"
    )
)]

use crate::symbols::Symbols;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use self::hooks::watch_forks;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use self::{hooks::is_held_by_forks, search::find_for_forks};

/// Does nothing: torch is not observed on this platform.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub const fn watch_forks() {}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) const fn find_for_forks(_symbols: &Symbols) {}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) const fn is_held_by_forks() -> bool {
    false
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod hooks {
    use std::cell::Cell;
    use std::ptr;
    use std::sync::Once;
    use std::sync::atomic::{AtomicPtr, Ordering};

    use libc::pthread_mutex_t;

    /// The verified lock, or null.
    // Acquire and release: the lock was verified before it was published.
    pub(super) static LOCK: AtomicPtr<pthread_mutex_t> = AtomicPtr::new(ptr::null_mut());

    thread_local! {
        /// The lock that this thread holds while it forks. It has no destructor, so that a thread
        /// that is ending can fork too.
        static HELD: Cell<*mut pthread_mutex_t> = const { Cell::new(ptr::null_mut()) };
    }

    /// Makes forks hold torch's lock once it is found. Call it before all other modules register
    /// their hooks, so that this lock is taken last: threads may take it while they hold others.
    pub fn watch_forks() {
        static WATCHED: Once = Once::new();
        if cfg!(miri) {
            return;
        }
        WATCHED.call_once(|| {
            // SAFETY: the hooks live as long as the process and never unwind. They take and release
            // a lock on the forking thread, which exists in both processes. If the system refuses
            // them, forks behave as they would without hooks.
            unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
        });
    }

    /// Returns whether forks hold the lock.
    pub(crate) fn is_held_by_forks() -> bool {
        !LOCK.load(Ordering::Acquire).is_null()
    }

    extern "C" fn before() {
        let lock = LOCK.load(Ordering::Acquire);
        // SAFETY: `LOCK` is null or a lock that the search has verified and that is never freed.
        // torch forks nowhere while it holds it, so the forking thread does not hold it yet.
        if !lock.is_null() && unsafe { libc::pthread_mutex_lock(lock) } == 0 {
            HELD.set(lock);
        }
    }

    extern "C" fn after() {
        let held = HELD.replace(ptr::null_mut());
        if !held.is_null() {
            // SAFETY: this thread, or in a child the thread that it is a copy of, took the lock in
            // `before`. A plain lock does not remember its owner.
            unsafe { libc::pthread_mutex_unlock(held) };
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod search {
    use std::ffi::{c_int, c_void};
    use std::ops::Range;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use libc::pthread_mutex_t;

    use super::Symbols;
    use super::hooks::LOCK;
    use crate::symbols::{Callback, Hears, RecordFunction};
    use mindprof_frames::{read_many, read_words};

    /// torch's manager of callbacks begins with a version and a `std::vector` of entries; the lock
    /// comes next.
    const LOCK_OFFSET: u64 = 32;

    /// The longest list that is searched for our callback. torch has a handful of callbacks.
    const MOST_LIST_BYTES: u64 = 4096;

    /// A bound on the time that the verification waits; it takes microseconds.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Searches for the lock and makes forks hold it. The caller prevents forks meanwhile.
    pub(crate) fn find_for_forks(symbols: &Symbols) {
        if LOCK.load(Ordering::Acquire).is_null() {
            let libtorch = writable_memory(symbols.add_global_callback as *const c_void);
            if let Some(lock) = find(symbols, &libtorch) {
                LOCK.store(lock, Ordering::Release);
            }
        }
    }

    /// Returns the lock if it lies in `memory` and torch waits for it.
    pub(super) fn find(symbols: &Symbols, memory: &[Range<u64>]) -> Option<*mut pthread_mutex_t> {
        let takes_lock = symbols.has_global_callbacks?;
        // SAFETY: the callback is never called, because it wants no kind of scope.
        let handle = unsafe { (symbols.add_global_callback)(marker()) };
        let managers = managers_in(memory);
        symbols.remove(handle);
        let &[manager] = managers.as_slice() else {
            return None;
        };
        let is_changed = read_words::<4>(manager.address)
            .is_some_and(|words| words[0] > manager.version && !lists_marker(&words));
        let lock = manager.address + LOCK_OFFSET;
        (is_changed && looks_like_lock(lock) && is_waited_for(lock, takes_lock))
            .then_some(lock as *mut pthread_mutex_t)
    }

    /// torch's manager of callbacks, recognized by our callback in its list.
    #[derive(Clone, Copy)]
    struct Manager {
        address: u64,
        version: u64,
    }

    fn managers_in(memory: &[Range<u64>]) -> Vec<Manager> {
        let mut found = Vec::new();
        for range in memory {
            let mut words = vec![0; ((range.end - range.start) / 8) as usize];
            if !read_many(range.start, &mut words) {
                continue;
            }
            let fours = words.windows(4).enumerate();
            let managers = fours.filter(|(_, four)| lists_marker(four));
            found.extend(managers.map(|(place, four)| Manager {
                address: range.start + 8 * place as u64,
                version: four[0],
            }));
        }
        found
    }

    /// Returns whether the words are a version and a vector that contains our callback.
    fn lists_marker(words: &[u64]) -> bool {
        let &[version, begin, end, capacity] = words else {
            return false;
        };
        let is_vector = version != 0 && begin < end && end <= capacity && begin.is_multiple_of(8);
        if !is_vector || end - begin > MOST_LIST_BYTES || !end.is_multiple_of(8) {
            return false;
        }
        let mut entries = vec![0; ((end - begin) / 8) as usize];
        let pair = [
            start as *const c_void as u64,
            end_of_scope as *const c_void as u64,
        ];
        read_many(begin, &mut entries) && entries.windows(2).any(|two| two == pair)
    }

    /// Returns whether the words at `address` can be a plain lock of the C library: no recursion,
    /// no special kind, and a state from 0 (free) to 2 (threads wait).
    fn looks_like_lock(address: u64) -> bool {
        let Some([state, _owner, kind, list @ ..]) = read_words::<5>(address) else {
            return false;
        };
        state <= 2 && kind == 0 && list == [0; 2]
    }

    /// Returns whether a function of torch that takes the lock waits while this thread holds it.
    fn is_waited_for(address: u64, takes_lock: unsafe extern "C" fn() -> bool) -> bool {
        let lock = address as *mut pthread_mutex_t;
        let until = Instant::now() + PATIENCE;
        // SAFETY: the words have the form of a lock, right behind the list that it protects, and
        // are never freed. Trying does not wait, should they be something else.
        while unsafe { libc::pthread_mutex_trylock(lock) } != 0 {
            if Instant::now() > until {
                return false;
            }
            thread::yield_now();
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let name = "mindprof-lock".to_owned();
            let other = thread::Builder::new().name(name).spawn_scoped(scope, || {
                // SAFETY: the function takes no arguments, and returns whether there are callbacks.
                unsafe { takes_lock() };
                is_over.store(true, Ordering::Release);
            });
            // SAFETY: the first word of a lock is its state, which other threads change atomically.
            let state = unsafe { AtomicU32::from_ptr(address as *mut u32) };
            let is_waiting = || state.load(Ordering::Relaxed) == 2;
            while other.is_ok() && !is_over.load(Ordering::Acquire) && !is_waiting() {
                if Instant::now() > until {
                    break;
                }
                thread::yield_now();
            }
            // While this thread holds the right lock, the call cannot end.
            let is_it = is_waiting() && !is_over.load(Ordering::Acquire);
            // SAFETY: this thread has taken the lock above.
            unsafe { libc::pthread_mutex_unlock(lock) };
            is_it
        })
    }

    /// Returns the writable memory of the library that contains `function`.
    fn writable_memory(function: *const c_void) -> Vec<Range<u64>> {
        let mut request = Request {
            function: function as u64,
            found: Vec::new(),
        };
        // SAFETY: the callback gets `request` as its data, and does not keep it.
        unsafe { libc::dl_iterate_phdr(Some(on_library), (&raw mut request).cast()) };
        request.found
    }

    struct Request {
        function: u64,
        found: Vec<Range<u64>>,
    }

    /// Notes the writable memory of a library if it contains the requested function.
    unsafe extern "C" fn on_library(
        library: *mut libc::dl_phdr_info,
        _size: usize,
        request: *mut c_void,
    ) -> c_int {
        // SAFETY: the C library passes a valid description, and the request of `writable_memory`.
        let (base, segments, request) = unsafe {
            let library = &*library;
            let segments =
                std::slice::from_raw_parts(library.dlpi_phdr, usize::from(library.dlpi_phnum));
            (library.dlpi_addr, segments, &mut *request.cast::<Request>())
        };
        let loaded = || segments.iter().filter(|one| one.p_type == libc::PT_LOAD);
        let contains = |one: &libc::Elf64_Phdr| {
            let begin = base + one.p_vaddr;
            (begin..begin + one.p_memsz).contains(&request.function)
        };
        if !loaded().any(contains) {
            return 0;
        }
        request.found = loaded()
            .filter(|one| one.p_flags & libc::PF_W != 0)
            .map(|one| {
                let begin = base + one.p_vaddr;
                begin.next_multiple_of(8)..begin + one.p_memsz
            })
            .collect();
        1
    }

    /// A callback for no kind of scope, so that torch never calls it.
    fn marker() -> Callback {
        let mut marker = Callback::new(start, end_of_scope, Hears::default());
        marker.sampling_probability = 0.0;
        marker.scopes = [false; 10];
        marker
    }

    unsafe extern "C" fn start(
        context: *mut *mut c_void,
        _record: *const RecordFunction,
    ) -> *mut *mut c_void {
        // SAFETY: torch passes a slot for the context.
        unsafe { context.write(ptr::null_mut()) };
        context
    }

    unsafe extern "C" fn end_of_scope(_record: *const RecordFunction, _context: *mut c_void) {}
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64", not(miri)))]
mod tests;
