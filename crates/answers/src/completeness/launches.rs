//! The launches of kernels whose device work a profile lacks: the device was recorded, but its work is
//! lost or was not written.

use mindprof_model::{Category, DeviceKind, EventId, Profile};
use rustc_hash::FxHashSet;

/// So many launches are needed to tell whether some of their kernels are missing.
const ENOUGH: u64 = 20;

/// The part of the launches whose kernels may be missing: those of the last moments of a recording.
const MISSING: f64 = 0.1;

/// The numbers of launches with and without device work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Launches {
    /// The launches of kernels, without those that a captured graph records for later.
    made: u64,
    /// Those whose device work is missing.
    unanswered: u64,
    has_work: bool,
}

impl Launches {
    /// Counts the launches of a profile.
    pub(super) fn count(profile: &Profile) -> Self {
        let calls: Vec<Call> = profile.strings().iter().map(Call::of).collect();
        let correlation = |index: usize| {
            let links = profile.links(EventId::from_index(index));
            links.map_or(0, |links| links.correlation)
        };
        let is_device: Vec<bool> = (profile.threads().iter())
            .map(|thread| thread.device != DeviceKind::Cpu)
            .collect();
        // The backward pass of a captured step launches on a thread of its own.
        let mut capturing: FxHashSet<u64> = FxHashSet::default();
        let mut launches: Vec<u32> = Vec::new();
        let mut worked: Vec<u32> = Vec::new();
        let mut counted = Self::default();
        for (index, event) in profile.events().iter().enumerate() {
            let thread = event.thread.index();
            match event.category {
                Category::Kernel if is_device[thread] => {
                    counted.has_work = true;
                    worked.push(correlation(index));
                }
                Category::Runtime => {
                    let process = profile.threads()[thread].process;
                    match calls[event.name.index()] {
                        Call::Launch if !capturing.contains(&process) => {
                            launches.push(correlation(index));
                        }
                        Call::BeginCapture => {
                            capturing.insert(process);
                        }
                        Call::EndCapture => {
                            capturing.remove(&process);
                        }
                        Call::Launch | Call::Other => {}
                    }
                }
                Category::Kernel
                | Category::Operator
                | Category::Annotation
                | Category::PythonFunction
                | Category::DeviceAnnotation
                | Category::Other => {}
            }
        }
        counted.made = launches.len() as u64;
        if !launches.is_empty() {
            let worked: FxHashSet<u32> = worked.into_iter().collect();
            let is_missing = |correlation: &&u32| !worked.contains(*correlation);
            counted.unanswered = launches.iter().filter(is_missing).count() as u64;
        }
        counted
    }

    /// Returns the numbers of launches whose device work is missing and of all launches, if so many
    /// miss theirs that the work was not recorded as a whole.
    pub(super) fn lacking(self) -> Option<(u64, u64)> {
        let are_many = self.made >= ENOUGH && self.unanswered as f64 > MISSING * self.made as f64;
        let lacks_all = !self.has_work && self.made > 0;
        (are_many || lacks_all).then_some((self.unanswered, self.made))
    }
}

/// A call of a device's runtime, by what it means for the work that is expected.
#[derive(Clone, Copy)]
enum Call {
    Launch,
    BeginCapture,
    EndCapture,
    Other,
}

impl Call {
    fn of(name: &str) -> Self {
        if name.contains("LaunchKernel") {
            Self::Launch
        } else if name.contains("StreamBeginCapture") {
            Self::BeginCapture
        } else if name.contains("StreamEndCapture") {
            Self::EndCapture
        } else {
            Self::Other
        }
    }
}
