//! Names of the interpreter's objects that are looked up while calls are followed.

use mindprof_python_support::interned_names;

interned_names! {
    /// Attributes of code objects and frames, and where the profile hook is found.
    pub(super) struct CallNames {
        code_file = "co_filename",
        code_line = "co_firstlineno",
        code_name = "co_name",
        frame_instruction = "f_lasti",
        frame_locals = "f_locals",
        getprofile,
        sys,
    }
}
