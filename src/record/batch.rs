//! Many records at once: a u32 count, then the records. Also the encoding of a `Vec`.
//!
//! A decoder believes no count: it allocates for what the bytes that are there can hold, and grows by what it has read.

use super::mirror::take;
use super::{DecodeError, Input, Record};

/// The most items without bytes that a list or a batch can have: nothing else would bound what a count makes a decoder do.
pub const ZERO_WIDTH_MAX: usize = 1 << 20;

/// Appends a batch.
///
/// ```
/// use snapring::record::{decode_batch, encode_batch};
///
/// let words = vec![("snap".to_string(), 1u64), ("ring".to_string(), 2)];
/// let mut bytes = Vec::new();
/// encode_batch(&words, &mut bytes);
/// assert_eq!(decode_batch::<(String, u64)>(&bytes)?, words);
/// assert!(decode_batch::<(String, u64)>(&bytes[..7]).is_err());
/// # Ok::<(), snapring::record::DecodeError>(())
/// ```
///
/// # Panics
/// As [`Record::encode`] of a `Vec`.
pub fn encode_batch<T: Record>(records: &[T], out: &mut Vec<u8>) {
    assert!(T::WIDTH != Some(0) || records.len() <= ZERO_WIDTH_MAX, "more than {ZERO_WIDTH_MAX} items without bytes");
    count(records.len()).encode(out);
    encode_items(records, out);
}

/// Reads a batch that takes up all of `bytes`.
///
/// # Errors
/// As [`Record::decode`]; [`DecodeError::Trailing`] if bytes are left.
pub fn decode_batch<T: Record>(bytes: Input<'_>) -> Result<Vec<T>, DecodeError> {
    from_bytes(bytes)
}

/// Overwrites `records` with the batch at the front of `input` and moves `input` past it. What `records` and its items
/// have allocated is used again.
///
/// # Errors
/// As [`Record::decode_into`].
pub fn decode_batch_into<T: Record>(records: &mut Vec<T>, input: &mut Input<'_>) -> Result<(), DecodeError> {
    decode_items(records, input)
}

/// The encoding of one record.
pub fn to_bytes<T: Record>(record: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(T::WIDTH.unwrap_or(0));
    record.encode(&mut bytes);
    bytes
}

/// The record that takes up all of `bytes`.
///
/// # Errors
/// As [`Record::decode`]; [`DecodeError::Trailing`] if bytes are left.
pub fn from_bytes<T: Record>(mut bytes: Input<'_>) -> Result<T, DecodeError> {
    let record = T::decode(&mut bytes)?;
    if bytes.is_empty() { Ok(record) } else { Err(DecodeError::Trailing { bytes: bytes.len() }) }
}

/// A length as it is encoded.
pub(super) fn count(len: usize) -> u32 {
    u32::try_from(len)
        .unwrap_or_else(|_| panic!("a text or list of {len} items does not fit a record: 2^32 are too many"))
}

/// Appends records without their count.
pub(crate) fn encode_items<T: Record>(items: &[T], out: &mut Vec<u8>) {
    match T::WIDTH {
        Some(0) => {}
        Some(width) => {
            let start = out.len();
            out.resize(start + width * items.len(), 0);
            for (bytes, item) in out[start..].chunks_exact_mut(width).zip(items) {
                item.store(bytes);
            }
        }
        None => items.iter().for_each(|item| item.encode(out)),
    }
}

/// Overwrites `items` with what is encoded at the front of `input`.
pub(super) fn decode_items<T: Record>(items: &mut Vec<T>, input: &mut Input<'_>) -> Result<(), DecodeError> {
    let count = u32::decode(input)? as usize;
    match T::WIDTH {
        Some(width @ 1..) => {
            let bytes = take(input, count.checked_mul(width).ok_or(DecodeError::Short)?)?;
            // Checked first, then built: the second pass knows its length, and where nothing can fail the first is no code.
            let chunks = bytes.chunks_exact(width);
            if let Some(error) = chunks.clone().find_map(|bytes| T::load(bytes).err()) {
                return Err(error);
            }
            items.clear();
            items
                .extend(chunks.map(|bytes| T::load(bytes).unwrap_or_else(|_| unreachable!("it has just been loaded"))));
            return Ok(());
        }
        Some(0) if count > ZERO_WIDTH_MAX => return Err(DecodeError::Invalid("too many items without bytes")),
        None if count > input.len() => return Err(DecodeError::Short),
        _ => {}
    }
    items.truncate(count);
    for item in items.iter_mut() {
        item.decode_into(input)?;
    }
    let justified = input.len() / size_of::<T>().max(1);
    items.reserve((count - items.len()).min(justified));
    while items.len() < count {
        items.push(T::decode(input)?);
    }
    Ok(())
}
