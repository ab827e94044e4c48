//! The field numbers of Perfetto's messages, from its public schema.

/// Fields of a trace and of its packets.
pub(super) mod trace {
    pub(crate) const PACKET: u32 = 1;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED: u32 = 12;
    pub(crate) const FLAGS: u32 = 13;
    pub(crate) const COMPRESSED: u32 = 50;
    pub(crate) const CLOCK: u32 = 58;
    pub(crate) const DEFAULTS: u32 = 59;
    pub(crate) const TRACK: u32 = 60;
}

/// Fields of a track, and of its process, thread or counter.
pub(super) mod track {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
    pub(crate) const PROCESS_ID: u32 = 1;
    pub(crate) const PROCESS_NAME: u32 = 6;
    pub(crate) const THREAD_ID: u32 = 2;
    pub(crate) const THREAD_NAME: u32 = 5;
    pub(crate) const COUNTER_UNIT: u32 = 3;
    pub(crate) const UNIT_BYTES: u64 = 3;
}

/// Fields of a track event, and its types.
pub(super) mod event {
    pub(crate) const CATEGORY: u32 = 3;
    pub(crate) const ANNOTATION: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME: u32 = 10;
    pub(crate) const TRACK: u32 = 11;
    pub(crate) const NAME_TEXT: u32 = 23;
    pub(crate) const CATEGORY_TEXT: u32 = 22;
    pub(crate) const COUNTER_VALUE: u32 = 30;
    pub(crate) const FLOAT_COUNTER_VALUE: u32 = 44;
    pub(crate) const FLOWS: u32 = 47;
    pub(crate) const LAST_FLOWS: u32 = 48;
    pub(crate) const BEGIN: u64 = 1;
    pub(crate) const END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

/// Fields of an annotation.
pub(super) mod annotation {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const TRUTH: u32 = 2;
    pub(crate) const NUMBER: u32 = 3;
    pub(crate) const SIGNED: u32 = 4;
    pub(crate) const FLOAT: u32 = 5;
    pub(crate) const TEXT: u32 = 6;
    pub(crate) const NAME_TEXT: u32 = 10;
    pub(crate) const ENTRY: u32 = 11;
    pub(crate) const ITEM: u32 = 12;
    pub(crate) const INTERNED_TEXT: u32 = 17;
}

/// Fields of interned data, and of one interned text.
pub(super) mod interned {
    pub(crate) const CATEGORIES: u32 = 1;
    pub(crate) const NAMES: u32 = 2;
    pub(crate) const ANNOTATION_NAMES: u32 = 3;
    pub(crate) const ANNOTATION_TEXTS: u32 = 29;
    pub(crate) const ID: u32 = 1;
    pub(crate) const TEXT: u32 = 2;
}
