//! Giving up epochs ahead of their time, and making the store's file small again. It must not know how a commit is made.
//!
//! 1. Pruning is a commit of the epoch table alone. The newest epoch stays, and the one on which the next checkpoint builds,
//!    and those that somebody reads. Epochs in earlier generations go with their file, the oldest first.
//! 2. Compacting copies all kept epochs into a new generation, which follows nothing: of the files before it no epoch counts,
//!    so they are left over, whether or not they can be removed. Until it is published the store is as it was.
//! 3. If publishing fails, nobody knows which of the two files a later start would take. Neither is written then, and the
//!    next checkpoint goes to another one, as after any failed write.

use super::dense::{Target, copy_epochs};
use super::earlier::Found;
use super::fault::{Fault, Stop, io};
use super::format::{Superblock, TableEntry};
use super::generation::Generation;
use super::layout::Layout;
use super::sink::{ReadAt, Sink};
use super::store::Store;
use super::tree::{Forest, blob_blocks};
use super::writing::Writing;
use crate::error::StoreError;

/// What pruning came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Epochs that are gone, oldest first.
    pub gone: Vec<u64>,
    /// Epochs that should have gone, and stay: somebody reads them, or they share a file with others that stay.
    pub held: Vec<u64>,
    /// Epochs that are left, those that are held included.
    pub kept: Vec<u64>,
    /// What can be used again now, or has been given back to the file system.
    pub freed_bytes: u64,
}

/// What compacting came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// The epochs there are.
    pub epochs: usize,
    /// Bytes of all files before.
    pub bytes_before: u64,
    /// Bytes of the one file after.
    pub bytes_after: u64,
}

impl Store {
    /// Gives up all epochs but the newest `keep`, at least one. Their space is used again; the file becomes no shorter by it,
    /// unless the store is [compacted](Store::compact).
    ///
    /// # Errors
    /// As [`Store::commit`]: the epochs are as they were, then or at the next start.
    pub fn prune(&mut self, keep: u32) -> Result<Pruned, StoreError> {
        let epochs: Vec<u64> = self.epochs().iter().map(|info| info.epoch).collect();
        let over = epochs.len().saturating_sub(keep.max(1) as usize);
        self.give_up(&epochs[..over])
    }

    /// Gives up these epochs.
    ///
    /// # Errors
    /// `NoEpoch`; `Refused`: it is the newest one; as [`Store::prune`].
    pub fn forget(&mut self, epochs: &[u64]) -> Result<Pruned, StoreError> {
        for epoch in epochs {
            self.find(*epoch)?;
            if self.newest() == Some(*epoch) {
                let (path, reason) = (self.current.path.clone(), "the newest epoch is where a job goes on".to_owned());
                return Err(StoreError::Refused { path, epoch: *epoch, reason });
            }
        }
        self.give_up(epochs)
    }

    fn give_up(&mut self, epochs: &[u64]) -> Result<Pruned, StoreError> {
        self.settle()?;
        self.look().map_err(|error| self.fail(error))?;
        self.prepare()?;
        let epochs_here: Vec<u64> = self.current.table.iter().map(|entry| entry.epoch.get()).collect();
        let may_go: Vec<u64> =
            epochs.iter().copied().filter(|epoch| *epoch != self.base_epoch && self.claim(*epoch)).collect();
        let here: Vec<u64> = epochs_here.into_iter().filter(|epoch| may_go.contains(epoch)).collect();
        let free_before = self.current.space.free_frames();
        let dropped = if here.is_empty() { Ok(()) } else { self.drop_from_table(&here) };
        let removed = dropped.and_then(|()| self.remove_files_of(&may_go));
        self.home.let_go();
        let (mut gone, mut freed_bytes) = removed?;
        gone.extend(here);
        // What the epochs that are left reach was not known of each block that one given up had.
        self.find_base()?;
        let freed = self.current.space.free_frames().saturating_sub(free_before);
        freed_bytes += u64::from(freed) * u64::from(self.page_bytes());
        let kept: Vec<u64> = self.epochs().iter().map(|info| info.epoch).collect();
        let held = epochs.iter().copied().filter(|epoch| kept.contains(epoch)).collect();
        Ok(Pruned { gone, held, kept, freed_bytes })
    }

    fn drop_from_table(&mut self, epochs: &[u64]) -> Result<(), StoreError> {
        self.failed = true;
        let mut writing = Writing::new(&self.sums, self.options.durability, None);
        match self.current.forget(epochs, &mut writing, self.options.durability) {
            Ok(()) => {
                self.failed = false;
                Ok(())
            }
            Err(Stop::Declined(error)) => {
                self.failed = false;
                Err(error)
            }
            Err(Stop::Failed(error) | Stop::Origin(error)) => Err(self.fail(error)),
        }
    }

    /// Removes the oldest files, as long as all that counts in them is given up.
    fn remove_files_of(&mut self, epochs: &[u64]) -> Result<(Vec<u64>, u64), StoreError> {
        let (mut gone, mut bytes) = (Vec::new(), 0);
        let may_go = |entry: &TableEntry| epochs.contains(&entry.epoch.get());
        while let Some(oldest) = self.earlier.first().filter(|file| file.table.iter().all(may_go)) {
            bytes += oldest.source.len_bytes().unwrap_or(0);
            let removed = self.home.remove(oldest.number).map_err(io("remove"));
            removed.map_err(|fault| fault.at(&oldest.path))?;
            gone.extend(self.earlier.remove(0).table.iter().map(|entry| entry.epoch.get()));
        }
        Ok((gone, bytes))
    }

    /// Writes all kept epochs into a new file without gaps, which takes the place of those that there are.
    ///
    /// # Errors
    /// `Corrupt`: an epoch that is kept is damaged (one can be [given up](Store::forget)); `NoSpace`: there is no room for
    /// both files; `Io`. The epochs are as they were.
    pub fn compact(&mut self) -> Result<Compacted, StoreError> {
        self.settle()?;
        self.look().map_err(|error| self.fail(error))?;
        let lengths = self.earlier.iter().map(|file| file.source.len_bytes().unwrap_or(0));
        let bytes_before = lengths.sum::<u64>() + self.current.sink.len_bytes().unwrap_or(0);
        let number = self.next_number()?;
        let superblock = Superblock::of_generation(number, 0, self.id(), self.current.geometry());
        let made = self.make_dense(number, superblock);
        let sink = made.inspect_err(|_| {
            // A leftover only takes room.
            let _ = self.home.remove(number);
        })?;
        // Rule 3, until it is known to be published and can be gone on with.
        self.failed = true;
        let path = self.home.path(number);
        let at = |fault: Fault| fault.at(&path);
        self.home.publish(number).map_err(io("rename")).map_err(at)?;
        self.current = Generation::load(number, path.clone(), sink).map_err(at)?;
        (self.failed, self.alone) = (false, false);
        self.earlier.clear();
        self.remove_earlier();
        self.find_base()?;
        let (epochs, bytes_after) = (self.current.table.len(), self.current.geometry().file_bytes());
        Ok(Compacted { epochs, bytes_before, bytes_after })
    }

    fn make_dense(&mut self, number: u32, superblock: Superblock) -> Result<Box<dyn Sink>, StoreError> {
        let path = self.home.path(number);
        let mut sink = self.home.begin(number).map_err(io("create")).map_err(|fault| fault.at(&path))?;
        let files = self.earlier.iter().map(|file| (&file.path, &*file.source, file.geometry, &file.table));
        let current = &self.current;
        let files = files.chain([(&current.path, &*current.sink as &dyn ReadAt, current.geometry(), &current.table)]);
        let mut epochs = Vec::new();
        for (path, source, geometry, table) in files {
            let forest = Forest { source, geometry };
            epochs.extend(table.iter().map(|entry| Found { path, forest, entry }));
        }
        copy_epochs(&epochs, Target { sink: &mut *sink, path: &path, superblock, sums: &self.sums })?;
        Ok(sink)
    }
}

impl Generation {
    /// Commits the epoch table without these.
    fn forget(
        &mut self,
        epochs: &[u64],
        writing: &mut Writing<'_>,
        durability: super::options::Durability,
    ) -> Result<(), Stop> {
        let table = self.table_without(epochs);
        self.make_room(0, blob_blocks(size_of_val(&table[..])), false)?;
        self.space.begin(self.newest().unwrap_or(0));
        let mut layout = Layout::default();
        let next = self.lay_out_table(table, &mut layout);
        let bytes = layout.bytes();
        let written = writing.blocks(&mut *self.sink, &layout.blocks);
        written.map_err(|error| self.failed("write", error, bytes))?;
        self.publish(&next.meta, durability, bytes)?;
        self.account(layout.dead, next);
        Ok(())
    }
}
