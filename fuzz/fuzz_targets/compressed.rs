//! Feeds compressed data to the reader: valid streams, truncated ones, and arbitrary bytes after the magic
//! number of gzip or zstd. A valid stream must give the same answer as its plain text.

#![no_main]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use mindprof_trace::{ReadOptions, read_trace_with};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

fn packed(text: &[u8], by_zstd: bool) -> Vec<u8> {
    if by_zstd {
        return compress_to_vec(text, CompressionLevel::Fastest);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).expect("memory takes all bytes");
    encoder.finish().expect("memory takes all bytes")
}

fuzz_target!(|input: (bool, bool, Option<u16>, &[u8])| {
    let (by_zstd, is_packed, cut, bytes) = input;
    let mut data = if is_packed {
        packed(bytes, by_zstd)
    } else if by_zstd {
        [&[0x28, 0xb5, 0x2f, 0xfd], bytes].concat()
    } else {
        [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3], bytes].concat()
    };
    if let Some(cut) = cut {
        data.truncate(usize::from(cut));
    }
    let read = read_trace_with(&data, &ReadOptions::default());
    if is_packed && cut.is_none() {
        let plain = read_trace_with(bytes, &ReadOptions::default());
        assert_eq!(read.is_ok(), plain.is_ok());
    }
});
