//! The meanings of names and categories, each determined once per distinct text.

use mindprof_model::{
    Category, DeviceKind, MEMORY_EVENT, Part, StackId, StringId, StringTable, WINDOW_ACTIVITY,
    activity_device, activity_meaning, current_activity, derivable_activity, is_backward_wrapper,
    is_hidden_event, is_unknown_activity, is_window_mark,
};

use crate::chrome::event::Texts;
use crate::chrome::text::call_place;
use crate::scan::{Fragment, decode, inside_quotes};

/// The meanings so far, by fragment.
///
/// Events refer to names and categories by fragment, so that each text is decoded and looked up once.
#[derive(Default)]
pub(super) struct Vocabulary {
    categories: Memo<CategoryMeaning>,
    names: Memo<NameMeaning>,
    stacks: Memo<StackId>,
    /// The frame whose line the place of a call was found to be.
    call_places: Memo<StringId>,
    bad_texts: u64,
    /// Categories that are not understood, with their numbers of events.
    unknown: Vec<(String, u64)>,
}

/// The meaning of a category name.
#[derive(Clone, Copy)]
pub(super) struct CategoryMeaning {
    pub(super) category: Category,
    pub(super) device: DeviceKind,
    pub(super) other_device: Option<DeviceKind>,
    pub(super) is_window: bool,
    /// The name itself, if a profile can reproduce it.
    pub(super) known: &'static str,
    /// Whether it is from 2021, when user ranges had the category of operators.
    pub(super) is_old: bool,
    /// Its index among the categories that are not understood.
    unknown: Option<usize>,
}

/// The meaning of an event name.
#[derive(Clone, Copy)]
pub(super) struct NameMeaning {
    pub(super) string: StringId,
    pub(super) role: Role,
}

/// The special purpose of an event name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// No special purpose.
    Any,
    /// Noise of the profiler itself.
    Hidden,
    /// An allocation or a free, if it is an instant event with a number of bytes.
    Memory,
    /// The wrapper around an autograd node.
    BackwardWrapper,
    /// The start or end of the window, if it is an instant event.
    Mark,
}

impl Role {
    fn of(name: &str) -> Self {
        match name {
            MEMORY_EVENT => Self::Memory,
            _ if is_hidden_event(name) => Self::Hidden,
            _ if is_backward_wrapper(name) => Self::BackwardWrapper,
            _ if is_window_mark(name) => Self::Mark,
            _ => Self::Any,
        }
    }

    /// Returns whether an event is noise. A user range may have the name of memory records; any
    /// other event of that name is torch's, as in traces of event lists.
    pub(super) fn is_hidden(self, category: Category) -> bool {
        match self {
            Self::Hidden => true,
            Self::Memory => category != Category::Annotation,
            Self::Any | Self::BackwardWrapper | Self::Mark => false,
        }
    }
}

impl Vocabulary {
    /// Returns the number of strings that were not valid JSON.
    pub(super) const fn bad_texts(&self) -> u64 {
        self.bad_texts
    }

    /// Takes the categories that are not understood, with their numbers of events.
    pub(super) fn take_unknown(&mut self) -> Vec<(String, u64)> {
        let mut unknown = std::mem::take(&mut self.unknown);
        unknown.retain(|(_, count)| *count > 0);
        unknown
    }

    /// Counts an event of a category, if that is not understood.
    pub(super) fn count_unknown(&mut self, meaning: CategoryMeaning) {
        if let Some(place) = meaning.unknown {
            self.unknown[place].1 += 1;
        }
    }

    pub(super) fn category(&mut self, fragment: Fragment, texts: &Texts) -> CategoryMeaning {
        if let Some(known) = self.categories.get(fragment) {
            return known;
        }
        let text = decode(inside_quotes(texts.text(fragment)).unwrap_or_default()).0;
        let written = text;
        let text = current_activity(&written);
        let (category, device) = activity_meaning(text);
        let unknown = is_unknown_activity(text).then(|| {
            let place = self.unknown.iter().position(|(known, _)| known == text);
            place.unwrap_or_else(|| {
                self.unknown.push((text.to_owned(), 0));
                self.unknown.len() - 1
            })
        });
        let meaning = CategoryMeaning {
            category,
            device,
            other_device: activity_device(text),
            is_window: text == WINDOW_ACTIVITY,
            known: derivable_activity(text),
            is_old: text != written,
            unknown,
        };
        self.categories.set(fragment, meaning)
    }

    pub(super) fn name(
        &mut self,
        fragment: Fragment,
        texts: &Texts,
        strings: &mut StringTable,
    ) -> NameMeaning {
        if let Some(known) = self.names.get(fragment) {
            return known;
        }
        let raw = texts.text(fragment);
        // A name that is not a string keeps its JSON text.
        let (text, is_sound) = decode(inside_quotes(raw).unwrap_or(raw));
        self.bad_texts += u64::from(!is_sound);
        let meaning = NameMeaning {
            string: strings.intern(&text),
            role: Role::of(&text),
        };
        self.names.set(fragment, meaning)
    }

    /// Parses a stack: frames, innermost first, each followed by `;`.
    pub(super) fn stack(&mut self, fragment: Fragment, texts: &Texts, part: &mut Part) -> StackId {
        if let Some(known) = self.stacks.get(fragment) {
            return known;
        }
        let (text, is_sound) = decode(inside_quotes(texts.text(fragment)).unwrap_or_default());
        self.bad_texts += u64::from(!is_sound);
        let mut stack = StackId::NONE;
        for frame in text.rsplit(';').filter(|frame| !frame.is_empty()) {
            let frame = part.strings.intern(frame);
            stack = part.stacks.push(stack, frame);
        }
        self.stacks.set(fragment, stack)
    }
}

impl Vocabulary {
    /// Returns whether the place of a call is the line of a frame.
    pub(super) fn is_line_of(
        &mut self,
        fragment: Fragment,
        texts: &Texts,
        frame: StringId,
        strings: &StringTable,
    ) -> bool {
        if self.call_places.get(fragment) == Some(frame) {
            return true;
        }
        let place = decode(inside_quotes(texts.text(fragment)).unwrap_or_default()).0;
        let is_line = call_place(strings.text(frame)).is_some_and(|line| line == place);
        if is_line {
            self.call_places.set(fragment, frame);
        }
        is_line
    }
}

/// A table by fragment that is filled on demand.
struct Memo<T> {
    values: Vec<Option<T>>,
}

impl<T: Copy> Memo<T> {
    #[inline]
    fn get(&self, fragment: Fragment) -> Option<T> {
        self.values.get(fragment.index()).copied().flatten()
    }

    fn set(&mut self, fragment: Fragment, value: T) -> T {
        if self.values.len() <= fragment.index() {
            self.values.resize(fragment.index() + 1, None);
        }
        self.values[fragment.index()] = Some(value);
        value
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}
