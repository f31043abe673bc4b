//! Rows read as bytes, against the typed table that has left them.

use super::model::{Bytes, Make, World, part};
use crate::record::{Record, from_bytes};
use crate::state::root::Root;
use crate::state::{Hasher, Part, PartPages, Row, Rows, StateError};
use std::collections::BTreeMap;

/// All rows of a stored table.
pub(super) fn rows<K: Record, V: Record>(hasher: Hasher, stored: &Bytes) -> Result<Vec<(K, V)>, StateError> {
    let rows = Rows::hashed_by(hasher, Root::decode(&stored.0)?, &part(stored))?;
    let decoded = rows.iter().map(|row| {
        let (key, value) = row?;
        Ok((from_bytes(&key)?, from_bytes(&value)?))
    });
    let decoded = decoded.collect::<Result<Vec<_>, StateError>>()?;
    assert_eq!((decoded.len() as u64, decoded.is_empty()), (rows.len(), rows.is_empty()));
    Ok(decoded)
}

/// Keys and values of every layout.
fn are_all_there<K: Make + Ord, V: Make>(tasks: u32) {
    let mut world = World::<K, V>::new(512, Hasher::default(), tasks);
    (0..200).for_each(|number| world.update(number, number).unwrap());
    let parts = world.stored();
    let found = parts.iter().flat_map(|stored| {
        // As those read it who know nothing but the snapshot.
        let rows = Rows::new(&part(stored)).unwrap();
        let rows: Vec<(K, V)> = rows.iter().map(Result::unwrap).map(|row| decoded(&row)).collect();
        rows
    });
    let found: BTreeMap<K, V> = found.collect();
    let updated = |number| {
        let mut value = V::make(number);
        value.change(number);
        (K::make(number), value)
    };
    assert_eq!(found, (0..200).map(updated).collect());
}

fn decoded<K: Record, V: Record>((key, value): &Row<'_>) -> (K, V) {
    (from_bytes(key).unwrap(), from_bytes(value).unwrap())
}

#[test]
fn every_row_comes_once() {
    are_all_there::<u64, u64>(1);
    are_all_there::<u64, u64>(3);
    are_all_there::<String, u64>(1);
    are_all_there::<u64, String>(2);
    are_all_there::<String, String>(1);
}

#[test]
fn an_empty_table_has_no_rows() {
    let stored = World::<u64, String>::new(512, Hasher::default(), 1).stored().remove(0);
    assert!(rows::<u64, String>(Hasher::default(), &stored).unwrap().is_empty());
}

#[test]
fn pages_of_another_root_are_corrupt() {
    let mut world = World::<u64, u64>::new(512, Hasher::default(), 1);
    (0..100).for_each(|number| world.update(number, number).unwrap());
    let (root, pages) = world.stored().remove(0);
    let mut fewer = (root.clone(), pages.clone());
    fewer.0[32] -= 1; // the number of entries
    assert!(matches!(rows::<u64, u64>(Hasher::default(), &fewer), Err(StateError::Corrupt { .. })));
    let none = Part { root: &root, pages: PartPages::Here(Vec::new()) };
    assert!(matches!(Rows::new(&none).err(), Some(StateError::Corrupt { .. })));
    assert!(rows::<u64, u64>(Hasher::new(9), &(root, pages)).is_err(), "keys that the hash does not put there");
}
