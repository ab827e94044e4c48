//! The macro that opens a named scope.

/// Records a scope from here to the end of the enclosing block, under a name that is known at
/// compile time.
///
/// Costs one load while nothing records.
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
