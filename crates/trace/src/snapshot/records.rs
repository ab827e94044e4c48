//! Turns the dictionaries of a snapshot into the records of the model.

use std::fmt::Write as _;

use mindprof_model::{
    AllocatorAction, AllocatorEntry, BlockState, SnapshotBlock, SnapshotSegment, StackId,
    StackTable, StringId, StringTable,
};

use super::fields::{Fields, Key};
use super::machine::Fault;
use super::objects::{Object, Value};

/// The largest size that is believed: 256 TiB, the memory that addresses of 48 bits reach.
const LARGEST: i64 = 1 << 48;

/// The bytes of a path and of a name that are kept. Names of C++ templates can be longer than a
/// page, and a text can stand in thousands of frames.
const PATH_BYTES: usize = 512;
const NAME_BYTES: usize = 384;

/// About the bytes that the tables take for a text and for a stack besides their contents.
const BYTES_PER_TEXT: usize = 80;
const BYTES_PER_STACK: usize = 32;

/// The records of a snapshot in the order in which they became complete.
pub(super) struct Records {
    pub(super) strings: StringTable,
    pub(super) stacks: StackTable,
    pub(super) entries: Vec<AllocatorEntry>,
    pub(super) blocks: Vec<SnapshotBlock>,
    /// Segments with the numbers of their devices.
    pub(super) segments: Vec<(u32, SnapshotSegment)>,
    text_bytes: usize,
    /// The number of blocks that segments have.
    placed_blocks: usize,
    /// The number of values in lists that became records since this was last asked.
    released: usize,
    frame: String,
}

impl Records {
    pub(super) fn new() -> Self {
        let mut strings = StringTable::new();
        Key::intern_all(&mut strings);
        Self {
            strings,
            stacks: StackTable::new(),
            entries: Vec::new(),
            blocks: Vec::new(),
            segments: Vec::new(),
            text_bytes: 0,
            placed_blocks: 0,
            released: 0,
            frame: String::new(),
        }
    }

    /// Returns about how many bytes the records take.
    pub(super) fn bytes(&self) -> u64 {
        let texts = self.text_bytes + self.strings.len() * BYTES_PER_TEXT;
        let stacks = self.stacks.len() * BYTES_PER_STACK;
        let entries = self.entries.len() * size_of::<AllocatorEntry>();
        let blocks = (self.blocks.len() + self.placed_blocks) * size_of::<SnapshotBlock>();
        let segments = self.segments.len() * size_of::<(u32, SnapshotSegment)>();
        (texts + stacks + entries + blocks + segments) as u64
    }

    pub(super) fn text(&self, text: StringId) -> &str {
        self.strings.text(text)
    }

    pub(super) fn intern(&mut self, text: &str) -> Result<StringId, Fault> {
        let known = self.strings.len();
        let id = self.strings.intern(text);
        if self.strings.len() > known {
            // The table holds each text twice: in order, and as a key.
            self.text_bytes += 2 * text.len();
        }
        if id.to_raw() >= 1 << 31 {
            return Err("it has more than 2,147,483,648 texts".into());
        }
        Ok(id)
    }

    /// Returns the number of values in lists that became records since the last call.
    pub(super) fn take_released(&mut self) -> usize {
        std::mem::take(&mut self.released)
    }

    /// Returns the record that a dictionary is, or `None` if it has no known kind.
    pub(super) fn record(
        &mut self,
        fields: &Fields,
        objects: &mut [Object],
    ) -> Result<Option<Object>, Fault> {
        if fields.has(Key::Action) {
            let entry = self.entry(fields, objects)?;
            self.entries.push(entry);
            return Ok(Some(Object::Entry(self.entries.len() as u32 - 1)));
        }
        if fields.has(Key::File) && fields.has(Key::Line) {
            return self.frame(fields).map(Some);
        }
        if fields.has(Key::RealSize) || (fields.has(Key::State) && fields.has(Key::Size)) {
            let block = self.block(fields, objects)?;
            self.blocks.push(block);
            return Ok(Some(Object::Block(self.blocks.len() as u32 - 1)));
        }
        if fields.has(Key::TotalSize) && fields.has(Key::Blocks) {
            let segment = self.segment(fields, objects)?;
            self.segments.push(segment);
            return Ok(Some(Object::Segment(self.segments.len() as u32 - 1)));
        }
        Ok(None)
    }

    fn frame(&mut self, fields: &Fields) -> Result<Object, Fault> {
        let line = fields.get(Key::Line).int().unwrap_or_default().max(0);
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        let (path_mark, path) = end_of(self.text_of(fields, Key::File), PATH_BYTES);
        let (name, name_mark) = start_of(self.text_of(fields, Key::Name), NAME_BYTES);
        let _ = write!(frame, "{path_mark}{path}({line}): {name}{name_mark}");
        let id = self.intern(&frame)?;
        self.frame = frame;
        Ok(Object::Frame(id))
    }

    fn entry(&mut self, fields: &Fields, objects: &mut [Object]) -> Result<AllocatorEntry, Fault> {
        let action = action(self.text_of(fields, Key::Action));
        let (address, bytes) = match action {
            AllocatorAction::OutOfMemory => (
                size(fields, Key::DeviceFree)?.unwrap_or_default(),
                needed(fields, Key::Size)?,
            ),
            AllocatorAction::Alloc
            | AllocatorAction::FreeRequested
            | AllocatorAction::FreeCompleted
            | AllocatorAction::SegmentAlloc
            | AllocatorAction::SegmentFree => {
                (address(fields, Key::Addr)?, needed(fields, Key::Size)?)
            }
            AllocatorAction::Mark | AllocatorAction::Unknown => (0, 0),
        };
        Ok(AllocatorEntry {
            action,
            address,
            bytes,
            time_us: any_number(fields, Key::Time),
            stream: any_number(fields, Key::Stream),
            stack: self.stack(fields.get(Key::Frames), objects)?,
        })
    }

    /// Returns a block, or an entry of the history that blocks of old files have, which states the
    /// requested bytes and the stack.
    fn block(&mut self, fields: &Fields, objects: &mut [Object]) -> Result<SnapshotBlock, Fault> {
        if let Some(requested) = size(fields, Key::RealSize)? {
            return Ok(SnapshotBlock {
                address: any_number(fields, Key::Addr),
                bytes: requested,
                requested,
                state: BlockState::Allocated,
                stack: self.stack(fields.get(Key::Frames), objects)?,
            });
        }
        let bytes = needed(fields, Key::Size)?;
        let mut block = SnapshotBlock {
            address: any_number(fields, Key::Address),
            bytes,
            requested: size(fields, Key::RequestedSize)?.unwrap_or(bytes),
            state: self.state(fields)?,
            stack: self.stack(fields.get(Key::Frames), objects)?,
        };
        if let Some(Object::List(Some(list))) = fields.get(Key::History).object(objects)
            && let Some(Object::Block(first)) =
                list.items.first().and_then(|item| item.object(objects))
        {
            let asked = self.blocks[*first as usize];
            (block.requested, block.stack) = (asked.requested, asked.stack);
        }
        Ok(block)
    }

    fn state(&self, fields: &Fields) -> Result<BlockState, Fault> {
        match self.text_of(fields, Key::State) {
            "active_allocated" => Ok(BlockState::Allocated),
            "active_pending_free" | "active_awaiting_free" => Ok(BlockState::AwaitingFree),
            "inactive" => Ok(BlockState::Free),
            other => Err(Fault::Strange(format!(
                "expected a block that is active or inactive, found one that is {other:?}"
            ))),
        }
    }

    fn segment(
        &mut self,
        fields: &Fields,
        objects: &[Object],
    ) -> Result<(u32, SnapshotSegment), Fault> {
        let address = address(fields, Key::Address)?;
        let listed = items(fields.get(Key::Blocks), objects, Key::Blocks)?;
        self.placed_blocks += listed.len();
        if self.placed_blocks > self.blocks.len() {
            return Err(misplaced(Key::Blocks, "a block of another segment"));
        }
        let mut blocks = Vec::with_capacity(listed.len());
        let mut end = address;
        for value in listed {
            let Some(&Object::Block(block)) = value.object(objects) else {
                return Err(misplaced(Key::Blocks, value.noun(objects)));
            };
            let block = self.blocks[block as usize];
            // Old files have no addresses of blocks. They follow one another.
            blocks.push(SnapshotBlock {
                address: end,
                ..block
            });
            end = end.saturating_add(block.bytes);
        }
        let device = any_number(fields, Key::Device);
        let device = u32::try_from(device).map_err(|_| misplaced(Key::Device, "a large number"))?;
        let segment = SnapshotSegment {
            address,
            bytes: needed(fields, Key::TotalSize)?,
            stream: any_number(fields, Key::Stream),
            pool: pool(fields, objects),
            is_large: self.text_of(fields, Key::SegmentType) != "small",
            is_expandable: fields.get(Key::IsExpandable) == Value::Bool(true),
            blocks,
        };
        Ok((device, segment))
    }

    /// Returns the stack of a list of frames, which are innermost first. The list becomes the stack,
    /// so that records which share it find it at once.
    fn stack(&mut self, frames: Value, objects: &mut [Object]) -> Result<StackId, Fault> {
        let stack = match frames.object(objects) {
            None => return Ok(StackId::NONE),
            Some(Object::Stack(stack)) => return Ok(*stack),
            Some(_) => {
                let frames = items(frames, objects, Key::Frames)?;
                self.released += frames.len();
                let mut stack = StackId::NONE;
                for frame in frames.iter().rev() {
                    let Some(&Object::Frame(text)) = frame.object(objects) else {
                        return Err(misplaced(Key::Frames, frame.noun(objects)));
                    };
                    stack = self.stacks.push(stack, text);
                }
                stack
            }
        };
        if let Value::Object(list) = frames {
            objects[list as usize] = Object::Stack(stack);
        }
        Ok(stack)
    }

    /// Returns the text that a key has, which is empty if it has none.
    fn text_of(&self, fields: &Fields, key: Key) -> &str {
        let text = fields.get(key).text();
        text.map_or("", |text| self.strings.text(text))
    }
}

/// Returns the start of a text, and the mark of a cut if it is longer.
fn start_of(text: &str, most: usize) -> (&str, &'static str) {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let start = &text[..end];
    (start, if start.len() < text.len() { "..." } else { "" })
}

/// Returns the mark of a cut if a text is longer, and its end.
fn end_of(text: &str, most: usize) -> (&'static str, &str) {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let end = &text[start..];
    (if end.len() < text.len() { "..." } else { "" }, end)
}

/// Returns the values of a list that a key refers to.
pub(super) fn items(value: Value, objects: &[Object], key: Key) -> Result<&[Value], Fault> {
    match value.object(objects) {
        // Records that have no frames may share an empty list with others.
        Some(Object::List(None) | Object::Stack(StackId::NONE)) => Ok(&[]),
        Some(Object::List(Some(list))) => Ok(&list.items),
        Some(_) | None => Err(misplaced(key, value.noun(objects))),
    }
}

/// Returns the fault of a key with a value that it does not have in snapshots.
pub(super) fn misplaced(key: Key, found: &str) -> Fault {
    let expected = match key {
        Key::Segments => "expected segments, which are dictionaries with `blocks`, ",
        Key::Blocks => "expected blocks, which are dictionaries with `size` and `state`, ",
        Key::Frames => "expected frames, which are dictionaries with `filename` and `name`, ",
        Key::DeviceTraces => "expected a list of entries for each device, ",
        Key::Addr | Key::Address => "expected an address, ",
        _ => "",
    };
    Fault::Strange(format!("{expected}found {found} in `{}`", key.text()))
}

fn action(text: &str) -> AllocatorAction {
    match text {
        "alloc" => AllocatorAction::Alloc,
        "free_requested" => AllocatorAction::FreeRequested,
        "free_completed" | "free" => AllocatorAction::FreeCompleted,
        "segment_alloc" | "segment_map" => AllocatorAction::SegmentAlloc,
        "segment_free" | "segment_unmap" => AllocatorAction::SegmentFree,
        "oom" => AllocatorAction::OutOfMemory,
        "snapshot" | "user_defined" | "annotate" => AllocatorAction::Mark,
        _ => AllocatorAction::Unknown,
    }
}

/// Returns a size, or `None` if the key is missing.
fn size(fields: &Fields, key: Key) -> Result<Option<u64>, Fault> {
    match fields.get(key) {
        Value::Nothing => Ok(None),
        Value::Int(bytes @ 0..=LARGEST) => Ok(Some(bytes as u64)),
        Value::Int(bytes) => Err(misplaced(key, &format!("a size of {bytes}"))),
        Value::Bool(_) | Value::Text(_) | Value::Object(_) => {
            let found = format!("{} instead of a size", noun(fields.get(key)));
            Err(misplaced(key, &found))
        }
    }
}

fn needed(fields: &Fields, key: Key) -> Result<u64, Fault> {
    size(fields, key)?.ok_or_else(|| misplaced(key, "nothing"))
}

fn address(fields: &Fields, key: Key) -> Result<u64, Fault> {
    let address = fields.get(key).int().map(|address| address as u64);
    address.ok_or_else(|| misplaced(key, noun(fields.get(key))))
}

/// Returns what a value is, for messages, without looking at its object.
const fn noun(value: Value) -> &'static str {
    match value {
        Value::Nothing => "nothing",
        Value::Bool(_) => "True or False",
        Value::Int(_) => "a number",
        Value::Text(_) => "a text",
        Value::Object(_) => "an object",
    }
}

/// Returns the bits of a number, or zero if the key has none.
fn any_number(fields: &Fields, key: Key) -> u64 {
    fields.get(key).int().unwrap_or_default() as u64
}

fn pool(fields: &Fields, objects: &[Object]) -> (u64, u64) {
    match fields.get(Key::SegmentPool).object(objects) {
        None => (0, 0),
        Some(&Object::Pair(first, second)) => (first.into(), second.into()),
        // Its numbers are too large for a pair, so it is not the default pool.
        Some(_) => (u64::MAX, u64::MAX),
    }
}
