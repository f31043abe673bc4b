//! What a snapshot holds of channels, on its way back: each record goes to the task that it was going to, or, at another
//! parallelism, to the one that its edge leads it to now. It must not know who kept a record, but for the order.
//!
//! The order within a channel (protocols, rule 36): what an earlier restore had brought, then what its consumer had logged,
//! then what its producer had left.

use super::build::Build;
use super::drawing::Drawing;
use crate::error::{Error, RestoreError, StoreError};
use crate::operator::{Typed, decoded, evolution};
use crate::record::{Evolution, Record, ZERO_WIDTH_MAX};
use crate::snapshot::{ChannelPart, REST, Restored, RestoredEntry, Side};
use std::collections::VecDeque;

/// Checks that every edge of which the snapshot holds records is drawn.
pub(super) fn check(drawing: &Drawing, snapshot: &Restored) -> Result<(), Error> {
    for entry in &snapshot.entries {
        let Some((_, edge)) = Side::of_state(&entry.state) else { continue };
        if drawing.graph.edges.iter().any(|drawn| drawn.name == edge) {
            continue;
        }
        let parts = decoded::<Vec<ChannelPart>>(entry, snapshot.epoch)?;
        let drawn: Vec<String> = drawing.graph.edges.iter().map(|edge| format!("`{}`", edge.name)).collect();
        return Err(Error::Restore(RestoreError::Channel {
            epoch: snapshot.epoch,
            edge: edge.to_owned(),
            records: parts.iter().map(|part| part.records).sum(),
            drawn: drawn.join(", "),
        }));
    }
    Ok(())
}

/// Records for each task of an edge's consumer, in batches.
pub(super) type Dealt<T> = Vec<VecDeque<Vec<T>>>;

impl Build<'_> {
    /// What the snapshot holds of an edge for this task.
    pub(super) fn rest<T: Record>(&mut self, edge: usize) -> Result<VecDeque<Vec<T>>, Error> {
        let index = self.index as usize;
        if !self.grids.dealt.contains_key(&edge) {
            let dealt = self.deal::<T>(edge)?;
            self.grids.dealt.insert(edge, Box::new(dealt));
        }
        let dealt = self.grids.dealt.get_mut(&edge).and_then(|dealt| dealt.downcast_mut::<Dealt<T>>());
        Ok(std::mem::take(&mut dealt.expect("an edge is drawn and built with one type")[index]))
    }

    fn deal<T: Record>(&mut self, edge: usize) -> Result<Dealt<T>, Error> {
        let name = self.drawing.graph.edges[edge].name.clone();
        let tasks = self.plan.chains[self.drawing.graph.edges[edge].to].tasks;
        let parts = self.parts::<T>(&name)?;
        let mut dealt: Dealt<T> = (0..tasks).map(|_| VecDeque::new()).collect();
        let mut lane = self.lane::<T>(edge);
        for part in parts {
            let mut input = part.bytes.as_slice();
            // Nothing else would bound what a count makes us do.
            if T::WIDTH == Some(0) && part.records > ZERO_WIDTH_MAX as u64 {
                return Err(self.damaged(&name, "too many records without bytes"));
            }
            for _ in 0..part.records {
                let record = T::decode(&mut input).map_err(|error| self.damaged(&name, &error.to_string()))?;
                let to = if part.to_tasks == tasks {
                    Some(part.to)
                } else {
                    lane.lane(&record, tasks as usize).map(|lane| lane as u32)
                };
                let Some(to) = to else {
                    let epoch = self.start.epoch;
                    return Err(RestoreError::Broadcast { epoch, edge: name, then: part.to_tasks, now: tasks }.into());
                };
                let batches = dealt.get_mut(to as usize).ok_or_else(|| self.damaged(&name, "no such task"))?;
                match batches.back_mut().filter(|batch| batch.len() < batch.capacity()) {
                    Some(batch) => batch.push(record),
                    None => {
                        let mut batch = Vec::with_capacity(self.batch_len::<T>());
                        batch.push(record);
                        batches.push_back(batch);
                    }
                }
            }
        }
        Ok(dealt)
    }

    /// All parts of an edge, in the order in which they are to be processed.
    fn parts<T: Record>(&self, edge: &str) -> Result<Vec<ChannelPart>, Error> {
        let of_edge = |entry: &&RestoredEntry| Side::of_state(&entry.state).is_some_and(|(_, of)| of == edge);
        let mut parts = Vec::new();
        for entry in self.start.restored.iter().filter(of_edge) {
            let evolution = evolution(entry, &Typed::of::<T>(), self.start.epoch)?;
            let side = Side::of_state(&entry.state).map(|(side, _)| side);
            let mut of_entry = decoded::<Vec<ChannelPart>>(entry, self.start.epoch)?;
            if !evolution.is_identity() {
                of_entry.iter_mut().try_for_each(|part| self.migrate(edge, &evolution, part))?;
            }
            parts.extend(of_entry.into_iter().map(|part| (part.from != REST, side, part)));
        }
        // Stable: within a channel the order stays as it is.
        parts.sort_by_key(|(is_new, side, _)| (*is_new, *side));
        Ok(parts.into_iter().map(|(.., part)| part).collect())
    }

    /// Makes records of another type those of today.
    fn migrate(&self, edge: &str, evolution: &Evolution, part: &mut ChannelPart) -> Result<(), Error> {
        let old = std::mem::take(&mut part.bytes);
        let mut input = old.as_slice();
        for _ in 0..part.records {
            // Records without bytes, of which there may be any number, are bounded where they are decoded.
            if input.is_empty() && part.bytes.is_empty() && part.records > ZERO_WIDTH_MAX as u64 {
                break;
            }
            let done = evolution.advance(&mut input, &mut part.bytes);
            done.map_err(|error| self.damaged(edge, &error.to_string()))?;
        }
        Ok(())
    }

    #[cold]
    fn damaged(&self, edge: &str, what: &str) -> Error {
        let what = format!("epoch {}, records of edge `{edge}`: {what}", self.start.epoch);
        StoreError::Corrupt { path: "the snapshot".into(), what }.into()
    }
}
