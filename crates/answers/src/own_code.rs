//! Which source files are the user's own, as opposed to libraries.
//!
//! People can change their own code, so that functions and lines are listed for it alone; time in
//! libraries is charged to the line of the user's that called them.

use mindprof_model::{Metadata, Place};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::questions::json;
use crate::source_files::SourceFiles;

/// The metadata key under which a recording lists the source files that are not of a library.
pub const SOURCES_KEY: &str = "mindprof_sources";

/// Folders that hold installed packages.
const INSTALLED: [&str; 4] = [
    "site-packages/",
    "dist-packages/",
    "/lib/python3.",
    "/lib64/python3.",
];

/// Packages that are libraries wherever they lie: in source trees they are not among the installed.
const RECORDED: [&str; 3] = ["mindprof", "mindtorch_v2", "torch"];

/// Pseudo files that a user's code comes from: notebooks, `python -c`, `exec`, standard input.
const TYPED: [&str; 4] = ["<ipython-input", "<string>", "<stdin>", "<cell"];

/// Packages and modules that are libraries in traces that do not list their sources, where files
/// are named relative to the folder that they were imported from.
const LIBRARIES: [&str; 91] = [
    "_pytest",
    "_weakrefset",
    "absl",
    "abc",
    "accelerate",
    "aiohttp",
    "apex",
    "argparse",
    "ast",
    "asyncio",
    "bdb",
    "bisect",
    "cProfile",
    "codecs",
    "collections",
    "concurrent",
    "contextlib",
    "copy",
    "csv",
    "ctypes",
    "cv2",
    "dataclasses",
    "datasets",
    "datetime",
    "decimal",
    "deepspeed",
    "einops",
    "email",
    "encodings",
    "enum",
    "fsspec",
    "functools",
    "genericpath",
    "gzip",
    "heapq",
    "huggingface_hub",
    "importlib",
    "inspect",
    "ipykernel",
    "json",
    "keras",
    "lightning",
    "lightning_fabric",
    "linecache",
    "logging",
    "matplotlib",
    "mindprof",
    "mindtorch_v2",
    "multiprocessing",
    "numpy",
    "operator",
    "os",
    "pandas",
    "pathlib",
    "peft",
    "pickle",
    "PIL",
    "pluggy",
    "posixpath",
    "pytest",
    "pytorch_lightning",
    "queue",
    "random",
    "re",
    "runpy",
    "safetensors",
    "scipy",
    "selectors",
    "shutil",
    "sklearn",
    "socket",
    "string",
    "subprocess",
    "tempfile",
    "tensorboard",
    "threading",
    "tokenizers",
    "torch",
    "torchaudio",
    "torchmetrics",
    "torchvision",
    "tqdm",
    "traceback",
    "transformers",
    "triton",
    "trl",
    "typing",
    "unittest",
    "urllib",
    "warnings",
    "weakref",
];

/// The sources that a recording lists in its metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The user's own files: the names by which frames refer to them, and their paths.
    pub own: Vec<(String, String)>,
}

impl Sources {
    /// Reads the sources from the metadata of a profile, or returns `None` if it lists none.
    pub fn read(metadata: &Metadata) -> Option<Self> {
        serde_json::from_str(metadata.get(SOURCES_KEY)?).ok()
    }

    /// Returns the JSON that [`Self::read`] expects in the metadata.
    pub fn json(&self) -> String {
        json(self)
    }

    /// Adds the sources of another process that runs the same program. Files that both name are
    /// listed once, with the path that was listed first.
    pub fn add(&mut self, other: Self) {
        let known: FxHashSet<String> = self.own.iter().map(|(name, _)| name.clone()).collect();
        let new = other.own.into_iter();
        self.own
            .extend(new.filter(|(name, _)| !known.contains(name)));
        self.own.sort_unstable();
    }

    /// Returns the path of a file that frames refer to by this name.
    pub fn path(&self, file: &str) -> Option<&str> {
        let found = self.own.iter().find(|(name, _)| name == file);
        found.map(|(_, path)| path.as_str())
    }
}

/// Decides which source files are the user's own.
///
/// The patterns of the user decide if there are any. Otherwise the sources that the recording lists
/// do, and for traces of other tools the names of the files.
#[derive(Clone, Debug, Default)]
pub struct OwnCode {
    patterns: Vec<String>,
    /// The paths of the sources that the recording lists, by their names in frames.
    listed: Option<FxHashMap<String, String>>,
    /// The functions of the user's files, as far as they are known.
    functions: SourceFiles,
}

impl OwnCode {
    /// Reads the sources of a profile from its metadata.
    ///
    /// `patterns` are parts of paths, such as `src/` or `train.py`: if there are any, only files
    /// that contain one of them are the user's own. The whole path is known of files that the
    /// recording lists, and of others the name that frames have for them.
    pub fn of(metadata: &Metadata, patterns: &[String]) -> Self {
        let listed = Sources::read(metadata).map(|sources| sources.own.into_iter().collect());
        Self {
            patterns: patterns.to_vec(),
            listed,
            functions: SourceFiles::read(metadata),
        }
    }

    /// Adds the functions of the user's files, which a recording lists only after its end.
    #[must_use]
    pub fn with_functions(self, functions: SourceFiles) -> Self {
        Self { functions, ..self }
    }

    /// Returns the functions of the user's files, as far as they are known.
    pub(crate) const fn functions(&self) -> &SourceFiles {
        &self.functions
    }

    /// Decides by patterns of the user and the names of files, if nothing lists the sources.
    /// `patterns` are as in [`Self::of`].
    pub fn new(patterns: &[String]) -> Self {
        Self {
            patterns: patterns.to_vec(),
            ..Self::default()
        }
    }

    /// Returns whether a file is the user's own, by its path and the name that frames have for it.
    /// Recorders list the files for which this holds.
    pub fn is_own_file(name: &str, path: &str) -> bool {
        let package = name.split('/').next().unwrap_or(name);
        !is_library(path) && !RECORDED.contains(&package) && !is_launcher(path)
    }

    /// Returns whether a file is the user's own.
    pub fn contains(&self, file: &str) -> bool {
        let path = self.listed.as_ref().and_then(|listed| listed.get(file));
        if !self.patterns.is_empty() {
            let is_in = |pattern: &String| {
                file.contains(pattern) || path.is_some_and(|path| path.contains(pattern))
            };
            return self.patterns.iter().any(is_in);
        }
        match &self.listed {
            Some(_) => path.is_some(),
            None => !is_library(file),
        }
    }

    /// Returns the place of a frame that is in the user's own code.
    pub(crate) fn place<'a>(&self, frame: &'a str) -> Option<Place<'a>> {
        Place::parse(frame).filter(|place| self.contains(place.file) && !is_generated(place))
    }
}

/// Returns whether a file is the installed program `mindprof`, which starts the user's.
fn is_launcher(path: &str) -> bool {
    path.ends_with("/bin/mindprof")
}

/// Returns whether a function is code that the standard library makes for a class, such as the
/// `__init__` of a dataclass. Its file is that of code which a user types.
fn is_generated(place: &Place<'_>) -> bool {
    place.file == "<string>" && place.function.starts_with("__") && place.function.ends_with("__")
}

fn is_library(file: &str) -> bool {
    if file.starts_with('<') {
        return !TYPED.iter().any(|typed| file.starts_with(typed));
    }
    if INSTALLED.iter().any(|folder| file.contains(folder)) {
        return true;
    }
    let first = file.split('/').next().unwrap_or(file);
    let module = first.strip_suffix(".py").unwrap_or(first);
    LIBRARIES.contains(&module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installed_program_is_not_the_users() {
        assert!(!OwnCode::is_own_file("bin/mindprof", "/usr/bin/mindprof"));
        assert!(OwnCode::is_own_file(
            "mindprof_plots.py",
            "/home/me/mindprof_plots.py"
        ));
    }

    #[test]
    fn libraries_are_known_by_name_where_nothing_is_listed() {
        let own = OwnCode::default();
        for file in ["train.py", "src/data/sets.py", "/home/me/run.py", "<stdin>"] {
            assert!(own.contains(file), "{file}");
        }
        for file in [
            "torch/nn/modules/linear.py",
            "threading.py",
            "/usr/lib/python3.11/queue.py",
            "/venv/lib/python3.11/site-packages/timm/models.py",
            "<frozen importlib._bootstrap>",
            "<eval_with_key>.0",
        ] {
            assert!(!own.contains(file), "{file}");
        }
    }

    #[test]
    fn methods_of_dataclasses_are_not_the_users() {
        let own = OwnCode::default();
        assert!(own.place("<string>(2): __init__").is_none());
        assert!(own.place("<string>(2): train").is_some());
        assert!(own.place("train.py(2): __init__").is_some());
    }

    #[test]
    fn recorders_know_own_files_by_their_paths() {
        assert!(OwnCode::is_own_file("random.py", "/home/me/random.py"));
        assert!(!OwnCode::is_own_file(
            "random.py",
            "/usr/lib/python3.11/random.py"
        ));
        assert!(!OwnCode::is_own_file(
            "torch/a.py",
            "/home/me/pytorch/torch/a.py"
        ));
        assert!(!OwnCode::is_own_file("<frozen os>", "<frozen os>"));
    }

    #[test]
    fn listed_sources_and_patterns_come_first() {
        let mut metadata = Metadata::default();
        metadata.set(
            SOURCES_KEY,
            r#"{"own":[["torch/mine.py","/w/torch/mine.py"]]}"#,
        );
        let own = OwnCode::of(&metadata, &[]);
        assert!(own.contains("torch/mine.py") && !own.contains("train.py"));
        let sources = Sources::read(&metadata).unwrap();
        assert_eq!(sources.path("torch/mine.py"), Some("/w/torch/mine.py"));
        let own = OwnCode::of(&metadata, &["nn/".into()]);
        assert!(own.contains("torch/nn/linear.py") && !own.contains("torch/mine.py"));
    }

    #[test]
    fn patterns_match_the_whole_path_where_it_is_known() {
        let mut metadata = Metadata::default();
        let listed = r#"{"own":[["train.py","/home/me/project/train.py"]]}"#;
        metadata.set(SOURCES_KEY, listed);
        let own = OwnCode::of(&metadata, &["project".into()]);
        assert!(own.contains("train.py"));
        assert!(!own.contains("torch/nn/linear.py"));
        let own = OwnCode::of(&metadata, &["me/project/tr".into()]);
        assert!(own.contains("train.py"));
    }

    #[test]
    fn sources_of_several_processes_are_listed_once() {
        let listed = |own: &[(&str, &str)]| Sources {
            own: own.iter().map(|&(n, p)| (n.into(), p.into())).collect(),
        };
        let mut sources = listed(&[("train.py", "/w/train.py")]);
        sources.add(listed(&[
            ("rows.py", "/w/rows.py"),
            ("train.py", "/x/train.py"),
        ]));
        let expected = [("rows.py", "/w/rows.py"), ("train.py", "/w/train.py")];
        assert_eq!(sources, listed(&expected));
    }
}
