//! What a dataflow is made of: typed values with one byte layout, described by a [`Schema`].
//!
//! Encoding (used in state, logs and snapshots; a slot of a ring holds the Rust value itself): little-endian,
//! no padding, fields in order. Integers and floats: their width. `bool`: one byte, 0 or 1. `char`: u32.
//! `Text<N>`: u16 length, then N bytes, the unused ones zero. Arrays and tuples: their items one after the other.
//! `String`, `Vec`: u32 count, then the items. `Option`: one byte 0 or 1, then the item. Enums: u16 index of the variant, then
//! its fields. A type whose every value has the same number of bytes is a *fixed-layout* type ([`Record::WIDTH`]).

mod schema;

pub use crate::error::DecodeError;
pub use schema::{Field, Schema, Type, Variant};

/// The unread rest of an encoded byte string.
pub type Input<'a> = &'a [u8];

/// A value that can travel through a dataflow and be kept in its state.
pub trait Record: Sized + Send + 'static {
    /// The number of bytes of every value, if all values have the same (a fixed-layout type).
    const WIDTH: Option<usize>;

    /// Names, types and offsets.
    fn schema() -> Schema;

    /// Appends the encoding.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads one value from the front of `input` and moves `input` past it.
    ///
    /// # Errors
    /// The bytes end too early or do not form a value. Never panics, never allocates more than the bytes there are justify.
    fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError>;

    /// Overwrites `self` with the value at the front of `input`, so that what `self` has allocated is used again.
    ///
    /// # Errors
    /// As [`Record::decode`]; `self` is then any valid value.
    fn decode_into(&mut self, input: &mut Input<'_>) -> Result<(), DecodeError> {
        *self = Self::decode(input)?;
        Ok(())
    }

    /// Fixed-layout types: writes the encoding to exactly `WIDTH` bytes.
    fn store(&self, bytes: &mut [u8]);

    /// Fixed-layout types: reads the encoding from exactly `WIDTH` bytes.
    ///
    /// # Errors
    /// The bytes are not a value.
    fn load(bytes: &[u8]) -> Result<Self, DecodeError>;
}

macro_rules! number {
    ($($t:ty => $ty:ident),*) => {$(
        impl Record for $t {
            const WIDTH: Option<usize> = Some(size_of::<$t>());
            fn schema() -> Schema { Schema::new(Type::$ty) }
            fn encode(&self, out: &mut Vec<u8>) { out.extend_from_slice(&self.to_le_bytes()); }
            fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
                let (head, rest) = input.split_first_chunk().ok_or(DecodeError::Short)?;
                *input = rest;
                Ok(Self::from_le_bytes(*head))
            }
            #[inline]
            fn store(&self, bytes: &mut [u8]) { bytes.copy_from_slice(&self.to_le_bytes()); }
            #[inline]
            fn load(bytes: &[u8]) -> Result<Self, DecodeError> {
                Ok(Self::from_le_bytes(bytes.try_into().map_err(|_| DecodeError::Short)?))
            }
        }
    )*};
}
number!(u8 => U8, u16 => U16, u32 => U32, u64 => U64, u128 => U128, i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    i128 => I128, f32 => F32, f64 => F64);

impl Record for String {
    const WIDTH: Option<usize> = None;
    fn schema() -> Schema {
        Schema::new(Type::String)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        (self.len() as u32).encode(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let len = u32::decode(input)? as usize;
        let (head, rest) = input.split_at_checked(len).ok_or(DecodeError::Short)?;
        *input = rest;
        Ok(std::str::from_utf8(head).map_err(|_| DecodeError::Invalid("text is not UTF-8"))?.to_owned())
    }
    fn store(&self, _: &mut [u8]) {
        unreachable!("String has no fixed layout")
    }
    fn load(_: &[u8]) -> Result<Self, DecodeError> {
        unreachable!("String has no fixed layout")
    }
}
