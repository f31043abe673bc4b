//! Commits through failures (rules 9 to 12 of the room): which generation takes a checkpoint, what happens when it
//! fails, and when the ones before go. It must not know how a commit is made, nor what files are.

use super::codec::EntryRecord;
use super::commit::{CommitStats, Elsewhere, Way};
use super::earlier::Earlier;
use super::fault::{Fault, Stop, io};
use super::format::{MapRef, Superblock};
use super::generation::Generation;
use super::store::Store;
use super::tree::Forest;
use super::{Checkpoint, Entry};
use crate::error::StoreError;
use crate::page::FrozenPages;

impl Store {
    /// Makes a checkpoint durable, as the options say; then those beyond `keep` have expired.
    ///
    /// # Errors
    /// The newest epoch is the one before, and the store takes other checkpoints. `Refused`, and `NoSpace` ahead of any
    /// write: nothing has happened. Any other: the file that was written is not trusted any more, and the next checkpoint
    /// goes to a new one, complete. It need not be full for that, unless [`Store::needs_full`] says so: pages that it does
    /// not bring are copied.
    pub fn commit(&mut self, checkpoint: &Checkpoint) -> Result<CommitStats, StoreError> {
        let newest = self.newest().unwrap_or(0);
        if checkpoint.epoch <= newest {
            let (path, reason) = (self.current.path.clone(), format!("the store is at epoch {newest} already"));
            return Err(StoreError::Refused { path, epoch: checkpoint.epoch, reason });
        }
        if self.failed {
            self.renew()?;
        }
        self.look().map_err(|error| self.fail(error))?;
        // What lies where cannot be read, and may never be again: better a new file than no checkpoint.
        self.prepare().map_err(|error| self.fail(error))?;
        self.apply_names(checkpoint);
        let expiring = self.expiring();
        let committed = self.commit_without(checkpoint, &expiring);
        self.home.let_go();
        committed
    }

    fn commit_without(&mut self, checkpoint: &Checkpoint, expiring: &[u64]) -> Result<CommitStats, StoreError> {
        let origin = self.origin.as_ref().map(|origin| {
            let file = &self.earlier[origin.at];
            let forest = Forest { source: &*file.source, geometry: file.geometry };
            Elsewhere { path: &file.path, forest, maps: &origin.maps }
        });
        let (durability, bandwidth_bytes_per_s) = (self.options.durability, self.options.bandwidth_bytes_per_s);
        let way = Way { expiring, durability, bandwidth_bytes_per_s, sums: &self.sums, origin };
        // Until the contrary is known: a panic on the way is a failure as well.
        self.failed = true;
        match self.current.commit(checkpoint, &way) {
            Ok(stats) => {
                self.failed = false;
                (self.base_epoch, self.origin, self.unreadable) = (checkpoint.epoch, None, None);
                self.remove_earlier();
                Ok(stats)
            }
            Err(Stop::Declined(error)) => {
                self.failed = false;
                Err(error)
            }
            Err(Stop::Failed(error)) => Err(self.fail(error)),
            Err(Stop::Origin(error)) => {
                self.unreadable = Some(error.to_string());
                Err(self.fail(error))
            }
        }
    }

    /// Those of the current file that expire with the next commit: the oldest, unless somebody reads them.
    fn expiring(&mut self) -> Vec<u64> {
        let beyond = (self.current.table.len() + 1).saturating_sub(self.options.keep as usize);
        let epochs = self.current.table.iter().map(|entry| entry.epoch.get()).take(beyond);
        let epochs: Vec<u64> = epochs.collect();
        epochs.into_iter().filter(|epoch| self.claim(*epoch)).collect()
    }

    /// Whether nobody holds on to an epoch, here or elsewhere: then nobody begins to, until the home lets go.
    pub(super) fn claim(&mut self, epoch: u64) -> bool {
        !self.pins.holds(epoch) && self.home.claim(epoch)
    }

    /// Commits a kept epoch once more, under a number above all others and with another header: so the job goes back to
    /// it, and nobody can take a later one for the newest. No page is written, unless it lies in an earlier generation.
    ///
    /// # Errors
    /// `NoEpoch`; `Corrupt`: its maps are damaged; as [`Store::commit`].
    pub fn commit_again(&mut self, epoch: u64, number: u64, header: Vec<u8>) -> Result<(), StoreError> {
        let (record, page_bytes) = (self.record(epoch)?, self.page_bytes());
        let unchanged = |map: MapRef| {
            let count = map.count.get();
            FrozenPages::of(Vec::new(), Vec::new(), page_bytes, count, false)
        };
        let entry = |entry: EntryRecord| {
            let EntryRecord { operator, state, task, tasks, schema, root, map } = entry;
            Entry { operator, state, task, tasks, schema, root, pages: map.map(unchanged) }
        };
        let entries = record.entries.into_iter().map(entry).collect();
        self.base_on(epoch)?;
        self.commit(&Checkpoint { epoch: number, header, entries })?;
        Ok(())
    }

    /// Makes sure that the newest epoch is what [`Store::newest`] says. After a commit that failed its epoch may be in the
    /// file all the same, in the page cache only: nobody may rely on it, and a later start must not find it.
    ///
    /// # Errors
    /// A new file is needed for that, and cannot be made.
    pub fn settle(&mut self) -> Result<(), StoreError> {
        if self.failed { self.renew() } else { Ok(()) }
    }

    /// Looks for what somebody else may have done to the file: moved, removed or shortened it. A file that is shortened
    /// *while* it is written through a mapping is still a signal, and no error.
    pub(super) fn look(&self) -> Result<(), StoreError> {
        let at = |fault: Fault| fault.at(&self.current.path);
        self.home.check(self.current.number).map_err(io("go on writing")).map_err(at)?;
        let len = self.current.sink.len_bytes().map_err(io("read the length of")).map_err(at)?;
        let least = self.current.geometry().file_bytes();
        if len >= least {
            return Ok(());
        }
        let what = format!("the file has {len} bytes and not {least}: somebody has shortened it while it was in use");
        Err(at(Fault::Corrupt(what)))
    }

    /// Rules 9 and 10. At once, so that what the failed epoch may have left in the file does not count any more; if that
    /// fails as well the next checkpoint tries again.
    pub(super) fn fail(&mut self, error: StoreError) -> StoreError {
        self.failed = true;
        // Its error is the one of the next checkpoint, if it lasts.
        let _ = self.renew();
        error
    }

    /// Above those of all files.
    pub(super) fn next_number(&self) -> Result<u32, StoreError> {
        // What keeps it from being listed, keeps it from being made as well.
        let list = self.home.list().unwrap_or_default();
        let highest = list.last().copied().unwrap_or(0).max(self.current.number);
        highest.checked_add(1).ok_or_else(|| {
            let reason = "no number is higher, so no file can follow it: give this one the name that it had".to_owned();
            StoreError::Foreign { path: self.home.path(highest), reason }
        })
    }

    /// Begins a new generation.
    fn renew(&mut self) -> Result<(), StoreError> {
        let number = self.next_number()?;
        let (follows, id, geometry) = (self.newest().unwrap_or(0), self.id(), self.current.geometry());
        let superblock = Superblock::of_generation(number, follows, id, geometry);
        let new = Generation::make(&mut *self.home, number, &superblock)?;
        let old = std::mem::replace(&mut self.current, new);
        (self.failed, self.alone) = (false, false);
        if old.table.is_empty() {
            // Nothing in it counts. A leftover does no harm.
            let _ = self.home.remove(old.number);
        } else {
            self.earlier.push(old.into());
        }
        self.find_base()
    }

    /// Rule 12; or nothing in them counts, as where one that has been compacted could not be removed.
    pub(super) fn remove_earlier(&mut self) {
        let is_enough = self.current.table.len() >= self.options.keep as usize;
        let counts = |file: &Earlier| !file.table.is_empty();
        if self.alone || !(is_enough || self.current.follows == 0 && !self.earlier.iter().any(counts)) {
            return;
        }
        // Who holds an epoch looks for it by its number, more than once.
        let epochs = self.earlier.iter().flat_map(|file| &file.table).map(|entry| entry.epoch.get());
        // Each is tried, whatever the others say.
        let is_read = epochs.filter(|epoch| !self.home.claim(*epoch)).count() > 0;
        let list = self.home.list().unwrap_or_default();
        let mut earlier = list.into_iter().filter(|number| *number < self.current.number);
        // What cannot be removed now is tried again after the next commit.
        if !is_read && earlier.all(|number| self.home.remove(number).is_ok()) {
            self.earlier.clear();
            self.alone = true;
        }
        self.home.let_go();
    }
}
