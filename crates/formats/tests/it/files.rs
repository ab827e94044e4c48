//! Files are whole or absent, and errors name them.

use std::fs;

use mindprof_formats::{read_trace_file, write_trace_file};
use mindprof_model::{Profile, Timeline};

fn profile() -> Profile {
    Timeline::draw(|time| time.op("op", 5))
}

#[test]
fn directories_are_made_and_gzip_goes_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("new/folder/trace.json");
    let compressed = folder.path().join("trace.json.gz");
    write_trace_file(&profile(), &plain).unwrap();
    write_trace_file(&profile(), &compressed).unwrap();
    assert!(fs::read(&plain).unwrap().starts_with(b"{"));
    assert!(fs::read(&compressed).unwrap().starts_with(&[0x1f, 0x8b]));
    for path in [&plain, &compressed] {
        assert_eq!(read_trace_file(path).unwrap().events().len(), 1);
    }
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "only what was asked for: {names:?}");
}

#[test]
fn gzip_is_known_by_content_and_not_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let compressed = folder.path().join("trace.json.gz");
    let renamed = folder.path().join("trace.json");
    write_trace_file(&profile(), &compressed).unwrap();
    fs::rename(&compressed, &renamed).unwrap();
    assert_eq!(read_trace_file(&renamed).unwrap().events().len(), 1);
}

#[test]
fn a_failed_write_names_the_file_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let error = write_trace_file(&profile(), &file.join("trace.json")).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&file.join("trace.json").display().to_string()),
        "{error}"
    );
    let error = write_trace_file(&profile(), folder.path()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with(": is a directory, expected a file"),
        "{error}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    write_trace_file(&profile(), &link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read_trace_file(&target).unwrap().events().len(), 1);
}

#[test]
fn unreadable_files_are_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("empty"), "").unwrap();
    fs::write(path("cut.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    for (name, reason) in [
        ("missing", "no such file or directory"),
        ("", "is a directory, expected a file"),
        ("empty", "the file is empty, expected a Chrome trace"),
        ("cut.gz", "the gzip data is damaged or cut off"),
    ] {
        let error = read_trace_file(&path(name)).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {reason}", path(name).display()));
    }
}
