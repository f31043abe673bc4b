//! What a store has in memory beside its file, found by reading the maps ahead of its first commit: which blocks are taken, which die with which
//! epoch, and the maps on which the next checkpoint builds. Rules 6 and 7 of the room. It must not write.

use super::codec::{self, EntryRecord, place};
use super::fault::Fault;
use super::format::{Geometry, MapRef, Meta, TableEntry, TaggedSlot};
use super::map::PageMap;
use super::sink::ReadAt;
use super::space::{Blocks, Claim, Space};
use super::tree::{At, Forest, Visit, used_twice};
use std::collections::{BTreeMap, HashMap};

/// Whose pages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub operator: String,
    pub state: String,
    pub task: u32,
    pub tasks: u32,
}

/// The epoch on which the next checkpoint builds.
#[derive(Default)]
pub(super) struct Base {
    pub maps: HashMap<Key, PageMap>,
    /// The blocks of its record.
    pub record: Vec<u32>,
}

pub(super) struct Recovered {
    pub space: Space,
    /// `Err`: the epoch is damaged, and only full snapshots can follow.
    pub base: Result<Base, String>,
    /// By the last kept epoch that reaches them: what is free when it has expired.
    pub dying: BTreeMap<u64, Blocks>,
}

/// The epoch table that a meta refers to, with its blocks.
pub(super) fn read_table(forest: Forest<'_>, meta: &Meta) -> Result<(Vec<TableEntry>, Vec<u32>), Fault> {
    let mut blocks = Vec::new();
    let mut claim = |block| {
        blocks.push(block);
        Ok(())
    };
    let bytes = forest.read_blob(&meta.table, &mut claim).map_err(|fault| fault.within(|| "epoch table".into()))?;
    let table = codec::decode_table(&bytes)?;
    if table.last().map_or(0, |last| last.epoch.get()) != meta.newest.get() {
        return Err(Fault::Corrupt("epoch table: its newest epoch is not the meta's".into()));
    }
    Ok((table, blocks))
}

/// Claims what the kept epochs reach: first `base`, then the others from the newest to the oldest, each what none
/// before it had, so that it dies with the last epoch that needs it.
pub(super) fn recover(
    source: &dyn ReadAt,
    geometry: Geometry,
    table: &[TableEntry],
    table_blocks: Vec<u32>,
    base: u64,
) -> Result<Recovered, Fault> {
    let forest = Forest { source, geometry };
    match claim_all(forest, table, table_blocks.clone(), Some(base)) {
        Err(Fault::Corrupt(what)) => {
            // Anew, for the walk stopped at the damage: what lies beside it may belong to a healthy epoch.
            let found = claim_all(forest, table, table_blocks, None)?;
            Ok(Recovered { base: Err(what), ..found })
        }
        other => other,
    }
}

fn claim_all(
    forest: Forest<'_>,
    table: &[TableEntry],
    table_blocks: Vec<u32>,
    base: Option<u64>,
) -> Result<Recovered, Fault> {
    let mut claiming = Claiming { forest, space: Space::new(forest.geometry), taken: Blocks::default() };
    table_blocks.iter().try_for_each(|block| claiming.node_once(*block))?;
    let is_base = |entry: &&TableEntry| Some(entry.epoch.get()) == base;
    let mut found = Base::default();
    if let Some(entry) = table.iter().find(is_base) {
        claiming.taken = Blocks::default();
        found = claiming.base(entry)?;
    }
    let mut dying = BTreeMap::new();
    for entry in table.iter().rev().filter(|entry| !is_base(entry)) {
        claiming.taken = Blocks::default();
        match claiming.older(entry) {
            // It will say so when it is read; what it still reaches stays until it expires.
            Ok(()) | Err(Fault::Corrupt(_)) => {}
            Err(other) => return Err(other),
        }
        dying.insert(entry.epoch.get(), std::mem::take(&mut claiming.taken));
    }
    Ok(Recovered { space: claiming.space, base: Ok(found), dying })
}

struct Claiming<'a> {
    forest: Forest<'a>,
    space: Space,
    /// What the epoch at hand was the first to claim.
    taken: Blocks,
}

impl Claiming<'_> {
    fn node(&mut self, block: u32) -> Result<bool, Fault> {
        let claim = self.space.claim_node(block);
        if claim == Claim::Fresh {
            self.taken.nodes.push(block);
        }
        judge(claim, block)
    }

    fn page(&mut self, block: u32) -> Result<bool, Fault> {
        let claim = self.space.claim_page(block);
        if claim == Claim::Fresh {
            self.taken.pages.push(block);
        }
        judge(claim, block)
    }

    fn node_once(&mut self, block: u32) -> Result<(), Fault> {
        if self.node(block)? { Ok(()) } else { Err(used_twice(block)) }
    }

    fn record(&mut self, entry: &TableEntry) -> Result<Vec<EntryRecord>, Fault> {
        let forest = self.forest;
        let bytes = forest.read_blob(&entry.record, &mut |block| self.node_once(block))?;
        Ok(codec::decode(&bytes)?.entries)
    }

    fn base(&mut self, entry: &TableEntry) -> Result<Base, Fault> {
        let entries = self.record(entry)?;
        let mut base = Base { maps: HashMap::new(), record: self.taken.nodes.clone() };
        for EntryRecord { operator, state, task, tasks, map, .. } in entries {
            let Some(map) = map else { continue };
            let pages = self.map(&map).map_err(|fault| fault.within(|| place(&operator, &state, task, tasks)))?;
            if base.maps.insert(Key { operator, state, task, tasks }, pages).is_some() {
                return Err(Fault::Corrupt("an entry comes twice".into()));
            }
        }
        Ok(base)
    }

    fn map(&mut self, map: &MapRef) -> Result<PageMap, Fault> {
        let forest = self.forest;
        let mut adopting =
            Adopting { claiming: self, map: PageMap::new(forest.geometry.map_nodes()), count: map.count.get() };
        forest.walk_map(map, &mut adopting)?;
        let mut pages = adopting.map;
        pages.adopt_root(map)?;
        Ok(pages)
    }

    fn older(&mut self, entry: &TableEntry) -> Result<(), Fault> {
        let forest = self.forest;
        for entry in self.record(entry)? {
            if let Some(map) = entry.map {
                unless_io(forest.walk_map(&map, &mut Sharing(self)))?;
            }
        }
        Ok(())
    }
}

/// Damage is told when the epoch is read.
fn unless_io(result: Result<(), Fault>) -> Result<(), Fault> {
    if matches!(result, Err(Fault::Corrupt(_))) { Ok(()) } else { result }
}

fn judge(claim: Claim, block: u32) -> Result<bool, Fault> {
    match claim {
        Claim::Fresh => Ok(true),
        Claim::Again => Ok(false),
        Claim::Bad => Err(Fault::Corrupt(format!("block {block} is out of place"))),
    }
}

/// Reads the maps of the base: every block once.
struct Adopting<'a, 'b> {
    claiming: &'a mut Claiming<'b>,
    map: PageMap,
    count: u32,
}

impl Visit for Adopting<'_, '_> {
    fn enter(&mut self, _: At, block: u32) -> Result<bool, Fault> {
        self.claiming.node_once(block).map(|()| true)
    }
    fn node(&mut self, at: At, block: u32, slots: &[TaggedSlot]) -> Result<(), Fault> {
        self.map.adopt(at, block, slots);
        Ok(())
    }
    fn leaf(&mut self, index: u64, slot: TaggedSlot) -> Result<(), Fault> {
        if index >= u64::from(self.count) {
            return Err(Fault::Corrupt(format!("page {index} of {}", self.count)));
        }
        if self.claiming.page(slot.block())? { Ok(()) } else { Err(used_twice(slot.block())) }
    }
}

/// Reads the maps of another epoch: what a newer one shares is left out, with all that is below it. Damage does not
/// stop it: what lies beside is kept, for it may be shared by an older one that is whole.
struct Sharing<'a, 'b>(&'a mut Claiming<'b>);

impl Visit for Sharing<'_, '_> {
    fn enter(&mut self, _: At, block: u32) -> Result<bool, Fault> {
        Ok(self.0.node(block).unwrap_or(false))
    }
    fn leaf(&mut self, _: u64, slot: TaggedSlot) -> Result<(), Fault> {
        unless_io(self.0.page(slot.block()).map(|_| ()))
    }
    fn damaged(&mut self, _: At, fault: Fault) -> Result<(), Fault> {
        unless_io(Err(fault))
    }
}
