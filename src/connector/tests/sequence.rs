//! Generated events and items.

use super::drain;
use crate::connector::{Generate, Items};
use crate::error::ConnectorError;
use crate::operator::{Read, Reader, Source};
use crate::testing::check_source;

#[test]
fn every_event_comes_once_however_many_splits() {
    for (events, splits) in [(0, 1), (0, 3), (1, 4), (10, 3), (100, 7), (5, 0)] {
        check_source(|| Generate::new(events, splits, |index| index * 2), (0..events).map(|index| index * 2)).unwrap();
    }
}

#[test]
fn nothing_lies_behind_the_end_of_a_split() {
    let source = Generate::new(20, 3, |index| index);
    for split in source.splits().unwrap() {
        let len = drain(&source, &split, 0, 100).unwrap().len() as u64;
        assert!(matches!(source.open(&split, len + 1), Err(ConnectorError::Changed { .. })));
    }
}

#[test]
fn the_largest_number_of_events_does_not_overflow() {
    let source = Generate::new(u64::MAX, 3, |index| index);
    let splits = source.splits().unwrap();
    let mut reader = source.open(&splits[2], u64::MAX / 3 - 2).unwrap();
    let mut events = Vec::new();
    assert_eq!(reader.read(usize::MAX, &mut events).unwrap(), Read::Done);
    assert_eq!(events.last(), Some(&(u64::MAX - 1)));
}

#[test]
fn other_events_are_another_input() {
    let source = |events, splits, label: &str| Generate::new(events, splits, |index| index).label(label);
    let splits = source(10, 3, "seed 1").splits().unwrap();
    source(10, 8, "seed 1").verify(&splits).unwrap();
    for other in [source(11, 3, "seed 1"), source(10, 3, "seed 2")] {
        assert!(matches!(other.verify(&splits), Err(ConnectorError::Changed { .. })));
    }
    let twice = [splits.clone(), splits.clone()].concat();
    for wrong in [&splits[1..], &splits[..2], &twice[..4], &[]] {
        assert!(matches!(source(10, 3, "seed 1").verify(wrong), Err(ConnectorError::Changed { .. })));
    }
    let mut torn = splits[0].clone();
    torn.descriptor.truncate(5);
    assert!(source(10, 3, "seed 1").open(&torn, 0).is_err());
}

#[test]
fn items_come_once_and_are_told_apart_by_content() {
    let letters = ["a", "b", "c", "d"].map(str::to_owned);
    let source = Items::new(letters.clone()).in_splits(3);
    check_source(|| source.clone(), letters).unwrap();
    let splits = source.splits().unwrap();
    let other = Items::new(["a", "b", "c", "e"].map(str::to_owned)).in_splits(3);
    assert!(matches!(other.verify(&splits), Err(ConnectorError::Changed { .. })));
}
