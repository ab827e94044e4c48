//! The rules, one file each.

mod ai_cpu;
mod allocator_overhang;
mod anomaly_detection;
mod bad_capture;
mod below_roofline;
mod blocking_call;
mod card;
mod conv_bias_before_norm;
mod conversions;
mod created_on_host;
mod data_loading;
mod data_parallel;
mod debug_printing;
mod device_allocations;
mod device_idle;
mod dominant_operator;
mod double_precision;
mod environment;
mod frozen_forward;
mod fusible_chain;
mod gaps;
mod garbage_collection;
mod growing_memory;
mod heavy_copies;
mod host_copies;
mod host_fallback;
mod idle_pipes;
mod inference_with_gradients;
mod input_transfer;
#[cfg(test)]
pub(super) mod kit;
mod launch_blocking;
mod launch_bound;
mod layer_outlier;
mod layout_transforms;
mod loop_over_batch;
mod loops;
mod memory_pressure;
mod metric_loop;
mod misaligned_matmul;
mod module_hooks;
mod module_loops;
mod npu;
mod one_hot_product;
mod opaque_graph;
mod operator_loop;
mod optimizer_loop;
mod output_bound;
mod passes;
mod per_step_validation;
mod products;
mod python_bound;
mod recompilation;
mod recurrent_cells;
mod repeated_work;
mod shuffle_bound;
mod slow_fetch;
mod slow_start;
mod slow_step;
mod small_copies;
mod small_messages;
mod starvation;
mod step_drift;
mod sync_batchnorm;
mod synchronization;
mod tensor_cores;
mod unaligned_cube;
mod underfilled_device;
mod unfused_attention;
mod unstable_operator;
mod worker_restarts;
mod zeroed_gradients;

pub(super) use loops::Loop;
pub(super) use passes::Pass;

use super::rule::Rule;

/// Every rule.
pub const RULES: &[&Rule] = &[
    &ai_cpu::RULE,
    &allocator_overhang::RULE,
    &anomaly_detection::RULE,
    &bad_capture::RULE,
    &below_roofline::RULE,
    &blocking_call::RULE,
    &conv_bias_before_norm::RULE,
    &conversions::RULE,
    &created_on_host::RULE,
    &data_loading::RULE,
    &data_parallel::RULE,
    &debug_printing::RULE,
    &device_allocations::RULE,
    &device_idle::RULE,
    &dominant_operator::RULE,
    &double_precision::RULE,
    &environment::RULE,
    &frozen_forward::RULE,
    &fusible_chain::RULE,
    &garbage_collection::RULE,
    &growing_memory::RULE,
    &heavy_copies::RULE,
    &host_copies::RULE,
    &host_fallback::RULE,
    &idle_pipes::RULE,
    &inference_with_gradients::RULE,
    &input_transfer::RULE,
    &launch_blocking::RULE,
    &launch_bound::RULE,
    &layer_outlier::RULE,
    &layout_transforms::RULE,
    &loop_over_batch::RULE,
    &memory_pressure::RULE,
    &metric_loop::RULE,
    &misaligned_matmul::RULE,
    &module_hooks::RULE,
    &one_hot_product::RULE,
    &opaque_graph::RULE,
    &operator_loop::RULE,
    &optimizer_loop::RULE,
    &output_bound::RULE,
    &per_step_validation::RULE,
    &python_bound::RULE,
    &recompilation::RULE,
    &recurrent_cells::RULE,
    &repeated_work::RULE,
    &shuffle_bound::RULE,
    &slow_fetch::RULE,
    &slow_start::RULE,
    &slow_step::RULE,
    &small_copies::RULE,
    &small_messages::RULE,
    &starvation::RULE,
    &step_drift::RULE,
    &sync_batchnorm::RULE,
    &synchronization::RULE,
    &tensor_cores::RULE,
    &unaligned_cube::RULE,
    &underfilled_device::RULE,
    &unfused_attention::RULE,
    &unstable_operator::RULE,
    &worker_restarts::RULE,
    &zeroed_gradients::RULE,
];

/// Returns whether calls of this name are the profiler's, or the subject of a rule of their own, so
/// that they are not merely Python code.
fn is_of_another_rule(name: &str) -> bool {
    is_of_known_library(name) || blocking_call::is_waiting(name)
}

/// Returns whether calls of this name are the profiler's, or those of a library that has a rule of
/// its own.
fn is_of_known_library(name: &str) -> bool {
    output_bound::is_output(name)
        || debug_printing::is_printing(name)
        || garbage_collection::is_collect(name)
        || recompilation::is_compiler(name)
        || worker_restarts::is_start(name)
        || name.contains("torch/profiler/")
}
