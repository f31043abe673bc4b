//! Generated events and items.

use super::{all, drain};
use crate::connector::{Generate, Items};
use crate::error::ConnectorError;
use crate::operator::{Read, Reader, Source};

#[test]
fn every_event_comes_once_however_many_splits() {
    for (events, splits) in [(0, 1), (0, 3), (1, 4), (10, 3), (100, 7), (5, 0)] {
        let source = Generate::new(events, splits, |index| index * 2);
        assert_eq!(all(&source).unwrap(), (0..events).map(|index| index * 2).collect::<Vec<_>>());
        source.verify(&source.splits().unwrap()).unwrap();
    }
}

#[test]
fn a_split_goes_on_from_every_offset() {
    let source = Generate::new(20, 3, |index| index);
    for split in source.splits().unwrap() {
        let whole = drain(&source, &split, 0, 100).unwrap();
        let mut reader = source.open(&split, 0).unwrap();
        for read in 0..whole.len() {
            assert_eq!(reader.offset(), read as u64);
            assert_eq!(drain(&source, &split, reader.offset(), 2).unwrap(), whole[read..]);
            reader.read(1, &mut Vec::new()).unwrap();
        }
        assert_eq!(reader.read(1, &mut Vec::new()).unwrap(), Read::Done);
        assert!(drain(&source, &split, reader.offset(), 2).unwrap().is_empty());
        assert!(matches!(source.open(&split, reader.offset() + 1), Err(ConnectorError::Changed { .. })));
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
    let source = Items::new(["a", "b", "c", "d"].map(str::to_owned)).in_splits(3);
    assert_eq!(all(&source).unwrap(), ["a", "b", "c", "d"]);
    let splits = source.splits().unwrap();
    source.verify(&splits).unwrap();
    assert_eq!(drain(&source, &splits[2], 1, 9).unwrap(), ["d"]);
    let other = Items::new(["a", "b", "c", "e"].map(str::to_owned)).in_splits(3);
    assert!(matches!(other.verify(&splits), Err(ConnectorError::Changed { .. })));
}
