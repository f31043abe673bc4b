//! From blocks in memory to the sink: neighbours are written as one run, pages are checksummed in the same pass, and the
//! pace is kept that was asked for. It must not know what is in the blocks, nor what refers to them.

use super::format::offset_of;
use super::options::Durability;
use super::sink::{Ahead, Run, Sink};
use super::sums::Sums;
use super::tree::NewBlock;
use std::io;
use std::time::{Duration, Instant};

/// A run is cut here: what is in one system call, and what one thread does at a time. Much smaller ones would cost calls,
/// much larger ones would not fit a cache between their copy and their checksum.
const RUN_BYTES_MAX: u64 = 1 << 20;

/// Less is checksummed before a disk would have begun with it.
const AHEAD_BYTES_MIN: u64 = 256 << 10;

/// What a portion takes at the pace that was asked for, and its bounds: short enough to be no burst, long enough that
/// syncing it is no waste.
const PORTION: Duration = Duration::from_millis(20);
const PORTION_BYTES_MIN: u64 = 256 << 10;
const PORTION_BYTES_MAX: u64 = 16 << 20;

/// How fast a commit may write.
struct Pace {
    bytes_per_s: Option<u64>,
    begun: Instant,
    written_bytes: u64,
}

impl Pace {
    /// From now on; none: without bound.
    fn new(bytes_per_s: Option<u64>) -> Self {
        Self { bytes_per_s, begun: Instant::now(), written_bytes: 0 }
    }

    fn portion_bytes(&self) -> u64 {
        let portion = |rate: u64| rate / (1000 / PORTION.as_millis() as u64);
        self.bytes_per_s.map_or(u64::MAX, |rate| portion(rate).clamp(PORTION_BYTES_MIN, PORTION_BYTES_MAX))
    }

    /// So much has been written: waits until it should have been.
    fn keep(&mut self, bytes: u64) {
        self.written_bytes += bytes;
        if let Some(rate) = self.bytes_per_s {
            let due = Duration::from_secs_f64(self.written_bytes as f64 / rate.max(1) as f64);
            std::thread::sleep(due.saturating_sub(self.begun.elapsed()));
        }
    }
}

/// What is written in one commit.
pub(super) struct Writing<'a> {
    sums: &'a Sums,
    durability: Durability,
    pace: Pace,
    /// Runs so far.
    pub runs: u64,
}

impl<'a> Writing<'a> {
    /// Nothing yet.
    pub fn new(sums: &'a Sums, durability: Durability, bytes_per_s: Option<u64>) -> Self {
        Self { sums, durability, pace: Pace::new(bytes_per_s), runs: 0 }
    }

    /// Writes pages to their blocks, and gives back the checksum of each.
    pub fn pages(&mut self, sink: &mut dyn Sink, blocks: &[u32], pages: &[&[u8]]) -> io::Result<Vec<u32>> {
        let mut sums = vec![0; pages.len()];
        let mut runs = cut(blocks, pages, &mut sums, self.pace.portion_bytes().min(RUN_BYTES_MAX));
        // They come in the order in which their blocks were taken, which may go round the end of the file.
        runs.sort_unstable_by_key(|run| run.offset_bytes);
        self.runs += runs.len() as u64;
        let bytes: u64 = runs.iter().map(Run::len_bytes).sum();
        // Left to the sync, a set would leave for the disk only when all of it is there, and at once.
        let ahead = match self.durability {
            Durability::PowerLoss if self.pace.bytes_per_s.is_some() => Ahead::Always,
            Durability::PowerLoss if bytes >= AHEAD_BYTES_MIN => Ahead::IfCheap,
            _ => Ahead::Not,
        };
        let mut rest = &mut runs[..];
        while !rest.is_empty() {
            let (portion, bytes) = self.portion(rest);
            let (now, later) = rest.split_at_mut(portion);
            sink.write_runs(now, self.sums, ahead)?;
            rest = later;
            self.pace.keep(bytes);
        }
        Ok(sums)
    }

    /// How many runs come next, at least one, and their bytes.
    fn portion(&self, runs: &[Run<'_>]) -> (usize, u64) {
        let (limit, mut bytes) = (self.pace.portion_bytes(), 0);
        for (at, run) in runs.iter().enumerate() {
            let len = run.len_bytes();
            if at > 0 && bytes + len > limit {
                return (at, bytes);
            }
            bytes += len;
        }
        (runs.len(), bytes)
    }

    /// Writes blocks whose checksums are known.
    pub fn blocks(&mut self, sink: &mut dyn Sink, blocks: &[NewBlock]) -> io::Result<()> {
        let mut pieces: Vec<(u32, &[u8])> = blocks.iter().map(|(block, bytes)| (*block, &bytes[..])).collect();
        pieces.sort_unstable_by_key(|(block, _)| *block);
        let (blocks, parts): (Vec<u32>, Vec<&[u8]>) = pieces.into_iter().unzip();
        for (range, offset_bytes, bytes) in neighbours(&blocks, &parts, RUN_BYTES_MAX) {
            sink.write(offset_bytes, &parts[range])?;
            self.runs += 1;
            self.pace.keep(bytes);
        }
        Ok(())
    }
}

/// The runs that the pieces make, in their order.
fn cut<'a>(blocks: &[u32], parts: &'a [&'a [u8]], sums: &'a mut [u32], bytes_max: u64) -> Vec<Run<'a>> {
    let mut rest = sums;
    let run = |(range, offset_bytes, _): Neighbours| {
        let (sums, later) = std::mem::take(&mut rest).split_at_mut(range.len());
        rest = later;
        Run { offset_bytes, parts: &parts[range], sums }
    };
    neighbours(blocks, parts, bytes_max).map(run).collect()
}

type Neighbours = (std::ops::Range<usize>, u64, u64);

/// Stretches of pieces each of which begins where the one before ends, cut at so many bytes: which, where, and their bytes.
fn neighbours<'a>(blocks: &'a [u32], parts: &'a [&'a [u8]], bytes_max: u64) -> impl Iterator<Item = Neighbours> + 'a {
    let mut next = 0;
    std::iter::from_fn(move || {
        let first = next;
        let offset_bytes = offset_of(*blocks.get(first)?);
        let mut bytes = 0;
        while next < blocks.len() && offset_of(blocks[next]) == offset_bytes + bytes && bytes < bytes_max {
            bytes += parts[next].len() as u64;
            next += 1;
        }
        Some((first..next, offset_bytes, bytes))
    })
}
