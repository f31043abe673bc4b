//! The tasks of an operator with states, a store on a simulated disk, and a clock that a test turns. It does not know which
//! states they are.

use crate::channel::Records;
use crate::clock::Clock;
use crate::error::Failed;
use crate::operator::key::Computed;
use crate::operator::operating::Open;
use crate::operator::stage::Closure;
use crate::operator::states::{Keep, Several, States};
use crate::operator::{KeyedState, Progress};
use crate::page::Pool;
use crate::snapshot::sim::SimDisk;
use crate::snapshot::{Checkpoint, Entry, Store, StoreOptions};
use crate::state::{Hasher, Window, task_of};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub struct World<S> {
    pub pool: Pool,
    clock: Arc<AtomicU64>,
    pub tasks: Vec<Several<String, S>>,
    store: Option<Store>,
    epoch: u64,
}

fn open(pool: &Pool, clock: &Arc<AtomicU64>, (task, tasks): (u32, u32), epoch: u64) -> Open {
    let (operator, pool, clock) = ("operator".into(), pool.clone(), Clock::Manual(clock.clone()));
    Open { operator, task, tasks, pool, hasher: Hasher::default(), clock, epoch }
}

impl<S: States + KeyedState> World<S> {
    /// With pages smaller than a store takes, there is no store and no restore.
    pub fn new(page_bytes: usize, tasks: u32) -> Self {
        let pool = Pool::new(page_bytes, 1 << 28);
        let clock = Arc::<AtomicU64>::default();
        let made = (0..tasks).map(|task| Several::open(open(&pool, &clock, (task, tasks), 0), &[]).unwrap()).collect();
        let options = StoreOptions { page_bytes: page_bytes as u32, segment_bytes: 1 << 20, ..StoreOptions::default() };
        let store = (page_bytes >= 4096).then(|| Store::open_on(Box::new(SimDisk::new()), options).unwrap());
        Self { pool, clock, tasks: made, store, epoch: 0 }
    }

    pub fn set_clock(&self, ns: u64) {
        self.clock.store(ns, Ordering::Relaxed);
    }

    /// One record of a key, in a batch of its own.
    pub fn with<R>(&mut self, key: &str, f: impl FnOnce(&mut S) -> R) -> R {
        let (mut f, mut result) = (Some(f), None);
        self.batch(key, 1, |state| {
            result = Some(f.take().expect("there is one record")(state));
            Ok(())
        })
        .unwrap();
        result.expect("the record has come")
    }

    /// A batch of records of one key.
    pub fn batch(
        &mut self,
        key: &str,
        records: usize,
        mut f: impl FnMut(&mut S) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let hash = Hasher::default().hash(&key.to_owned(), &mut Vec::new());
        let task = task_of(hash, self.tasks.len() as u32) as usize;
        let task = &mut self.tasks[task];
        let of = Closure::new("key".into(), Computed(|record: &String| record.clone()));
        let mut batch = vec![key.to_owned(); records];
        task.batch(
            &mut Window::new(Hasher::default(), 1),
            &mut Records::of(&mut batch),
            &of,
            |entered, record, state| {
                assert_eq!((entered.as_str(), record.as_str()), (key, key));
                f(state)
            },
        )
    }

    pub fn freeze(&mut self) -> Vec<Entry> {
        self.tasks.iter_mut().flat_map(Keep::freeze).collect()
    }

    pub fn settle(&mut self, durable: bool) {
        self.tasks.iter_mut().for_each(|task| task.settle(durable));
    }

    /// A checkpoint that becomes durable.
    pub fn commit(&mut self) {
        let entries = self.freeze();
        self.epoch += 1;
        if let Some(store) = &mut self.store {
            store.commit(&Checkpoint { epoch: self.epoch, header: Vec::new(), entries }).unwrap();
        }
        self.settle(true);
    }

    /// Goes back to the last durable checkpoint.
    pub fn restore(&mut self, tasks: u32) {
        let restored = self.store.as_ref().unwrap().restore(self.epoch).unwrap();
        let entries: Vec<_> = restored.entries.iter().collect();
        let made = |task| Several::open(open(&self.pool, &self.clock, (task, tasks), self.epoch), &entries).unwrap();
        let made = (0..tasks).map(made).collect();
        self.tasks = made;
        if restored.entries.iter().any(|entry| entry.tasks != tasks) {
            // As a job does: what was dealt out anew is committed anew.
            self.commit();
        }
    }

    /// Some pages of all tables.
    pub fn hydrate(&mut self) {
        for task in &mut self.tasks {
            task.hydrate().unwrap();
        }
    }

    /// All keys that `on_end` would be called for. Each comes once.
    pub fn ends(&mut self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        for task in &mut self.tasks {
            let each = |key: &String, _: &mut S| {
                assert!(keys.insert(key.clone()), "{key} comes twice");
                Ok(())
            };
            let mut each = each;
            while task.end(&mut each).unwrap() == Progress::Made {}
        }
        keys
    }

    /// Entries of a table in a snapshot, over all tasks.
    pub fn rows(entries: &[Entry], state: &str) -> u64 {
        let roots = entries.iter().filter(|entry| entry.state == state).map(|entry| &entry.root);
        roots.map(|root| u64::from_le_bytes(root[32..40].try_into().unwrap())).sum()
    }

    /// Pages that a snapshot hands over.
    pub fn pages(entries: &[Entry]) -> usize {
        entries.iter().filter_map(|entry| entry.pages.as_ref()).map(|pages| pages.changed.len()).sum()
    }
}

/// A text of many lengths.
pub fn text(number: u32) -> String {
    let len = match number % 16 {
        0 => 700,
        1 => 5000,
        few => few as usize,
    };
    format!("{number}-{}", "x".repeat(len))
}
