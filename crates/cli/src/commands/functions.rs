//! `mindprof functions`, `mindprof lines` and `mindprof modules`: print the user's own functions,
//! lines or modules with their cost.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use mindprof_analyze::Analysis;
use mindprof_answers::{Functions, ModuleRows, Modules, OwnCode, Sources, Work};
use mindprof_model::Profile;
use mindprof_report::{CodeLayout, annotated_text, functions_text, lines_text, modules_text};

use crate::failure::{Outcome, advised};
use crate::input::ReadLimits;
use crate::output::{print, print_line, tell};
use crate::selected::{Selected, read_selected};
use crate::terminal::terminal_width;

const FUNCTIONS_EXAMPLE: &str = "\
Example:
  mindprof functions trace.json.gz --mine src/

Own time is that of the function's own code and of the operators and libraries
that it calls; time of backward operators counts at the line of their forward
operator. Total time includes your other functions that it calls.

Exit codes: 0 success, 1 failure, 2 usage error";

const LINES_EXAMPLE: &str = "\
Example:
  mindprof lines trace.json.gz train.py

Without FILE, it lists the lines that cost most.
Own time is that of the operators and libraries that the line calls; time of
backward operators counts at the line of their forward operator.

Exit codes: 0 success, 1 failure, 2 usage error";

const MODULES_EXAMPLE: &str = "\
Example:
  mindprof modules trace.json.gz --instances

Own time is that of a module without the modules in it, forward and backward
together. The number after a class is that of its instances.

Exit codes: 0 success, 1 failure, 2 usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = FUNCTIONS_EXAMPLE)]
pub(crate) struct FunctionsArgs {
    #[command(flatten)]
    listing: Listing,

    #[command(flatten)]
    code: Code,
}

#[derive(Debug, clap::Args)]
#[command(after_help = LINES_EXAMPLE)]
pub(crate) struct LinesArgs {
    #[command(flatten)]
    listing: Listing,

    /// Source file to print with the cost of its lines, by its path or the end of it.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    code: Code,
}

#[derive(Debug, clap::Args)]
#[command(after_help = MODULES_EXAMPLE)]
pub(crate) struct ModulesArgs {
    #[command(flatten)]
    listing: Listing,

    /// Show a row for each module instead of one for each class.
    #[arg(long)]
    instances: bool,
}

/// Which code is the user's own.
#[derive(Debug, clap::Args)]
pub(crate) struct Code {
    /// Take files whose path contains TEXT as your code, instead of all that are not in a library;
    /// may be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(crate) mine: Vec<String>,
}

/// The options of all three commands: the trace and the layout of rows.
#[derive(Debug, clap::Args)]
struct Listing {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    #[command(flatten)]
    selected: Selected,

    /// Show at most N rows; -1 shows all [default: 20; all with --json]
    #[arg(
        long,
        alias = "limit",
        value_name = "N",
        default_value_t = 20,
        allow_negative_numbers = true
    )]
    row_limit: i64,

    /// Limit the width; 0 means no limit [default: terminal width]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Listing {
    fn read(&self) -> anyhow::Result<Analysis> {
        read_selected(&self.trace, self.limits, &self.selected)
    }

    fn layout(&self) -> CodeLayout {
        let asked = self.width.or_else(terminal_width);
        CodeLayout {
            rows: usize::try_from(self.row_limit).unwrap_or(usize::MAX),
            width: asked.filter(|&width| width > 0),
        }
    }
}

/// Prints the functions of a trace.
pub(crate) fn run(args: &FunctionsArgs) -> anyhow::Result<Outcome> {
    let analysis = args.listing.read()?;
    let functions = functions(&analysis, &args.code.mine).without_lines();
    if args.listing.json {
        print_line(&functions.json())?;
    } else {
        print(&functions_text(&functions, args.listing.layout()))?;
    }
    Ok(Outcome::Fine)
}

/// Prints the lines of a trace, or a source file with the cost of its lines.
pub(crate) fn run_lines(args: &LinesArgs) -> anyhow::Result<Outcome> {
    let analysis = args.listing.read()?;
    let file = args.file.as_deref().map(Path::to_string_lossy);
    let all = functions(&analysis, &args.code.mine);
    let known: Vec<String> = all.files().into_iter().map(Into::into).collect();
    let lines = all.only_lines(file.as_deref());
    if let Some(file) = file.as_deref().filter(|_| lines.files().is_empty()) {
        let hint = match known.as_slice() {
            [] => "record with stacks (with_stack=True)".into(),
            known => format!("choose from {}", known.join(", ")),
        };
        return Err(advised(
            format!("no cost at lines of `{file}` in the trace"),
            hint,
        ));
    }
    if args.listing.json {
        print_line(&lines.json())?;
        return Ok(Outcome::Fine);
    }
    let layout = args.listing.layout();
    let Some(asked) = args.file.as_deref() else {
        print(&lines_text(&lines, layout))?;
        return Ok(Outcome::Fine);
    };
    // Files of one name have a list each, as if each had been asked for.
    let files = lines.files();
    let asked = (files.len() == 1).then_some(asked);
    for (number, &file) in files.iter().enumerate() {
        if number > 0 {
            print_line("")?;
        }
        let lines = lines.clone().only_lines(Some(file));
        match source_of(analysis.profile(), file, asked) {
            Some(source) => print(&annotated_text(&lines, &source, layout))?,
            None => print(&lines_text(&lines, layout))?,
        }
    }
    Ok(Outcome::Fine)
}

/// Prints the modules of a trace.
pub(crate) fn run_modules(args: &ModulesArgs) -> anyhow::Result<Outcome> {
    let analysis = args.listing.read()?;
    let rows = if args.instances {
        ModuleRows::Instances
    } else {
        ModuleRows::Classes
    };
    let modules = Modules::build(&analysis, &Work::of(&analysis), rows);
    if args.listing.json {
        print_line(&modules.json())?;
    } else {
        print(&modules_text(&modules, args.listing.layout()))?;
    }
    Ok(Outcome::Fine)
}

fn functions(analysis: &Analysis, mine: &[String]) -> Functions {
    let own = OwnCode::of(analysis.profile().metadata(), mine);
    Functions::build(analysis, &Work::of(analysis), &own)
}

/// Reads the text of a source file, and reports on stderr if it cannot be read or has changed.
fn source_of(profile: &Profile, name: &str, asked: Option<&Path>) -> Option<String> {
    let listed = Sources::read(profile.metadata());
    let listed = listed.as_ref().and_then(|sources| sources.path(name));
    let paths = [listed.map(Path::new), asked, Some(Path::new(name))];
    let path = paths.into_iter().flatten().find(|path| path.is_file());
    let Some(path) = path else {
        tell(&format!(
            "the source of {name} is not here: showing its lines without it"
        ));
        return None;
    };
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            tell(&format!(
                "{}: {error}: showing its lines without it",
                path.display()
            ));
            return None;
        }
    };
    let written = fs::metadata(path).and_then(|about| about.modified()).ok();
    let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let end = profile.reference_unix_ns().saturating_add(profile.span().0);
    if written.is_some_and(|written| written.as_nanos() > u128::from(end)) {
        tell(&format!(
            "warning: {} was changed after the recording: the cost may be at other lines",
            path.display()
        ));
    }
    Some(text)
}
