//! One bit of the file is another one: in each kind of block, in each block of the kind. What is told of damage must not be
//! read, what is read must be right.

use crate::error::StoreError;
use crate::page::{FrozenPage, FrozenPages, PageError, PageId, Pages, Pool};
use crate::snapshot::fault::Fault;
use crate::snapshot::format::{BLOCK_BYTES, META_COPIES, META_OFFSETS, SECTOR_BYTES, TaggedSlot};
use crate::snapshot::head::read_head;
use crate::snapshot::home::Generations;
use crate::snapshot::recover::read_table;
use crate::snapshot::restored::read_record;
use crate::snapshot::sim::SimDisk;
use crate::snapshot::tree::{At, Forest, Visit};
use crate::snapshot::{Checkpoint, Entry, Reader, Restored, Store, StoreOptions};
use std::collections::BTreeMap;

const PAGE_BYTES: usize = 4096;
/// Far apart, so that there are nodes on three levels.
const IDS: [PageId; 6] = [0, 1, 255, 256, 70_000, 130_000];

pub(super) fn options() -> StoreOptions {
    StoreOptions { keep: 3, page_bytes: PAGE_BYTES as u32, segment_bytes: 65536, ..StoreOptions::default() }
}

fn page(epoch: u64, id: PageId) -> FrozenPage {
    let mut pages = Pages::new(&Pool::new(PAGE_BYTES, usize::MAX));
    let only = pages.allocate().unwrap();
    let bytes = pages.write(only).unwrap();
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at as u32 * 31 + id * 7 + epoch as u32) as u8);
    pages.freeze().changed.pop().unwrap().1
}

/// When each page was written, as of an epoch: each writes all pages, or the first and the last.
fn written(epoch: u64, id: PageId) -> u64 {
    if epoch == 1 || id == IDS[0] || id == IDS[5] { epoch } else { 1 }
}

pub(super) fn commit(store: &mut Store, epoch: u64) {
    let changed = IDS.iter().filter(|id| written(epoch, **id) == epoch).map(|id| (*id, page(epoch, *id)));
    let (changed, page_bytes, full) = (changed.collect(), PAGE_BYTES as u32, epoch == 1);
    let pages = FrozenPages {
        tag_of: |page| page[1].into(),
        ..FrozenPages::of(changed, Vec::new(), page_bytes, 130_001, full)
    };
    let entry = Entry {
        operator: "count".into(),
        state: "table".into(),
        task: 0,
        tasks: 1,
        schema: Vec::new(),
        root: vec![epoch as u8; 9000],
        pages: Some(pages),
    };
    store.commit(&Checkpoint { epoch, header: b"header".to_vec(), entries: vec![entry] }).unwrap();
}

/// Nothing of it is damaged, and all of it is as it was.
pub(super) fn check(restored: &Restored) -> Result<(), StoreError> {
    let (epoch, entry) = (restored.epoch, &restored.entries[0]);
    let found: Vec<_> = entry.pages()?.map(|(id, bytes)| (id, bytes.to_vec())).collect();
    let meant: Vec<_> = IDS.iter().map(|id| (*id, page(written(epoch, *id), *id).to_vec())).collect();
    assert!(found == meant && entry.root == vec![epoch as u8; 9000] && restored.header == b"header", "epoch {epoch}");
    Ok(())
}

/// Byte ranges of the file, by what they are.
#[derive(Default)]
struct Kinds(BTreeMap<&'static str, Vec<std::ops::Range<usize>>>);

impl Kinds {
    fn block(&mut self, kind: &'static str, block: u32) {
        let at = block as usize * BLOCK_BYTES;
        let range = at..at + BLOCK_BYTES;
        let ranges = self.0.entry(kind).or_default();
        // Epochs share them.
        if !ranges.contains(&range) {
            ranges.push(range);
        }
    }
}

impl Visit for Kinds {
    fn enter(&mut self, at: At, block: u32) -> Result<bool, Fault> {
        self.block(["map leaf", "map node", "map root"][at.depth as usize - 1], block);
        Ok(true)
    }
    fn leaf(&mut self, _: u64, slot: TaggedSlot) -> Result<(), Fault> {
        self.block("page", slot.block());
        Ok(())
    }
}

fn kinds(disk: &SimDisk) -> Kinds {
    let source = disk.open(1).unwrap();
    let head = read_head(&*source).unwrap();
    let forest = Forest { source: &*source, geometry: head.geometry };
    let mut kinds = Kinds::default();
    kinds.0.insert("superblock", std::iter::once(0..SECTOR_BYTES).collect());
    let copies = |&offset: &u64| (0..META_COPIES).map(move |copy| offset as usize + copy * SECTOR_BYTES);
    let metas = META_OFFSETS.iter().flat_map(copies).map(|at| at..at + SECTOR_BYTES);
    kinds.0.insert("meta", metas.collect());
    let (table, blocks) = read_table(forest, &head.meta).unwrap();
    blocks.into_iter().for_each(|block| kinds.block("epoch table", block));
    for entry in &table {
        let mut blob = |block| {
            kinds.block("record", block);
            Ok(())
        };
        forest.read_blob(&entry.record, &mut blob).unwrap();
        let map = read_record(forest, entry).unwrap().entries[0].map.unwrap();
        forest.walk_map(&map, &mut kinds).unwrap();
    }
    kinds
}

/// What came of a flip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    /// All epochs are read, and right.
    Harmless,
    /// Some are, and the others say that they are damaged.
    Told(usize),
    /// The store cannot be opened, and says why.
    Refused,
}

fn look(image: Vec<u8>) -> Came {
    let disk = SimDisk::with_image(image);
    let mut store = match Store::open_on(Box::new(disk.clone()), options()) {
        Ok(store) => store,
        Err(StoreError::Corrupt { .. } | StoreError::Foreign { .. }) => return Came::Refused,
        Err(other) => panic!("{other}"),
    };
    let reader = Reader::open_on(Box::new(disk)).unwrap();
    assert_eq!(store.newest(), Some(3), "the newest epoch is gone without a word");
    let mut damaged = 0;
    for epoch in 1..=3 {
        let whole = [store.read(epoch), store.restore(epoch)].map(|read| read.and_then(|restored| check(&restored)));
        let is_damaged = !reader.verify(epoch).unwrap().damage.is_empty();
        for read in whole {
            match read {
                Ok(()) => assert!(!is_damaged),
                Err(StoreError::Corrupt { what, .. }) => {
                    assert!(is_damaged && what.contains(&format!("epoch {epoch}")), "{what}");
                }
                Err(other) => panic!("{other}"),
            }
        }
        damaged += usize::from(is_damaged);
        page_by_page(&store, epoch);
    }
    if damaged == 0 {
        commit(&mut store, 4);
        check(&store.read(4).unwrap()).unwrap();
        return Came::Harmless;
    }
    // Damage is no reason to take a dense copy for whole.
    assert!(matches!(store.compact(), Err(StoreError::Corrupt { .. })));
    Came::Told(damaged)
}

/// Each page that is read by itself, when it is needed, is right or an error.
fn page_by_page(store: &Store, epoch: u64) {
    let Ok(restored) = store.restore(epoch) else { return };
    let source = restored.entries[0].source().unwrap();
    let mut bytes = vec![0; PAGE_BYTES];
    for id in IDS {
        match source.read(id, &mut bytes) {
            Ok(_) => assert!(bytes == *page(written(epoch, id), id)),
            Err(PageError::Corrupt { what }) => assert!(what.contains(&format!("page {id}")), "{what}"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_flipped_bit_in_each_kind_of_block_is_told_or_harmless() {
    let disk = SimDisk::new();
    let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    (1..=3).for_each(|epoch| commit(&mut store, epoch));
    let (kinds, image) = (kinds(&disk), disk.image());
    for (kind, ranges) in &kinds.0 {
        let mut came = BTreeMap::<Came, u32>::new();
        for range in ranges {
            // The first bytes one by one, where numbers are, then some of the rest.
            let places = range.clone().enumerate().filter(|(at, _)| *at < 32 || at % 251 == 0);
            for (at, place) in places {
                let mut flipped = image.clone();
                flipped[place] ^= 1 << (at % 8);
                *came.entry(look(flipped)).or_default() += 1;
            }
        }
        let came: Vec<Came> = came.into_keys().collect();
        let all = |is_so: fn(&Came) -> bool| came.iter().all(is_so) && !came.is_empty();
        let as_meant = match *kind {
            "superblock" | "epoch table" => all(|came| *came == Came::Refused),
            // Its other copy, or the older one that nobody reads.
            "meta" => all(|came| *came == Came::Harmless),
            _ => all(|came| matches!(came, Came::Told(_))),
        };
        assert!(as_meant, "{kind}: {came:?}");
        // What epochs share damages all of them.
        let shared = matches!(*kind, "page" | "map leaf");
        assert_eq!(came.contains(&Came::Told(3)), shared, "{kind}: {came:?}");
    }
    let found: Vec<&str> = kinds.0.keys().copied().collect();
    let meant = ["epoch table", "map leaf", "map node", "map root", "meta", "page", "record", "superblock"];
    assert_eq!(found, meant);
}
