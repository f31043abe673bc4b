//! What is in the pages of a table, and how much: keys and values in slots, or in a heap to which the slots point.

use super::entry::{ENTRY_BYTES, Entry};
use super::groups::{Shape, USED_LANES};
use super::head::{HEAD_BYTES, Head, spread, u16_at};

/// What is in the slots of a table's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Key and value, of so many bytes.
    Fixed { key_bytes: usize, value_bytes: usize },
    /// The offset of an entry in the page's heap.
    Heap,
}

/// Bytes of a slot that refers to the heap.
pub(super) const OFFSET_BYTES: usize = 2;

impl Layout {
    /// Follows from the widths of key and value (None: variable) and the size of a page: part of the format.
    pub fn of(page_bytes: usize, key_bytes: Option<usize>, value_bytes: Option<usize>) -> Self {
        match (key_bytes, value_bytes) {
            (Some(key_bytes), Some(value_bytes)) if Shape::filling(page_bytes, key_bytes + value_bytes).groups > 0 => {
                Self::Fixed { key_bytes, value_bytes }
            }
            _ => Self::Heap,
        }
    }

    /// How the groups of a page lie that has so many of them.
    pub fn shape(self, groups: usize) -> Shape {
        let slot_bytes = match self {
            Self::Fixed { key_bytes, value_bytes } => key_bytes + value_bytes,
            Self::Heap => OFFSET_BYTES,
        };
        Shape { groups, slot_bytes }
    }

    /// How the groups of this page lie.
    #[inline]
    pub fn shape_of(self, page: &[u8]) -> Shape {
        self.shape(usize::from(u16_at(page, 2)))
    }

    /// The entry that a slot holds or refers to.
    #[inline]
    pub fn entry(self, page: &[u8], slot: usize) -> Entry<'_> {
        match self {
            Self::Fixed { key_bytes, value_bytes } => {
                let (key, rest) = page[slot..].split_at(key_bytes);
                Entry::fixed(key, &rest[..value_bytes])
            }
            Self::Heap => Entry::load(page, usize::from(u16_at(page, slot))),
        }
    }

    /// All entries of a page.
    pub fn entries(self, page: &[u8]) -> impl Iterator<Item = Entry<'_>> {
        self.shape_of(page).taken(page).map(move |slot| self.entry(page, slot))
    }

    /// How many entries a page takes. Of keys and values in slots not all pages take the same, up to an eighth less: keys come
    /// evenly, and all buckets would split at about the same time.
    #[inline]
    pub fn limit(self, page: &[u8], shape: &Shape, is_near: bool) -> usize {
        let limit = shape.limit();
        if self == Self::Heap { limit } else { in_proportion(limit - limit * spread(page) / 512, is_near) }
    }

    /// Whether a page takes another entry of so many bytes.
    pub fn has_room(self, page: &[u8], bytes: usize, is_near: bool) -> bool {
        let (head, shape) = (Head::load(page), self.shape_of(page));
        let in_heap = self != Self::Heap || head.heap_low as usize >= shape.end() + bytes;
        (head.count as usize) < self.limit(page, &shape, is_near) && in_heap
    }

    /// Adds an entry to a page that has room for it.
    pub fn add(self, page: &mut [u8], hash: u64, entry: &Entry<'_>) {
        let slot = self.shape_of(page).claim(page, hash);
        let mut head = Head::load(page);
        if let Self::Fixed { key_bytes, value_bytes } = self {
            page[slot..slot + key_bytes].copy_from_slice(entry.key);
            page[slot + key_bytes..slot + key_bytes + value_bytes].copy_from_slice(entry.value);
        } else {
            head.heap_low -= entry.bytes() as u32;
            entry.store(page, head.heap_low as usize);
            page[slot..slot + OFFSET_BYTES].copy_from_slice(&(head.heap_low as u16).to_le_bytes());
        }
        head.count += 1;
        head.long_entries += u32::from(entry.flags != 0);
        head.store(page);
    }

    /// Takes an entry out of a page.
    pub fn cut(self, page: &mut [u8], hash: u64, slot: usize) {
        let mut head = Head::load(page);
        let entry = self.entry(page, slot);
        head.count -= 1;
        head.long_entries -= u32::from(entry.flags != 0);
        if self == Self::Heap {
            head.heap_dead += entry.bytes() as u32;
            if head.count == 0 {
                (head.heap_low, head.heap_dead) = (page.len() as u32, 0);
            }
        }
        self.shape_of(page).release(page, hash, slot);
        head.store(page);
    }
}

/// How many of so many entries a page is filled with. In a table that lies in the cache fewer: there a look-up takes a few
/// nanoseconds, and each one that goes on to a second group takes the processor by surprise.
#[inline]
pub(super) const fn in_proportion(limit: usize, is_near: bool) -> usize {
    if is_near { limit * 5 / 8 } else { limit }
}

/// How many groups a page should have if its entries are like these: slots and heap are then used up together.
pub(super) fn groups_for(page_bytes: usize, count: usize, heap_bytes: usize) -> usize {
    let entry_bytes = heap_bytes.checked_div(count).unwrap_or(32).max(ENTRY_BYTES);
    let entries = (page_bytes - HEAD_BYTES) / (entry_bytes + Shape::stride(OFFSET_BYTES) / USED_LANES);
    entries / USED_LANES + 1
}
