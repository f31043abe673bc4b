//! Sinks with a mistake.

use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Committer, Part, Place, Sink, WentBack, Writer};
use snapring::testing::{Outlet, check_sink};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const NONE: u8 = 0;
const COMMITS_AT_PREPARE: u8 = 1;
const COMMITS_NOTHING_AT_RECOVER: u8 = 2;
const LEAVES_PENDING: u8 = 3;
const DOES_NOT_SYNC: u8 = 4;
const DOES_NOT_RETRACT: u8 = 5;
const DOES_NOT_BRING_BACK: u8 = 6;
const FORGETS_THE_TASK: u8 = 7;
const LOSES_AN_EPOCH_GIVEN_UP: u8 = 8;
const COMMITS_ONE_ONLY: u8 = 9;
const SYNCS_ONCE_ONLY: u8 = 10;
const IS_PLAIN: u8 = 11;

/// A table of parts, by their names.
#[derive(Clone, Default)]
struct Table<const MISTAKE: u8>(Arc<Mutex<BTreeMap<Vec<u8>, Stored>>>);

struct Stored {
    epoch: u64,
    numbers: Vec<u64>,
    synced: bool,
    committed: bool,
    retracted: bool,
}

impl<const MISTAKE: u8> Outlet for Table<MISTAKE> {
    type Sink = Self;

    fn empty() -> Self {
        Self::default()
    }
    fn sink(&self) -> Self {
        self.clone()
    }
    fn record(number: u64) -> u64 {
        number
    }
    fn committed(&self) -> Vec<u64> {
        let table = self.0.lock().unwrap();
        let shown = table.values().filter(|stored| stored.committed && !stored.retracted);
        shown.flat_map(|stored| stored.numbers.clone()).collect()
    }
    fn pending(&self) -> usize {
        self.0.lock().unwrap().values().filter(|stored| !stored.committed).count()
    }
    fn lose_power(&self) -> bool {
        self.0.lock().unwrap().retain(|_, stored| stored.synced || stored.committed);
        true
    }
}

impl<const MISTAKE: u8> Sink for Table<MISTAKE> {
    type In = u64;
    type Writer = Rows<MISTAKE>;

    fn exactly_once(&self) -> bool {
        MISTAKE != IS_PLAIN
    }
    fn claim(&self, _: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        Ok(Box::new(self.clone()))
    }
    fn writer(&self, place: &Place, task: u32) -> Result<Rows<MISTAKE>, ConnectorError> {
        Ok(Rows { table: self.clone(), task, attempt: place.attempt, numbers: Vec::new() })
    }
}

struct Rows<const MISTAKE: u8> {
    table: Table<MISTAKE>,
    task: u32,
    attempt: u32,
    numbers: Vec<u64>,
}

impl<const MISTAKE: u8> Writer for Rows<MISTAKE> {
    type In = u64;

    fn write(&mut self, number: u64) -> Result<(), Failed> {
        self.numbers.push(number);
        Ok(())
    }

    fn prepare(&mut self, epoch: u64) -> Result<Option<Part>, Failed> {
        let numbers = std::mem::take(&mut self.numbers);
        if numbers.is_empty() {
            return Ok(None);
        }
        let task = if MISTAKE == FORGETS_THE_TASK { 0 } else { self.task };
        let name = format!("{epoch:05} {task} {}", self.attempt).into_bytes();
        let committed = MISTAKE == COMMITS_AT_PREPARE;
        let stored = Stored { epoch, numbers, synced: false, committed, retracted: false };
        let mut table = self.table.0.lock().unwrap();
        if MISTAKE == LOSES_AN_EPOCH_GIVEN_UP {
            table.retain(|_, stored| stored.committed || stored.epoch == epoch);
        }
        table.insert(name.clone(), stored);
        Ok(Some(Part(name)))
    }
}

impl<const MISTAKE: u8> Table<MISTAKE> {
    fn each(&self, parts: &[Part], change: impl Fn(&mut Stored)) -> Result<(), ConnectorError> {
        let mut table = self.0.lock().unwrap();
        for Part(name) in parts {
            let missing = || ConnectorError::Foreign { path: "table".into(), reason: "a part is missing".to_owned() };
            change(table.get_mut(name).ok_or_else(missing)?);
        }
        Ok(())
    }
}

impl<const MISTAKE: u8> Committer for Table<MISTAKE> {
    fn recover(&mut self, listed: &[Part]) -> Result<(), ConnectorError> {
        if MISTAKE != COMMITS_NOTHING_AT_RECOVER {
            self.each(listed, |stored| stored.committed = true)?;
        }
        if MISTAKE != LEAVES_PENDING {
            self.0.lock().unwrap().retain(|_, stored| stored.committed);
        }
        Ok(())
    }
    fn can_retract(&self) -> bool {
        true
    }
    fn retract(&mut self, back: &WentBack) -> Result<(), ConnectorError> {
        for stored in self.0.lock().unwrap().values_mut() {
            if back.takes_back(stored.epoch) && MISTAKE != DOES_NOT_RETRACT {
                stored.retracted = true;
            }
            if back.brings_back(stored.epoch) && MISTAKE != DOES_NOT_BRING_BACK {
                stored.retracted = false;
            }
        }
        Ok(())
    }
    fn sync(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        let parts = if MISTAKE == SYNCS_ONCE_ONLY { &parts[..parts.len().min(2)] } else { parts };
        self.each(parts, |stored| stored.synced = MISTAKE != DOES_NOT_SYNC)
    }
    fn commit(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        let parts = if MISTAKE == COMMITS_ONE_ONLY { &parts[..1] } else { parts };
        self.each(parts, |stored| stored.committed = true)
    }
}

fn fault<const MISTAKE: u8>() -> String {
    check_sink::<Table<MISTAKE>>(4).unwrap_err().to_string()
}

#[test]
fn a_right_sink_passes() {
    let orders = check_sink::<Table<NONE>>(5).unwrap();
    assert!(orders > 2000, "{orders}");
}

#[test]
fn each_mistake_is_found() {
    for (fault, says) in [
        (
            fault::<COMMITS_AT_PREPARE>(),
            "record 1 is committed, and is no part of the durable epoch: [0, 1]\n  after [Write, Prepare]",
        ),
        (fault::<COMMITS_NOTHING_AT_RECOVER>(), "record 0 of the durable epoch is missing"),
        (fault::<LEAVES_PENDING>(), "parts are left pending by a restore"),
        (fault::<DOES_NOT_SYNC>(), "`recover` failed"),
        (fault::<DOES_NOT_RETRACT>(), "is committed, and is no part of the durable epoch"),
        (fault::<DOES_NOT_BRING_BACK>(), "is missing"),
        (fault::<FORGETS_THE_TASK>(), "is missing"),
        (fault::<LOSES_AN_EPOCH_GIVEN_UP>(), "failed"),
        (fault::<COMMITS_ONE_ONLY>(), "is missing"),
        (fault::<SYNCS_ONCE_ONLY>(), "`recover` failed"),
        (fault::<IS_PLAIN>(), "it is a plain sink"),
    ] {
        assert!(fault.contains(says), "{says}: {fault}");
    }
}
