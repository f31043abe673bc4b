//! The memory form of fixed-layout values: a tree of `repr(C)` pairs over zerocopy's little-endian fields of alignment 1.
//!
//! A mirror has no padding and accepts every byte pattern, so pages can be read and written in place without unsafe code,
//! here or in the crate that derives [`Record`]. What a byte pattern *means* is decided by [`Record::from_mirror`]; this
//! file knows nothing of it.

use super::{DecodeError, Input, Record};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What can be laid over bytes at any address. Implemented by whatever zerocopy knows to be so.
pub trait Mirror: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Send + 'static {}
impl<M: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Send + 'static> Mirror for M {}

/// Two mirrors, one after the other. Structs and tuples are trees of these.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Pair<A, B>(pub A, pub B);

/// The width of values one after the other.
pub const fn width(parts: &[Option<usize>]) -> Option<usize> {
    let (mut sum, mut i) = (0, 0);
    while i < parts.len() {
        match parts[i] {
            Some(bytes) => sum += bytes,
            None => return None,
        }
        i += 1;
    }
    Some(sum)
}

/// The largest of some sizes.
pub const fn max(sizes: &[usize]) -> usize {
    let (mut max, mut i) = (0, 0);
    while i < sizes.len() {
        if sizes[i] > max {
            max = sizes[i];
        }
        i += 1;
    }
    max
}

/// The depth of a type around others.
pub const fn depth(parts: &[usize]) -> usize {
    let depth = 1 + max(parts);
    assert!(depth <= super::DEPTH_MAX, "the types of a record nest too deeply");
    depth
}

/// Whether the type has a fixed layout. That its mirror is as wide as it says is checked when it is compiled.
pub const fn is_fixed<T: Record>() -> bool {
    match T::WIDTH {
        Some(width) => {
            assert!(width == size_of::<T::Mirror>(), "the mirror of a fixed-layout record is `WIDTH` bytes");
            true
        }
        None => false,
    }
}

/// Takes bytes from the front of an input.
#[inline]
pub fn take<'a>(input: &mut Input<'a>, bytes: usize) -> Result<&'a [u8], DecodeError> {
    let (head, rest) = input.split_at_checked(bytes).ok_or(DecodeError::Short)?;
    *input = rest;
    Ok(head)
}

/// [`Record::encode`] of a fixed-layout type.
#[inline]
pub fn encode_fixed<T: Record>(value: &T, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + size_of::<T::Mirror>(), 0);
    value.store(&mut out[start..]);
}

/// [`Record::decode`] of a fixed-layout type.
#[inline]
pub fn decode_fixed<T: Record>(input: &mut Input<'_>) -> Result<T, DecodeError> {
    T::load(take(input, size_of::<T::Mirror>())?)
}

/// The index of the variant at the front of an encoded enum.
#[inline]
pub fn peek_index(input: Input<'_>) -> Option<u16> {
    input.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

/// The fields of a variant within the body of a fixed-layout enum; the bytes behind them are cleared, so that equal
/// values have equal bytes.
#[inline]
pub fn body_mut<M: Mirror>(body: &mut [u8]) -> &mut M {
    let (fields, rest) = M::mut_from_prefix(body).unwrap_or_else(|_| unreachable!("a body holds its largest variant"));
    rest.fill(0);
    fields
}

/// The fields of a variant within the body of a fixed-layout enum.
#[inline]
pub fn body<M: Mirror>(body: &[u8]) -> Result<&M, DecodeError> {
    let (fields, rest) = M::ref_from_prefix(body).map_err(|_| DecodeError::Short)?;
    clear(rest)?;
    Ok(fields)
}

/// Bytes that no value uses are zero: one value has one encoding.
#[inline]
pub fn clear(unused: &[u8]) -> Result<(), DecodeError> {
    // Word by word, and to the end whatever there is: it is as a rule all zeros, and every value goes through here.
    let (words, rest) = unused.as_chunks();
    let words = words.iter().fold(0, |any, word| any | u64::from_ne_bytes(*word));
    let any = rest.iter().fold(words, |any, byte| any | u64::from(*byte));
    if any == 0 { Ok(()) } else { Err(DecodeError::Invalid("unused bytes are not zero")) }
}
