//! Is the input still the same? Whatever differs is named.

use super::{all, file};
use crate::connector::Lines;
use crate::error::ConnectorError;
use crate::operator::{Source, Split};
use proptest::prelude::*;
use std::path::PathBuf;
use tempfile::TempDir;

fn refused(paths: &[PathBuf], splits: &[Split]) -> String {
    match Lines::open_all(paths).and_then(|lines| lines.verify(splits)) {
        Err(error @ ConnectorError::Changed { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_change_of_length_content_or_files_is_named() {
    let folder = TempDir::new().unwrap();
    let text = b"0123456789\n".repeat(30_000);
    let paths = [file(&folder, "one", &text), file(&folder, "two", b""), file(&folder, "three", b"x\n")];
    let lines = Lines::open_all(&paths).unwrap().split_bytes(100_000);
    let splits = lines.splits().unwrap();
    lines.verify(&splits).unwrap();
    // Neither the order nor the size of splits asked for now is of any matter.
    Lines::open_all(paths.iter().rev()).unwrap().split_bytes(7).verify(&splits).unwrap();
    assert!(refused(&paths[..2], &splits).contains("three: the input has changed"));
    let four = file(&folder, "four", b"");
    assert!(refused(&[&paths[..], &[four]].concat(), &splits).contains("four: the input has changed"));
    assert!(refused(&[&paths[..], &paths[..1]].concat(), &splits).contains("one: "));
    file(&folder, "two", b"y");
    assert!(
        refused(&paths, &splits).contains("two: the input has changed since the checkpoint was made: it had 0 bytes")
    );
    file(&folder, "two", b"");
    for at in [0, text.len() - 1] {
        let mut other = text.clone();
        other[at] ^= 1;
        file(&folder, "one", &other);
        assert!(refused(&paths, &splits).contains("one: the input has changed"));
    }
    file(&folder, "one", &text);
    lines.verify(&splits).unwrap();
    std::fs::remove_file(&paths[2]).unwrap();
    assert!(matches!(lines.verify(&splits), Err(ConnectorError::Changed { path, .. }) if path == paths[2]));
}

#[test]
fn a_relative_path_is_the_same_input_as_an_absolute_one() {
    let here = std::env::current_dir().unwrap();
    let splits = Lines::open("Cargo.toml").unwrap().splits().unwrap();
    assert_eq!(splits[0].name.split('[').next(), Some("Cargo.toml"));
    Lines::open(here.join("Cargo.toml")).unwrap().verify(&splits).unwrap();
    Lines::open("src/../Cargo.toml").unwrap().verify(&splits).unwrap();
}

#[test]
fn a_way_through_a_linked_folder_is_the_same_input_and_a_link_to_the_file_another() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "one", b"a\n");
    let splits = Lines::open(&path).unwrap().splits().unwrap();
    let (linked, link) = (folder.path().join("linked"), folder.path().join("link"));
    std::os::unix::fs::symlink(folder.path(), &linked).unwrap();
    Lines::open(linked.join("one")).unwrap().verify(&splits).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(refused(&[link], &splits).contains("not then"));
}

#[test]
fn a_descriptor_from_elsewhere_is_an_error() {
    let folder = TempDir::new().unwrap();
    let lines = Lines::open(file(&folder, "one", b"a\nb\n")).unwrap();
    let split = lines.splits().unwrap().remove(0);
    for bytes in 0..split.descriptor.len() {
        let torn = Split { descriptor: split.descriptor[..bytes].to_vec(), ..split.clone() };
        assert!(lines.open(&torn, 0).is_err());
        assert!(lines.verify(&[torn]).is_err());
    }
    assert_eq!(all(&lines).unwrap().len(), 2);
    // An offset behind the end of a plain file is its end.
    assert!(super::drain(&lines, &split, 100, 9).unwrap().is_empty());
    let gz = Lines::open(file(&folder, "gz", &super::gzip(b"a\nb\n"))).unwrap();
    assert!(matches!(gz.open(&gz.splits().unwrap()[0], 100), Err(ConnectorError::Changed { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_hostile_descriptor_and_offset_give_lines_or_an_error(
        at in 0usize..33,
        with in any::<u8>(),
        offset in prop_oneof![0u64..60, any::<u64>()],
        compressed in any::<bool>(),
    ) {
        let folder = TempDir::new().unwrap();
        let text = b"one line\nand another\nand the last".to_vec();
        let lines = Lines::open(file(&folder, "f", &if compressed { super::gzip(&text) } else { text })).unwrap();
        let mut split = lines.split_bytes(12).splits().unwrap().pop().unwrap();
        // The path comes first; behind it four numbers and a flag.
        let numbers = split.descriptor.len() - 33;
        split.descriptor[numbers + at] = with;
        let lines = Lines::open(folder.path().join("f")).unwrap();
        let _ = super::drain(&lines, &split, offset, 3);
    }
}
