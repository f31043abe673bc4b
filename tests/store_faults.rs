//! Writes and syncs that fail, disks that are full, bits that flip.

mod store_support;

use snapring::error::StoreError;
use snapring::snapshot::sim::{Incident, SimDisk};
use snapring::snapshot::{BLOCK_BYTES, Generations, Reader, Store, StoreOptions};
use store_support::{Model, Rng, entry, options};

fn open(disk: &SimDisk) -> Result<Store, StoreError> {
    Store::open_on(Box::new(disk.clone()), options())
}

/// What came of some commits.
struct Came {
    acknowledged: u64,
    errors: Vec<StoreError>,
}

/// Commits until six have worked, and three after the last failure, through all failures on the way; at each moment the store has what was acknowledged, and
/// so has one that is opened after a crash at that moment.
fn commit_through(disk: &SimDisk, model: &mut Model, last_failure: u64, rng: &mut Rng) -> Came {
    let mut came = Came { acknowledged: 0, errors: Vec::new() };
    let mut store = loop {
        match open(disk) {
            Ok(store) => break store,
            Err(error) => came.errors.push(error),
        }
        assert!(came.errors.len() < 100, "{:?}", came.errors);
    };
    let (mut worked, mut since) = (0, 0);
    while worked < 6 || since < 3 && !came.errors.is_empty() {
        since = if disk.calls() > last_failure { since + 1 } else { 0 };
        model.step();
        match store.commit(&model.checkpoint()) {
            Ok(_) => {
                came.acknowledged = model.epoch;
                model.durable();
                worked += 1;
            }
            Err(error) => came.errors.push(error),
        }
        assert!(!store.needs_full());
        assert!(came.errors.len() < 100, "{:?}", came.errors);
        assert_eq!(store.newest().unwrap_or(0), came.acknowledged);
        model.check_kept(&store);
        crash_now(disk, model, &came, rng);
    }
    assert!(store.audit().unwrap().exact);
    came
}

/// On a copy of the disk: the machine stops, comes back, and goes on.
fn crash_now(disk: &SimDisk, model: &Model, came: &Came, rng: &mut Rng) {
    let (disk, mut model) = (disk.fork(), model.clone());
    let killed = rng.below(4) == 0;
    if killed {
        disk.kill();
    } else {
        let survivors_of_4 = rng.below(5);
        disk.crash(|_| rng.below(4) < survivors_of_4);
    }
    let mut store = open(&disk).unwrap();
    let found = store.newest().unwrap_or(0);
    // One that was given up may be there all the same, whole, as long as there is no new file to say otherwise.
    assert!((came.acknowledged..=model.epoch).contains(&found), "{found} and not {}", came.acknowledged);
    let listed = Reader::open_on(Box::new(disk.clone())).unwrap().epochs();
    assert_eq!(listed, store.epochs());
    model.check_kept(&store);
    model.restore(found);
    model.step();
    store.commit(&model.checkpoint()).unwrap();
    model.check(&store);
    drop(store);
    disk.crash(|_| false);
    model.check(&open(&disk).unwrap());
}

#[test]
fn failed_calls_cost_their_checkpoint_and_nothing_else() {
    let mut new_files = 0;
    for incident in [Incident::Fail, Incident::Full] {
        for lasting in [1, 3, 9] {
            let mut rng = Rng(lasting);
            for call in 0.. {
                let disk = SimDisk::new();
                (call..call + lasting).for_each(|call| disk.at(call, incident));
                let mut model = Model::new(2);
                let came = commit_through(&disk, &mut model, call + lasting, &mut rng);
                if came.errors.is_empty() {
                    break;
                }
                let full = came.errors.iter().all(|error| matches!(error, StoreError::NoSpace { .. }));
                assert!(!full || incident == Incident::Full, "call {call}: {:?}", came.errors);
                new_files += u64::from(disk.list().unwrap() != [1]);
                assert_eq!(disk.list().unwrap().len(), 1, "call {call}: an old file is left");
            }
        }
    }
    assert!(new_files > 50, "{new_files}");
}

#[test]
fn a_full_disk_declines_and_the_next_checkpoint_takes_all_along() {
    let disk = SimDisk::new();
    let mut store = open(&disk).unwrap();
    let ids: Vec<u32> = (0..8).collect();
    store.commit(&entry(1, &ids, 8, true)).unwrap();
    let before = disk.image();
    disk.full_above(Some(before.len() as u64));
    let many: Vec<u32> = (0..40).collect();
    for epoch in 2..5 {
        let error = store.commit(&entry(epoch, &many, 40, false)).unwrap_err();
        assert!(matches!(error, StoreError::NoSpace { .. }), "{error}");
    }
    assert!(disk.image() == before, "a declined checkpoint wrote something");
    store.commit(&entry(5, &[1], 8, false)).unwrap();
    disk.full_above(None);
    store.commit(&entry(6, &many, 40, false)).unwrap();
    assert_eq!(store.read(6).unwrap().entries[0].pages().unwrap().len(), 40);
    assert!(store.audit().unwrap().exact);
}

#[test]
fn a_flipped_bit_is_found_or_does_no_harm() {
    let disk = SimDisk::new();
    let mut model = Model::new(9);
    let mut store = open(&disk).unwrap();
    for _ in 0..6 {
        model.step();
        store.commit(&model.checkpoint()).unwrap();
        model.durable();
    }
    let used = store.blocks_in_use().unwrap();
    let image = disk.image();
    let mut rng = Rng(1);
    let mut heads_found = 0;
    for at in (0..image.len()).step_by(256) {
        let at = at + rng.below(256) as usize;
        let mut flipped = image.clone();
        flipped[at] ^= 1 << rng.below(8);
        let disk = SimDisk::with_image(flipped);
        let mut found = true;
        match open(&disk) {
            Ok(store) => {
                assert_eq!(store.newest(), Some(model.epoch), "byte {at}: the newest epoch is gone without a word");
                let epochs: Vec<u64> = store.epochs().iter().map(|info| info.epoch).collect();
                let reads: Vec<_> = epochs.iter().map(|epoch| store.read(*epoch)).collect();
                reads.iter().flatten().for_each(|restored| model.check_restored(restored));
                found = reads.iter().any(Result::is_err);
                let reader = Reader::open_on(Box::new(disk.clone())).unwrap();
                let damaged = epochs.iter().any(|epoch| !reader.verify(*epoch).unwrap().damage.is_empty());
                assert_eq!(damaged, found);
            }
            Err(StoreError::Corrupt { .. } | StoreError::Foreign { .. }) => heads_found += u32::from(at < 512),
            Err(other) => panic!("byte {at}: {other}"),
        }
        let in_use = used.binary_search(&((at / BLOCK_BYTES) as u32)).is_ok();
        assert_eq!(found, in_use || at < 512, "byte {at}");
    }
    assert_eq!(heads_found, 2);
}

#[test]
fn a_damaged_newest_epoch_leaves_the_older_one_to_go_back_to() {
    let disk = SimDisk::new();
    let mut store = open(&disk).unwrap();
    store.commit(&entry(1, &[0, 1], 2, true)).unwrap();
    let old = store.blocks_in_use().unwrap();
    store.commit(&entry(2, &[0], 2, false)).unwrap();
    let new: Vec<u32> = store.blocks_in_use().unwrap().into_iter().filter(|block| !old.contains(block)).collect();
    for block in new {
        let mut image = disk.image();
        image[block as usize * BLOCK_BYTES + 9] ^= 4;
        // The page itself is not read at open, and the table concerns all epochs.
        let Ok(mut store) = open(&SimDisk::with_image(image)) else { continue };
        let error = store.read(2).unwrap_err();
        assert!(error.to_string().contains("epoch 2"), "{error}");
        store.base_on(1).unwrap();
        store.commit(&entry(3, &[1], 2, false)).unwrap();
        let pages: Vec<u64> = store.read(3).unwrap().entries[0]
            .pages()
            .unwrap()
            .map(|(_, page)| store_support::written_in(page))
            .collect();
        assert_eq!(pages, [1, 3]);
    }
}

#[test]
fn garbage_in_place_of_any_block_is_an_error_and_no_panic() {
    let disk = SimDisk::new();
    let mut store = open(&disk).unwrap();
    let ids: Vec<u32> = (0..600).collect();
    store.commit(&entry(1, &ids, 600, true)).unwrap();
    store.commit(&entry(2, &[3], 600, false)).unwrap();
    let image = disk.image();
    let mut rng = Rng(4);
    for block in store.blocks_in_use().unwrap().into_iter().filter(|_| rng.below(8) == 0).collect::<Vec<_>>() {
        let mut damaged = image.clone();
        let at = block as usize * BLOCK_BYTES;
        let from = rng.below(image.len() as u64 / BLOCK_BYTES as u64) as usize * BLOCK_BYTES;
        damaged[at..at + BLOCK_BYTES].copy_from_slice(&image[from..from + BLOCK_BYTES]);
        if damaged == image {
            continue;
        }
        let disk = SimDisk::with_image(damaged);
        match open(&disk) {
            Ok(store) => assert!(store.read(1).is_err() || store.read(2).is_err(), "block {block}"),
            Err(error) => assert!(matches!(error, StoreError::Corrupt { .. }), "{error}"),
        }
    }
}

#[test]
fn either_meta_may_be_torn_beyond_its_sectors() {
    let disk = SimDisk::new();
    let mut store = open(&disk).unwrap();
    store.commit(&entry(1, &[0, 1], 2, true)).unwrap();
    store.commit(&entry(2, &[1], 2, false)).unwrap();
    let newest_without = |meta: usize| {
        let mut image = disk.image();
        image[meta..meta + 4096].fill(0xa5);
        let store = open(&SimDisk::with_image(image)).unwrap();
        let newest = store.newest().unwrap();
        assert_eq!(store.read(newest).unwrap().epoch, newest);
        newest
    };
    // The one that a commit writes is never the newest.
    let mut found = [newest_without(16384), newest_without(32768)];
    found.sort_unstable();
    assert_eq!(found, [1, 2]);
}

#[test]
fn damage_in_one_epoch_does_not_free_what_a_whole_one_needs() {
    let many = StoreOptions { keep: 4, ..options() };
    let open = |disk: &SimDisk| Store::open_on(Box::new(disk.clone()), many.clone());
    let disk = SimDisk::new();
    let mut store = open(&disk).unwrap();
    let ids: Vec<u32> = (0..700).collect();
    store.commit(&entry(1, &ids, 700, true)).unwrap();
    store.commit(&entry(2, &[3], 700, false)).unwrap();
    let image = disk.image();
    let mut rng = Rng(8);
    let mut whole = 0;
    for block in store.blocks_in_use().unwrap() {
        if block > 30 && rng.below(20) != 0 && block < 700 {
            continue;
        }
        let mut image = image.clone();
        image[block as usize * BLOCK_BYTES + 9] ^= 4;
        let Ok(mut store) = open(&SimDisk::with_image(image)) else { continue };
        let healthy: Vec<u64> = (1..3).filter(|epoch| store.read(*epoch).is_ok()).collect();
        store.commit(&entry(3, &ids, 700, true)).unwrap();
        store.commit(&entry(4, &ids, 700, false)).unwrap();
        for epoch in healthy {
            assert!(store.read(epoch).is_ok(), "block {block}: epoch {epoch} is gone");
            whole += 1;
        }
    }
    assert!(whole > 2);
}
