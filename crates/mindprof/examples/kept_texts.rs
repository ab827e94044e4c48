//! Compares the memory of the packed passthrough texts of a trace with that of the plain texts.
//!
//! ```text
//! cargo run --package mindprof --example kept_texts -- trace.json.gz
//! ```

#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;

use mindprof_model::PassthroughKind;

fn main() -> mindprof::Result<()> {
    for path in env::args_os().skip(1).map(PathBuf::from) {
        let profile = mindprof::read_trace_file(&path)?;
        let passthrough = profile.passthrough();
        let mut ids = BTreeSet::new();
        for kind in PassthroughKind::ALL {
            let mut texts = passthrough.walk(kind);
            let rows = profile.events().len().max(profile.memory().len());
            ids.extend((0..rows).filter_map(|index| texts.at(index)));
        }
        ids.extend(passthrough.unknown_events().iter().map(|event| event.text));
        let plain: usize = ids
            .iter()
            .map(|&id| passthrough.texts.text(id).len() + size_of::<usize>())
            .sum();
        let packed = passthrough.texts.bytes();
        let ratio = plain as f64 / packed as f64;
        println!(
            "{}: {packed} bytes packed, {plain} plain: {ratio:.1} times as many",
            path.display()
        );
    }
    Ok(())
}
