//! Which kernels use tensor cores, told by their names, and which operators could.

/// Parts of the names of kernels that multiply matrices on tensor cores.
const MARKERS: [&str; 28] = [
    // The shapes of the instruction.
    "h884",
    "s884",
    "h1688",
    "s1688",
    "c1688",
    "i8816",
    "16816",
    "hmma",
    "wgmma",
    "gmma",
    "tensorop",
    // Libraries whose kernels use them.
    "nvjet",
    "xmma_gemm",
    "xmma_implicit_gemm",
    "xmma_fprop_implicit_gemm",
    "xmma_dgrad_implicit_gemm",
    "xmma_wgrad_implicit_gemm",
    "xmma_wgrad_indexed_implicit_gemm",
    "xmma_sparse_conv",
    "xmma_sparse_gemm",
    "xmma_warp_specialized_implicit_gemm",
    "flash_fwd",
    "flash_bwd",
    "flash_fprop",
    "flash_bprop",
    // Convolutions of older versions of cuDNN.
    "first_layer_wgrad_kernel",
    "dgrad_1x1_stride_2x2",
    "conv2d_c1_k1",
];

/// Parts of the names of kernels that do not, although they have one of the markers: kernels of the
/// same libraries for single precision.
const COUNTER_MARKERS: [&str; 3] = ["ffma", "simt", "sgemm"];

/// Returns whether a kernel uses tensor cores, by its name.
pub(crate) fn uses_tensor_cores(kernel: &str) -> bool {
    let has = |marker: &&str| kernel.contains(*marker);
    MARKERS.iter().any(has) && !COUNTER_MARKERS.iter().any(has)
}

/// Returns whether an operator multiplies matrices, which tensor cores can do.
pub(crate) fn multiplies_matrices(operator: &str) -> bool {
    let Some(name) = operator.strip_prefix("aten::") else {
        return false;
    };
    match name {
        "mm" | "addmm" | "addmm_" | "_addmm_activation" | "bmm" | "baddbmm" | "addbmm"
        | "matmul" | "linear" | "linear_backward" | "_scaled_mm" | "_grouped_mm" | "_int_mm" => {
            true
        }
        _ => {
            name.contains("conv") && !name.contains("convert")
                || name.contains("scaled_dot_product")
                || name.contains("_flash_attention")
                || name.contains("_efficient_attention")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_tell_it_by_their_names() {
        for (kernel, expected) in [
            ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", true),
            (
                "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
                true,
            ),
            (
                "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>",
                true,
            ),
            ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT", true),
            (
                "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc",
                true,
            ),
            (
                "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26",
                true,
            ),
            (
                "sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x64x64",
                true,
            ),
            (
                "void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<xmma__5x_cudnn::implicit_gemm::wgrad_indexed::Warp_specialized_params>",
                false,
            ),
            // The plugin for TensorBoard takes this one for tensor cores: it is single precision.
            (
                "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4",
                false,
            ),
            (
                "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>",
                false,
            ),
            ("volta_sgemm_128x64_nn", false),
            ("void at::native::vectorized_elementwise_kernel<4>", false),
        ] {
            assert_eq!(uses_tensor_cores(kernel), expected, "{kernel}");
        }
    }

    #[test]
    fn operators_that_could_use_them_are_known() {
        for operator in [
            "aten::addmm",
            "aten::cudnn_convolution",
            "aten::convolution_backward",
        ] {
            assert!(multiplies_matrices(operator), "{operator}");
        }
        for operator in ["aten::add", "aten::_convert_indices", "addmm", "aten::mul"] {
            assert!(!multiplies_matrices(operator), "{operator}");
        }
    }
}
