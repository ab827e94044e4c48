//! Files are complete or absent, and errors name them.

use std::fs;
use std::io::{self, Write};
use std::sync::Mutex;

use flate2::Compression;
use flate2::write::GzEncoder;
use mindprof_model::{Profile, Timeline};
use mindprof_trace::{
    ReadOptions, Repair, read_trace, read_trace_file, read_trace_file_with, read_trace_with,
    write_file, write_trace, write_trace_file,
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

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
fn while_a_file_is_written_nothing_of_it_is_to_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let names = || fs::read_dir(folder.path()).unwrap().count();
    for there in [0, 1] {
        write_file(&path, |out| {
            out.write_all(&vec![b' '; 1 << 20])?;
            let expected = if cfg!(target_os = "linux") {
                there
            } else {
                there + 1
            };
            assert_eq!(names(), expected);
            Ok::<_, mindprof_trace::Error>(())
        })
        .unwrap();
        assert_eq!(names(), 1);
        assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
    }
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
fn zstd_is_known_by_content() {
    let mut text = Vec::new();
    write_trace(&profile(), "trace.json", &mut text).unwrap();
    let packed = compress_to_vec(text.as_slice(), CompressionLevel::Fastest);
    assert_eq!(read_trace(&packed).unwrap().events().len(), 1);
    let error = read_trace(&packed[..packed.len() / 2]).unwrap_err();
    assert_eq!(error.to_string(), "the zstd data is damaged or cut off");
}

fn gzip(write: impl FnOnce(&mut GzEncoder<Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    write(&mut encoder).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_comes_out_of_damaged_gzip_is_kept() {
    let event = r#"{"ph": "X", "name": "a", "ts": 1.5, "dur": 1}"#;
    let whole = gzip(|out| {
        write!(out, "[{event}")?;
        (0..20_000).try_for_each(|_| write!(out, ",{event}"))?;
        write!(out, "]")
    });
    let options = ReadOptions::default();
    let cut = read_trace_with(&whole[..whole.len() / 2], &options).unwrap();
    assert_eq!(cut.repairs.count(Repair::DamagedCompression), 1);
    assert_eq!(cut.repairs.total(), 1);
    let kept = cut.profile.events().len();
    assert!((1000..20_000).contains(&kept), "{kept}");
    // The checksum at the end does not match the contents.
    let mut wrong = whole.clone();
    let last = wrong.len() - 6;
    wrong[last] ^= 1;
    let wrong = read_trace_with(&wrong, &options).unwrap();
    assert_eq!(wrong.repairs.count(Repair::DamagedCompression), 1);
    assert_eq!(wrong.profile.events().len(), 20_001);
}

/// Input that decompresses to far more than its size: white space is dropped, and one endless text
/// is refused.
#[test]
fn bombs_do_no_harm() {
    const MEGABYTE: usize = 1 << 20;
    let bomb = |before: &str, filling: u8, behind: &str| {
        gzip(|out| {
            out.write_all(before.as_bytes())?;
            (0..80).try_for_each(|_| out.write_all(&vec![filling; MEGABYTE]))?;
            out.write_all(behind.as_bytes())
        })
    };
    let event = r#"{"ph": "X", "name": "a", "ts": 1.5, "dur": 1}"#;
    let spaces = bomb("[", b' ', &format!("{event}]"));
    assert_eq!(read_trace(&spaces).unwrap().events().len(), 1);
    let nothings = bomb(&format!("[{event}"), b',', "]");
    assert_eq!(read_trace(&nothings).unwrap().events().len(), 1);
    for bomb in [
        bomb("[{\"name\": \"", b'x', "\"}]"),
        bomb("{\"traceEvents\": [", b'[', "]"),
        bomb("{\"x\": ", b'{', "}"),
    ] {
        let error = read_trace(&bomb).unwrap_err().to_string();
        assert!(error.contains("is longer than 67108864 bytes"), "{error}");
    }
}

#[test]
fn progress_is_told_in_bytes_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json.gz");
    write_trace_file(&profile(), &path).unwrap();
    let bytes = fs::metadata(&path).unwrap().len();
    let told = Mutex::new(Vec::new());
    let tell = |done, total| told.lock().unwrap().push((done, total));
    let options = ReadOptions {
        progress: Some(&tell),
        ..ReadOptions::default()
    };
    read_trace_file_with(&path, &options).unwrap();
    let told = told.into_inner().unwrap();
    assert!(told.is_sorted());
    assert_eq!(told.last(), Some(&(bytes, bytes)));
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
        (
            "empty",
            "the file is empty, expected a Chrome trace or a memory snapshot",
        ),
        ("cut.gz", "the gzip data is damaged or cut off"),
    ] {
        let error = read_trace_file(&path(name)).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {reason}", path(name).display()));
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_what_is_not_there_yet_is_followed() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("elsewhere")).unwrap();
    symlink("second", path("first")).unwrap();
    symlink("elsewhere/target", path("second")).unwrap();
    write_trace_file(&profile(), &path("first")).unwrap();
    for link in ["first", "second"] {
        assert!(fs::symlink_metadata(path(link)).unwrap().is_symlink());
    }
    let target = path("elsewhere/target");
    assert_eq!(read_trace_file(&target).unwrap().events().len(), 1);
    // Missing directories behind a link are not created, and cyclic links stay.
    symlink("missing/target", path("astray")).unwrap();
    symlink("circle", path("circle")).unwrap();
    for link in ["astray", "circle"] {
        assert!(write_trace_file(&profile(), &path(link)).is_err());
        assert!(fs::symlink_metadata(path(link)).unwrap().is_symlink());
    }
    assert!(!path("missing").exists());
}

#[cfg(unix)]
#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    for mode in [0o600, 0o640, 0o444, 0o755] {
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        write_trace_file(&profile(), &path).unwrap();
        let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{found:o}");
        fs::remove_file(&path).unwrap();
    }
}

/// Parts of other writers, one of which may have had the same process id.
#[test]
fn parts_that_others_left_are_not_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    fs::write(&path, "old").unwrap();
    let process = std::process::id();
    for number in 0..8 {
        let part = format!(".trace.json.{process}-{number}.part");
        fs::write(folder.path().join(part), "half").unwrap();
    }
    write_trace_file(&profile(), &path).unwrap();
    assert_eq!(read_trace_file(&path).unwrap().events().len(), 1);
}

#[test]
fn no_more_is_read_than_was_asked_for() {
    let event = r#"{"ph": "X", "name": "a", "ts": 1.5, "dur": 1}"#;
    let text = format!("[{}]", [event; 100].join(","));
    let packed = gzip(|out| out.write_all(text.as_bytes()));
    let read = |bytes: &[u8], max_bytes| {
        let options = ReadOptions {
            max_bytes: Some(max_bytes),
            ..ReadOptions::default()
        };
        read_trace_with(bytes, &options)
    };
    let size = text.len() as u64;
    for bytes in [text.as_bytes(), &packed] {
        assert_eq!(read(bytes, size).unwrap().profile.events().len(), 100);
        let error = read(bytes, size - 1).unwrap_err().to_string();
        let expected = format!("more than {} bytes of text", size - 1);
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.contains("`max_bytes`"), "{error}");
    }
}

/// Blanks shrink to a thousandth, and no trace does.
#[test]
fn what_is_packed_beyond_belief_is_refused() {
    let blanks = vec![b' '; 1 << 20];
    let bomb = gzip(|out| (0..=1024).try_for_each(|_| out.write_all(&blanks)));
    let error = read_trace(&bomb).unwrap_err().to_string();
    let limit = mindprof_trace::UNPACKED_BYTES;
    assert!(
        error.starts_with(&format!("more than {limit} bytes")),
        "{error}"
    );
}

#[test]
fn what_is_packed_otherwise_is_named() {
    let mut text = Vec::new();
    write_trace(&profile(), "trace.json", &mut text).unwrap();
    let once = gzip(|out| out.write_all(&text));
    let twice = gzip(|out| out.write_all(&once));
    let zip = [b"PK\x03\x04".as_slice(), &text].concat();
    for (bytes, expected) in [
        (twice, "found gzip data in gzip data, "),
        (zip, "found a zip archive, "),
    ] {
        let error = read_trace(&bytes).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
