//! The Perfetto packets of recorded traces.

use mindprof_trace::{read_trace_file, write_perfetto, write_perfetto_file, write_trace};

use crate::corpus::Session;

#[test]
fn packets_take_an_eighth_of_the_json_at_most() {
    for session in Session::ALL {
        let profile = read_trace_file(&session.trace_path()).unwrap();
        let (mut json, mut packets) = (Vec::new(), Vec::new());
        write_trace(&profile, "trace.json", &mut json).unwrap();
        write_perfetto(&profile, &mut packets).unwrap();
        assert!(
            packets.len() * 8 <= json.len(),
            "{session:?}: {} bytes of packets, {} of JSON",
            packets.len(),
            json.len()
        );
    }
}

#[test]
fn files_are_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/trace.pftrace");
    let profile = read_trace_file(&Session::ALL[0].trace_path()).unwrap();
    write_perfetto_file(&profile, &path).unwrap();
    let mut expected = Vec::new();
    write_perfetto(&profile, &mut expected).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}
