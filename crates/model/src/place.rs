//! Places in Python source files, as the frames of stacks name them.

use std::path::Path;

/// A place in a Python source file, parsed from a frame such as `train.py(12): step`.
///
/// Profiles store frames as text, because that is how traces spell them. Every
/// reader of a file or a line takes the text apart with this type, so that all agree on where each
/// part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place<'a> {
    /// The file, relative to the folder that it was imported from.
    pub file: &'a str,
    /// The line: of the call in a stack, or of the definition in the name of a Python call.
    pub line: u32,
    /// The name of the function.
    pub function: &'a str,
}

impl<'a> Place<'a> {
    /// Parses a frame. Returns `None` if it names no line, as a built-in function or a module.
    ///
    /// ```
    /// use mindprof_model::Place;
    ///
    /// let place = Place::parse("src/train.py(12): step").unwrap();
    /// assert_eq!((place.file, place.line, place.function), ("src/train.py", 12, "step"));
    /// assert_eq!(Place::parse("nn.Module: Linear_0"), None);
    /// ```
    pub fn parse(frame: &'a str) -> Option<Self> {
        let (place, function) = frame.rsplit_once("): ")?;
        let (file, line) = place.rsplit_once('(')?;
        Some(Self {
            file,
            line: line.parse().ok()?,
            function,
        })
    }

    /// Returns whether the file is one of Python: stacks of some tools have frames of C++ too.
    pub fn is_python(&self) -> bool {
        let extension = Path::new(self.file).extension();
        extension.is_some_and(|extension| extension == "py") || self.file.starts_with('<')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_contain_parentheses() {
        let place = Place::parse("my (old): copy/a.py(7): <lambda>").unwrap();
        let expected = ("my (old): copy/a.py", 7, "<lambda>");
        assert_eq!((place.file, place.line, place.function), expected);
    }

    #[test]
    fn frames_of_other_languages_are_told_apart() {
        let is_python = |frame| Place::parse(frame).unwrap().is_python();
        assert!(is_python("/w/train.py(7): step") && is_python("<stdin>(1): <module>"));
        assert!(!is_python("??(0): at::mm") && !is_python("engine.cpp(0): run"));
    }

    #[test]
    fn frames_without_a_line_are_no_places() {
        for frame in [
            "",
            "aten::mm",
            "<built-in method sleep>",
            "a.py(x): f",
            "a.py: f",
        ] {
            assert_eq!(Place::parse(frame), None, "{frame}");
        }
    }
}
