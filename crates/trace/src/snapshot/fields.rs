//! The keys of a snapshot's dictionaries, and the values of one dictionary by key.

use mindprof_model::{StringId, StringTable};

use super::objects::Value;

macro_rules! keys {
    ($($key:ident = $text:literal,)*) => {
        /// A key that some answer needs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Key { $($key,)* }

        const KEYS: &[(Key, &str)] = &[$((Key::$key, $text),)*];
    };
}

keys! {
    Segments = "segments",
    DeviceTraces = "device_traces",
    Settings = "allocator_settings",
    HostSegments = "host_segments",
    HostTraces = "host_traces",
    Device = "device",
    Address = "address",
    TotalSize = "total_size",
    RequestedSize = "requested_size",
    Stream = "stream",
    SegmentType = "segment_type",
    SegmentPool = "segment_pool_id",
    IsExpandable = "is_expandable",
    Blocks = "blocks",
    Size = "size",
    State = "state",
    History = "history",
    RealSize = "real_size",
    Frames = "frames",
    File = "filename",
    Line = "line",
    Name = "name",
    Action = "action",
    Addr = "addr",
    DeviceFree = "device_free",
    Time = "time_us",
    AllocConf = "PYTORCH_CUDA_ALLOC_CONF",
    NewAllocConf = "PYTORCH_ALLOC_CONF",
    ExpandableSegments = "expandable_segments",
}

impl Key {
    /// Interns all keys, so that their ids follow that of the empty string, and [`Self::of`] works.
    pub(super) fn intern_all(strings: &mut StringTable) {
        for (_, text) in KEYS {
            strings.intern(text);
        }
    }

    /// Returns the key with this text, if it is one.
    pub(super) fn of(text: StringId) -> Option<Self> {
        let index = text.index().checked_sub(1)?;
        KEYS.get(index).map(|(key, _)| *key)
    }

    /// Returns the text of the key.
    pub(super) fn text(self) -> &'static str {
        KEYS[self as usize].1
    }
}

/// The values of a dictionary whose keys some answer needs. Other values are dropped.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    values: [Value; KEYS.len()],
}

impl Fields {
    pub(super) const fn new() -> Self {
        Self {
            values: [Value::Nothing; KEYS.len()],
        }
    }

    pub(super) const fn get(&self, key: Key) -> Value {
        self.values[key as usize]
    }

    pub(super) const fn set(&mut self, key: Key, value: Value) {
        self.values[key as usize] = value;
    }

    /// Returns whether these may be the fields of the whole snapshot or of its settings, which are
    /// read once the pickle is complete.
    pub(super) fn is_needed(&self) -> bool {
        let keys = [
            Key::Segments,
            Key::DeviceTraces,
            Key::Settings,
            Key::AllocConf,
            Key::NewAllocConf,
            Key::ExpandableSegments,
        ];
        keys.into_iter().any(|key| self.has(key))
    }

    pub(super) fn has(&self, key: Key) -> bool {
        self.get(key) != Value::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_ids() {
        let mut strings = StringTable::new();
        Key::intern_all(&mut strings);
        for (key, text) in KEYS {
            assert_eq!(Key::of(strings.intern(text)), Some(*key));
            assert_eq!(key.text(), *text);
        }
        assert_eq!(Key::of(StringTable::EMPTY), None);
        assert_eq!(Key::of(strings.intern("else")), None);
    }
}
