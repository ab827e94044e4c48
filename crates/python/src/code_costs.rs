//! The cost of the user's functions, lines and modules for Python, as JSON and as text.

use mindprof_answers::{Functions, ModuleRows, Modules, OwnCode};
use mindprof_report::{CodeLayout, functions_text, lines_text, modules_text};

use crate::analyzed::Analyzed;

/// The arguments of a question about the user's code.
pub(crate) struct CodeQuestion {
    /// Parts of the paths of the user's files; empty to decide by library.
    pub(crate) mine: Vec<String>,
    /// The file whose lines are asked for.
    pub(crate) file: Option<String>,
    /// Whether each module has a row of its own.
    pub(crate) instances: bool,
    /// The width of the text.
    pub(crate) width: Option<usize>,
}

impl CodeQuestion {
    /// Returns the answer as JSON and as text, or `None` if there is no such question.
    pub(crate) fn answer(&self, analyzed: &Analyzed, what: &str) -> Option<(String, String)> {
        let layout = CodeLayout {
            width: self.width,
            ..CodeLayout::default()
        };
        match what {
            "functions" => {
                let found = self.functions(analyzed).without_lines();
                Some((found.json(), functions_text(&found, layout)))
            }
            "lines" => {
                let found = self.functions(analyzed).only_lines(self.file.as_deref());
                Some((found.json(), lines_text(&found, layout)))
            }
            "modules" => {
                let rows = if self.instances {
                    ModuleRows::Instances
                } else {
                    ModuleRows::Classes
                };
                let found = Modules::build(&analyzed.analysis, &analyzed.work, rows);
                Some((found.json(), modules_text(&found, layout)))
            }
            _ => None,
        }
    }

    fn functions(&self, analyzed: &Analyzed) -> Functions {
        let own = OwnCode::of(analyzed.analysis.profile().metadata(), &self.mine);
        Functions::build(&analyzed.analysis, &analyzed.work, &own)
    }
}
