//! Sources with a mistake.

use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Emit, Read, Reader, Skipped, Source, Split};
use snapring::testing::check_source;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    OtherSplitsEachTime,
    IdsFromOne,
    RefusesItsSplits,
    IgnoresMax,
    NeverDone,
    OffsetBehind,
    OffsetAhead,
    OffsetOfBatch,
    Misses,
    SkipsTwice,
    CannotOpen,
}

/// The numbers from 0 to 9 in two splits, but for 1, which is skipped.
struct Numbers(Mistake);

struct NumbersReader {
    mistake: Mistake,
    opened_at: u64,
    next: u64,
    end: u64,
    /// Where the last read began.
    batch: u64,
    skipped: Skipped,
}

static ASKED: AtomicU32 = AtomicU32::new(0);

impl Source for Numbers {
    type Item = u64;
    type Reader = NumbersReader;

    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        let first = match self.0 {
            Mistake::OtherSplitsEachTime => ASKED.fetch_add(1, Ordering::Relaxed),
            Mistake::IdsFromOne => 1,
            _ => 0,
        };
        Ok((first..first + 2).map(|id| Split { id, name: format!("{id}"), descriptor: Vec::new() }).collect())
    }

    fn verify(&self, _: &[Split]) -> Result<(), ConnectorError> {
        match self.0 {
            Mistake::RefusesItsSplits => Err(changed()),
            _ => Ok(()),
        }
    }

    fn open(&self, split: &Split, offset: u64) -> Result<NumbersReader, ConnectorError> {
        if self.0 == Mistake::CannotOpen && offset > 0 {
            return Err(changed());
        }
        let (next, end) = (u64::from(split.id) * 5 + offset, u64::from(split.id) * 5 + 5);
        Ok(NumbersReader { mistake: self.0, opened_at: next, next, end, batch: next, skipped: Skipped::default() })
    }
}

fn changed() -> ConnectorError {
    ConnectorError::Changed { path: PathBuf::from("numbers"), what: "a planted mistake".to_owned() }
}

impl Reader for NumbersReader {
    type Item = u64;

    fn read<E: Emit<u64>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed> {
        self.batch = self.next;
        let mut given = 0;
        while self.next < self.end && (given < max || self.mistake == Mistake::IgnoresMax) {
            self.next += 1;
            match self.next - 1 {
                1 => self.skipped.lines += 1,
                3 if self.mistake == Mistake::Misses && self.opened_at == 3 => {}
                number => {
                    given += 1;
                    out.emit(number)?;
                }
            }
        }
        Ok(if self.next == self.end && self.mistake != Mistake::NeverDone { Read::Done } else { Read::More })
    }

    fn offset(&self) -> u64 {
        let begin = self.end - 5;
        match self.mistake {
            Mistake::OffsetBehind if self.next > begin => self.next - begin - 1,
            Mistake::OffsetAhead if self.next < self.end => self.next - begin + 1,
            Mistake::OffsetOfBatch => self.batch - begin,
            _ => self.next - begin,
        }
    }

    fn take_skipped(&mut self) -> Skipped {
        match self.mistake {
            Mistake::SkipsTwice => self.skipped.clone(),
            _ => std::mem::take(&mut self.skipped),
        }
    }
}

fn check(mistake: Mistake) -> Result<(), snapring::testing::Fault> {
    check_source(|| Numbers(mistake), [0, 2, 3, 4, 5, 6, 7, 8, 9])
}

#[test]
fn a_right_source_passes() {
    check(Mistake::None).unwrap();
    let fault = check_source(|| Numbers(Mistake::None), [0, 2, 3, 4, 5, 6, 7, 9, 8]).unwrap_err();
    assert_eq!(fault.to_string(), "record 7 (counted from 0): expected 9, found 8\n  read split after split");
}

#[test]
fn each_mistake_is_found() {
    for (mistake, says) in [
        (Mistake::OtherSplitsEachTime, "asked twice for its splits"),
        (Mistake::IdsFromOne, "has the id 1: ids are counted from 0"),
        (Mistake::RefusesItsSplits, "refused: numbers: the input has changed"),
        (Mistake::IgnoresMax, "4 records were given where 2 were asked for"),
        (Mistake::NeverDone, "reads gave nothing, and it is not at its end"),
        (
            Mistake::OffsetBehind,
            "record 1 (counted from 0): expected 2, found 0\n  split 0, `0`, read 1 at a time, and gone on",
        ),
        (Mistake::OffsetAhead, "record 0 (counted from 0): expected 0, found 2"),
        (Mistake::OffsetOfBatch, "expected 2, found 0"),
        (Mistake::Misses, "gone on from offset 3 after 2 records"),
        (Mistake::SkipsTwice, "lines were skipped"),
        (Mistake::CannotOpen, "cannot be opened"),
    ] {
        let fault = check(mistake).expect_err(&format!("{mistake:?}"));
        assert!(fault.to_string().contains(says), "{mistake:?}: {fault}");
    }
}
