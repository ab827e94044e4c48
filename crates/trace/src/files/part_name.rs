//! The names of files while they are written, and what is done with those that nobody writes any
//! more.
//!
//! A name tells the running system, the process and a number at random: process ids repeat, where
//! each container has a first process. A writer holds a lock on its file for as long as it lives.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// How long a file must not have been written to if its writer's lock cannot be seen from here: the
/// writer ran on another machine, or before this one was started again.
const FORGOTTEN: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns a name beside `target` that no other writer uses.
pub(crate) fn part_path(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    let process = std::process::id();
    let number = RandomState::new().build_hasher().finish();
    name.push(format!(".{}-{process}-{number:016x}.part", system()));
    target.with_file_name(name)
}

/// Removes the files beside `target` whose writers are gone.
pub(crate) fn remove_left_parts(target: &Path) {
    // Litter is no reason to fail: what cannot be seen or removed stays.
    let Ok(entries) = fs::read_dir(folder(target)) else {
        return;
    };
    for entry in entries.flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if let Some(writer) = writer_system(&entry.file_name()).filter(|_| is_file) {
            remove_if_left(&entry.path(), writer == system());
        }
    }
}

/// Returns the folder that `target` lies in.
pub(crate) fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Locks of one running system are seen by all of its processes, in whatever container; those of
/// another may not be, so there the time of the last change has to agree.
fn remove_if_left(path: &Path, is_of_this_system: bool) {
    let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else {
        return;
    };
    let age = file.metadata().and_then(|found| found.modified());
    let age = age.ok().and_then(|modified| modified.elapsed().ok());
    let is_old = age.is_some_and(|age| age > FORGOTTEN);
    if (is_of_this_system || is_old) && file.try_lock().is_ok() {
        let _ = fs::remove_file(path);
    }
}

/// Returns which system a file's name says that it was written on; none if it is no name of ours.
fn writer_system(name: &OsStr) -> Option<String> {
    let name = name.to_str()?.strip_prefix('.')?.strip_suffix(".part")?;
    let (_, writer) = name.rsplit_once('.')?;
    let mut fields = writer.split('-');
    let (system, process, number) = (fields.next()?, fields.next()?, fields.next()?);
    let is_hex = |text: &str, length| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_own = is_hex(system, 8)
        && process.parse::<u32>().is_ok()
        && is_hex(number, 16)
        && fields.next().is_none();
    is_own.then(|| system.to_owned())
}

/// What stands for a system that does not say which it is.
const UNKNOWN: &str = "ffffffff";

/// Returns eight digits that differ for each start of a machine.
fn system() -> &'static str {
    static SYSTEM: OnceLock<String> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        let found = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let digits = found.ok().and_then(|id| id.get(..8).map(str::to_owned));
        digits.unwrap_or_else(|| UNKNOWN.into())
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    fn beside(target: &Path, system: &str) -> PathBuf {
        let name = format!(".other.json.{system}-1-0123456789abcdef.part");
        target.with_file_name(name)
    }

    fn remaining(target: &Path) -> usize {
        remove_left_parts(target);
        fs::read_dir(folder(target)).unwrap().count()
    }

    #[test]
    fn a_part_without_a_writer_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out.json");
        let part = part_path(&target);
        let writer = File::create(&part).unwrap();
        writer.try_lock().unwrap();
        assert_eq!(remaining(&target), 1, "its writer lives");
        drop(writer);
        assert_eq!(remaining(&target), 0, "its writer is gone");
    }

    #[test]
    fn a_part_of_another_machine_is_removed_when_it_is_old() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out.json");
        let part = File::create(beside(&target, "0badcafe")).unwrap();
        assert_eq!(remaining(&target), 1);
        let old = SystemTime::now() - 2 * FORGOTTEN;
        part.set_modified(old).unwrap();
        assert_eq!(remaining(&target), 0);
    }

    #[test]
    fn what_others_named_stays() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out.json");
        let number = "0123456789abcdef";
        let system = system();
        let names = [
            "notes.part".to_owned(),
            ".notes.part".to_owned(),
            ".out.json.1-0.part".to_owned(),
            format!("out.json.{system}-1-{number}.part"),
            format!(".out.json.{system}-one-{number}.part"),
            format!(".out.json.{system}-1-{number}0.part"),
            format!(".out.json.{system}-1-2-{number}.part"),
        ];
        for name in &names {
            fs::write(place.path().join(name), "mine").unwrap();
        }
        assert_eq!(remaining(&target), names.len());
    }

    #[test]
    fn names_of_one_process_differ() {
        let target = Path::new("folder/out.json");
        let [first, second] = [part_path(target), part_path(target)];
        assert_ne!(first, second);
        assert_eq!(first.parent(), target.parent());
        let name = first.file_name().unwrap();
        assert_eq!(writer_system(name).as_deref(), Some(system()));
    }
}
