//! The recorded traces, and torch's results for them.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

/// One recorded session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    /// The device and version of torch it was recorded with.
    pub(crate) host: &'static str,
    pub(crate) name: &'static str,
}

impl Session {
    pub(crate) const ALL: [Self; 6] = [
        Self::new("cpu-torch2.15", "gpt-plain"),
        Self::new("cpu-torch2.15", "cnn-full"),
        Self::new("cpu-torch2.15", "mlp-full"),
        Self::new("h200-torch2.11", "mlp-plain"),
        Self::new("h200-torch2.11", "gpt-full"),
        Self::new("h200-torch2.11", "threads-full"),
    ];

    const fn new(host: &'static str, name: &'static str) -> Self {
        Self { host, name }
    }

    /// Returns whether torch put calls of other threads on the starting one, where they overlap.
    /// torch subtracts their time from their parents twice; here overlapping children count once,
    /// so that self time is never negative.
    pub(crate) fn has_overlaps(self) -> bool {
        self.name == "threads-full"
    }

    pub(crate) fn trace_path(self) -> PathBuf {
        self.path("trace.json.gz")
    }

    /// Returns the text of the trace.
    pub(crate) fn trace(self) -> Vec<u8> {
        decompress(&self.trace_path())
    }

    /// Returns torch's results for the session.
    pub(crate) fn says(self) -> Value {
        serde_json::from_slice(&decompress(&self.path("says.json.gz"))).unwrap()
    }

    /// Returns the memory timeline that torch wrote for a device.
    pub(crate) fn memory(self, device: &str) -> Value {
        let suffix = format!("memory-{}.json.gz", device.replace(':', ""));
        serde_json::from_slice(&decompress(&self.path(&suffix))).unwrap()
    }

    /// Returns the stacks that torch wrote for the session, if it was recorded with stacks.
    pub(crate) fn stacks(self) -> Option<String> {
        let path = self.path("stacks.txt.gz");
        let found = path.exists();
        found.then(|| String::from_utf8(decompress(&path)).unwrap())
    }

    fn path(self, suffix: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/goldens")
            .join(self.host)
            .join(format!("{}.{suffix}", self.name))
    }
}

fn decompress(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let compressed = fs::read(path).unwrap();
    GzDecoder::new(compressed.as_slice())
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}
