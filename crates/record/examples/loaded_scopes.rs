//! A shared library that records scopes, to measure the feature `loaded`.
//!
//! Thread-local variables are only slow in a library that is loaded at run time, so the benchmark
//! `scope`, which is a program, cannot show the difference. Build the library with and without the
//! feature and compare the instructions per scope:
//!
//! ```text
//! cargo build --release -p mindprof-record --example loaded_scopes --features loaded
//! valgrind --tool=callgrind python3 -c "import ctypes
//! ctypes.CDLL('target/release/examples/libloaded_scopes.so').record(100000)"
//! ```

#![expect(unsafe_code, reason = "a function is exported by its name")]

use mindprof_record::{Options, Session, Site, memory, scope, scope_with};

static SITE: Site = Site::operator("op");

/// Records `count` scopes.
// SAFETY: no other symbol of the process has this name.
#[unsafe(no_mangle)]
pub extern "C" fn record(count: usize) {
    let session = Session::start(Options::default());
    (0..count).for_each(|_| drop(scope(&SITE)));
    drop(session.stop());
}

/// Records `count` scopes with one input and one allocation each.
// SAFETY: no other symbol of the process has this name.
#[unsafe(no_mangle)]
pub extern "C" fn record_inputs_and_memory(count: usize) {
    let options = Options {
        inputs: true,
        memory: true,
        ..Options::default()
    };
    let session = Session::start(options);
    for address in 1..=count {
        let _scope = scope_with(&SITE, |inputs| inputs.int(64));
        memory(address as u64, 64, || 64);
    }
    drop(session.stop());
}
