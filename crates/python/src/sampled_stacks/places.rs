//! Names of frames: the function and the line that a frame is at, found once and remembered.

use mindprof_frames::{Checked, Layout, Memory, RawFrame, class_name};
use mindprof_record::{Name, NameKind};
use rustc_hash::FxHashMap;

use crate::source_files::{is_ours, shortened};

/// The name of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// `file.py(12): function`, or `nn.Module: Linear` for a call of a module.
    As(Name),
    /// The frame is one of the interpreter's or of the profiler's own and is left out.
    Hidden,
}

/// The names that were found, by frame.
#[derive(Default)]
pub(super) struct Places {
    /// The names, with what tells the code object from another one at the same address.
    known: FxHashMap<RawFrame, ([u64; 4], Named)>,
}

impl Places {
    /// Returns the name of a frame, or `None` if its code cannot be read.
    #[inline]
    pub(super) fn name<M: Memory>(
        &mut self,
        layout: &Layout,
        memory: &M,
        frame: &RawFrame,
    ) -> Option<Named> {
        let Some(identity) = layout.code.identity(memory, frame.code) else {
            // Frames of the interpreter itself have another object in place of code.
            return Some(Named::Hidden);
        };
        if let Some((known, name)) = self.known.get(frame)
            && *known == identity
        {
            return Some(*name);
        }
        let name = find(layout, frame)?;
        // Code that was freed meanwhile may have had any name.
        (layout.code.identity(memory, frame.code)? == identity).then_some(())?;
        self.known.insert(*frame, (identity, name));
        Some(name)
    }
}

#[cold]
fn find(layout: &Layout, frame: &RawFrame) -> Option<Named> {
    if frame.local != 0
        && let Some(class) = class_name(&Checked, frame.local)
    {
        let text = format!("nn.Module: {class}");
        return Some(Named::As(Name::intern(&text, NameKind::Module)));
    }
    let code = layout.code.read(&layout.text, frame.code)?;
    if is_hidden(&code.file) {
        return Some(Named::Hidden);
    }
    let file = shortened(&code.file);
    let line = layout.code.line(&code, frame);
    let text = format!("{file}({line}): {}", code.function);
    Some(Named::As(Name::intern(&text, NameKind::Function)))
}

/// Returns whether a file is one of our own package, or the interpreter's name for its own frames.
fn is_hidden(file: &str) -> bool {
    file == "<shim>" || file.is_empty() || is_ours(file)
}
