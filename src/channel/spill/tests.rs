//! Tests of the spill: against a plain queue, its file, its limits, panics, and that it allocates nothing in the long run
//! (`tests/alloc.rs`).

mod model;

use super::file::{SEGMENT_BYTES, SEGMENTS_KEPT, SpillFile, unlinked};
use super::*;
use crate::error::{Cause, DecodeError};
use crate::record::{Input, Schema};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

fn limits(memory_bytes: usize, bytes_max: u64) -> SpillLimits {
    SpillLimits { memory_bytes, bytes_max, folder: std::env::temp_dir() }
}

fn push<T: Record>(spill: &mut Spill<T>, mut records: Vec<T>) -> Result<(), Failed> {
    let mut batch = Records::of(&mut records);
    let pushed = spill.push(&mut batch);
    assert_eq!(batch.len(), 0, "all are moved");
    pushed
}

fn take<T: Record>(spill: &mut Spill<T>) -> Vec<T> {
    spill.take().unwrap().collect()
}

/// A record of almost 5 KiB, so that few fill a chunk or a segment.
type Big = [u64; 600];
const BIG_BYTES: usize = size_of::<Big>();

fn bigs(numbers: std::ops::Range<u64>) -> Vec<Big> {
    numbers.map(|n| [n; 600]).collect()
}

#[test]
fn batches_grow_together_and_end_at_marks() {
    let mut spill = Spill::new(limits(1000, 1000));
    assert!(spill.is_empty() && spill.front().is_none());
    push(&mut spill, vec![1u64, 2]).unwrap();
    push(&mut spill, vec![3]).unwrap();
    spill.push_mark(Mark::Barrier(4));
    push(&mut spill, vec![4]).unwrap();
    spill.push_mark(Mark::Watermark(7));
    spill.push_mark(Mark::Watermark(5));
    spill.push_mark(Mark::End);
    assert_eq!((spill.records(), spill.bytes()), (4, 32));
    assert_eq!(spill.front(), Some(Front::Records));
    assert_eq!(take(&mut spill), [1, 2, 3]);
    assert_eq!(spill.front(), Some(Front::Mark(Mark::Barrier(4))));
    assert_eq!(spill.take_mark(), Mark::Barrier(4));
    assert_eq!(take(&mut spill), [4]);
    assert_eq!(spill.bytes(), 0);
    assert!(!spill.is_empty());
    assert_eq!((spill.take_mark(), spill.take_mark()), (Mark::Watermark(7), Mark::End));
    assert!(spill.is_empty() && spill.front().is_none());
}

#[test]
fn what_is_saved_ends_at_the_barrier_if_it_is_there() {
    for memory_bytes in [0, 1 << 20] {
        let mut spill = Spill::new(limits(memory_bytes, 1 << 20));
        let text = |n: u64| (n, format!("{n}"));
        push(&mut spill, vec![text(1)]).unwrap();
        spill.push_mark(Mark::Barrier(1));
        push(&mut spill, vec![text(2), text(3)]).unwrap();
        spill.push_mark(Mark::Barrier(2));
        push(&mut spill, vec![text(4)]).unwrap();
        let saved = |spill: &Spill<_>, until| {
            let mut bytes = vec![];
            let records = spill.save(until, &mut bytes).unwrap();
            let expected: Vec<u8> = (5 - spill.records()..5 - spill.records() + records)
                .flat_map(|n| crate::record::to_bytes(&text(n)))
                .collect();
            assert_eq!(bytes, expected);
            records
        };
        assert_eq!([None, Some(1), Some(2), Some(3)].map(|until| saved(&spill, until)), [4, 1, 3, 4]);
        assert_eq!(take(&mut spill), [text(1)]);
        assert_eq!([None, Some(1), Some(2), Some(3)].map(|until| saved(&spill, until)), [3, 0, 2, 3]);
        spill.remove_barriers(1);
        assert_eq!([Some(1), Some(2)].map(|until| saved(&spill, until)), [3, 2], "the first has gone");
        assert_eq!(take(&mut spill), [text(2), text(3)]);
        spill.remove_barriers(3);
        assert_eq!(saved(&spill, Some(2)), 1);
        assert_eq!(take(&mut spill), [text(4)]);
        assert!(spill.is_empty());
    }
}

#[test]
fn the_file_begins_when_memory_is_full_and_goes_on_until_it_is_empty() {
    let mut spill = Spill::new(limits(3 * BIG_BYTES - 1, 1 << 30));
    push(&mut spill, bigs(0..2)).unwrap();
    assert_eq!(spill.memory_bytes(), 2 * BIG_BYTES as u64);
    push(&mut spill, bigs(2..3)).unwrap();
    assert_eq!(spill.filed_bytes, BIG_BYTES as u64);
    assert_eq!(take(&mut spill), bigs(0..2));
    push(&mut spill, bigs(3..60)).unwrap();
    assert_eq!(
        (spill.memory_bytes(), spill.filed_bytes),
        (0, 58 * BIG_BYTES as u64),
        "memory has room, but order goes first"
    );
    assert_eq!(spill.file.file_bytes(), 2 * SEGMENT_BYTES as u64, "what is less than a segment is not written");
    let mut next = 2;
    while next < 60 {
        let got = take(&mut spill);
        assert!(got.len() <= slot_records::<Big>(None));
        assert_eq!(got, bigs(next..next + got.len() as u64));
        next += got.len() as u64;
    }
    push(&mut spill, bigs(60..61)).unwrap();
    assert_eq!((spill.memory_bytes(), spill.filed_bytes), (BIG_BYTES as u64, 0));
}

#[test]
fn space_in_the_file_is_used_again_and_given_back() {
    let mut spill = Spill::new(limits(0, 1 << 30));
    let segment = SEGMENT_BYTES.div_ceil(BIG_BYTES) as u64;
    let (mut pushed, mut taken) = (0, 0);
    for round in 0..200 {
        push(&mut spill, bigs(pushed..pushed + segment)).unwrap();
        pushed += segment;
        while round >= 5 && taken + 4 * segment < pushed {
            let got = take(&mut spill);
            assert_eq!(got, bigs(taken..taken + got.len() as u64));
            taken += got.len() as u64;
        }
    }
    assert!(spill.file.file_bytes() <= 8 * SEGMENT_BYTES as u64, "{} bytes for 6 segments", spill.file.file_bytes());
    push(&mut spill, bigs(pushed..pushed + 2 * segment * u64::from(SEGMENTS_KEPT))).unwrap();
    assert!(spill.file.file_bytes() > SEGMENT_BYTES as u64 * u64::from(SEGMENTS_KEPT));
    while spill.front().is_some() {
        take(&mut spill);
    }
    assert_eq!(spill.file.file_bytes(), SEGMENT_BYTES as u64 * u64::from(SEGMENTS_KEPT));
    let (all, mut saved, mut expected) = (bigs(0..3 * segment * u64::from(SEGMENTS_KEPT)), vec![], vec![]);
    all.iter().for_each(|big| big.encode(&mut expected));
    push(&mut spill, all).unwrap();
    assert_eq!(spill.save(None, &mut saved).unwrap(), spill.records());
    assert!(spill.file.file_bytes() <= expected.len() as u64, "no hole is left");
    assert!(saved == expected);
}

#[test]
fn the_limit_counts_memory_file_and_marks_and_says_what_to_do() {
    for (memory_bytes, records) in [(1000, 12), (0, 12), (48, 12)] {
        let mut spill = Spill::new(limits(memory_bytes, 96));
        (0..records).for_each(|n| push(&mut spill, vec![n]).unwrap());
        let Err(Failed(failure)) = push(&mut spill, vec![12u64]) else { panic!("the limit is 96 bytes") };
        assert!(matches!(failure.cause, Cause::LoopFull { limit_bytes: 96 }));
        let text = failure.to_string();
        assert!(
            text.contains("96 bytes") && text.contains("without bound") && text.contains("Config::spill"),
            "{text}"
        );
    }
    let mut spill = Spill::new(limits(0, 100));
    (0..5).for_each(|lap| spill.push_mark(Mark::Lap(lap)));
    assert!(push(&mut spill, vec![1u64]).is_err(), "marks take room too");
    let mut spill = Spill::new(limits(3, 5));
    push(&mut spill, vec![(); 5]).unwrap();
    assert!(push(&mut spill, vec![()]).is_err(), "records without bytes are not for nothing");
}

#[test]
fn a_folder_that_takes_no_file_is_named() {
    let folder = std::env::temp_dir().join("no such folder of snapring");
    let mut spill = Spill::new(SpillLimits { folder, ..limits(0, 1 << 30) });
    push(&mut spill, bigs(0..1)).unwrap();
    let Err(Failed(failure)) = push(&mut spill, bigs(1..50)) else { panic!("there is no such folder") };
    let text = failure.to_string();
    assert!(text.contains("no such folder of snapring: cannot create") && text.contains("Config::spill"), "{text}");
    assert_eq!(crate::error::Error::Job(failure).exit_code(), 5);
    assert_eq!(take(&mut spill), bigs(0..3), "nothing is lost by it");
}

#[test]
fn a_file_with_a_name_has_it_no_longer_than_needed() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let folder = tempfile::tempdir().unwrap();
    let file = unlinked(folder.path()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    file.write_all_at(b"spilled", 3).unwrap();
    assert_eq!((file.metadata().unwrap().nlink(), file.metadata().unwrap().len()), (0, 10));
}

#[test]
fn bytes_come_back_from_anywhere_in_the_file() {
    let mut file = SpillFile::new(std::env::temp_dir());
    let byte = |at: u64| (at % 251) as u8;
    let (mut begin, mut end) = (0u64, 0u64);
    for (appended, released) in
        [(10, 3), (300_000, 200_000), (1_000_000, 0), (5, 900_000), (700_000, 900_012), (400_000, 100)]
    {
        assert_eq!(file.append(|out| out.extend((end..end + appended).map(byte))), appended);
        end += appended;
        let _ = catch_unwind(AssertUnwindSafe(|| {
            file.append(|out| {
                out.push(77);
                std::panic::resume_unwind(Box::new(()));
            })
        }));
        file.write().unwrap();
        file.release(released);
        begin += released;
        if begin == end {
            (begin, end) = (0, 0);
        }
        assert_eq!(file.begin(), begin);
        for (at, len) in [(begin, end - begin), (begin, 1.min(end - begin)), ((begin + end) / 2, (end - begin) / 3)] {
            let mut got = vec![];
            file.read(at, len, &mut got).unwrap();
            assert!(got.iter().copied().eq((at..at + len).map(byte)), "{at} + {len}");
        }
    }
}

/// Counts its drops, and panics in the drop, the encoding or the decoding of the chosen number.
#[derive(Debug)]
struct Touchy(u64, Option<(Arc<AtomicUsize>, Panics)>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Panics {
    Never,
    InDrop,
    InEncode,
}

impl Drop for Touchy {
    fn drop(&mut self) {
        if let Some((drops, panics)) = &self.1 {
            drops.fetch_add(1, SeqCst);
            if *panics == Panics::InDrop && !std::thread::panicking() {
                std::panic::resume_unwind(Box::new("the drop panics"));
            }
        }
    }
}

impl Record for Touchy {
    const WIDTH: Option<usize> = None;
    type Mirror = ();

    fn schema() -> Schema {
        u64::schema()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(99);
        if self.1.as_ref().is_some_and(|(_, panics)| *panics == Panics::InEncode) {
            std::panic::resume_unwind(Box::new("the encoding panics"));
        }
        self.0.encode(out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        u8::decode(input)?;
        let number = u64::decode(input)?;
        if number == 66 { Err(DecodeError::Invalid("a bad number")) } else { Ok(Self(number, None)) }
    }
}

fn touchy(count: u64, panics_at: u64, panics: Panics) -> (Vec<Touchy>, Arc<AtomicUsize>) {
    let drops = Arc::default();
    let record = |n| Touchy(n, Some((Arc::clone(&drops), if n == panics_at { panics } else { Panics::Never })));
    ((0..count).map(record).collect(), drops)
}

#[test]
fn a_panic_while_records_are_put_away_loses_and_doubles_no_other() {
    for (panics, lost) in [(Panics::InDrop, None), (Panics::InEncode, Some(3))] {
        let (mut records, drops) = touchy(6, 3, panics);
        let mut spill = Spill::new(limits(0, 1000));
        let mut batch = Records::of(&mut records);
        assert!(catch_unwind(AssertUnwindSafe(|| spill.push(&mut batch))).is_err());
        assert_eq!((batch.len(), drops.load(SeqCst)), (2, 4));
        spill.push(&mut batch).unwrap();
        drop(batch);
        assert_eq!(drops.load(SeqCst), 6);
        let numbers: Vec<u64> = take(&mut spill).iter().map(|record| record.0).collect();
        assert_eq!(numbers, (0..6).filter(|&n| Some(n) != lost).collect::<Vec<_>>());
        assert!(spill.is_empty() && spill.bytes() == 0);
    }
}

#[test]
fn all_records_in_memory_are_dropped_once_though_one_drop_panics() {
    for taken in [0, 2] {
        let (records, drops) = touchy(6, 3, Panics::InDrop);
        let mut spill = Spill::new(limits(1000, 1000));
        push(&mut spill, records).unwrap();
        spill.push_mark(Mark::Barrier(1));
        assert!(
            catch_unwind(AssertUnwindSafe(|| {
                if taken != 0 {
                    let mut batch = spill.take().unwrap();
                    batch.by_ref().take(taken).for_each(drop);
                }
                drop(spill);
            }))
            .is_err()
        );
        assert_eq!(drops.load(SeqCst), 6);
    }
}

#[test]
fn a_file_that_comes_back_otherwise_is_an_error_and_takes_nothing() {
    let mut spill = Spill::new(limits(0, 1000));
    push(&mut spill, vec![Touchy(1, None), Touchy(66, None)]).unwrap();
    for _ in 0..2 {
        let Err(Failed(failure)) = spill.take() else { panic!("66 cannot be read") };
        assert!(failure.to_string().contains("a bad number"), "{failure}");
        assert_eq!((spill.records(), spill.front()), (2, Some(Front::Records)));
    }
}
