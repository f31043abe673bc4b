//! Which epochs go with a commit, and what becomes of what they alone needed (rules 1 and 2 of `pin`). It must not know
//! who holds on to an epoch, nor why.

use super::commit::Way;
use super::format::TableEntry;
use super::generation::Generation;
use super::space::Space;
use std::collections::BTreeMap;

impl Generation {
    /// What the table keeps beside the epoch that is to come: the newest, and those that somebody holds on to.
    pub(super) fn next_table(&self, way: &Way<'_>) -> Vec<TableEntry> {
        let over = (self.table.len() + 1).saturating_sub(way.keep as usize);
        let stays = |(at, entry): &(usize, &TableEntry)| *at >= over || (way.is_held)(entry.epoch.get());
        self.table.iter().enumerate().filter(stays).map(|(_, entry)| *entry).collect()
    }

    /// Ahead of a commit: finds out what those reach that are kept beyond their time. One that cannot be read may reach
    /// everything.
    pub(super) fn hold(&mut self, table: &[TableEntry], way: &Way<'_>) {
        let over = (table.len() + 1).saturating_sub(way.keep as usize);
        for entry in &table[..over] {
            let epoch = entry.epoch.get();
            if !self.held.contains_key(&epoch) {
                let reach = self.reach(entry).unwrap_or_else(|_| Space::all_taken(self.geometry()));
                self.held.insert(epoch, reach);
            }
        }
    }

    /// After a commit: epochs that are not in its table have expired.
    pub(super) fn expire(&mut self, table: &[TableEntry]) {
        let is_kept = |epoch: &u64| table.binary_search_by_key(epoch, |entry| entry.epoch.get()).is_ok();
        self.held.retain(|epoch, _| is_kept(epoch));
        let dying = std::mem::take(&mut self.dying);
        let (kept, expired): (BTreeMap<_, _>, BTreeMap<_, _>) =
            dying.into_iter().partition(|(epoch, _)| is_kept(epoch));
        self.dying = kept;
        for (epoch, mut blocks) in expired {
            // The newest first: what it does not reach may still be reached by those before.
            for (older, reach) in self.held.range(..epoch).rev() {
                self.dying.entry(*older).or_default().append(blocks.held_by(reach));
            }
            self.space.release(&blocks);
        }
    }
}
