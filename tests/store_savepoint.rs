//! Savepoints of a store: one file that holds one epoch, and whatever becomes of the store meanwhile.

mod store_support;

use snapring::error::StoreError;
use snapring::snapshot::{Copying, Pin, Reader, SinkKind, Store, StoreOptions};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store_support::{Model, PAGE_BYTES, entry, options, page};
use tempfile::TempDir;

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    /// What is there, hidden or not.
    fn names(&self) -> Vec<String> {
        let names =
            fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

fn save(pin: &Pin, file: &Path) -> Result<u64, StoreError> {
    pin.save(file, &Copying::default())
}

/// A store of several epochs with the model of it.
fn stored(place: &Place, sink: SinkKind) -> (Store, Model) {
    let mut model = Model::new(7);
    let mut store = Store::open(&place.at("S"), StoreOptions { sink, ..options() }).unwrap();
    for _ in 0..12 {
        model.step();
        store.commit(&model.checkpoint()).unwrap();
        model.durable();
    }
    (store, model)
}

#[test]
fn a_savepoint_is_a_store_of_one_epoch_that_others_begin_with() {
    for sink in [SinkKind::Mapped, SinkKind::Pwrite] {
        let (place, file) = (Place::new(), Place::new());
        let file = file.at("saved");
        fs::create_dir(file.parent().unwrap()).ok();
        let (mut store, mut model) = stored(&place, sink);
        let epoch = store.newest().unwrap();
        let pin = store.pin(epoch).unwrap();
        let mut later = model.clone();
        // The store goes on, and far beyond what it keeps.
        for _ in 0..8 {
            later.step();
            store.commit(&later.checkpoint()).unwrap();
            later.durable();
        }
        let copying = Copying::default();
        assert_eq!(pin.save(&file, &copying).unwrap(), fs::metadata(&file).unwrap().len());
        assert_eq!(copying.progress(), (model.pages_total() * u64::from(PAGE_BYTES), copying.progress().0));
        drop(pin);
        let bytes = fs::read(&file).unwrap();
        let reader = Reader::open(&file).unwrap();
        assert_eq!((reader.id(), reader.epochs().len(), reader.epochs()[0].epoch), (store.id(), 1, epoch));
        model.check_restored(&reader.read(epoch).unwrap());
        assert_eq!(reader.verify(epoch).unwrap().damage, [""; 0]);
        let [one, other] = ["one", "other"].map(|name| Store::open_from(&file, &place.at(name), options()).unwrap());
        for mut begun in [one, other] {
            assert_eq!((begun.newest(), begun.id()), (Some(epoch), store.id()));
            let mut model = model.clone();
            model.check(&begun);
            model.step();
            begun.commit(&model.checkpoint()).unwrap();
            model.durable();
            model.check(&begun);
            assert!(begun.audit().unwrap().exact);
        }
        assert!(fs::read(&file).unwrap() == bytes, "it is only read");
        later.check(&store);
        model.step();
    }
}

#[test]
fn a_savepoint_by_hand_is_a_store_once_it_has_the_name() {
    let place = Place::new();
    let (store, model) = stored(&place, SinkKind::Mapped);
    save(&store.pin(model.epoch).unwrap(), &place.at("saved")).unwrap();
    fs::create_dir(place.at("T")).unwrap();
    fs::copy(place.at("saved"), place.at("T/generation-1.snap")).unwrap();
    model.check(&Store::open(&place.at("T"), options()).unwrap());
}

#[test]
fn a_savepoint_is_made_nowhere_but_where_nothing_is() {
    let place = Place::new();
    let (store, model) = stored(&place, SinkKind::Mapped);
    let pin = store.pin(model.epoch).unwrap();
    fs::write(place.at("mine"), "precious").unwrap();
    std::os::unix::fs::symlink("nowhere", place.at("link")).unwrap();
    for taken in ["mine", "link", "S"] {
        let error = save(&pin, &place.at(taken)).unwrap_err();
        assert!(
            matches!(error, StoreError::Foreign { .. }) && error.to_string().contains("is there already"),
            "{error}"
        );
    }
    for (file, what) in [("missing/saved", "missing"), ("mine/saved", "mine"), ("/", "no name"), ("..", "no name")] {
        let error = save(&pin, &place.at(file)).unwrap_err();
        assert!(error.to_string().contains(what) || error.to_string().contains("already"), "{file}: {error}");
    }
    assert_eq!(fs::read_to_string(place.at("mine")).unwrap(), "precious");
    assert_eq!(place.names(), ["S", "link", "mine"]);
    // A leftover of a process that was killed is replaced; one that is written is left alone.
    fs::write(place.at(".saved.partial"), vec![7; 1 << 20]).unwrap();
    let lock = fs::File::open(place.at(".saved.partial")).unwrap();
    lock.lock().unwrap();
    let error = save(&pin, &place.at("saved")).unwrap_err();
    assert!(error.to_string().contains("is being written"), "{error}");
    drop(lock);
    save(&pin, &place.at("saved")).unwrap();
    model.check_restored(&Reader::open(&place.at("saved")).unwrap().read(model.epoch).unwrap());
    assert_eq!(place.names(), ["S", "link", "mine", "saved"]);
}

#[test]
fn one_that_nobody_waits_for_leaves_nothing() {
    let place = Place::new();
    let (store, model) = stored(&place, SinkKind::Mapped);
    let copying = Copying::default();
    copying.cancel();
    let error = store.pin(model.epoch).unwrap().save(&place.at("saved"), &copying).unwrap_err();
    assert!(error.to_string().contains("nobody waits"), "{error}");
    assert_eq!(place.names(), ["S"]);
}

/// Changes a bit of the first place in a file that holds these bytes.
fn damage(file: &Path, bytes: &[u8]) {
    let whole = fs::read(file).unwrap();
    let at = whole.windows(bytes.len()).position(|window| window == bytes).unwrap();
    let file = fs::File::options().write(true).open(file).unwrap();
    file.write_all_at(&[bytes[0] ^ 4], at as u64).unwrap();
}

#[test]
fn a_damaged_page_is_named_and_nothing_is_made_of_it() {
    let place = Place::new();
    let mut store = Store::open(&place.at("S"), options()).unwrap();
    store.commit(&entry(1, &[0, 1, 2, 3], 4, true)).unwrap();
    let pin = store.pin(1).unwrap();
    save(&pin, &place.at("saved")).unwrap();
    let third = page(1, 2, PAGE_BYTES);
    damage(&place.at("S/generation-1.snap"), &third[..64]);
    let error = save(&pin, &place.at("again")).unwrap_err().to_string();
    for part in ["generation-1.snap", "epoch 1", "operator `count`", "task 0 of 2", "page 2"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // The same of the savepoint: a store is not begun with it.
    damage(&place.at("saved"), &third[..64]);
    let error = Store::open_from(&place.at("saved"), &place.at("T"), options()).unwrap_err().to_string();
    for part in ["saved", "epoch 1", "operator `count`", "page 2"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(place.names(), ["S", "T", "saved"]);
    // The folder can still be used.
    assert_eq!(Store::open(&place.at("T"), options()).unwrap().newest(), None);
}

#[test]
fn a_store_does_not_begin_with_what_is_no_savepoint_nor_where_something_is() {
    let place = Place::new();
    let (store, mut model) = stored(&place, SinkKind::Mapped);
    save(&store.pin(model.epoch).unwrap(), &place.at("saved")).unwrap();
    let refused = |file: &str, dir: &str| {
        Store::open_from(&place.at(file), &place.at(dir), options()).map(drop).unwrap_err().to_string()
    };
    fs::write(place.at("text"), "some text, longer than a sector, perhaps".repeat(20)).unwrap();
    let whole = fs::read(place.at("saved")).unwrap();
    fs::write(place.at("short"), &whole[..whole.len() - 1]).unwrap();
    for (file, what) in [
        ("text", "not a snapring store"),
        ("S/generation-1.snap", "no savepoint"),
        ("nowhere", "cannot open"),
        ("short", "truncated"),
        ("S", "cannot"),
    ] {
        let error = refused(file, "T");
        assert!(error.contains(what), "{file}: {error}");
    }
    // Once more is the same, until something has come of it.
    drop(Store::open_from(&place.at("saved"), &place.at("T"), options()).unwrap());
    let mut begun = Store::open_from(&place.at("saved"), &place.at("T"), options()).unwrap();
    model.step();
    begun.commit(&model.checkpoint()).unwrap();
    drop(begun);
    assert!(refused("saved", "T").contains("a store already"), "{}", refused("saved", "T"));
    fs::create_dir(place.at("mine")).unwrap();
    fs::write(place.at("mine/file"), "precious").unwrap();
    assert!(refused("saved", "mine").contains("holds other files"));
    let other = StoreOptions { page_bytes: 8192, ..options() };
    let error = Store::open_from(&place.at("saved"), &place.at("U"), other).unwrap_err();
    assert!(matches!(error, StoreError::Mismatch { .. }), "{error}");
}

#[test]
fn a_pin_keeps_the_store_from_others_until_it_is_gone() {
    let place = Place::new();
    let (store, model) = stored(&place, SinkKind::Mapped);
    let pin = Arc::new(store.pin(model.epoch).unwrap());
    drop(store);
    assert!(matches!(Store::open(&place.at("S"), options()), Err(StoreError::Locked { .. })));
    let saving = std::thread::spawn({
        let (pin, file) = (pin.clone(), place.at("saved"));
        move || save(&pin, &file)
    });
    saving.join().unwrap().unwrap();
    drop(pin);
    model.check(&Store::open(&place.at("S"), options()).unwrap());
    model.check_restored(&Reader::open(&place.at("saved")).unwrap().read(model.epoch).unwrap());
}
