//! What becomes of a line of input that is no record, where it does not stop the job. Part of the contract of sources: a
//! [`Reader`](super::Reader) says what it has skipped, and the runtime keeps count of it.

use crate::record::Record;
use std::fmt;

/// A line that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Record)]
pub struct BadLine {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
    /// The line, without its ending and at most 200 bytes of it; what is no text is replaced by U+FFFD.
    pub text: String,
}

/// As the error of a job that it stops would say it.
impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.reason)
    }
}

/// Lines that were skipped. A checkpoint keeps them beside the offset behind them: however often a job is restarted, each
/// is counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Record)]
pub struct Skipped {
    /// How many.
    pub lines: u64,
    /// The first of them, at most [`Skipped::FIRST_MAX`].
    pub first: Vec<BadLine>,
}

impl Skipped {
    /// How many lines are kept to be shown.
    pub const FIRST_MAX: usize = 10;

    /// Whether nothing was skipped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Counts a line; `line` makes it if it is one of the first.
    pub fn skip(&mut self, line: impl FnOnce() -> BadLine) {
        self.lines += 1;
        if self.first.len() < Self::FIRST_MAX {
            self.first.push(line());
        }
    }

    /// Adds those of another part of the input: the first ones are then those with the lowest numbers, file by file.
    pub fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.first.extend(other.first.iter().cloned());
        self.first.sort();
        self.first.truncate(Self::FIRST_MAX);
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    fn line(line: u64) -> BadLine {
        BadLine { file: "f.csv".into(), line, reason: "no number".into(), text: "x".into() }
    }

    #[test]
    fn the_first_ones_are_kept_whatever_the_order_of_the_parts() {
        let (mut one, mut other) = (Skipped::default(), Skipped::default());
        (1..=8).for_each(|number| one.skip(|| line(number * 2)));
        (1..=30).for_each(|number| other.skip(|| line(number * 2 + 1)));
        assert_eq!((other.lines, other.first.len()), (30, 10));
        let (mut left, mut right) = (one.clone(), other.clone());
        left.add(&other);
        right.add(&one);
        assert_eq!(left, right);
        assert_eq!((left.lines, left.first.len(), left.first[9].line), (38, 10, 11));
        assert_eq!(left.first[0].to_string(), "f.csv:2: no number");
    }
}
