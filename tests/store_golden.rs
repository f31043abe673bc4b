//! Files of each version, written once and kept: they stay readable, an old one is written on in its own version, and the
//! writer still writes the newest version bit for bit. When the format changes, these files stay, and get a sister.

mod store_support;

use snapring::snapshot::sim::SimDisk;
use snapring::snapshot::{Store, StoreOptions};
use store_support::{Model, options};

const GOLDEN: [&[u8]; 2] = [include_bytes!("data/store-v1.bin"), include_bytes!("data/store-v2.bin")];

/// What is written today: of the newest version, but blocks are placed otherwise than they were at first.
const NEWEST: &[u8] = include_bytes!("data/store-v2-placed.bin");

/// Where the superblock has the version.
const VERSION_AT: usize = 8;

/// What all of them hold, and how it is written now.
fn written() -> (Model, Vec<u8>) {
    let disk = SimDisk::new();
    let mut model = Model::new(1);
    let mut store =
        Store::open_on(Box::new(disk.clone()), StoreOptions { id: Some(*b"the golden store"), ..options() }).unwrap();
    for _ in 0..3 {
        model.step();
        store.commit(&model.checkpoint()).unwrap();
        model.durable();
    }
    (model, disk.image())
}

#[test]
fn every_version_is_still_read() {
    for (golden, version) in GOLDEN.into_iter().zip(1..) {
        assert_eq!(golden[VERSION_AT], version);
        let (model, _) = written();
        let store = Store::open_on(Box::new(SimDisk::with_image(golden.to_vec())), options()).unwrap();
        assert_eq!(store.id(), *b"the golden store");
        model.check(&store);
        model.check_restored(&store.restore(model.epoch).unwrap());
    }
}

#[test]
fn a_file_keeps_its_version_when_it_is_written_on() {
    for (golden, version) in GOLDEN.into_iter().zip(1..) {
        let (mut model, _) = written();
        let disk = SimDisk::with_image(golden.to_vec());
        for _ in 0..10 {
            let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
            for _ in 0..3 {
                model.step();
                disk.guard(store_support::in_use(&store));
                store.commit(&model.checkpoint()).unwrap();
                model.durable();
                model.check(&store);
                assert!(store.audit().unwrap().exact);
            }
            model.check_restored(&store.restore(model.epoch).unwrap());
        }
        assert_eq!(disk.image()[VERSION_AT], version);
    }
}

#[test]
fn the_newest_version_is_still_written() {
    let (_, image) = written();
    if std::env::var_os("SNAPRING_WRITE_GOLDEN").is_some() {
        std::fs::write("tests/data/store-v2-placed.bin", &image).unwrap();
    }
    assert!(image == NEWEST, "the file format has changed: raise its version, keep the old golden files readable");
}
