//! Epochs that are held on to beyond their time. It must not know what is done with them, nor write.
//!
//! 1. An epoch that is pinned stays in the epoch table, however many newer ones there are; so none of its blocks is used
//!    again. When the last pin is gone it expires with the next commit.
//! 2. A pin keeps the store locked too: also when the job that had it open has ended, nobody else writes to it.
//! 3. An epoch of an earlier generation needs no pin: that file is not written any more, and stays readable when it is
//!    removed, for whoever has it open.
//!
//! Other processes hold on to epochs by the rules of `held`.

use super::format::{Geometry, TableEntry};
use super::sink::ReadAt;
use super::store::Store;
use super::tree::Forest;
use crate::error::StoreError;
use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What keeps a store locked, for as long as anybody has it.
pub type Hold = Arc<dyn Any + Send + Sync>;

/// How many pins each epoch has.
#[derive(Clone, Default)]
pub(super) struct Pins(Arc<Mutex<BTreeMap<u64, u32>>>);

impl Pins {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<u64, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody holds on to this epoch.
    pub fn holds(&self, epoch: u64) -> bool {
        self.counts().contains_key(&epoch)
    }

    fn add(&self, epoch: u64) {
        *self.counts().entry(epoch).or_default() += 1;
    }

    fn remove(&self, epoch: u64) {
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&epoch);
            }
        }
    }
}

/// A kept epoch that does not expire, and can be read by any thread while the store goes on, until this is dropped.
pub struct Pin {
    pins: Pins,
    pub(super) file: Arc<dyn ReadAt>,
    /// For messages.
    pub(super) path: PathBuf,
    pub(super) geometry: Geometry,
    pub(super) entry: TableEntry,
    pub(super) id: [u8; 16],
    /// Rule 2.
    _hold: Hold,
}

impl Pin {
    /// The number of the epoch.
    pub fn epoch(&self) -> u64 {
        self.entry.epoch.get()
    }

    pub(super) fn forest(&self) -> Forest<'_> {
        Forest { source: &*self.file, geometry: self.geometry }
    }
}

impl std::fmt::Debug for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pin").field("path", &self.path).field("epoch", &self.epoch()).finish_non_exhaustive()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.pins.remove(self.epoch());
    }
}

impl Store {
    /// Holds on to a kept epoch.
    ///
    /// # Errors
    /// `NoEpoch`; `Io`.
    pub fn pin(&self, epoch: u64) -> Result<Pin, StoreError> {
        let (path, file, geometry, entry) = self.shared(epoch)?;
        self.pins.add(epoch);
        let (pins, id) = (self.pins.clone(), self.id());
        Ok(Pin { pins, file, path, geometry, entry, id, _hold: self.home.hold() })
    }
}
