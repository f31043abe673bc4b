//! Lines that are no records: skipped, or by the side. No good line is lost to them, and each is met once.

use super::{cause, drain, file, gzip};
use crate::connector::{BadLine, BadLines, Csv, Lines};
use crate::error::ConnectorError;
use crate::operator::{Read, Reader, Skipped, Source};
use std::path::Path;
use tempfile::TempDir;

/// Numbers, with a bad row wherever one is not what it should be: too many cells, an open quote, a stray carriage return.
const NUMBERS: &str = "n\n1\ntwo\n3\n\"4\n5\n6\r6\n7\n8,8\n9\n\u{ff}\n10";

fn good() -> Vec<u64> {
    vec![1, 3, 5, 7, 9, 10]
}

/// Line and text of each bad row.
fn bad() -> Vec<(u64, &'static str)> {
    vec![(3, "two"), (5, "\"4"), (7, "6\r6"), (9, "8,8"), (11, "\u{ff}")]
}

fn places(lines: &[BadLine]) -> Vec<(u64, &str)> {
    lines.iter().map(|line| (line.line, line.text.as_str())).collect()
}

fn numbers(path: &Path, split_bytes: u64) -> Csv<u64> {
    Csv::open(path).unwrap().split_bytes(split_bytes)
}

#[test]
fn skipped_rows_are_counted_and_no_other_is_lost() {
    let folder = TempDir::new().unwrap();
    for (name, bytes) in [("plain", NUMBERS.into()), ("packed", gzip(NUMBERS.as_bytes()))] {
        let path = file(&folder, name, &bytes);
        for split_bytes in 1..40 {
            let source = numbers(&path, split_bytes).bad_lines(BadLines::Skip);
            let (mut items, mut skipped) = (Vec::new(), Skipped::default());
            for split in source.splits().unwrap() {
                let mut reader = source.open(&split, 0).unwrap();
                while reader.read(2, &mut items).unwrap() != Read::Done {
                    skipped.add(&reader.take_skipped());
                }
                skipped.add(&reader.take_skipped());
            }
            assert_eq!(items, good(), "{split_bytes}");
            assert_eq!((skipped.lines, places(&skipped.first)), (5, bad()), "{split_bytes}");
            assert!(skipped.first.iter().all(|line| line.file == path.display().to_string()));
        }
    }
}

#[test]
fn bad_rows_come_by_the_side_from_any_offset() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "numbers", NUMBERS.as_bytes());
    let source = numbers(&path, 1 << 20).or_bad_lines();
    let split = &source.splits().unwrap()[0];
    let mut reader = source.open(split, 0).unwrap();
    let mut before = Vec::new();
    loop {
        let rest = drain(&source, split, reader.offset(), 3).unwrap();
        let all = before.iter().chain(&rest);
        let (items, lines): (Vec<_>, Vec<_>) = all.cloned().partition(Result::is_ok);
        assert_eq!(items.into_iter().flatten().collect::<Vec<_>>(), good());
        let lines: Vec<BadLine> = lines.into_iter().filter_map(Result::err).collect();
        assert_eq!(places(&lines), bad());
        if reader.read(1, &mut before).unwrap() == Read::Done {
            break;
        }
    }
}

#[test]
fn a_row_of_several_lines_is_named_by_its_first() {
    let folder = TempDir::new().unwrap();
    let text = "n\n\"a\nb\",2\n3\n\"c\nd\"\r,1\n4\n";
    let path = file(&folder, "numbers", text.as_bytes());
    let source = numbers(&path, 1).multiline().or_bad_lines();
    let items = drain(&source, &source.splits().unwrap()[0], 0, 1).unwrap();
    let lines: Vec<BadLine> = items.iter().filter_map(|item| item.clone().err()).collect();
    assert_eq!(places(&lines), [(2, "\"a"), (5, "\"c")]);
    assert_eq!(items.into_iter().flatten().collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn what_has_no_end_cannot_be_skipped() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "numbers", b"n\n1\n\"2\n3\n");
    let source = numbers(&path, 1).multiline().bad_lines(BadLines::Skip);
    let error = cause(drain(&source, &source.splits().unwrap()[0], 0, 1)).to_string();
    assert!(error.contains(":3: a quoted cell is never closed (this cannot be skipped"), "{error}");

    let mut packed = gzip(&b"n\n1\n".repeat(10_000));
    packed.truncate(packed.len() - 4);
    let source = numbers(&file(&folder, "packed", &packed), 1).bad_lines(BadLines::Skip);
    let truncated = cause(drain(&source, &source.splits().unwrap()[0], 0, 1000));
    assert!(matches!(truncated, ConnectorError::Gzip { .. }), "{truncated}");
}

#[test]
fn text_is_utf_8_and_lines_have_an_end() {
    let folder = TempDir::new().unwrap();
    let long = 17 << 20;
    let text = [b"one\r\n\xc3\xa9\n\xff\n".as_slice(), &vec![b'x'; long], b"\nlast\n\xc3"].concat();
    let path = file(&folder, "text", &text);
    for split_bytes in [1 << 30, 5 << 20, 1 << 20] {
        let source = Lines::open(&path).unwrap().split_bytes(split_bytes).text().or_bad_lines();
        let mut items = Vec::new();
        for split in source.splits().unwrap() {
            items.append(&mut drain(&source, &split, 0, 100).unwrap());
        }
        let lines: Vec<BadLine> = items.iter().filter_map(|item| item.clone().err()).collect();
        assert_eq!(places(&lines), [(3, "\u{fffd}"), (4, "x".repeat(200).as_str()), (6, "\u{fffd}")]);
        assert!(lines[1].reason.contains("longer than 16777216 bytes"), "{}", lines[1]);
        assert_eq!(items.into_iter().flatten().collect::<Vec<_>>(), ["one", "\u{e9}", "last"]);
    }
    let bytes = Lines::open(&path).unwrap().bad_lines(BadLines::Skip);
    let lines = drain(&bytes, &bytes.splits().unwrap()[0], 0, 100).unwrap();
    assert_eq!(lines, [b"one".as_slice(), b"\xc3\xa9", b"\xff"], "bytes of any kind are lines");
    let strict = Lines::open(&path).unwrap().text();
    let error = cause(drain(&strict, &strict.splits().unwrap()[0], 0, 100)).to_string();
    assert!(error.ends_with("text:3: the line is not UTF-8"), "{error}");
}
