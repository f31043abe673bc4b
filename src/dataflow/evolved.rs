//! Tables of a snapshot held against the drawing: whether their values can become those of today, and under which names
//! their pages go on. It must not know how they are migrated.

use super::drawing::Drawing;
use crate::error::{Error, RestoreError};
use crate::operator::{EMITTED, Tables, Typed, evolution_of_values, outdated_name, state_of};
use crate::snapshot::{Renamed, Restored, RestoredEntry, Side, StateName, Store};
use std::sync::Arc;

/// The tables that an operator of an entry is drawn with.
fn drawn<'a>(drawing: &'a Drawing, entry: &RestoredEntry) -> Option<&'a Tables> {
    let is_it = |(operator, _): &&(Arc<str>, Tables)| **operator == *entry.operator;
    drawing.tables.iter().find(is_it).map(|(_, tables)| tables)
}

/// What a table is drawn to hold of which this is an entry, be it an outdated part.
fn type_of<'a>(drawing: &'a Drawing, entry: &RestoredEntry) -> Option<&'a Typed> {
    drawn(drawing, entry)?.type_of(state_of(&entry.state))
}

/// Do the tables hold what they are drawn to hold, or what can become that, and has no operator a state that it is not drawn
/// with? One that is new begins empty.
pub(super) fn check_tables(drawing: &Drawing, snapshot: &Restored) -> Result<(), Error> {
    for entry in &snapshot.entries {
        let Some(tables) = drawn(drawing, entry) else { continue };
        if let Some(typed) = type_of(drawing, entry) {
            evolution_of_values(entry, typed, snapshot.epoch)?;
        }
        if Side::of_state(&entry.state).is_none() && entry.state != EMITTED && !tables.are_of(&entry.state) {
            return Err(Error::Restore(RestoreError::State {
                operator: entry.operator.clone(),
                state: entry.state.clone(),
                epoch: snapshot.epoch,
                drawn: tables.to_string(),
            }));
        }
    }
    Ok(())
}

/// Tells the store which states go on under other names than it has for them.
pub(super) fn tell_names(
    store: Option<&mut Store>,
    drawing: &Drawing,
    snapshot: Option<&Restored>,
    renamed: &[(String, String)],
) -> Result<(), Error> {
    if let (Some(store), Some(snapshot)) = (store, snapshot) {
        store.rename(names(drawing, snapshot, renamed)?);
    }
    Ok(())
}

/// Names that differ from those in the store: of operators that have been renamed, and of tables that are outdated now.
fn names(drawing: &Drawing, snapshot: &Restored, renamed: &[(String, String)]) -> Result<Vec<Renamed>, Error> {
    let mut names: Vec<Renamed> = Vec::new();
    for entry in snapshot.entries.iter().filter(|entry| entry.paged) {
        let old = renamed.iter().find(|(_, new)| *new == entry.operator).map(|(old, _)| old);
        let from = StateName { operator: old.unwrap_or(&entry.operator).clone(), state: entry.state.clone() };
        let mut to = StateName { operator: entry.operator.clone(), state: entry.state.clone() };
        if let Some(typed) = type_of(drawing, entry).filter(|_| state_of(&entry.state) == entry.state)
            && !evolution_of_values(entry, typed, snapshot.epoch)?.1.is_identity()
        {
            let of_operator = snapshot.entries.iter().filter(|other| other.operator == entry.operator);
            let of_state = of_operator.map(|other| other.state.as_str()).filter(|kept| state_of(kept) == entry.state);
            to.state = outdated_name(&entry.state, of_state);
        }
        let name = Renamed { from, to };
        if name.from != name.to && !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}
