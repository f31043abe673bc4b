//! Reads a checkpoint with nothing but what the page `docs::state` says: if the page were wrong, this would be.

use snapring::connector::{Discard, Generate};
use snapring::snapshot::{Reader, RestoredEntry};
use snapring::{Checkpoints, Config, Dataflow};
use std::collections::BTreeMap;

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()))
}
fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Offsets of all taken slots of a page.
fn slots(page: &[u8], slot_bytes: usize) -> Vec<usize> {
    let bytes = 8 + 7 * slot_bytes;
    let lines = bytes.next_multiple_of(64);
    let group_bytes = if lines - bytes <= bytes / 8 { lines } else { bytes.next_multiple_of(8) };
    let groups = (0..u16_at(page, 2)).map(|group| 64 + group * group_bytes);
    groups
        .flat_map(|at| (0..7).filter(move |slot| page[at + slot] != 0).map(move |slot| at + 8 + slot * slot_bytes))
        .collect()
}

fn long(pages: &BTreeMap<u32, &[u8]>, part: &[u8]) -> Vec<u8> {
    let (mut id, len) = (u32_at(part, 0) as u32, u32_at(part, 4));
    let mut bytes = Vec::new();
    while bytes.len() < len {
        assert_eq!(pages[&id][0], 3);
        bytes.extend_from_slice(&pages[&id][64..]);
        id = (u32_at(pages[&id], 16) as u32).wrapping_sub(1);
    }
    bytes.truncate(len);
    bytes
}

/// The encodings of all keys and values of a table.
fn read(entry: &RestoredEntry) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (key, value) = (u32_at(&entry.root, 40), u32_at(&entry.root, 44));
    let is_fixed = key != u32::MAX as usize && value != u32::MAX as usize;
    let pages: BTreeMap<u32, &[u8]> = entry.pages().unwrap().collect();
    let mut found = Vec::new();
    for page in pages.values().filter(|page| page[0] != 3) {
        for slot in slots(page, if is_fixed { key + value } else { 2 }) {
            if is_fixed {
                found.push((page[slot..slot + key].to_vec(), page[slot + key..slot + key + value].to_vec()));
                continue;
            }
            let at = u16_at(page, slot);
            let (key_bytes, value_bytes, flags) = (u16_at(page, at), u16_at(page, at + 2), u16_at(page, at + 6));
            let (key, value) = page[at + 8..at + 8 + key_bytes + value_bytes].split_at(key_bytes);
            let whole = |part: &[u8], flag| if flags & flag != 0 { long(&pages, part) } else { part.to_vec() };
            found.push((whole(key, 1), whole(value, 2)));
        }
    }
    assert_eq!(found.len() as u64, u64_at(&entry.root, 32));
    found
}

#[test]
fn a_checkpoint_can_be_read_by_its_description() {
    let folder = tempfile::tempdir().unwrap();
    let flow = Dataflow::new("described");
    let (numbers, words) = flow.source("numbers", Generate::new(30_000, 3, |index| index)).fork();
    numbers.key_by(|number| number % 5000).count("numbers-seen").sink("one", Discard::new());
    // Values of all lengths up to 24 KB: in place, grown, and in pages of their own.
    let keyed = words.key_by(|number| format!("w{}", number % 40 * (number % 7)));
    keyed.fold("words", Vec::new(), |all: &mut Vec<u64>, number| all.push(number)).sink("two", Discard::new());
    let config = Config::new().unpinned_workers(1).parallelism(2);
    flow.into_local(config.checkpoints(Checkpoints::on_demand().to(folder.path()))).unwrap().run().unwrap();

    let reader = Reader::open(folder.path()).unwrap();
    let epoch = reader.epochs().last().unwrap().epoch;
    let restored = reader.read(epoch).unwrap();
    let job = &restored.header[4..4 + u32_at(&restored.header, 0)];
    assert_eq!(job, b"described");
    let of = |operator: &str| {
        let tables = restored.entries.iter().filter(|entry| entry.operator == operator && entry.state == "table");
        tables.flat_map(read).collect::<BTreeMap<_, _>>()
    };
    let numbers = of("numbers-seen");
    assert_eq!(numbers.len(), 5000);
    assert!(numbers.values().all(|count| u64_at(count, 0) == 6));
    let words = of("words");
    let mut seen: Vec<u64> =
        words.values().flat_map(|list| list[4..].chunks(8).map(|number| u64_at(number, 0))).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..30_000).collect::<Vec<_>>());
    assert!(words.values().any(|list| list.len() > 16 << 10), "some value has pages of its own");
    assert!(words.keys().all(|word| word[4] == b'w' && u32_at(word, 0) == word.len() - 4));
}
