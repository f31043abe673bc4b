//! Files that are made to hurt: all checksums right, and nothing else. What chance does is in `tests/store_*`.

mod begun;
mod flips;

use super::codec::{decode, encode, encoded_len};
use super::format::{BlobRef, HEAD_BYTES, META_OFFSETS, MapRef, Meta, Nodes, Slot, Superblock, TableEntry, TaggedSlot};
use super::map::PageMap;
use super::sim::SimDisk;
use super::space::{Blocks, Claim, Space};
use super::{BLOCK_BYTES, Checkpoint, Entry, Reader, Store, StoreOptions};
use crate::error::StoreError;
use crate::page::FrozenPages;
use crate::snapshot::format::Geometry;
use proptest::prelude::*;
use zerocopy::IntoBytes;

fn no_pages() -> FrozenPages {
    FrozenPages::of(vec![], vec![], 4096, 0, true)
}

const ID: [u8; 16] = [9; 16];
const SEGMENT_BYTES: u64 = 1 << 20;

/// A store file made by hand.
struct Forge {
    image: Vec<u8>,
    next: u32,
}

impl Forge {
    fn new() -> Self {
        let mut image = vec![0; (HEAD_BYTES + SEGMENT_BYTES) as usize];
        image[..512].copy_from_slice(Superblock::new(ID, 4096, SEGMENT_BYTES).as_bytes());
        Self { image, next: Geometry::FIRST_BLOCK }
    }

    fn block(&mut self, bytes: &[u8]) -> Slot {
        let mut block = [0; BLOCK_BYTES];
        block[..bytes.len()].copy_from_slice(bytes);
        let at = self.next as usize * BLOCK_BYTES;
        self.image[at..at + BLOCK_BYTES].copy_from_slice(&block);
        self.next += 1;
        Slot::new(self.next - 1, crc32c::crc32c(&block))
    }

    /// A node of a page map.
    fn node(&mut self, children: impl Fn(usize) -> Slot) -> Slot {
        self.node_of(Nodes::Tagged, children)
    }

    fn node_of(&mut self, nodes: Nodes, children: impl Fn(usize) -> Slot) -> Slot {
        let slots = (0..nodes.fanout() as usize).map(|i| TaggedSlot { slot: children(i), tag: 7.into() });
        let slots: Vec<_> = slots.collect();
        self.block(&nodes.block(&slots)[..])
    }

    /// A store with one epoch that holds these maps.
    fn store(mut self, maps: &[MapRef], record_bytes: Option<u64>) -> SimDisk {
        let entry = |task| Entry {
            operator: "op".into(),
            state: "s".into(),
            task,
            tasks: 9,
            schema: vec![],
            root: vec![],
            pages: Some(no_pages()),
        };
        let entries = (0..maps.len() as u32).map(entry).collect();
        let checkpoint = Checkpoint { epoch: 1, header: vec![], entries };
        let bytes = encode(&checkpoint, &maps.iter().copied().map(Some).collect::<Vec<_>>());
        let record = BlobRef::new(self.block(&bytes), 0, record_bytes.unwrap_or(bytes.len() as u64));
        let entry = TableEntry { epoch: 1.into(), record, ..TableEntry::default() };
        let table = BlobRef::new(self.block(entry.as_bytes()), 0, size_of::<TableEntry>() as u64);
        self.finish(table)
    }

    fn finish(mut self, table: BlobRef) -> SimDisk {
        let meta = Meta::new(ID, 2, 1, 1, 1, table);
        let at = META_OFFSETS[0] as usize;
        self.image[at..at + 512].copy_from_slice(meta.as_bytes());
        SimDisk::with_image(self.image)
    }
}

fn options() -> StoreOptions {
    StoreOptions { page_bytes: 4096, segment_bytes: 65536, ..StoreOptions::default() }
}

fn map(root: Slot, depth: u32, count: u32, pages: u64) -> MapRef {
    MapRef { root, depth: depth.into(), count: count.into(), pages: pages.into() }
}

/// Opens, but neither reads nor builds on what it finds.
fn assert_corrupt(disk: &SimDisk) {
    let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    assert!(matches!(store.read(1), Err(StoreError::Corrupt { .. })));
    assert!(matches!(store.restore(1), Err(StoreError::Corrupt { .. })));
    assert!(matches!(store.base_on(1), Err(StoreError::Corrupt { .. })));
    let reader = Reader::open_on(Box::new(disk.clone())).unwrap();
    assert!(!reader.verify(1).unwrap().damage.is_empty());
}

#[test]
fn a_node_that_all_slots_refer_to_is_refused_at_once() {
    let mut forge = Forge::new();
    let mut below = forge.block(b"page");
    for _ in 0..4 {
        below = forge.node(|_| below);
    }
    assert_corrupt(&forge.store(&[map(below, 4, u32::MAX, 1 << 36)], None));
}

#[test]
fn a_map_that_many_entries_share_is_refused() {
    let mut forge = Forge::new();
    let page = forge.block(b"page");
    let leaf = forge.node(|i| if i == 0 { page } else { Slot::default() });
    let shared = map(leaf, 1, 1, 1);
    assert_corrupt(&forge.store(&[shared, shared], None));
}

#[test]
fn maps_that_contradict_themselves_are_refused() {
    type Wrong = fn(Slot, Slot) -> MapRef;
    let wrongs: [Wrong; 6] = [
        |leaf, _| map(leaf, 1, 1, 2),
        |leaf, _| map(leaf, 1, 0, 1),
        |leaf, _| map(leaf, 5, 1, 1),
        |leaf, _| map(leaf, u32::MAX, 1, 1),
        |_, _| map(Slot::new(u32::MAX, 3), 1, 1, 1),
        |_, page| map(page, 2, 1, 1),
    ];
    for wrong in wrongs {
        let mut forge = Forge::new();
        let page = forge.block(Slot::new(3, 1).as_bytes());
        let leaf = forge.node(|i| if i == 0 { page } else { Slot::default() });
        let wrong = wrong(leaf, page);
        assert_corrupt(&forge.store(&[wrong], None));
    }
}

#[test]
fn ids_far_apart_take_little_memory() {
    let mut forge = Forge::new();
    let page = forge.block(b"page");
    let mut below = page;
    for _ in 0..4 {
        let last = below;
        below = forge.node(|i| if i == 255 { last } else { Slot::default() });
    }
    // The last slot of the top node is that of page 256^4 - 1, which no count of 32 bits is above.
    assert_corrupt(&forge.store(&[map(below, 4, u32::MAX, 1)], None));
}

#[test]
fn blobs_that_contradict_themselves_are_refused() {
    for bytes in [0, 7, 5000, u64::MAX] {
        assert_corrupt(&Forge::new().store(&[], Some(bytes)));
    }
    let mut forge = Forge::new();
    let mut node = forge.node_of(Nodes::Plain, |_| Slot::default());
    for _ in 0..3 {
        node = forge.node_of(Nodes::Plain, |_| node);
    }
    // An epoch table of empty nodes, which a naive walk would visit 512^3 times.
    let disk = forge.finish(BlobRef::new(node, 4, 48));
    assert!(matches!(Store::open_on(Box::new(disk), options()), Err(StoreError::Corrupt { .. })));
}

#[test]
fn nodes_and_pages_share_the_space_without_meeting() {
    let geometry = Geometry { version: 2, page_bytes: 16384, segment_bytes: 65536, segments: 2 };
    let mut space = Space::new(geometry);
    assert_eq!((space.lacking_frames(8, 0), space.lacking_frames(8, 1), space.lacking_frames(0, 33)), (0, 1, 1));
    let page = space.take_page();
    let nodes: Vec<u32> = (0..5).map(|_| space.take_node()).collect();
    assert_eq!(nodes, [20, 21, 22, 23, 24]);
    assert_eq!(space.counts(), (5, 1, 2, 5));
    assert_eq!(
        (space.claim_page(20), space.claim_node(page), space.claim_page(17)),
        (Claim::Bad, Claim::Bad, Claim::Bad)
    );
    assert_eq!((space.claim_node(25), space.claim_node(25)), (Claim::Fresh, Claim::Again));
    space.release(&Blocks { pages: vec![page], nodes: vec![20, 21, 22, 23, 24, 25] });
    assert_eq!(space.counts(), (8, 0, 0, 0));
    assert_eq!(space.lacking_frames(0, 32), 0);
}

#[test]
fn nodes_of_an_epoch_lie_behind_its_pages_while_there_is_room_and_in_holes_when_there_is_not() {
    let mut space = Space::new(Geometry { version: 2, page_bytes: 16384, segment_bytes: 65536, segments: 4 });
    space.begin(1);
    let nodes: Vec<u32> = (0..8).map(|_| space.take_node()).collect();
    space.release(&Blocks { pages: Vec::new(), nodes: nodes[1..7].to_vec() });
    space.begin(2);
    let page = space.take_page();
    let nodes: Vec<u32> = (0..6).map(|_| space.take_node()).collect();
    assert!(nodes.iter().copied().eq(page + 4..page + 10), "{nodes:?} behind {page}");
    // Eleven frames are left of sixteen, and room for eight nodes in those that are split.
    let pages: Vec<u32> = (0..7).map(|_| space.take_page()).collect();
    space.begin(3);
    assert_eq!((space.lacking_frames(0, 24), space.lacking_frames(0, 25)), (0, 1));
    let nodes: Vec<u32> = (0..24).map(|_| space.take_node()).collect();
    assert_eq!(nodes[..3], [17, 18, 19], "the first hole");
    assert_eq!(space.counts(), (0, 8, 8, 32));
    space.release(&Blocks { pages, nodes });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_record_decodes_to_what_was_encoded_and_hostile_ones_to_errors(
        header in proptest::collection::vec(any::<u8>(), 0..40),
        names in proptest::collection::vec(("[a-z]{0,5}", any::<u32>(), any::<bool>()), 0..5),
        cut in any::<proptest::sample::Index>(),
        flip in any::<proptest::sample::Index>(),
    ) {
        let entries = names.iter().map(|(name, task, paged)| Entry {
            operator: name.clone(), state: name.clone(), task: *task, tasks: 1, schema: header.clone(),
            root: vec![1; 3],
            pages: paged.then(no_pages),
        });
        let checkpoint = Checkpoint { epoch: 77, header: header.clone(), entries: entries.collect() };
        let map_of = |task: u32| map(Slot::new(task, 2), 1, 2, 3);
        let maps: Vec<_> = names.iter().map(|(_, task, paged)| paged.then(|| map_of(*task))).collect();
        let mut bytes = encode(&checkpoint, &maps);
        prop_assert_eq!(bytes.len(), encoded_len(&checkpoint));
        let record = decode(&bytes).unwrap();
        prop_assert_eq!((record.epoch, &record.header, record.entries.len()), (77, &header, names.len()));
        for (entry, ((name, task, _), map)) in record.entries.iter().zip(names.iter().zip(&maps)) {
            prop_assert_eq!((&entry.operator, entry.task, entry.map), (name, *task, *map));
        }
        prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_err());
        let at = flip.index(bytes.len());
        bytes[at] ^= 0x55;
        let _ = decode(&bytes);
    }

    #[test]
    fn the_space_reserved_for_a_map_is_enough(
        rounds in proptest::collection::vec(
            proptest::collection::btree_map(0u32..2_000_000, any::<bool>(), 0..60), 1..6,
        ),
    ) {
        let mut space = Space::new(Geometry { version: 2, page_bytes: 4096, segment_bytes: 65536, segments: 400 });
        let mut map = PageMap::new(Nodes::Tagged);
        let mut count = 0;
        for round in rounds {
            let ids: Vec<u32> = round.keys().copied().collect();
            count = ids.last().map_or(count, |last| count.max(last + 1));
            let reserved = map.nodes_touched(&ids, count);
            for (id, set) in round {
                if set { map.set(id, TaggedSlot::new(id + 1, 0, 0)); } else { map.clear(id); }
            }
            let (mut dead, mut out) = (Blocks::default(), Vec::new());
            map.lay_out(&mut space, &mut dead, &mut out);
            prop_assert!(out.len() as u64 <= reserved, "{} of {reserved}", out.len());
        }
    }
}
