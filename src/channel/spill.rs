//! What lies between a ring and its task: what the head of a loop has drained out of a back edge, so that the ring never
//! blocks, and what a restore has brought. It does not know where its records come from, nor which epoch is under way.
//!
//! # Rules
//!
//! 1. Records and marks leave in the order in which they came, whole batches or parts of them: batches have no meaning of
//!    their own. A watermark right behind another takes its place.
//! 2. Records wait in memory, as Rust values, up to `memory_bytes`. From the first batch on for which that does not suffice,
//!    what comes goes to a file, encoded, until nothing of the file is left. So whatever lies in memory is ahead of it.
//! 3. Memory is counted by the size of the Rust values (what they own on the heap is not counted), the file by the
//!    encodings, and no record as less than one byte. One chunk above the limit may be in memory: the one read back.
//! 4. Records in memory lie in chunks, which are used again. A chunk of the file has no mark in its midst.
//! 5. What waits, marks too, has a limit. Going over it is an error, for a loop that makes more than it takes would fill any
//!    disk.
//! 6. Counts are right before foreign code runs (a record's `drop`, `encode` or `decode`).

mod chunks;
mod file;
#[cfg(all(test, not(snapring_loom)))]
mod tests;

use super::ring_records::Records;
use super::slot_records;
use crate::error::Failed;
use crate::marks::Mark;
use crate::record::Record;
use chunks::counted_bytes;
use file::SpillFile;
use std::collections::VecDeque;
use std::path::PathBuf;

/// How much may wait, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillLimits {
    /// In memory, by the size of the Rust values.
    pub memory_bytes: usize,
    /// Altogether: those in memory, the encodings of those in the file, and marks.
    pub bytes_max: u64,
    /// Where the file goes. It has no name there.
    pub folder: PathBuf,
}

/// What comes next out of a [`Spill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// Records: [`Spill::take`].
    Records,
    /// This mark: [`Spill::take_mark`].
    Mark(Mark),
}

/// A queue of records and marks that goes over into a file.
pub struct Spill<T> {
    limits: SpillLimits,
    /// Records in memory, in order; no chunk is empty.
    chunks: VecDeque<VecDeque<T>>,
    /// Records in them.
    kept: u64,
    /// Behind them, what lies in the file.
    filed: VecDeque<Filed>,
    file: SpillFile,
    filed_bytes: u64,
    /// Each with the number of records ever pushed before it.
    marks: VecDeque<(u64, Mark)>,
    /// Records ever pushed.
    pushed: u64,
    /// Records ever taken.
    taken: u64,
    /// The batch that was lent out last, empty by now.
    lent: Vec<T>,
    /// Empty chunks.
    pool: Vec<VecDeque<T>>,
    /// What was read from the file last.
    encoded: Vec<u8>,
    chunk_records: usize,
}

/// A chunk in the file.
#[derive(Clone, Copy)]
struct Filed {
    records: u64,
    bytes: u64,
}

impl Filed {
    fn counted_bytes(self) -> u64 {
        self.bytes.max(self.records)
    }
}

impl<T: Record> Spill<T> {
    /// An empty one. It makes no file before it needs one.
    pub fn new(limits: SpillLimits) -> Self {
        Self {
            file: SpillFile::new(limits.folder.clone()),
            limits,
            chunks: VecDeque::new(),
            kept: 0,
            filed: VecDeque::new(),
            filed_bytes: 0,
            marks: VecDeque::new(),
            pushed: 0,
            taken: 0,
            lent: Vec::new(),
            pool: Vec::new(),
            encoded: Vec::new(),
            chunk_records: slot_records::<T>(None),
        }
    }

    /// Puts records behind all that waits.
    ///
    /// # Errors
    /// [`LoopFull`](crate::error::Cause::LoopFull): more waits than may; [`Spill`](crate::error::Cause::Spill): the file could not be written. In both cases the records
    /// have been moved here nevertheless.
    pub fn push(&mut self, records: &mut Records<'_, T>) -> Result<(), Failed> {
        let memory_bytes = self.memory_bytes() + counted_bytes::<T>(records.len() as u64);
        if self.filed.is_empty() && memory_bytes <= self.limits.memory_bytes as u64 {
            self.keep(records);
            self.check_limit()
        } else {
            self.put_away(records);
            self.check_limit()?;
            self.file.write()
        }
    }

    /// Puts a mark behind all that waits. Of watermarks with no record between them, the higher one stays.
    pub fn push_mark(&mut self, mark: Mark) {
        if let (Mark::Watermark(new), Some((place, Mark::Watermark(old)))) = (mark, self.marks.back_mut())
            && *place == self.pushed
        {
            *old = new.max(*old);
        } else {
            self.marks.push_back((self.pushed, mark));
        }
    }

    /// What comes next.
    #[inline]
    pub fn front(&self) -> Option<Front> {
        match self.marks.front() {
            Some(&(place, mark)) if place == self.taken => Some(Front::Mark(mark)),
            _ if self.taken == self.pushed => None,
            _ => Some(Front::Records),
        }
    }

    /// Takes the next records: up to the next mark, at most a chunk.
    ///
    /// # Errors
    /// [`Spill`](crate::error::Cause::Spill): the file could not be read. Nothing has been taken.
    ///
    /// # Panics
    /// [`Spill::front`] is something else.
    pub fn take(&mut self) -> Result<Records<'_, T>, Failed> {
        assert!(self.front() == Some(Front::Records), "only records that come next can be taken");
        if self.chunks.is_empty() {
            self.read_back()?;
        }
        let due = self.marks.front().map_or(self.pushed, |&(place, _)| place) - self.taken;
        let chunk = self.chunks.front_mut().expect("records that are not in memory have just been read");
        let count = due.min(chunk.len() as u64);
        self.taken += count;
        self.kept -= count;
        if count == chunk.len() as u64 {
            let chunk = self.chunks.pop_front().unwrap_or_default();
            let emptied = std::mem::replace(&mut self.lent, chunk.into());
            self.recycle(emptied.into());
        } else {
            self.lent.reserve_exact(self.chunk_records);
            self.lent.extend(chunk.drain(..count as usize));
        }
        Ok(Records::of(&mut self.lent))
    }

    /// Takes the mark that comes next.
    ///
    /// # Panics
    /// [`Spill::front`] is something else.
    pub fn take_mark(&mut self) -> Mark {
        assert!(matches!(self.front(), Some(Front::Mark(_))), "only a mark that comes next can be taken");
        self.marks.pop_front().expect("it has just been seen").1
    }

    /// Takes out all barriers up to that of `to_epoch`.
    pub fn remove_barriers(&mut self, to_epoch: u64) {
        self.marks.retain(|&(_, mark)| !matches!(mark, Mark::Barrier(epoch) if epoch <= to_epoch));
    }

    /// Appends to `out` the encodings of the records up to the barrier of this epoch, if it waits, or of all; says how many
    /// these are. They go on waiting. Marks are left out.
    ///
    /// # Errors
    /// [`Spill`](crate::error::Cause::Spill): the file could not be read. `out` has become longer nevertheless.
    pub fn save(&self, until_barrier: Option<u64>, out: &mut Vec<u8>) -> Result<u64, Failed> {
        let until = until_barrier.and_then(|epoch| self.barrier(epoch)).unwrap_or(self.pushed);
        let mut left = until - self.taken;
        for chunk in &self.chunks {
            let count = left.min(chunk.len() as u64);
            chunk.range(..count as usize).for_each(|record| record.encode(out));
            left -= count;
        }
        let mut at = self.file.begin();
        for filed in &self.filed {
            if left == 0 {
                break;
            }
            // As it is: these are encodings already.
            self.file.read(at, filed.bytes, out)?;
            at += filed.bytes;
            left = left.checked_sub(filed.records).expect("a chunk of the file ends at each mark");
        }
        Ok(until - self.taken)
    }

    /// Whether neither records nor marks wait.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == self.pushed && self.marks.is_empty()
    }

    /// How many records wait.
    #[inline]
    pub fn records(&self) -> u64 {
        self.pushed - self.taken
    }

    /// The bytes of the records that wait: the size of the Rust values in memory, of the encodings in the file.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.memory_bytes() + self.filed_bytes
    }
}
