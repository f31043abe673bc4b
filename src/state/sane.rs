//! Whether a page that comes from a snapshot can be worked with: all that it refers to lies within it.

use super::entry::{ENTRY_BYTES, KEY_LONG, LongRef, VALUE_LONG};
use super::groups::Shape;
use super::head::{Head, u16_at};
use super::layout::Layout;

/// Whether header and slots of a page of a bucket agree, and refer to nothing outside of it.
pub(super) fn page_is_sane(layout: Layout, page: &[u8]) -> bool {
    let head = Head::load(page);
    let shape = layout.shape_of(page);
    if !shape.is_within(page.len()) || shape.taken(page).count() != head.count as usize {
        return false;
    }
    match layout {
        Layout::Fixed { key_bytes, value_bytes } => shape == Shape::filling(page.len(), key_bytes + value_bytes),
        Layout::Heap => heap_is_sane(page, &head, shape),
    }
}

/// Whether all entries of a page lie within its heap, and add up to what the header says.
fn heap_is_sane(page: &[u8], head: &Head, shape: Shape) -> bool {
    let low = head.heap_low as usize;
    if low < shape.end() || low > page.len() {
        return false;
    }
    let (mut used, mut long_entries) = (head.heap_dead as usize, 0);
    for slot in shape.taken(page) {
        let at = usize::from(u16_at(page, slot));
        if at < low || at + ENTRY_BYTES > page.len() {
            return false;
        }
        let [key, value, room] = [0, 2, 4].map(|field| usize::from(u16_at(page, at + field)));
        let flags = u16_at(page, at + 6);
        let is_sane = at + ENTRY_BYTES + key + room <= page.len()
            && value <= room
            && flags <= KEY_LONG | VALUE_LONG
            && (flags & KEY_LONG == 0 || key == LongRef::KEY_BYTES)
            && (flags & VALUE_LONG == 0 || value == LongRef::VALUE_BYTES);
        if !is_sane {
            return false;
        }
        used += ENTRY_BYTES + key + room;
        long_entries += u32::from(flags != 0);
    }
    used == page.len() - low && long_entries == head.long_entries
}
