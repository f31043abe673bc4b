//! The exactly-once sinks under every order of writes, cuts, syncs, commits, crashes and ways back.

use crate::connector::{Csv, Files, Memory};
use crate::testing::{Outlet, check_sink};
use std::path::PathBuf;
use tempfile::TempDir;

impl Outlet for Memory<u64> {
    type Sink = Self;

    fn empty() -> Self {
        Self::new()
    }
    fn sink(&self) -> Self {
        self.clone()
    }
    fn record(number: u64) -> u64 {
        number
    }
    fn committed(&self) -> Vec<u64> {
        Memory::committed(self)
    }
    fn pending(&self) -> usize {
        Memory::pending(self).len()
    }
    fn lose_power(&self) -> bool {
        Memory::lose_power(self);
        true
    }
}

struct Folder(TempDir);

impl Folder {
    fn files(&self, extension: &str) -> impl Iterator<Item = PathBuf> {
        let entries = std::fs::read_dir(self.0.path().join("out")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(move |path| path.extension().is_some_and(|other| other == extension))
    }
}

impl Outlet for Folder {
    type Sink = Files<u64>;

    /// In memory where there is such a file system: syncing takes no time there.
    fn empty() -> Self {
        Self(TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap())
    }
    fn sink(&self) -> Files<u64> {
        Csv::exactly_once(self.0.path().join("out")).unwrap()
    }
    fn record(number: u64) -> u64 {
        number
    }
    fn committed(&self) -> Vec<u64> {
        self.files("csv").flat_map(|path| numbers(&std::fs::read_to_string(path).unwrap())).collect()
    }
    fn pending(&self) -> usize {
        self.files("pending").count()
    }
}

fn numbers(text: &str) -> Vec<u64> {
    assert!(text.ends_with('\n'), "never empty");
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn memory_holds_each_record_once_after_every_order_of_steps() {
    let orders = check_sink::<Memory<u64>>(7).unwrap();
    assert!(orders > 20_000, "{orders}");
}

#[test]
fn files_hold_each_record_once_after_every_order_of_steps() {
    let orders = check_sink::<Folder>(5).unwrap();
    assert!(orders > 900, "{orders}");
}
