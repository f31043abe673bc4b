//! Epochs that somebody reads: they outlive their time, whoever the reader is and however it ends, and cost the writer nothing
//! but room.

mod store_support;

use snapring::error::StoreError;
use snapring::snapshot::sim::{Incident, SimDisk};
use snapring::snapshot::{Held, Reader, SinkKind, Store, StoreOptions};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store_support::{Model, Rng, entry, in_use, options, written_in};

fn epochs(store: &Store) -> Vec<u64> {
    store.epochs().iter().map(|info| info.epoch).collect()
}

/// For a process that reads: the folder, and the epoch.
const READ: &str = "SNAPRING_TEST_READ";

/// What the other process does: holds an epoch, says so, and stays.
#[test]
fn a_process_that_reads() {
    let Ok(what) = std::env::var(READ) else { return };
    let (epoch, dir) = what.split_once(' ').unwrap();
    let reader = Reader::open(Path::new(dir)).unwrap();
    let _held = reader.hold(epoch.parse().unwrap()).unwrap();
    println!("it is held");
    std::thread::sleep(Duration::from_secs(120));
}

/// Another process that holds this epoch by now.
fn other_reader(dir: &Path, epoch: u64) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_process_that_reads", "--nocapture"])
        .env(READ, format!("{epoch} {}", dir.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("it is held")), "the reader has ended");
    child
}

#[test]
fn an_epoch_that_another_process_reads_stays_until_that_is_killed() {
    for sink in [SinkKind::Mapped, SinkKind::Pwrite] {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path(), StoreOptions { sink, ..options() }).unwrap();
        store.commit(&entry(1, &[0, 1, 2], 3, true)).unwrap();
        store.commit(&entry(2, &[0], 3, false)).unwrap();
        let mut child = other_reader(dir.path(), 2);
        for epoch in 3..40 {
            store.commit(&entry(epoch, &[(epoch % 3) as u32], 3, false)).unwrap();
            assert!(store.audit().unwrap().exact);
        }
        assert_eq!(epochs(&store), [2, 38, 39]);
        let restored = store.read(2).unwrap();
        assert_eq!(
            restored.entries[0].pages().unwrap().map(|(_, page)| written_in(page)).collect::<Vec<_>>(),
            [2, 1, 1]
        );
        // Also for a writer that starts anew.
        drop(store);
        let mut store = Store::open(dir.path(), StoreOptions { sink, ..options() }).unwrap();
        store.commit(&entry(40, &[0], 3, false)).unwrap();
        assert_eq!(epochs(&store), [2, 39, 40]);
        child.kill().unwrap();
        child.wait().unwrap();
        store.commit(&entry(41, &[0], 3, false)).unwrap();
        assert_eq!(epochs(&store), [40, 41]);
        assert!(matches!(Reader::open(dir.path()).unwrap().hold(2), Err(StoreError::NoEpoch { .. })));
        assert_eq!(fs::read_dir(dir.path().join("pins")).unwrap().count(), 0);
        store.commit(&entry(42, &[1], 3, false)).unwrap();
        assert!(store.audit().unwrap().pages <= 5, "{:?}", store.audit());
    }
}

#[test]
fn readers_beside_a_writer_find_whole_what_they_hold() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path(), options()).unwrap();
    let ids: Vec<u32> = (0..40).collect();
    store.commit(&entry(1, &ids, 40, true)).unwrap();
    let done = AtomicBool::new(false);
    let (done, dir) = (&done, dir.path());
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3).map(|seed| scope.spawn(move || read_until(done, dir, seed))).collect();
        let mut longest = 2;
        for epoch in 2..200 {
            let id = (epoch * 7 % 33) as u32;
            store.commit(&entry(epoch, &[id, id + 1, id + 7], 40, false)).unwrap();
            longest = longest.max(store.epochs().len());
        }
        done.store(true, Ordering::Release);
        let held: u32 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        assert!(held > 20, "{held} times held");
        assert!(longest > 2, "no epoch has outlived its time");
    });
    store.commit(&entry(200, &[0], 40, false)).unwrap();
    assert_eq!(store.epochs().len(), 2);
    drop(store);
    // What it says of free blocks after all this is what the file says.
    assert!(Store::open(dir, options()).unwrap().audit().unwrap().exact);
}

/// Holds epochs, and reads each twice, some time apart. How often.
fn read_until(done: &AtomicBool, dir: &Path, seed: u64) -> u32 {
    let (mut rng, mut reader, mut count) = (Rng(seed), Reader::open(dir).unwrap(), 0);
    while !done.load(Ordering::Acquire) {
        reader.refresh().unwrap();
        let kept = reader.epochs();
        let epoch = kept[rng.below(kept.len() as u64) as usize].epoch;
        let held = match reader.hold(epoch) {
            Ok(held) => held,
            Err(StoreError::NoEpoch { .. }) => continue,
            Err(other) => panic!("{other}"),
        };
        assert!(held.is_held());
        for _ in 0..2 {
            let restored = reader.read(epoch).unwrap();
            assert_eq!(restored.entries[0].pages().unwrap().map(|(_, page)| written_in(page)).max(), Some(epoch));
            std::thread::sleep(Duration::from_millis(rng.below(8)));
        }
        assert!(reader.verify(epoch).unwrap().damage.is_empty());
        count += 1;
    }
    count
}

#[test]
fn where_nothing_can_be_pinned_readers_read_and_epochs_expire() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path(), options()).unwrap();
    // Nobody can make files in here.
    let _ = fs::remove_dir(dir.path().join("pins"));
    fs::write(dir.path().join("pins"), "").unwrap();
    for epoch in 1..6 {
        store.commit(&entry(epoch, &[0], 1, epoch == 1)).unwrap();
    }
    assert_eq!(epochs(&store), [4, 5]);
    let mut reader = Reader::open(dir.path()).unwrap();
    assert!(!reader.hold(5).unwrap().is_held());
    assert_eq!(reader.read(5).unwrap().epoch, 5);
    store.commit(&entry(6, &[0], 1, false)).unwrap();
    store.commit(&entry(7, &[0], 1, false)).unwrap();
    reader.refresh().unwrap();
    assert!(matches!(reader.read(5), Err(StoreError::NoEpoch { .. })));
}

#[test]
fn readers_do_not_slow_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path(), options()).unwrap();
    store.commit(&entry(1, &[0], 1, true)).unwrap();
    let mut children = Vec::new();
    let start = Instant::now();
    for epoch in 2..6 {
        children.push(other_reader(dir.path(), epoch - 1));
        store.commit(&entry(epoch, &[0], 1, false)).unwrap();
    }
    let (held, mut slowest) = (epochs(&store), Duration::ZERO);
    assert_eq!(held, [1, 2, 3, 4, 5]);
    for epoch in 6..60 {
        let start = Instant::now();
        store.commit(&entry(epoch, &[0], 1, false)).unwrap();
        slowest = slowest.max(start.elapsed());
    }
    // They sleep for minutes: whoever waited for them would have to be noticed.
    assert!(slowest < Duration::from_secs(20) && start.elapsed() < Duration::from_secs(110), "{slowest:?}");
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

fn open(disk: &SimDisk) -> Result<Store, StoreError> {
    Store::open_on(Box::new(disk.clone()), options())
}

/// Another process that reads the disk: what it holds must be there, and as it was, whenever it looks.
struct Watcher {
    reader: Reader,
    held: Vec<(u64, Held)>,
}

impl Watcher {
    fn new(disk: &SimDisk) -> Option<Self> {
        Reader::open_on(Box::new(disk.clone())).ok().map(|reader| Self { reader, held: Vec::new() })
    }

    fn look(&mut self, store: &Store, model: &Model, rng: &mut Rng) {
        for (epoch, _) in &self.held {
            model.check_restored(&self.reader.read(*epoch).unwrap());
        }
        match rng.below(3) {
            0 => {
                self.reader.refresh().unwrap();
                let kept = self.reader.epochs();
                if let Some(info) = kept.get(rng.below(kept.len() as u64 + 1) as usize)
                    // One whose commit has failed may be seen for a while, and was never promised.
                    && epochs(store).contains(&info.epoch)
                    && let Ok(held) = self.reader.hold(info.epoch)
                {
                    self.held.push((info.epoch, held));
                }
            }
            1 if !self.held.is_empty() => {
                self.held.swap_remove(rng.below(self.held.len() as u64) as usize);
            }
            _ => {}
        }
    }
}

#[test]
fn what_is_held_stays_through_failures_at_every_call() {
    for (incident, lasting) in [(Incident::Fail, 1), (Incident::Fail, 4), (Incident::Full, 2)] {
        let mut rng = Rng(lasting);
        for call in 0.. {
            let disk = SimDisk::new();
            (call..call + lasting).for_each(|call| disk.at(call, incident));
            let Ok(mut store) = open(&disk) else { continue };
            let (mut model, mut watcher, mut errors) = (Model::new(call), None, 0);
            for _ in 0..14 {
                model.step();
                disk.guard(in_use(&store));
                match store.commit(&model.checkpoint()) {
                    Ok(_) => model.durable(),
                    Err(_) => errors += 1,
                }
                watcher = watcher.or_else(|| Watcher::new(&disk));
                if let Some(watcher) = &mut watcher {
                    watcher.look(&store, &model, &mut rng);
                }
                model.check_kept(&store);
            }
            let is_over = errors == 0 && disk.calls() <= call;
            drop(watcher);
            let mut worked = 0;
            while worked < 4 {
                model.step();
                disk.guard(in_use(&store));
                if store.commit(&model.checkpoint()).is_ok() {
                    model.durable();
                    worked += 1;
                }
            }
            assert_eq!(store.epochs().len(), 2, "call {call}");
            drop(store);
            assert!(open(&disk).unwrap().audit().unwrap().exact);
            if is_over {
                break;
            }
        }
    }
}
