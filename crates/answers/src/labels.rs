//! Labels of events by which rows of tables and comparisons are split: the user's line or function,
//! the module, the dtypes of the inputs.

use mindprof_analyze::Analysis;
use mindprof_model::{
    Event, EventId, InputsId, Nanos, Part, Profile, ScopeKind, Selection, StackId, StackTable,
    StringId, StringTable,
};

use crate::called::module_class;
use crate::functions::{CallNames, Definitions};
use crate::input_dtypes::distinct_dtypes;
use crate::own_code::OwnCode;
use crate::work::Work;

/// A property of events that splits rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// The line of the user's own code that led to the event.
    Line,
    /// The function of the user's own code that led to the event.
    Function,
    /// The class of the innermost module that the event ran in.
    Module,
    /// The dtypes of the input tensors.
    Dtype,
}

impl Label {
    /// Every label.
    pub const ALL: [Self; 4] = [Self::Line, Self::Function, Self::Module, Self::Dtype];

    /// Returns the name by which it is chosen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Function => "function",
            Self::Module => "module",
            Self::Dtype => "dtype",
        }
    }

    /// Returns a copy of a profile in which the stack of each event is a single frame: its label.
    /// Rows of it are split by label if they are grouped by one stack frame.
    ///
    /// # Panics
    /// Never: the copy has all tables of the profile and the labels.
    pub fn view(self, analysis: &Analysis, own: &OwnCode) -> Analysis {
        let profile = analysis.profile();
        let mut tables = Tables {
            strings: profile.strings().clone(),
            stacks: profile.stacks().clone(),
        };
        let labels = match self {
            Self::Line | Self::Function | Self::Module => {
                Labels::OfStacks(self.of_stacks(analysis, own, &mut tables))
            }
            Self::Dtype => Labels::OfInputs(of_inputs(profile, &mut tables)),
        };
        let mut labelled = Labelled { analysis, labels };
        let mut part = Part::selected(profile, Nanos::ZERO, &mut labelled);
        (part.strings, part.stacks) = (tables.strings, tables.stacks);
        let profile = part.into_profile();
        Analysis::build(profile.expect("the copy has all tables"))
    }

    /// Returns the label of each stack: that of its innermost frame that has one.
    fn of_stacks(self, analysis: &Analysis, own: &OwnCode, tables: &mut Tables) -> Vec<StackId> {
        let profile = analysis.profile();
        let calls = CallNames::build(analysis, &Work::of(analysis));
        let definitions = Definitions::build(profile, own, &calls);
        let mut labels = vec![StackId::NONE];
        for (caller, frame) in profile.stacks().nodes() {
            let text = match self {
                Self::Line => definitions
                    .place(frame)
                    .map(|_| profile.strings().text(frame).to_owned()),
                Self::Function => {
                    definitions
                        .place(frame)
                        .map(|place| match definitions.function(&place) {
                            (name, Some(line)) => format!("{}({line}): {name}", place.file),
                            (name, None) => format!("{}: {name}", place.file),
                        })
                }
                Self::Module | Self::Dtype => {
                    module_class(profile.strings().text(frame)).map(Into::into)
                }
            };
            labels.push(match text {
                Some(text) => tables.label(&text),
                None => labels[caller.index()],
            });
        }
        labels
    }
}

/// The tables of the copy, which the labels are added to.
struct Tables {
    strings: StringTable,
    stacks: StackTable,
}

impl Tables {
    fn label(&mut self, text: &str) -> StackId {
        let frame: StringId = self.strings.intern(text);
        self.stacks.push(StackId::NONE, frame)
    }
}

enum Labels {
    OfStacks(Vec<StackId>),
    OfInputs(Vec<StackId>),
}

struct Labelled<'a> {
    analysis: &'a Analysis,
    labels: Labels,
}

impl Selection for Labelled<'_> {
    fn event(&mut self, id: EventId, event: &Event) -> Option<Event> {
        let mut event = *event;
        event.stack = match &self.labels {
            Labels::OfStacks(labels) => labels[self.analysis.charged_stack(id).index()],
            Labels::OfInputs(labels) => labels[event.inputs.index()],
        };
        // A backward node would show the stack of its forward operator, which its label has already.
        if event.scope == ScopeKind::Backward {
            event.scope = ScopeKind::Function;
        }
        Some(event)
    }
}

/// Returns the label of each list of inputs: the distinct dtypes of its tensors, in order.
fn of_inputs(profile: &Profile, tables: &mut Tables) -> Vec<StackId> {
    (0..profile.inputs().len())
        .map(|index| {
            let inputs = profile.inputs().inputs(InputsId::from_index(index));
            let dtypes = distinct_dtypes(inputs);
            if dtypes.is_empty() {
                return StackId::NONE;
            }
            tables.label(&dtypes.join(", "))
        })
        .collect()
}
