//! Byte strings as long as words are. Their lengths differ from one to the next, and each branch on a length takes the
//! processor by surprise: so all that have 4 to 16 bytes are read, compared and hashed by the same instructions.
//!
//! Four times four bytes cover such a string: at its begin, at its end, and next to these, which may be the same or overlap.
//! (As wyhash reads short keys, Wang Yi, 2019.)

use std::hint::select_unpredictable;
use std::ops::RangeInclusive;

/// How many bytes a short string has.
pub(crate) const SHORT: RangeInclusive<usize> = 4..=16;

/// Where four times four bytes lie that cover a short string of so many bytes.
#[inline(always)]
fn places(len: usize) -> [usize; 4] {
    let step = if len < 8 { 0 } else { 4 };
    [0, step, len - 4 - step, len - 4]
}

/// Four times four bytes that cover a short string, as numbers. Strings of one length are equal if these are.
#[inline(always)]
pub(crate) fn quarters(short: &[u8]) -> [u32; 4] {
    debug_assert!(SHORT.contains(&short.len()));
    let [first, second, third, last] = places(short.len());
    [at(short, first), at(short, second), at(short, third), at(short, last)]
}

/// A text of one to three letters; of a longer one, no matter what.
#[inline(always)]
fn spelled(text: &[u8]) -> u64 {
    let letter = |at: usize| u64::from(text[at]) << (8 * (at % 4));
    letter(0) | letter(text.len() / 2) | letter(text.len() - 1)
}

#[inline(always)]
fn widened([first, second, third, last]: [u32; 4]) -> [u64; 4] {
    [first.into(), second.into(), third.into(), last.into()]
}

/// The first and the last eight bytes of a short string; of less than eight bytes in all, four.
#[inline(always)]
pub(crate) fn ends(short: &[u8]) -> [u64; 2] {
    let [first, second, third, last] = widened(quarters(short));
    if short.len() < 8 { [first, last] } else { [first | second << 32, third | last << 32] }
}

// A closure for `map` would be a call in some places.
#[inline(always)]
fn at(short: &[u8], place: usize) -> u32 {
    u32::from_le_bytes(*short[place..].first_chunk().expect("within the string"))
}

/// An encoding of 4 to 16 bytes, as numbers: in registers all the way from a record to its hash.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// Its bytes, and zeros behind them.
    bytes: [u64; 2],
    len: usize,
    ends: [u64; 2],
}

impl Short {
    /// That of a text, if it has one to twelve bytes: how many (a u32), and these.
    #[inline(always)]
    pub(super) fn of_text(text: &[u8]) -> Option<Self> {
        let (len, count) = (text.len(), text.len() as u64);
        if !(1..=12).contains(&len) {
            return None;
        }
        // Texts of three letters and of four are as frequent: for the sake of the same way for both, the former are spelled
        // out, and of them nothing is among the four times four bytes.
        let [first, _, third, last] = widened(quarters(select_unpredictable(len < 4, &[0; 4], text)));
        let letters = select_unpredictable(len < 4, spelled(text), first);
        let start = count | letters << 32;
        // What is behind the first four letters, and what is in front of the last four.
        let is_half = len < 8;
        let end = select_unpredictable(is_half, last, third | last << 32);
        let behind = end >> (8 * (select_unpredictable(is_half, 8, 12) - len));
        let before = select_unpredictable(is_half, u64::from((start >> (8 * (len % 4))) as u32), third);
        let ends = [select_unpredictable(len < 4, count, start), before | last << 32];
        Some(Self { bytes: [start, behind], len: 4 + len, ends })
    }

    #[inline(always)]
    pub(crate) fn padded(self) -> Padded {
        let [start, behind] = self.bytes;
        Padded { bytes: zerocopy::transmute!([start.to_le(), behind.to_le()]), len: self.len }
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// See [`ends`].
    #[inline(always)]
    pub(crate) fn ends(self) -> [u64; 2] {
        self.ends
    }
}

/// The bytes of a short string, with zeros behind them.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Padded {
    bytes: [u8; 16],
    len: usize,
}

impl Padded {
    /// With the zeros.
    #[inline(always)]
    pub(super) fn whole(&self) -> &[u8; 16] {
        &self.bytes
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// 0 if other bytes begin with these, of which there are some.
    #[inline(always)]
    pub(crate) fn differs_from(self, other: [u8; 16]) -> u64 {
        let differ = u128::from_le_bytes(self.bytes) ^ u128::from_le_bytes(other);
        let differ = differ << ((128 - 8 * self.len) % 128);
        differ as u64 | (differ >> 64) as u64
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_registers_is_its_encoding() {
        for len in 0..=20 {
            let text: String = ('a'..).take(len).collect();
            let encoded = [&(len as u32).to_le_bytes(), text.as_bytes()].concat();
            assert_eq!(crate::record::to_bytes(&text), encoded);
            let Some(short) = Short::of_text(text.as_bytes()) else {
                assert!(len == 0 || len > 12);
                continue;
            };
            assert_eq!((short.padded().bytes(), short.len()), (encoded.as_slice(), 4 + len));
            assert_eq!(short.ends(), ends(&encoded));
        }
    }

    #[test]
    fn a_change_of_any_byte_is_seen() {
        for len in SHORT {
            let bytes: Vec<u8> = (1..=len as u8).collect();
            for at in 0..len {
                let mut other = bytes.clone();
                other[at] ^= 0x80;
                assert_ne!(quarters(&bytes), quarters(&other), "{at} of {len}");
            }
        }
    }
}
