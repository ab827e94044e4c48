//! How full a kernel makes its device, by torch's own functions.
//!
//! They take a record of a kernel, whichever version of CUPTI wrote it: the fields that they read
//! have not moved.

#![expect(
    unsafe_code,
    reason = "functions are called by addresses that were looked up by name"
)]

use std::ffi::CStr;

use crate::symbols::{LookUp, function};

/// Torch's functions, as far as this torch has them.
#[derive(Clone, Copy)]
pub(super) struct Occupancy {
    blocks: Option<OfKernel>,
    warps: Option<OfKernel>,
    achieved: Option<Achieved>,
}

/// Takes a record of a kernel.
type OfKernel = unsafe extern "C" fn(*const u8) -> f32;

/// Writes its results into its first argument.
type Metrics =
    unsafe extern "C" fn(*mut [u64; METRICS_WORDS], *const u8) -> *mut [u64; METRICS_WORDS];

/// The results begin with the occupancy and have 64 bytes. There is room for more.
const METRICS_WORDS: usize = 32;

#[derive(Clone, Copy)]
enum Achieved {
    /// Up to torch 2.11.
    Alone(OfKernel),
    /// Among other results.
    Metrics(Metrics),
}

/// How full a kernel makes its device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Filling {
    pub(super) blocks_per_sm: f32,
    pub(super) warps_per_sm: f32,
    /// Between zero and one; negative if it is unknown.
    pub(super) achieved: f32,
}

impl Occupancy {
    pub(super) fn resolve(look_up: LookUp<'_>) -> Self {
        // SAFETY: the mangled names contain the arguments' types, references to records, and the
        // results are those of the fields in all versions that have the names.
        unsafe {
            let alone = first(
                look_up,
                &[
                    c"_ZN9libkineto15kernelOccupancyERK21CUpti_ActivityKernel4",
                    c"_ZN9libkineto15kernelOccupancyERK21CUpti_ActivityKernel9",
                ],
            );
            let metrics = || {
                first(
                    look_up,
                    &[
                        c"_ZN9libkineto23computeOccupancyMetricsERK21CUpti_ActivityKernel9",
                        c"_ZN9libkineto23computeOccupancyMetricsERK22CUpti_ActivityKernel11",
                    ],
                )
            };
            Self {
                blocks: first(
                    look_up,
                    &[
                        c"_ZN9libkineto11blocksPerSmERK21CUpti_ActivityKernel4",
                        c"_ZN9libkineto11blocksPerSmERK21CUpti_ActivityKernel9",
                        c"_ZN9libkineto11blocksPerSmERK22CUpti_ActivityKernel11",
                    ],
                ),
                warps: first(
                    look_up,
                    &[
                        c"_ZN9libkineto10warpsPerSmERK21CUpti_ActivityKernel4",
                        c"_ZN9libkineto10warpsPerSmERK21CUpti_ActivityKernel9",
                        c"_ZN9libkineto10warpsPerSmERK22CUpti_ActivityKernel11",
                    ],
                ),
                achieved: alone
                    .map(Achieved::Alone)
                    .or_else(|| metrics().map(Achieved::Metrics)),
            }
        }
    }

    /// Returns how full a kernel makes its device, or `None` if this torch cannot tell.
    ///
    /// # Safety
    /// The record is that of a kernel.
    pub(super) unsafe fn of(self, record: *const u8) -> Option<Filling> {
        let (blocks, warps, achieved) = (self.blocks?, self.warps?, self.achieved?);
        // SAFETY: the caller passes a record, which the functions only read.
        unsafe {
            Some(Filling {
                blocks_per_sm: blocks(record),
                warps_per_sm: warps(record),
                achieved: match achieved {
                    Achieved::Alone(of_kernel) => of_kernel(record),
                    Achieved::Metrics(of_kernel) => {
                        let mut results = [0; METRICS_WORDS];
                        of_kernel(&raw mut results, record);
                        // The occupancy is the first half of the first word.
                        f32::from_bits(results[0] as u32)
                    }
                },
            })
        }
    }
}

/// # Safety
/// Each name that has an address is that of a function of type `F`.
unsafe fn first<F: Copy>(look_up: LookUp<'_>, names: &[&'static CStr]) -> Option<F> {
    let mut names = names.iter();
    // SAFETY: as the caller guarantees.
    names.find_map(|name| unsafe { function(look_up, name).ok() })
}
