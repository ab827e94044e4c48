//! The commands, in the order of `mindprof --help`.
//!
//! Each command is a module of its own: its arguments as a clap struct, and a `run` function.

use clap::Subcommand;

use crate::failure::Outcome;

pub(crate) mod advise;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod critical_path;
pub(crate) mod device;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod functions;
pub(crate) mod info;
pub(crate) mod man;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod rank_outputs;
pub(crate) mod ranks;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod slim;
pub(crate) mod stacks;
pub(crate) mod steps;
pub(crate) mod summarize;
pub(crate) mod table;
pub(crate) mod verify;
pub(crate) mod what_if;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Profile an unmodified Python program.
    Run(run::RunArgs),
    /// Print why the program is slow, what mending it would save, and what to try.
    Advise(advise::AdviseArgs),
    /// Explain a trace in one page of Markdown.
    Explain(explain::ExplainArgs),
    /// Write one offline page about a trace, with a timeline and all tables.
    Report(report::ReportArgs),
    /// Print a table of operators and their times.
    Table(table::TableArgs),
    /// Print your own functions and their times.
    Functions(functions::FunctionsArgs),
    /// Print the lines of your own code and their times.
    Lines(functions::LinesArgs),
    /// Print the modules of the model and their times.
    Modules(functions::ModulesArgs),
    /// Print what the time of each step was spent on, and slow steps.
    Steps(steps::StepsArgs),
    /// Print how devices were used, and why they were idle.
    Device(device::DeviceArgs),
    /// Print what determines the time of a step, and what would save most.
    CriticalPath(critical_path::CriticalPathArgs),
    /// Print how long a step would take if some of its work were faster.
    WhatIf(what_if::WhatIfArgs),
    /// Print time by call stack, or draw a flame graph.
    Stacks(stacks::StacksArgs),
    /// Print peak memory and its owners, or write a timeline.
    Memory(memory::MemoryArgs),
    /// Print what the traces of all ranks of a job tell together.
    Ranks(ranks::RanksArgs),
    /// Sum up the trace of one rank in a small file.
    Summarize(summarize::SummarizeArgs),
    /// Merge summaries of ranks, and print what they tell together.
    Merge(merge::MergeArgs),
    /// Print the steps, threads, devices and metadata of a trace.
    Info(info::InfoArgs),
    /// Compare two traces row by row.
    Diff(diff::DiffArgs),
    /// Cut a trace down to some steps, threads or a size.
    Slim(slim::SlimArgs),
    /// Convert a trace to another format.
    Convert(convert::ConvertArgs),
    /// Check a trace for faults.
    Verify(verify::VerifyArgs),
    /// Print shell completions.
    Completions(completions::CompletionsArgs),
    /// Print the manual page of the program or of a command.
    Man(man::ManArgs),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(&self) -> anyhow::Result<Outcome> {
        match self {
            Self::Run(args) => run::run(args),
            Self::Advise(args) => advise::run(args),
            Self::Explain(args) => explain::run(args),
            Self::Report(args) => report::run(args),
            Self::Table(args) => table::run(args),
            Self::Functions(args) => functions::run(args),
            Self::Lines(args) => functions::run_lines(args),
            Self::Modules(args) => functions::run_modules(args),
            Self::Steps(args) => steps::run(args),
            Self::Device(args) => device::run(args),
            Self::CriticalPath(args) => critical_path::run(args),
            Self::WhatIf(args) => what_if::run(args),
            Self::Stacks(args) => stacks::run(args),
            Self::Memory(args) => memory::run(args),
            Self::Ranks(args) => ranks::run(args),
            Self::Summarize(args) => summarize::run(args),
            Self::Merge(args) => merge::run(args),
            Self::Info(args) => info::run(args),
            Self::Diff(args) => diff::run(args),
            Self::Slim(args) => slim::run(args),
            Self::Convert(args) => convert::run(args),
            Self::Verify(args) => verify::run(args),
            Self::Completions(args) => completions::run(args),
            Self::Man(args) => man::run(args),
        }
    }

    /// Returns the exit code for a failure of the command.
    pub(crate) fn failure_code(&self) -> u8 {
        match self {
            // These report a finding with code 1, so a failure needs another.
            Self::Verify(_) | Self::Diff(_) | Self::Advise(_) | Self::Ranks(_) | Self::Merge(_) => {
                2
            }
            Self::Run(_)
            | Self::Table(_)
            | Self::Explain(_)
            | Self::Report(_)
            | Self::Functions(_)
            | Self::Lines(_)
            | Self::Modules(_)
            | Self::Steps(_)
            | Self::Device(_)
            | Self::CriticalPath(_)
            | Self::WhatIf(_)
            | Self::Stacks(_)
            | Self::Memory(_)
            | Self::Summarize(_)
            | Self::Info(_)
            | Self::Slim(_)
            | Self::Convert(_)
            | Self::Completions(_)
            | Self::Man(_) => 1,
        }
    }
}
