//! The macro that names a range of the program.

/// Records from here to the end of the enclosing block under a name that is known at compile time.
///
/// While nothing records, it costs one load.
///
/// ```
/// fn load() -> usize {
///     mindprof::scope!("load");
///     40 + 2
/// }
///
/// let (value, profile) = mindprof::profile(mindprof::Options::default(), load);
/// assert_eq!(value, 42);
/// assert!(profile.events().iter().any(|event| profile.name(event) == "load"));
/// ```
#[macro_export]
macro_rules! scope {
    ($name:literal) => {
        let _scope = {
            static SITE: $crate::expansion::Site = $crate::expansion::Site::annotation($name);
            $crate::expansion::scope(&SITE)
        };
    };
}
