//! The native module `mindprof._core`: extracts arguments, calls the engine and wraps results.
//!
//! The Python packages `mindprof` and `mindtorch_v2` are its only users, and `_core.pyi` lists its
//! names. The names that only `mindtorch_v2` needs come from `runtime/python` and exist if the
//! feature `runtime` is on, which is the default.

#![expect(
    clippy::needless_pass_by_value,
    reason = "PyO3 hands over extracted arguments by value"
)]

mod analyzed;
mod arrow;
mod averages;
mod code_costs;
mod command;
mod device_records;
mod diff;
mod enter;
mod error;
mod event_export;
mod event_tree;
mod events;
mod export;
mod from_dict;
mod function_event;
mod handmade_events;
mod held_tensors;
mod host_operators;
mod inputs;
mod interposed;
mod keyword_arguments;
mod load;
mod memory_timeline;
mod names;
mod numbers;
mod operator_names;
mod pending_exception;
mod pickle;
mod profile;
mod py_cache;
mod python_calls;
mod range;
mod ranks;
mod raw_results;
mod record_function;
mod replacement;
mod replays;
mod report_page;
mod run_report;
mod runtime;
mod sampled_stacks;
mod session;
mod sole_reference;
mod source_files;
mod stack_source;
mod stacks;
mod table;
mod tensor_roles;
mod thread_names;
mod torch_names;
mod torch_probe;

// Shared with the embedded runtime's binding.
use mindprof_python_support::{arguments, gil_cell, named_argument};

// `benchmarks/huge_pages.py` measures how much faster the first averages of a recording become.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mindprof_allocator::HugePages = mindprof_allocator::HugePages;

/// Fills every cell that holds something looked up in Python, while the module is imported.
///
/// If one thread is filling a cell while another forks, the cell stays half filled in the child,
/// and every access to it waits forever. Therefore no cell is filled on first use: each module that
/// owns one has a `prefill`, and all of them are called here. Cells that need the Python packages
/// are filled when those are imported (`look_up_classes`, `look_up_sizes`).
fn prefill(py: pyo3::Python<'_>) -> pyo3::PyResult<()> {
    mindprof_python_support::prefill(py)?;
    py_cache::prefill(py);
    python_calls::prefill(py);
    tensor_roles::prefill(py);
    held_tensors::prefill(py);
    runtime::prefill(py);
    Ok(())
}

#[pyo3::pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use crate::arrow::ArrowTable;
    #[pymodule_export]
    use crate::averages::{Averages, metrics, percentiles_of, told_percentiles};
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::device_records::{DeviceRecords, kineto_is_active};
    #[pymodule_export]
    use crate::diff::{Diff, diff_profiles};
    #[pymodule_export]
    use crate::error::ProfilerError;
    #[pymodule_export]
    use crate::event_tree::EventTree;
    #[pymodule_export]
    use crate::events::{Events, KinetoEventIterator};
    #[pymodule_export]
    use crate::export::summarize_profile;
    #[pymodule_export]
    use crate::export::{write_chrome_trace, write_execution_trace};
    #[pymodule_export]
    use crate::function_event::{FunctionEvent, KinetoEvent};
    #[pymodule_export]
    use crate::handmade_events::{given_groups, given_table, given_tree};
    #[pymodule_export]
    use crate::host_operators::{
        close_operator, is_recording_now, open_dispatched_operator, open_operator, report_memory,
        wants_inputs_now,
    };
    #[pymodule_export]
    use crate::inputs::set_list_values_recorded;
    #[pymodule_export]
    use crate::interposed::{InterposedFunction, torchs_own_answer};
    #[pymodule_export]
    use crate::load::{load_bytes, load_profile, profile_loss, profile_metadata};
    #[pymodule_export]
    use crate::names::{is_device_work, is_hidden_event};
    #[pymodule_export]
    use crate::numbers::{format_memory, format_time, format_time_share, is_shown_frame};
    #[pymodule_export]
    use crate::pickle::{event_at, events_of_trace, profile_of_trace};
    #[pymodule_export]
    use crate::profile::Profile;
    #[pymodule_export]
    use crate::py_cache::{first_package, look_up_classes};
    #[pymodule_export]
    use crate::python_calls::{follow_thread, name_optimizer_steps};
    #[pymodule_export]
    use crate::range::{
        GarbageListener, RangeHandle, RecordFunctionFast, StepRange,
        record_function_with_args_enter, record_function_with_args_exit,
    };
    #[pymodule_export]
    use crate::ranks::{
        ask_ranks, choose_rank_files, count_ranks, list_rank_files, merge_ranks, summarize_rank,
        summarize_rank_bytes, tell_ranks, write_ranks_html, write_ranks_parquet, write_ranks_trace,
    };
    #[pymodule_export]
    use crate::raw_results::{check_torch_results, raw_events};
    #[pymodule_export]
    use crate::record_function::RecordFunction;
    #[pymodule_export]
    use crate::replacement::{Replacement, complete};
    #[pymodule_export]
    use crate::report_page::{report_overview, write_report};
    #[pymodule_export]
    use crate::run_report::{RunReport, RunScreen, last_part, run_report};
    #[pymodule_export]
    use crate::session::{Session, checked_only, is_profiling};
    #[pymodule_export]
    use crate::source_files::name_own_folder;
    #[pymodule_export]
    use crate::stack_source::{name_module_calls, pause_calls, resume_calls};
    #[pymodule_export]
    use crate::stacks::{write_flamegraph, write_paths, write_speedscope, write_stacks};
    #[pymodule_export]
    use crate::table::sort_keys;
    #[pymodule_export]
    use crate::tensor_roles::{
        OptimizerWatch, name_torch_tensors, note_module, note_optimizer, torch_tensor_address,
    };
    #[pymodule_export]
    use crate::torch_names::TorchWithoutSlot;
    #[pymodule_export]
    use crate::torch_probe::{
        TorchProbe, check_torch_memory, is_observing_torch, torch_begin_unrecorded,
        torch_forks_are_safe, torch_ranges_heard,
    };

    #[pymodule_export]
    use mindprof_python_support::TensorInput;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        mindprof_python_support::gil_cell::require_lock(module.py())?;
        // Before other fork hooks are registered, as it requires.
        mindprof_pytorch::watch_forks();
        // The earlier the clock has its first anchor, the better its rate is known.
        mindprof_record::Session::prepare();
        mindprof_python_support::enter::watch_forks();
        crate::prefill(module.py())?;
        crate::runtime::register(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
