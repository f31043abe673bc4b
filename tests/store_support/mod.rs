//! A plain model of what a store should hold, shared by the store's tests.
#![allow(dead_code)]

use snapring::page::{FrozenPage, FrozenPages, PageId, Pages, Pool};
use snapring::snapshot::{BLOCK_BYTES, Checkpoint, Entry, Restored, Store, StoreOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;

pub const PAGE_BYTES: u32 = 4096;

/// Small pages and segments: crowded, so that blocks are used again soon.
pub fn options() -> StoreOptions {
    StoreOptions { keep: 2, page_bytes: PAGE_BYTES, segment_bytes: 65536, id: Some([7; 16]), ..StoreOptions::default() }
}

/// splitmix64.
#[derive(Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A page that says when it was written, filled so that no two sectors are alike.
pub fn page(epoch: u64, id: PageId, page_bytes: u32) -> FrozenPage {
    let mut rng = Rng(epoch << 32 | u64::from(id));
    let mut bytes: Vec<u8> = (0..page_bytes / 8).flat_map(|_| rng.next().to_le_bytes()).collect();
    bytes[..8].copy_from_slice(&epoch.to_le_bytes());
    frozen(&bytes)
}

/// A frozen page that holds these bytes.
pub fn frozen(bytes: &[u8]) -> FrozenPage {
    // One pool for each size: a pool's first page costs two megabytes.
    static POOLS: Mutex<BTreeMap<usize, Pool>> = Mutex::new(BTreeMap::new());
    let pool = POOLS.lock().unwrap().entry(bytes.len()).or_insert_with(|| Pool::new(bytes.len(), usize::MAX)).clone();
    let mut pages = Pages::new(&pool);
    let id = pages.allocate().unwrap();
    pages.write(id).unwrap().copy_from_slice(bytes);
    pages.freeze().changed.pop().unwrap().1
}

/// The tag of a [`page`]: not zero, and it follows from the bytes.
pub fn tag_of(page: &[u8]) -> u64 {
    !written_in(page)
}

/// The epoch in which a [`page`] was written.
pub fn written_in(page: &[u8]) -> u64 {
    u64::from_le_bytes(page[..8].try_into().unwrap())
}

/// A checkpoint of one state.
pub fn entry(epoch: u64, changed: &[PageId], count: u32, full: bool) -> Checkpoint {
    let changed = changed.iter().map(|id| (*id, page(epoch, *id, PAGE_BYTES))).collect();
    let mut pages = FrozenPages::of(changed, Vec::new(), PAGE_BYTES, count, full);
    pages.tag_of = tag_of;
    Checkpoint { epoch, header: format!("header {epoch}").into_bytes(), entries: vec![named("count", 0, epoch, pages)] }
}

fn named(operator: &str, task: u32, epoch: u64, pages: FrozenPages) -> Entry {
    Entry {
        operator: operator.into(),
        state: "table".into(),
        task,
        tasks: 2,
        schema: b"schema".to_vec(),
        root: format!("root {operator} {task} {epoch}").into_bytes(),
        pages: Some(pages),
    }
}

/// One state: page id to the epoch in which it was written.
#[derive(Clone, Default)]
struct State {
    pages: BTreeMap<PageId, u64>,
    count: u32,
    /// Changed or freed since the last durable epoch.
    changed: BTreeSet<PageId>,
    freed: BTreeSet<PageId>,
    durable: bool,
}

/// Some states that change at random, and what each epoch was.
#[derive(Clone)]
pub struct Model {
    rng: Rng,
    page_bytes: u32,
    pub epoch: u64,
    states: BTreeMap<(String, u32), State>,
    /// By epoch: what a restore must find.
    history: BTreeMap<u64, BTreeMap<(String, u32), State>>,
}

impl Model {
    pub fn new(seed: u64) -> Self {
        Self::with_page_bytes(seed, PAGE_BYTES)
    }

    pub fn with_page_bytes(seed: u64, page_bytes: u32) -> Self {
        let states =
            ["count", "join"].iter().flat_map(|name| (0..2).map(|task| ((name.to_string(), task), State::default())));
        let states = states.collect();
        Self { rng: Rng(seed), page_bytes, epoch: 0, states, history: BTreeMap::new() }
    }

    /// The next epoch, with some changes.
    pub fn step(&mut self) {
        self.epoch += 1 + self.rng.below(2);
        let (rng, epoch) = (&mut self.rng, self.epoch);
        for state in self.states.values_mut() {
            for _ in 0..rng.below(6) {
                let id = if rng.below(2) == 0 { state.count } else { rng.below(u64::from(state.count) + 1) as u32 };
                state.count = state.count.max(id + 1).min(20);
                let id = id.min(19);
                state.pages.insert(id, epoch);
                state.changed.insert(id);
                state.freed.remove(&id);
            }
            if rng.below(3) == 0 {
                let id = rng.below(20) as u32;
                if state.pages.remove(&id).is_some() {
                    state.changed.remove(&id);
                    state.freed.insert(id);
                }
            }
            // A restored state, say, starts from scratch.
            state.durable &= rng.below(15) != 0;
        }
        self.history.insert(epoch, self.states.clone());
    }

    pub fn checkpoint(&self) -> Checkpoint {
        let entry = |((operator, task), state): (&(String, u32), &State)| {
            let ids: Vec<PageId> = if state.durable {
                state.changed.iter().copied().collect()
            } else {
                state.pages.keys().copied().collect()
            };
            let changed = ids.into_iter().map(|id| (id, page(state.pages[&id], id, self.page_bytes))).collect();
            let freed = state.freed.iter().copied().collect();
            let mut pages = FrozenPages::of(changed, freed, self.page_bytes, state.count, !state.durable);
            pages.tag_of = tag_of;
            named(operator, *task, self.epoch, pages)
        };
        Checkpoint {
            epoch: self.epoch,
            header: format!("header {}", self.epoch).into_bytes(),
            entries: self.states.iter().map(entry).collect(),
        }
    }

    /// The last checkpoint was committed.
    pub fn durable(&mut self) {
        for state in self.states.values_mut() {
            state.changed.clear();
            state.freed.clear();
            state.durable = true;
        }
    }

    /// Goes on from an epoch that was restored; its pages are known to the store.
    pub fn restore(&mut self, epoch: u64) {
        self.states = self.history.get(&epoch).cloned().unwrap_or_else(|| Self::new(0).states);
        self.durable();
        self.states.values_mut().for_each(|state| state.durable = epoch != 0);
    }

    pub fn pages_total(&self) -> u64 {
        self.states.values().map(|state| state.pages.len() as u64).sum()
    }

    /// All kept epochs are what they were, and the newest is the last.
    pub fn check(&self, store: &Store) {
        assert_eq!(store.newest(), Some(self.epoch));
        self.check_kept(store);
    }

    pub fn check_kept(&self, store: &Store) {
        for info in store.epochs() {
            let restored = store.read(info.epoch).unwrap();
            self.check_restored(&restored);
            assert_eq!(
                info.pages,
                restored.entries.iter().map(|entry| entry.pages().unwrap().len() as u64).sum::<u64>()
            );
        }
    }

    pub fn check_restored(&self, restored: &Restored) {
        let epoch = restored.epoch;
        let states = &self.history[&epoch];
        assert_eq!(restored.header, format!("header {epoch}").into_bytes());
        assert_eq!(restored.entries.len(), states.len());
        for (entry, ((operator, task), state)) in restored.entries.iter().zip(states) {
            assert_eq!((&entry.operator, entry.task, entry.tasks), (operator, *task, 2));
            assert_eq!(entry.root, format!("root {operator} {task} {epoch}").into_bytes());
            assert_eq!(entry.page_count, state.count);
            let found: Vec<(PageId, u64)> = entry.pages().unwrap().map(|(id, bytes)| (id, written_in(bytes))).collect();
            let meant: Vec<(PageId, u64)> = state.pages.iter().map(|(id, epoch)| (*id, *epoch)).collect();
            assert_eq!(found, meant, "epoch {epoch}, {operator} {task}");
            for (id, bytes) in entry.pages().unwrap() {
                assert!(*bytes == *page(written_in(bytes), id, self.page_bytes));
            }
        }
    }
}

/// The bytes of the file that a commit must leave alone.
pub fn in_use(store: &Store) -> Vec<Range<u64>> {
    let blocks = store.blocks_in_use().unwrap();
    blocks
        .into_iter()
        .map(|block| u64::from(block) * BLOCK_BYTES as u64..(u64::from(block) + 1) * BLOCK_BYTES as u64)
        .collect()
}
