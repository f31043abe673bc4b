//! Tables of a snapshot held against the drawing: whether their values can become those of today, and under which names
//! their pages go on. It must not know how they are migrated.

use super::drawing::Drawing;
use crate::error::Error;
use crate::operator::{Typed, evolution_of_values, outdated_name, state_of};
use crate::snapshot::{Renamed, Restored, RestoredEntry, StateName};
use std::sync::Arc;

/// What a table is drawn to hold.
fn drawn<'a>(drawing: &'a Drawing, entry: &RestoredEntry) -> Option<&'a Typed> {
    let is_it = |(operator, _): &&(Arc<str>, Typed)| **operator == *entry.operator;
    drawing.tables.iter().find(is_it).filter(|_| entry.paged).map(|(_, typed)| typed)
}

/// Do the tables hold what they are drawn to hold, or can it become that?
pub(super) fn check_tables(drawing: &Drawing, snapshot: &Restored) -> Result<(), Error> {
    for entry in &snapshot.entries {
        if let Some(typed) = drawn(drawing, entry) {
            evolution_of_values(entry, typed, snapshot.epoch)?;
        }
    }
    Ok(())
}

/// Names that differ from those in the store: of operators that have been renamed, and of tables that are outdated now.
pub(super) fn names(
    drawing: &Drawing,
    snapshot: &Restored,
    renamed: &[(String, String)],
) -> Result<Vec<Renamed>, Error> {
    let mut names: Vec<Renamed> = Vec::new();
    for entry in snapshot.entries.iter().filter(|entry| entry.paged) {
        let old = renamed.iter().find(|(_, new)| *new == entry.operator).map(|(old, _)| old);
        let from = StateName { operator: old.unwrap_or(&entry.operator).clone(), state: entry.state.clone() };
        let mut to = StateName { operator: entry.operator.clone(), state: entry.state.clone() };
        if let Some(typed) = drawn(drawing, entry).filter(|_| state_of(&entry.state) == entry.state)
            && !evolution_of_values(entry, typed, snapshot.epoch)?.1.is_identity()
        {
            let of_operator = snapshot.entries.iter().filter(|other| other.operator == entry.operator);
            to.state = outdated_name(&entry.state, of_operator.map(|other| other.state.as_str()));
        }
        let name = Renamed { from, to };
        if name.from != name.to && !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}
