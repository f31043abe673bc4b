//! How the records of a spill lie: in chunks, in memory and in the file, and the way between the two. It does not know of
//! marks more than where a chunk of the file has to end.

use super::file::SEGMENT_BYTES;
use super::{Filed, Spill};
use crate::channel::Records;
use crate::error::{Cause, Failed};
use crate::marks::Mark;
use crate::record::Record;
use std::collections::VecDeque;
use std::io;

/// What so many Rust values count for.
pub(super) fn counted_bytes<T>(records: u64) -> u64 {
    records.saturating_mul(size_of::<T>().max(1) as u64)
}

impl<T: Record> Spill<T> {
    pub(super) fn memory_bytes(&self) -> u64 {
        counted_bytes::<T>(self.kept)
    }

    /// Keeps records in memory.
    pub(super) fn keep(&mut self, records: &mut Records<'_, T>) {
        let count = records.len() as u64;
        while records.len() != 0 {
            if self.chunks.back().is_none_or(|chunk| chunk.len() >= self.chunk_records) {
                let chunk = self.empty_chunk();
                self.chunks.push_back(chunk);
            }
            let chunk = self.chunks.back_mut().expect("one with room has just been added");
            let room = self.chunk_records - chunk.len();
            chunk.extend(records.by_ref().take(room));
        }
        self.pushed += count;
        self.kept += count;
    }

    /// Puts records into the file, or what will become a part of it.
    pub(super) fn put_away(&mut self, records: &mut Records<'_, T>) {
        // A mark ends the chunk before it.
        let mut ends = self.marks.back().is_some_and(|&(place, _)| place == self.pushed);
        for record in records {
            let bytes = self.file.append(|out| record.encode(out));
            let is_full =
                |chunk: &Filed| chunk.records >= self.chunk_records as u64 || chunk.bytes >= SEGMENT_BYTES as u64;
            if self.filed.back().is_none_or(|chunk| ends || is_full(chunk)) {
                self.filed.push_back(Filed { records: 0, bytes: 0 });
            }
            ends = false;
            let chunk = self.filed.back_mut().expect("one with room has just been added");
            self.filed_bytes -= chunk.counted_bytes();
            chunk.records += 1;
            chunk.bytes += bytes;
            self.filed_bytes += chunk.counted_bytes();
            self.pushed += 1;
        }
    }

    /// Reads the first chunk of the file back into memory.
    pub(super) fn read_back(&mut self) -> Result<(), Failed> {
        let filed = *self.filed.front().expect("what is not in memory is in the file");
        self.encoded.clear();
        self.file.read(self.file.begin(), filed.bytes, &mut self.encoded)?;
        let mut chunk = self.empty_chunk();
        let mut input = &self.encoded[..];
        for _ in 0..filed.records {
            let record = T::decode(&mut input).map_err(|error| self.file.failed("read", io::Error::other(error)))?;
            chunk.push_back(record);
        }
        self.chunks.push_back(chunk);
        self.filed.pop_front();
        self.filed_bytes -= filed.counted_bytes();
        self.file.release(filed.bytes);
        self.kept += filed.records;
        Ok(())
    }

    /// The place of the barrier of an epoch: records ever pushed before it.
    pub(super) fn barrier(&self, epoch: u64) -> Option<u64> {
        let barrier = self.marks.iter().find(|&&(_, mark)| mark == Mark::Barrier(epoch));
        barrier.map(|&(place, _)| place)
    }

    pub(super) fn check_limit(&self) -> Result<(), Failed> {
        let marks_bytes = self.marks.len() * size_of::<(u64, Mark)>();
        let limit_bytes = self.limits.bytes_max;
        if self.bytes() + marks_bytes as u64 > limit_bytes {
            return Err(Cause::LoopFull { limit_bytes }.into());
        }
        Ok(())
    }

    fn empty_chunk(&mut self) -> VecDeque<T> {
        self.pool.pop().unwrap_or_else(|| VecDeque::with_capacity(self.chunk_records))
    }

    /// Puts an empty chunk by, if it may be needed again.
    pub(super) fn recycle(&mut self, chunk: VecDeque<T>) {
        let chunk_bytes = counted_bytes::<T>(self.chunk_records as u64);
        let pool_max = self.limits.memory_bytes as u64 / chunk_bytes + 2;
        if chunk.capacity() >= self.chunk_records && (self.pool.len() as u64) < pool_max {
            self.pool.push(chunk);
        }
    }
}
