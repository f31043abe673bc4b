//! Lines of files: cut anywhere, compressed or not, well or badly formed.

use super::{all, cause, drain, file, gzip};
use crate::connector::Lines;
use crate::error::ConnectorError;
use crate::operator::{Reader, Source};
use crate::testing::check_source;
use proptest::prelude::*;
use tempfile::TempDir;

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
fn check(lines: &Lines, expected: Vec<Vec<u8>>) {
    check_source(|| lines.clone(), expected).unwrap();
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
        check(&plain, lines_of(&text));
        let parts: Vec<_> = text.chunks(text.len() / members + 1).flat_map(gzip).collect();
        if !text.is_empty() {
            let compressed = Lines::open(file(&folder, "gz", &parts)).unwrap().split_bytes(split_bytes);
            prop_assert_eq!(compressed.splits().unwrap().len(), 1);
            check(&compressed, lines_of(&text));
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
        check(&lines, lines_of(&text));
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

#[test]
fn what_a_truncated_gzip_file_holds_is_an_error() {
    let folder = TempDir::new().unwrap();
    let text: Vec<u8> =
        (0..40_000u32).flat_map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761)).into_bytes()).collect();
    let whole = gzip(&text);
    for bytes in [whole.len() / 2, whole.len() - 1, 5, 2] {
        let error = cause(all(&Lines::open(file(&folder, "cut.gz", &whole[..bytes])).unwrap()));
        assert!(matches!(error, ConnectorError::Gzip { .. }), "{bytes}: {error}");
    }
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0x55;
    let error = cause(all(&Lines::open(file(&folder, "damaged.gz", &damaged)).unwrap()));
    assert!(matches!(error, ConnectorError::Gzip { .. }), "{error}");
    let garbage = [&whole[..], b"garbage"].concat();
    let error = cause(all(&Lines::open(file(&folder, "garbage.gz", &garbage)).unwrap()));
    assert!(matches!(error, ConnectorError::Gzip { .. }), "{error}");
}

#[test]
fn files_that_are_none_are_refused() {
    let folder = TempDir::new().unwrap();
    let missing = Lines::open(folder.path().join("missing")).unwrap_err();
    assert!(missing.to_string().contains("missing: cannot open"), "{missing}");
    let dir = Lines::open(folder.path()).unwrap_err();
    assert!(dir.to_string().contains("it is a folder"), "{dir}");
    let device = Lines::open("/dev/null").unwrap_err();
    assert!(device.to_string().contains("no regular file"), "{device}");
    let several = Lines::open_all([file(&folder, "there", b"x"), folder.path().join("absent")]).unwrap_err();
    assert!(several.to_string().contains("absent"), "{several}");
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let folder = TempDir::new().unwrap();
    let text = b"0123456789\n".repeat(100_000);
    let path = file(&folder, "shrinks", &text);
    let lines = Lines::open(&path).unwrap();
    let splits = lines.splits().unwrap();
    let mut reader = lines.open(&splits[0], 0).unwrap();
    reader.read(10, &mut Vec::new()).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(500_000).unwrap();
    let error = cause(reader.read(usize::MAX, &mut Vec::new()));
    assert!(matches!(error, ConnectorError::Io { .. }) && error.to_string().contains("shorter"), "{error}");
}

#[test]
fn what_is_appended_while_a_file_is_read_does_not_count() {
    let folder = TempDir::new().unwrap();
    for (text, more) in [(&b"a\nb"[..], &b"b\nc\n"[..]), (b"", b"x\n"), (&gzip(b"a\nb"), &gzip(b"b\nc"))] {
        let path = file(&folder, "grows", text);
        let lines = Lines::open(&path).unwrap();
        let before = all(&lines).unwrap();
        let splits = lines.splits().unwrap();
        std::fs::write(&path, [text, more].concat()).unwrap();
        assert_eq!(drain(&lines, &splits[0], 0, 9).unwrap(), before);
        assert!(matches!(lines.verify(&splits), Err(ConnectorError::Changed { .. })));
    }
}

#[test]
fn files_are_read_one_after_the_other_with_splits_of_their_own() {
    let folder = TempDir::new().unwrap();
    let paths = [file(&folder, "1", b"a\nb"), file(&folder, "2", b""), file(&folder, "3", &gzip(b"c\nd\n"))];
    let lines = Lines::open_all(paths).unwrap().split_bytes(2);
    assert_eq!(all(&lines).unwrap(), [b"a", b"b", b"c", b"d"]);
    let splits = lines.splits().unwrap();
    assert_eq!(splits.iter().map(|split| split.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(splits[1].name.ends_with("/1[2..3]"), "{}", splits[1].name);
}
