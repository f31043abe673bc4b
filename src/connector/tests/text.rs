//! Lines of files: cut anywhere, compressed or not, well or badly formed.

use super::{all, cause, drain};
use crate::connector::Lines;
use crate::error::ConnectorError;
use crate::operator::{Read, Reader, Source};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use std::io::Write;
use std::path::PathBuf;
use tempfile::TempDir;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn file(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The lines by the plainest means.
fn lines_of(text: &[u8]) -> Vec<Vec<u8>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut lines: Vec<_> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let last = lines.pop().unwrap();
    lines.iter_mut().filter(|line| line.ends_with(b"\r")).for_each(|line| line.truncate(line.len() - 1));
    if !last.is_empty() {
        lines.push(last);
    }
    lines
}

/// Any cut gives each line once, and each split goes on from each of its offsets.
fn check(lines: &Lines, expected: &[Vec<u8>]) {
    assert_eq!(all(lines).unwrap(), expected);
    let splits = lines.splits().unwrap();
    lines.verify(&splits).unwrap();
    for split in splits {
        let whole = drain(lines, &split, 0, usize::MAX).unwrap();
        let mut reader = lines.open(&split, 0).unwrap();
        for read in 0.. {
            assert_eq!(drain(lines, &split, reader.offset(), 2).unwrap(), whole[read.min(whole.len())..]);
            if reader.read(1, &mut Vec::new()).unwrap() == Read::Done {
                break;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_line_belongs_to_one_split(
        text in proptest::collection::vec(prop::sample::select(&b"ab\n\n\r\xff"[..]), 0..40),
        mark in any::<bool>(),
        split_bytes in 1u64..45,
        members in 1usize..4,
    ) {
        let text = if mark { [&b"\xef\xbb\xbf"[..], &text].concat() } else { text };
        let folder = TempDir::new().unwrap();
        let plain = Lines::open(file(&folder, "plain", &text)).unwrap().split_bytes(split_bytes);
        check(&plain, &lines_of(&text));
        let parts: Vec<_> = text.chunks(text.len() / members + 1).flat_map(gzip).collect();
        if !text.is_empty() {
            let compressed = Lines::open(file(&folder, "gz", &parts)).unwrap().split_bytes(split_bytes);
            prop_assert_eq!(compressed.splits().unwrap().len(), 1);
            check(&compressed, &lines_of(&text));
        }
    }
}

#[test]
fn lines_longer_than_the_buffer_are_whole() {
    let long: Vec<u8> = (0..700_000u32).map(|i| b'a' + (i % 23) as u8).collect();
    let text = [b"x\n", &long[..], b"\r\ny\n", &long[..100_000], b"\n", &long[..]].concat();
    let folder = TempDir::new().unwrap();
    for bytes in [text.clone(), gzip(&text)] {
        let lines = Lines::open(file(&folder, "long", &bytes)).unwrap().split_bytes(150_000);
        check(&lines, &lines_of(&text));
    }
}

#[test]
fn a_line_without_end_is_refused() {
    let folder = TempDir::new().unwrap();
    let text = [&b"short\n"[..], &vec![b'x'; (16 << 20) + 1]].concat();
    let lines = Lines::open(file(&folder, "endless", &text)).unwrap();
    let error = cause(all(&lines));
    assert!(matches!(&error, ConnectorError::Malformed { line: 2, .. }), "{error}");
}
