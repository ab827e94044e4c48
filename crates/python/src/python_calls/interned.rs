//! Interned names of the interpreter's attributes that are looked up while calls are followed.

use mindprof_python_support::interned_names;

interned_names! {
    /// The attributes of code objects and frames, and the paths to `sys.getprofile` and to the module
    /// of greenlets.
    pub(super) struct CallNames {
        code_file = "co_filename",
        code_line = "co_firstlineno",
        code_name = "co_name",
        frame_instruction = "f_lasti",
        frame_locals = "f_locals",
        getprofile,
        greenlet,
        modules,
        sys,
    }
}
