//! Readable names of what a line calls: library functions, modules, built-in functions, operators.
//!
//! Frames name a place, so that one function has as many frames as lines. The names here are of
//! functions: whatever is called by one name is one thing with one cost.

use mindprof_model::{Nanos, Place, StringId, StringTable, WAITING_FRAME};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::charges::Cost;
use crate::questions::micros;

/// Something that a function or a line calls, and the time that it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Called {
    /// The readable name of the operator, library function or module.
    pub name: String,
    /// The time on the CPU and on devices.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
}

impl Called {
    /// Returns whether nothing is called: the thread waits.
    pub fn is_wait(&self) -> bool {
        self.name == WAITING
    }
}

/// The prefix of the frames of modules. The class and the number of the instance follow.
pub(crate) const MODULE_PREFIX: &str = "nn.Module: ";

/// The prefix of the names of ranges that the autograd engine opens around backward nodes.
const ENGINE_PREFIX: &str = "autograd::engine::evaluate_function: ";

/// The readable name of a wait of unknown cause.
const WAITING: &str = "waiting";

/// Functions that only pass calls on: what they call says more than they do.
const WRAPPERS: [(&str, &str); 17] = [
    ("contextlib.py", ""),
    ("functools.py", ""),
    ("mindprof/", ""),
    ("torch/_compile.py", ""),
    ("torch/_dynamo/", "_fn"),
    ("torch/_dynamo/", "compile_wrapper"),
    ("torch/_ops.py", "__call__"),
    ("torch/_tensor.py", "wrapped"),
    ("torch/autograd/", ""),
    ("torch/fx/", ""),
    ("torch/nn/modules/module.py", "_call_impl"),
    ("torch/nn/modules/module.py", "_wrapped_call_impl"),
    ("torch/optim/", "_use_grad"),
    ("torch/optim/", "maybe_fallback"),
    ("torch/optim/", "wrapper"),
    ("torch/utils/_contextlib.py", ""),
    ("torch/utils/data/_utils/", ""),
];

/// The libraries whose functions do the work that a model is made for.
const MODEL_FILES: [&str; 2] = ["torch/nn/", "torch/optim/"];

/// Parts of the names of operators that do the work that a model is made for, in lower case.
const MODEL_OPERATORS: [&str; 9] = [
    "addmm",
    "attention",
    "bmm",
    "conv",
    "einsum",
    "linear",
    "lstm",
    "matmul",
    "gru",
];

/// The names of what is called, each with a number.
pub(crate) struct CalledNames<'a> {
    strings: &'a StringTable,
    known: FxHashMap<StringId, CalledName>,
    numbers: FxHashMap<String, u32>,
    names: Vec<String>,
}

/// The name of one thing that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CalledName {
    /// The number of the name, which [`CalledNames::text`] takes.
    pub(crate) number: u32,
    /// Whether the function only passes calls on.
    pub(crate) is_wrapper: bool,
    /// Whether it is the work that a model is made for: a library's module, loss or optimizer, or
    /// a matrix product. A program is expected to spend its time there.
    pub(crate) is_model: bool,
}

/// The way from a line of the user's to an event, which leads through the function that the line
/// calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// The first function that does not only pass calls on.
    pub(crate) called: Option<CalledName>,
    /// The first function that does, while there is no other.
    wrapper: Option<CalledName>,
}

impl Way {
    /// Returns the way with one more frame.
    pub(crate) fn then(self, name: CalledName) -> Self {
        match (self.called, name.is_wrapper) {
            (Some(_), _) => self,
            (None, false) => Self {
                called: Some(name),
                ..self
            },
            (None, true) => Self {
                wrapper: self.wrapper.or(Some(name)),
                ..self
            },
        }
    }

    /// Returns the part of the cost at the end of the way that is expected work of a model. The
    /// operators that wrappers call count by themselves.
    pub(crate) fn model_time(self, cost: Cost) -> Nanos {
        match (self.called, self.wrapper) {
            (Some(name), _) if name.is_model => cost.time(),
            (None, Some(name)) if name.is_model => cost.python,
            _ => Nanos::ZERO,
        }
    }
}

/// Times by what is called. All of them together are at most the time of the caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct CalledSums {
    by_number: FxHashMap<u32, Nanos>,
}

impl CalledSums {
    /// Adds the cost of the events at the end of a way.
    pub(crate) fn charge(&mut self, way: Way, cost: Cost) {
        match (way.called, way.wrapper) {
            (Some(name), _) => self.add(name, cost.time()),
            (None, Some(name)) => self.add(name, cost.python),
            (None, None) => (),
        }
    }

    /// Adds the time of something that is called directly.
    pub(crate) fn add(&mut self, name: CalledName, time: Nanos) {
        let sum = self.by_number.entry(name.number).or_default();
        *sum = *sum + time;
    }

    /// Scales all times.
    pub(crate) fn scale(&mut self, factor: f64) {
        for time in self.by_number.values_mut() {
            *time = Nanos((time.0 as f64 * factor).round() as u64);
        }
    }

    /// Returns the largest part of a caller's time, unless its own Python code is larger.
    pub(crate) fn mostly(&self, names: &CalledNames<'_>, own: Nanos) -> Option<Called> {
        let called: u64 = self.by_number.values().map(|time| time.0).sum();
        let python = own.0.saturating_sub(called);
        let (&name, &time) = self.by_number.iter().max_by_key(|&(&name, &time)| {
            let text = names.text(name);
            (time, std::cmp::Reverse(text))
        })?;
        (time.0 > python).then(|| Called {
            name: names.text(name).into(),
            time,
        })
    }
}

impl<'a> CalledNames<'a> {
    pub(crate) fn new(strings: &'a StringTable) -> Self {
        Self {
            strings,
            known: FxHashMap::default(),
            numbers: FxHashMap::default(),
            names: Vec::new(),
        }
    }

    /// Returns the name for a frame or for the name of an event.
    pub(crate) fn of(&mut self, name: StringId) -> CalledName {
        if let Some(known) = self.known.get(&name) {
            return *known;
        }
        let text = self.strings.text(name);
        let readable = called_name(text);
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(readable.clone()).or_insert(next);
        if number == next {
            self.names.push(readable);
        }
        let found = CalledName {
            number,
            is_wrapper: is_wrapper(text),
            is_model: is_model(text),
        };
        self.known.insert(name, found);
        found
    }

    pub(crate) fn text(&self, number: u32) -> &str {
        &self.names[number as usize]
    }
}

/// Returns the class of a module's frame, or `None` if it is of something else.
pub(crate) fn module_class(frame: &str) -> Option<&str> {
    let instance = frame.strip_prefix(MODULE_PREFIX)?;
    Some(match instance.rsplit_once('_') {
        Some((class, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => class,
        Some(_) | None => instance,
    })
}

/// Returns the readable name of a frame or an event.
pub(crate) fn called_name(text: &str) -> String {
    if text == WAITING_FRAME {
        return WAITING.into();
    }
    if let Some(class) = module_class(text) {
        return format!("{class}.forward");
    }
    if let Some(place) = Place::parse(text) {
        return library_name(&place);
    }
    if let Some(rest) = text.strip_prefix("<built-in ") {
        return built_in_name(rest).unwrap_or_else(|| text.into());
    }
    text.strip_prefix(ENGINE_PREFIX).unwrap_or(text).into()
}

/// Returns the name by which users know a function of a library: `torch/nn/functional.py(3): relu`
/// is `nn.functional.relu`.
fn library_name(place: &Place<'_>) -> String {
    let function = place.function;
    if place.file.starts_with('<') {
        // Code that a compiler made has no file.
        return function.into();
    }
    let file = ["site-packages/", "dist-packages/"]
        .iter()
        .find_map(|folder| Some(place.file.rsplit_once(folder)?.1))
        .unwrap_or(place.file);
    let module = file.strip_suffix(".py").unwrap_or(file);
    let module = module.strip_suffix("/__init__").unwrap_or(module);
    if module == "torch/_tensor" {
        return format!("Tensor.{function}");
    }
    if module == "torch/utils/data/dataloader" {
        return format!("DataLoader.{function}");
    }
    let module = match module.strip_prefix('/') {
        // Of a path outside of all known folders, the file says enough.
        Some(path) => path.rsplit_once('/').map_or(path, |(_, file)| file),
        None => module.strip_prefix("torch/").unwrap_or(module),
    };
    format!("{}.{function}", module.replace('/', "."))
}

/// Returns the name of a C function from the rest of its description, such as `method item of
/// Tensor object at 0x7f>`, or `None` if it has another form.
fn built_in_name(rest: &str) -> Option<String> {
    let mut words = rest.trim_end_matches('>').split(' ');
    let kind = words.next();
    let name = matches!(kind, Some("method" | "function")).then(|| words.next())??;
    let is_of_tensor = words.next() == Some("of") && words.next() == Some("Tensor");
    Some(if is_of_tensor {
        format!("Tensor.{name}")
    } else {
        name.into()
    })
}

fn is_wrapper(text: &str) -> bool {
    let Some(place) = Place::parse(text) else {
        return text.starts_with("<built-in method __enter__");
    };
    if place.function.starts_with('<') {
        return true;
    }
    WRAPPERS.iter().any(|(file, function)| {
        place.file.contains(file) && (function.is_empty() || *function == place.function)
    })
}

fn is_model(text: &str) -> bool {
    if text.starts_with(MODULE_PREFIX) {
        return true;
    }
    if let Some(place) = Place::parse(text) {
        let is_backward = place.file.ends_with("torch/_tensor.py") && place.function == "backward";
        return is_backward || MODEL_FILES.iter().any(|file| place.file.contains(file));
    }
    let name = text.strip_prefix(ENGINE_PREFIX).unwrap_or(text);
    let name = name.strip_prefix("aten::").unwrap_or(name);
    let name = name.to_ascii_lowercase();
    // The shortest product has a name that others contain.
    name == "mm" || name == "mmbackward0" || MODEL_OPERATORS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_users_write() {
        for (text, name) in [
            ("nn.Module: Linear_12", "Linear.forward"),
            (
                "torch/nn/functional.py(3400): cross_entropy",
                "nn.functional.cross_entropy",
            ),
            ("torch/_tensor.py(30): __iter__", "Tensor.__iter__"),
            ("torch/optim/adam.py(7): step", "optim.adam.step"),
            ("numpy/linalg/__init__.py(7): norm", "numpy.linalg.norm"),
            (
                "/venv/lib/python3.11/site-packages/timm/a.py(7): f",
                "timm.a.f",
            ),
            ("/usr/lib/python3.11/queue.py(7): get", "queue.get"),
            ("<built-in method sleep of module object at 0x7f>", "sleep"),
            ("<built-in method to of Tensor object at 0x7f>", "Tensor.to"),
            ("<built-in function len>", "len"),
            (
                "autograd::engine::evaluate_function: MmBackward0",
                "MmBackward0",
            ),
            ("aten::mm", "aten::mm"),
            ("<waiting>", "waiting"),
        ] {
            assert_eq!(called_name(text), name);
        }
    }

    #[test]
    fn modules_of_one_class_have_one_name() {
        assert_eq!(module_class("nn.Module: Linear_0"), Some("Linear"));
        assert_eq!(module_class("nn.Module: My_Net_10"), Some("My_Net"));
        assert_eq!(module_class("nn.Module: Linear"), Some("Linear"));
        assert_eq!(module_class("aten::mm"), None);
    }

    #[test]
    fn work_of_models_is_known_by_file_and_operator() {
        for text in [
            "nn.Module: Linear_3",
            "torch/nn/functional.py(3400): cross_entropy",
            "torch/optim/adam.py(7): step",
            "torch/_tensor.py(7): backward",
            "aten::mm",
            "aten::convolution",
            "autograd::engine::evaluate_function: AddmmBackward0",
        ] {
            assert!(is_model(text), "{text}");
        }
        for text in [
            "torch/_tensor.py(7): norm",
            "torch/utils/data/dataloader.py(7): __next__",
            "aten::item",
            "aten::copy_",
        ] {
            assert!(!is_model(text), "{text}");
        }
    }

    #[test]
    fn wrappers_are_known_by_file_and_function() {
        assert!(is_wrapper("torch/optim/optimizer.py(5): wrapper"));
        assert!(!is_wrapper("torch/optim/adam.py(5): step"));
        assert!(!is_wrapper("wrapper"));
    }
}
