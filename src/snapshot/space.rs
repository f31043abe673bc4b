//! Which blocks of the file are taken, in memory only. A *frame* is room for one page; a frame may be split into nodes
//! of one block each. It must not know what refers to a block, nor when it may be released.

use super::format::Geometry;
use std::collections::{BTreeSet, HashMap};

/// Blocks that go together.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    /// First blocks of pages.
    pub pages: Vec<u32>,
    /// Nodes, and blocks of small things.
    pub nodes: Vec<u32>,
}

impl Blocks {
    pub fn append(&mut self, mut other: Blocks) {
        self.pages.append(&mut other.pages);
        self.nodes.append(&mut other.nodes);
    }

    /// Takes out those that are so.
    pub fn split_off(&mut self, mut is_so: impl FnMut(u32) -> bool) -> Self {
        let pages = self.pages.extract_if(.., |block| is_so(*block)).collect();
        let nodes = self.nodes.extract_if(.., |block| is_so(*block)).collect();
        Self { pages, nodes }
    }
}

/// What claiming a block found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Fresh,
    /// Claimed before, for the same use.
    Again,
    /// Outside the segments, between two pages, or claimed for the other use.
    Bad,
}

#[derive(Debug)]
pub(super) struct Space {
    geometry: Geometry,
    /// One bit a frame; bits beyond the last frame are set.
    taken: Vec<u64>,
    free_frames: u32,
    /// Where the search for a free frame goes on: runs come out in the order of the file.
    cursor: u32,
    /// The frames that are split, and which of their blocks are taken.
    split: HashMap<u32, u16>,
    /// Those of them that have room.
    with_room: BTreeSet<u32>,
    /// The one that this epoch has split last.
    filling: Option<u32>,
    free_nodes: u32,
    /// The epoch that takes blocks now.
    epoch: u64,
    /// By frame: the epoch that took it for a page; 0, or nothing, if that is not known.
    pages_born: Vec<u64>,
    /// The same of nodes, where it is known.
    nodes_born: HashMap<u32, u64>,
}

impl Space {
    /// All blocks free.
    pub fn new(geometry: Geometry) -> Self {
        let none = Geometry { segments: 0, ..geometry };
        let mut space = Self {
            geometry: none,
            taken: Vec::new(),
            free_frames: 0,
            cursor: 0,
            split: HashMap::new(),
            with_room: BTreeSet::new(),
            filling: None,
            free_nodes: 0,
            epoch: 0,
            pages_born: Vec::new(),
            nodes_born: HashMap::new(),
        };
        space.grow(geometry.segments);
        space
    }

    /// No block free.
    pub fn all_taken(geometry: Geometry) -> Self {
        let mut space = Self::new(Geometry { segments: 0, ..geometry });
        space.geometry = geometry;
        space.taken.resize((geometry.frames() as usize).div_ceil(64), !0);
        space
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The file has `segments` segments now.
    pub fn grow(&mut self, segments: u32) {
        let before = self.geometry.frames();
        self.geometry.segments = segments;
        let after = self.geometry.frames();
        self.taken.resize((after as usize).div_ceil(64), !0);
        (before..after).for_each(|frame| self.taken[frame as usize / 64] &= !(1 << (frame % 64)));
        self.pages_born.resize(after as usize, 0);
        self.free_frames += after - before;
    }

    /// What is taken from here on is this epoch's.
    pub fn begin(&mut self, epoch: u64) {
        (self.epoch, self.filling) = (epoch, None);
    }

    /// No epoch below this one reaches the block, which is taken.
    pub fn born(&self, block: u32) -> u64 {
        let frame = self.frame_of(block);
        match self.split.contains_key(&frame) {
            true => self.nodes_born.get(&block).copied().unwrap_or(0),
            false => self.pages_born.get(frame as usize).copied().unwrap_or(0),
        }
    }

    /// How many frames are lacking for so many pages and nodes.
    pub fn lacking_frames(&self, pages: u64, nodes: u64) -> u64 {
        let fresh =
            nodes.saturating_sub(u64::from(self.free_nodes)).div_ceil(u64::from(self.geometry.blocks_per_page()));
        (pages + fresh).saturating_sub(u64::from(self.free_frames))
    }

    /// A free page; the caller has made sure that there is one.
    pub fn take_page(&mut self) -> u32 {
        let frame = self.find_free().expect("space is reserved before a commit takes it");
        self.set(frame);
        self.pages_born[frame as usize] = self.epoch;
        self.cursor = frame + 1;
        self.block_of(frame)
    }

    /// A free node; the caller has made sure that there is one.
    pub fn take_node(&mut self) -> u32 {
        let frame = self.frame_with_room();
        let within = self.split[&frame].trailing_ones();
        let block = self.block_of(frame) + within;
        self.set_node(frame, within);
        self.nodes_born.insert(block, self.epoch);
        block
    }

    /// Where the next node goes: beside the one before, so that those of an epoch are one run, behind its pages. Holes that
    /// others have left are for when there are few free frames.
    fn frame_with_room(&mut self) -> u32 {
        let is_roomy = self.free_frames > self.geometry.frames() / 4;
        let filling = self.filling.filter(|frame| self.with_room.contains(frame));
        let hole = || self.with_room.first().copied().filter(|_| !is_roomy);
        filling.or_else(hole).unwrap_or_else(|| {
            let block = self.take_page();
            let frame = self.frame_of(block);
            self.split_frame(frame);
            self.filling = Some(frame);
            frame
        })
    }

    pub fn release(&mut self, blocks: &Blocks) {
        blocks.pages.iter().for_each(|block| self.release_frame(self.frame_of(*block)));
        blocks.nodes.iter().for_each(|block| self.release_node(*block));
    }

    fn release_frame(&mut self, frame: u32) {
        let (word, bit) = (frame as usize / 64, 1 << (frame % 64));
        assert!(self.taken[word] & bit != 0, "a free page was released");
        self.taken[word] &= !bit;
        self.free_frames += 1;
    }

    fn release_node(&mut self, block: u32) {
        let (frame, within) = (self.frame_of(block), self.within(block));
        let mask = self.split.get_mut(&frame).expect("a free node was released");
        assert!(*mask & 1 << within != 0, "a free node was released");
        *mask &= !(1 << within);
        self.nodes_born.remove(&block);
        self.free_nodes += 1;
        self.with_room.insert(frame);
        if *mask == 0 {
            self.split.remove(&frame);
            self.with_room.remove(&frame);
            self.free_nodes -= self.geometry.blocks_per_page();
            self.release_frame(frame);
        }
    }

    pub fn claim_page(&mut self, block: u32) -> Claim {
        if !self.geometry.holds_page(block) {
            return Claim::Bad;
        }
        let frame = self.frame_of(block);
        if !self.is_taken(frame) {
            self.set(frame);
            self.pages_born[frame as usize] = 0;
            return Claim::Fresh;
        }
        // Looked up only here: when a store is opened nearly all claims are of free frames.
        if self.split.contains_key(&frame) { Claim::Bad } else { Claim::Again }
    }

    pub fn claim_node(&mut self, block: u32) -> Claim {
        if !self.geometry.holds_node(block) {
            return Claim::Bad;
        }
        let (frame, within) = (self.frame_of(block), self.within(block));
        match self.split.get(&frame) {
            Some(mask) if mask & 1 << within != 0 => return Claim::Again,
            Some(_) => {}
            None if self.is_taken(frame) => return Claim::Bad,
            None => {
                self.set(frame);
                self.split_frame(frame);
            }
        }
        self.set_node(frame, within);
        Claim::Fresh
    }

    /// Frames that are free.
    pub fn free_frames(&self) -> u32 {
        self.free_frames
    }

    /// Frames that are free, hold a page, are split; nodes that are taken.
    pub fn counts(&self) -> (u32, u32, u32, u32) {
        let split = self.split.len() as u32;
        let nodes = self.split.values().map(|mask| mask.count_ones()).sum();
        (self.free_frames, self.geometry.frames() - self.free_frames - split, split, nodes)
    }

    /// Every block that is taken.
    pub fn blocks_taken(&self) -> Vec<u32> {
        let per_page = self.geometry.blocks_per_page();
        let frames = (0..self.geometry.frames()).filter(|frame| self.is_taken(*frame));
        let blocks = frames.flat_map(|frame| {
            let mask = self.split.get(&frame).copied().unwrap_or(!0);
            (0..per_page).filter(move |within| mask & 1 << within != 0).map(move |within| self.block_of(frame) + within)
        });
        blocks.collect()
    }

    /// The same blocks are taken for the same uses.
    pub fn same_as(&self, other: &Space) -> bool {
        self.geometry == other.geometry && self.taken == other.taken && self.split == other.split
    }

    fn split_frame(&mut self, frame: u32) {
        self.split.insert(frame, 0);
        self.with_room.insert(frame);
        self.free_nodes += self.geometry.blocks_per_page();
    }

    fn set_node(&mut self, frame: u32, within: u32) {
        let mask = self.split.get_mut(&frame).expect("the frame is split");
        *mask |= 1 << within;
        self.free_nodes -= 1;
        if mask.count_ones() == self.geometry.blocks_per_page() {
            self.with_room.remove(&frame);
        }
    }

    fn set(&mut self, frame: u32) {
        self.taken[frame as usize / 64] |= 1 << (frame % 64);
        self.free_frames -= 1;
    }

    fn is_taken(&self, frame: u32) -> bool {
        self.taken[frame as usize / 64] & 1 << (frame % 64) != 0
    }

    fn frame_of(&self, block: u32) -> u32 {
        (block - Geometry::FIRST_BLOCK) / self.geometry.blocks_per_page()
    }

    fn within(&self, block: u32) -> u32 {
        (block - Geometry::FIRST_BLOCK) % self.geometry.blocks_per_page()
    }

    fn block_of(&self, frame: u32) -> u32 {
        Geometry::FIRST_BLOCK + frame * self.geometry.blocks_per_page()
    }

    /// The next free frame from the cursor on, round the end.
    fn find_free(&self) -> Option<u32> {
        let words = self.taken.len();
        if words == 0 {
            return None;
        }
        let first = self.cursor as usize / 64;
        let below = |bits: u32| if bits == 0 { 0 } else { !0 >> (64 - bits) };
        for step in 0..=words {
            let at = (first + step) % words;
            let mask = if step == 0 { below(self.cursor % 64) } else { 0 };
            let free = !(self.taken[at] | mask);
            if free != 0 {
                return Some(at as u32 * 64 + free.trailing_zeros());
            }
        }
        None
    }
}
