//! The interface for frameworks: record your operators as scopes, the way the embedded runtime and
//! the torch observer do, and attach what your devices did when a recording ends.
//!
//! A [`Site`] names an operator that is known at compile time, a [`Name`] one that is not. While
//! nothing records, opening a scope costs one load.
//!
//! ```
//! use mindprof::host::{DType, DeviceEvent, DeviceKind, Name, NameKind, Part, Site};
//! use mindprof::host::{memory, open_with, scope_with};
//! use mindprof::{Options, Session};
//!
//! fn add(a: &[f32], b: &[f32]) -> Vec<f32> {
//!     static ADD: Site = Site::operator("example::add");
//!     let _scope = scope_with(&ADD, |inputs| {
//!         inputs.tensor(DType::F32, &[a.len()], &[1]);
//!         inputs.tensor(DType::F32, &[b.len()], &[1]);
//!     });
//!     let sum: Vec<f32> = a.iter().zip(b).map(|(a, b)| a + b).collect();
//!     let bytes = size_of_val(&*sum) as i64;
//!     memory(sum.as_ptr() as u64, bytes, || bytes as u64);
//!     sum
//! }
//!
//! let options = Options { inputs: true, memory: true, ..Options::default() };
//! let session = Session::start(options);
//! add(&[1.0, 2.0], &[3.0, 4.0]);
//! // A name that is only known at run time, and a kernel that the operator launches.
//! let launch = Name::intern("example::matmul", NameKind::Operator);
//! if let Some(operator) = open_with(launch, |inputs| inputs.int(64)) {
//!     operator.set_external(1);
//!     operator.close();
//! }
//!
//! let mut capture = session.stop();
//! let start_unix_ns = capture.axis().reference_unix_ns() + 2_000;
//! let kernel = DeviceEvent {
//!     name: 0,
//!     start_unix_ns,
//!     end_unix_ns: start_unix_ns + 700,
//!     stream: 3,
//!     correlation: 1, // the external id of the operator that launched it
//!     device: 0,
//! };
//! let names = ["matmul_kernel"];
//! capture.attach(Part::from_device_events(DeviceKind::PrivateUse1, &names, &[kernel])?)?;
//!
//! let table = mindprof::table(&capture.assemble(), &mindprof::TableOptions::default());
//! for name in ["example::add", "example::matmul", "matmul_kernel"] {
//!     assert!(table.contains(name));
//! }
//! # Ok::<(), mindprof::host::PartError>(())
//! ```

pub use mindprof_model::{DType, DeviceEvent, DeviceKind, Error as PartError, Part};
pub use mindprof_record::{
    Capture, InputsRewriter, Name, NameKind, OpenScope, Site, TimeAxis, is_recording, memory, open,
    open_with, scope, scope_with, wants_inputs,
};
