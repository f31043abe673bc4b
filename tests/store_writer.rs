//! The writer: several threads, and a pace that it keeps.

mod store_support;

use snapring::snapshot::{Durability, SinkKind, Store, StoreOptions};
use std::time::{Duration, Instant};
use store_support::{PAGE_BYTES, Rng, entry, options, page};

#[test]
fn several_threads_write_what_one_would() {
    for sink in [SinkKind::Mapped, SinkKind::Pwrite] {
        for writer_threads in [0, 1, 4] {
            let dir = tempfile::tempdir().unwrap();
            let options = StoreOptions { sink, writer_threads, ..options() };
            let mut store = Store::open(dir.path(), options.clone()).unwrap();
            // Above a MiB: below it is not worth several threads.
            let all: Vec<u32> = (0..1500).collect();
            let some: Vec<u32> = (0..1500).filter(|id| id % 3 != 1).collect();
            store.commit(&entry(1, &all, 1500, true)).unwrap();
            for epoch in 2..7 {
                let stats = store.commit(&entry(epoch, &some, 1500, false)).unwrap();
                // Whole runs of up to a MiB, beside those of nodes.
                assert!(stats.runs_written < 60, "{stats:?}");
            }
            drop(store);
            let store = Store::open(dir.path(), options).unwrap();
            let restored = store.read(6).unwrap();
            for (id, bytes) in restored.entries[0].pages().unwrap() {
                let written = if id % 3 == 1 { 1 } else { 6 };
                assert!(*bytes == *page(written, id, PAGE_BYTES), "page {id}");
            }
        }
    }
}

#[test]
fn a_small_commit_is_few_runs_however_scattered_its_pages_are() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { page_bytes: 16384, durability: Durability::ProcessCrash, ..options() };
    let mut store = Store::open(dir.path(), options).unwrap();
    let (mut rng, mut runs, mut nodes) = (Rng(1), 0, 0);
    for epoch in 1..=120 {
        // From the second on each from another part of the map: so each brings about as many nodes as pages.
        let mut some = || (0..8).map(|part| part * 256 + rng.below(256) as u32).collect();
        let ids: Vec<u32> = if epoch == 1 { (0..2048).collect() } else { some() };
        let mut checkpoint = entry(epoch, &[], 2048, epoch == 1);
        let pages = checkpoint.entries[0].pages.as_mut().unwrap();
        pages.page_bytes = 16384;
        pages.changed = ids.iter().map(|id| (*id, page(epoch, *id, 16384))).collect();
        let stats = store.commit(&checkpoint).unwrap();
        if epoch > 20 {
            (runs, nodes) = (runs + stats.runs_written, nodes + stats.nodes_written);
        }
    }
    assert!(nodes >= 100 * 11, "{nodes} nodes");
    assert!(runs <= 100 * 3, "{runs} runs");
    assert!(store.audit().unwrap().exact);
}

/// How long a commit takes of 2 MiB.
fn timed(bandwidth_bytes_per_s: Option<u64>) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { bandwidth_bytes_per_s, durability: Durability::ProcessCrash, ..options() };
    let mut store = Store::open(dir.path(), options).unwrap();
    let checkpoint = entry(1, &(0..512).collect::<Vec<u32>>(), 512, true);
    let start = Instant::now();
    store.commit(&checkpoint).unwrap();
    start.elapsed()
}

#[test]
fn a_pace_is_kept() {
    // A quarter of a second for the pages alone; how fast it goes without is the machine's affair, but not that slow.
    let (paced, free) = (timed(Some(8 << 20)), (0..5).map(|_| timed(None)).min().unwrap());
    assert!(paced >= Duration::from_millis(250), "{paced:?}");
    assert!(free < Duration::from_millis(250), "{free:?}");
}
