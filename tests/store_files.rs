//! Stores on a real disk: folders, locks, permissions, files that are not what they should be.

mod store_support;

use snapring::error::StoreError;
use snapring::snapshot::{Reader, STORE_FILE, SinkKind, Store, StoreOptions};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use store_support::{Rng, entry, options, written_in};

fn store_in(dir: &Path) -> Store {
    Store::open(dir, options()).unwrap()
}

fn reason(result: Result<Store, StoreError>) -> String {
    match result {
        Ok(_) => panic!("opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn folder_and_files_are_for_their_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("state");
    let _store = store_in(&dir);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for file in fs::read_dir(&dir).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[test]
fn what_is_not_a_store_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "text").unwrap();
    assert!(reason(Store::open(&file, options())).contains("a file, not a folder"));
    let error = reason(Store::open(dir.path(), options()));
    assert!(error.contains("`file`"), "{error}");
    // Not even a lock is left behind.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert!(matches!(Reader::open(dir.path()), Err(StoreError::Foreign { .. })));
    assert!(matches!(Reader::open(&file), Err(StoreError::Foreign { .. })));
    assert!(matches!(Reader::open(&dir.path().join("none")), Err(StoreError::Foreign { .. })));
}

#[test]
fn a_second_writer_is_refused_and_a_reader_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = store_in(dir.path());
    store.commit(&entry(1, &[0], 1, true)).unwrap();
    assert!(matches!(Store::open(dir.path(), options()), Err(StoreError::Locked { .. })));
    assert_eq!(Reader::open(dir.path()).unwrap().read(1).unwrap().entries.len(), 1);
    drop(store);
    assert_eq!(store_in(dir.path()).newest(), Some(1));
}

#[test]
fn other_sizes_and_shorter_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    store_in(dir.path()).commit(&entry(1, &[0, 1, 2], 3, true)).unwrap();
    let other = StoreOptions { page_bytes: 8192, ..options() };
    assert!(matches!(Store::open(dir.path(), other), Err(StoreError::Mismatch { .. })));
    let few = StoreOptions { keep: 1, ..options() };
    assert!(matches!(Store::open(dir.path(), few), Err(StoreError::Mismatch { .. })));

    let path = dir.path().join(STORE_FILE);
    let good = fs::read(&path).unwrap();
    for sink in [SinkKind::Mapped, SinkKind::Pwrite] {
        let open = || Store::open(dir.path(), StoreOptions { sink, ..options() });
        for len in [0, 1, 7, 8, 511, 512, 4096, 16384, 40000, 65535, 65536, 65537, good.len() - 1] {
            fs::write(&path, &good[..len]).unwrap();
            let error = reason(open());
            assert!(
                error.contains("truncated")
                    || error.contains("empty")
                    || error.contains("not a snapring store")
                    || error.contains("checksum"),
                "{len}: {error}"
            );
            assert!(Reader::open(dir.path()).is_err());
        }
    }
}

#[test]
fn newer_foreign_and_longer_files_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    store_in(dir.path()).commit(&entry(1, &[0, 1, 2], 3, true)).unwrap();
    let path = dir.path().join(STORE_FILE);
    let good = fs::read(&path).unwrap();
    for sink in [SinkKind::Mapped, SinkKind::Pwrite] {
        let open = || Store::open(dir.path(), StoreOptions { sink, ..options() });
        let mut newer = good.clone();
        newer[8] = 3;
        let crc = crc32c::crc32c(&newer[..508]);
        newer[508..512].copy_from_slice(&crc.to_le_bytes());
        fs::write(&path, &newer).unwrap();
        assert!(reason(open()).contains("newer snapring: file version 3, this one reads up to 2"));
        fs::write(&path, vec![b'x'; 200_000]).unwrap();
        assert!(reason(open()).contains("not a snapring store"));
        // Longer than the meta says is what a crash after growing leaves.
        let longer = [&good[..], &[0; 70_000]].concat();
        fs::write(&path, &longer).unwrap();
        let mut store = open().unwrap();
        let epoch = store.newest().unwrap() + 1;
        let ids: Vec<u32> = (0..100).collect();
        store.commit(&entry(epoch, &ids, 100, true)).unwrap();
        assert_eq!(store.read(epoch).unwrap().entries[0].pages().unwrap().len(), 100);
    }
}

#[test]
fn a_crash_while_creating_leaves_nothing_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    for leftover in [&b""[..], b"SNAPRING half"] {
        fs::write(dir.path().join(format!("{STORE_FILE}.new")), leftover).unwrap();
        let mut store = store_in(dir.path());
        store.commit(&entry(1, &[0], 1, true)).unwrap();
        drop(store);
        assert!(!dir.path().join(format!("{STORE_FILE}.new")).exists());
        fs::remove_file(dir.path().join(STORE_FILE)).unwrap();
    }
}

#[test]
fn missing_permission_is_an_error_with_the_path() {
    let dir = tempfile::tempdir().unwrap();
    drop(store_in(dir.path()));
    let path = dir.path().join(STORE_FILE);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        // The superuser may do everything.
        return;
    }
    let error = reason(Store::open(dir.path(), options()));
    assert!(error.contains(STORE_FILE) && error.contains("open"), "{error}");
}

#[test]
fn a_reader_beside_a_writer_sees_whole_epochs_or_that_they_have_expired() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = store_in(dir.path());
    let ids: Vec<u32> = (0..50).collect();
    store.commit(&entry(1, &ids, 50, true)).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = Rng(1);
            for epoch in 2..150 {
                let id = rng.below(40) as u32;
                store.commit(&entry(epoch, &[id, id + 1, id + 7], 50, false)).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let mut reader = Reader::open(dir.path()).unwrap();
        let mut whole = 0;
        while !done.load(Ordering::Acquire) || whole == 0 {
            reader.refresh().unwrap();
            for info in reader.epochs() {
                match reader.read(info.epoch) {
                    Ok(restored) => {
                        let newest = restored.entries[0].pages().unwrap().map(|(_, page)| written_in(page)).max();
                        assert_eq!(newest, Some(info.epoch));
                        whole += 1;
                    }
                    Err(StoreError::NoEpoch { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }
    });
}
