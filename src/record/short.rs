//! Byte strings as long as words are. Their lengths differ from one to the next, and each branch on a length takes the
//! processor by surprise: so all that have 4 to 16 bytes are read, written, compared and hashed by the same instructions.
//!
//! Four times four bytes cover such a string: at its begin, at its end, and next to these, which may be the same or overlap.
//! (As wyhash reads short keys, Wang Yi, 2019.)

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

// A closure for `map` would be a call in some places.
#[inline(always)]
fn at(short: &[u8], place: usize) -> u32 {
    u32::from_le_bytes(*short[place..].first_chunk().expect("within the string"))
}

/// Appends the length of a short string (a u32), and the string.
#[inline(always)]
pub(super) fn append_counted(short: &[u8], out: &mut Vec<u8>) {
    let (start, len) = (out.len(), short.len());
    out.extend_from_slice(&[0; 20]);
    let room: &mut [u8; 20] = out[start..].first_chunk_mut().expect("just made");
    room[..4].copy_from_slice(&(len as u32).to_le_bytes());
    for (at, quarter) in places(len).into_iter().zip(quarters(short)) {
        room[4 + at..8 + at].copy_from_slice(&quarter.to_le_bytes());
    }
    out.truncate(start + 4 + len);
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_any_byte_is_seen_and_all_bytes_are_appended() {
        for len in SHORT {
            let bytes: Vec<u8> = (1..=len as u8).collect();
            for at in 0..len {
                let mut other = bytes.clone();
                other[at] ^= 0x80;
                assert_ne!(quarters(&bytes), quarters(&other), "{at} of {len}");
            }
            let mut out = vec![7; 3];
            append_counted(&bytes, &mut out);
            assert_eq!(out, [[7, 7, 7, len as u8, 0, 0, 0].as_slice(), &bytes].concat());
        }
    }
}
