//! A file of version 1, written once and kept: it stays readable, and the writer still writes it bit for bit.
//! When the format changes, this file stays, and gets a sister.

mod store_support;

use snapring::snapshot::sim::SimDisk;
use snapring::snapshot::{Store, StoreOptions};
use store_support::{Model, options};

const GOLDEN: &[u8] = include_bytes!("data/store-v1.bin");

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
fn version_1_is_still_read() {
    let (model, _) = written();
    let store = Store::open_on(Box::new(SimDisk::with_image(GOLDEN.to_vec())), options()).unwrap();
    assert_eq!(store.id(), *b"the golden store");
    model.check(&store);
}

#[test]
fn version_1_is_still_written() {
    let (_, image) = written();
    if std::env::var_os("SNAPRING_WRITE_GOLDEN").is_some() {
        std::fs::write("tests/data/store-v1.bin", &image).unwrap();
    }
    assert!(image == GOLDEN, "the file format has changed: raise its version, keep the old golden file readable");
}
