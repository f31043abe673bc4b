//! What a dataflow is made of: typed values with one byte layout, described by a [`Schema`].
//!
//! # The encoding
//! Used in state, logs and snapshots; a slot of a ring holds the Rust value itself. Little-endian, no padding, fields in
//! order; one value has one encoding, so that encoded keys can be compared and hashed as bytes.
//!
//! | type | bytes |
//! |---|---|
//! | integers, floats | their width (`usize` and `isize`: 8); floats bit by bit, so `0.0` and `-0.0` differ as keys |
//! | `bool`, `char` | one byte, 0 or 1; u32 |
//! | [`Text<N>`](Text) | u16 length, then N bytes, the unused ones zero |
//! | arrays, tuples, structs | their items one after the other; `Box<T>`: as `T` |
//! | `String`, `Vec` | u32 count, then the items |
//! | `Option` | one byte 0 or 1, then the item; `None` of a fixed-layout item: as many zeros as the item would take |
//! | enums, `Result` | u16 index of the variant, then its fields; if every field of every variant has a fixed layout, zeros up to the largest variant |
//!
//! A type whose every value has the same number of bytes is a *fixed-layout* type ([`Record::WIDTH`]): its values are
//! read and updated in place. All but `String`, `Vec`, what contains them, and enums with type parameters (`Result` is one) are.
//!
//! # Deriving it
//! ```
//! use snapring::record::{Record, Text, from_bytes, to_bytes};
//!
//! #[derive(Record, Debug, PartialEq)]
//! struct Order {
//!     account: u64,
//!     side: Side,
//!     limit: Option<i64>,
//!     symbol: Text<8>,
//! }
//!
//! #[derive(Record, Debug, PartialEq)]
//! enum Side {
//!     Buy,
//!     Sell,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let order = Order { account: 7, side: Side::Sell, limit: None, symbol: "SNAP".parse()? };
//! assert_eq!(Order::WIDTH, Some(8 + 2 + 9 + 10)); // so it is kept in place in a state
//! assert_eq!(from_bytes::<Order>(&to_bytes(&order))?, order);
//! assert_eq!(
//!     Order::schema().to_string(),
//!     "Order { account: u64, side: Side { Buy, Sell }, limit: Option<i64>, symbol: Text<8> }"
//! );
//! # Ok(()) }
//! ```
//! # A type that changes
//! Values that were written by an older version of a type are migrated by the names of its fields and variants: see
//! [`Evolution`]. Where names do not suffice, attributes say more; the schema does not change by them:
//!
//! ```
//! use snapring::record::{Evolution, Record, from_bytes, to_bytes};
//!
//! mod then {
//!     #[derive(snapring::Record)]
//!     pub struct Order { pub qty: u32, pub venue: Venue }
//!     #[derive(snapring::Record)]
//!     pub enum Venue { Nyse }
//! }
//!
//! #[derive(Record, Debug, PartialEq)]
//! struct Order {
//!     #[record(was = "qty")]
//!     quantity: u64,
//!     venue: Venue,
//!     #[record(default = 100)]
//!     lot: u32,
//! }
//!
//! #[derive(Record, Debug, PartialEq)]
//! enum Venue {
//!     Arca,
//!     #[record(was = "Nyse")]
//!     NewYork,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut now = Vec::new();
//! let evolution = Evolution::to::<Order>(&then::Order::schema().ty)?;
//! evolution.apply(&to_bytes(&then::Order { qty: 7, venue: then::Venue::Nyse }), &mut now)?;
//! assert_eq!(from_bytes::<Order>(&now)?, Order { quantity: 7, venue: Venue::NewYork, lot: 100 });
//! # let _ = Venue::Arca;
//! # Ok(()) }
//! ```
//! Who has the bytes and their [`Schema`], but not the type, reads them as a [`Datum`].
//!
//! Unions, references and lifetimes are refused with the reason, and so are types that contain themselves: they would
//! have no schema of finite size.
//! ```compile_fail
//! use snapring::record::Record;
//! #[derive(Record)]
//! struct Line<'a>(&'a str);
//! ```
//! ```compile_fail
//! use snapring::record::Record;
//! #[derive(Record)]
//! struct Tree { children: Vec<Tree> }
//! ```
//! ```compile_fail
//! use snapring::record::Record;
//! #[derive(Record)]
//! union Bits { float: f32, int: u32 }
//! ```
//! ```compile_fail,E0277
//! use snapring::record::Record;
//! #[derive(Record)]
//! struct Timed { at: std::time::Instant }
//! ```

mod batch;
mod check;
mod compound;
mod dynamic;
mod evolution;
mod inline_text;
mod mirror;
mod number;
mod result;
mod scalar;
mod schema;
mod schema_codec;
mod short;
pub mod text;
mod tuple;

pub use crate::error::DecodeError;
pub(crate) use batch::encode_items;
pub use batch::{ZERO_WIDTH_MAX, decode_batch, decode_batch_into, encode_batch, from_bytes, to_bytes};
pub use dynamic::Datum;
pub use evolution::{Evolution, Hints, Mismatch};
pub use inline_text::{Text, TextTooLong};
pub use mirror::Mirror;
pub use scalar::Scalar;
pub use schema::{Field, Schema, Type, Variant};
#[doc(hidden)]
pub use short::{Padded, Short};
pub(crate) use short::{SHORT, ends, quarters};
pub use snapring_derive::Record;
use zerocopy::FromBytes;

/// What the derived code calls.
#[doc(hidden)]
pub mod __private {
    pub use super::mirror::{Pair, body, body_mut, decode_fixed, depth, encode_fixed, max, peek_index, take, width};
    pub use super::schema::{enum_of, struct_of};
    pub use zerocopy::little_endian::U16;
}

/// The unread rest of an encoded byte string.
pub type Input<'a> = &'a [u8];

/// How deep types may nest ([`Record::DEPTH`]).
pub const DEPTH_MAX: usize = 64;

/// A value that can travel through a dataflow and be kept in its state. Derive it: see the [module](self).
///
/// Written by hand, for a type without fixed layout: `WIDTH` is `None`, `type Mirror = ()`, and `schema`, `encode` and
/// `decode` agree with each other.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a record",
    label = "cannot travel through a dataflow or be kept in its state",
    note = "for a type of your own: `#[derive(snapring::Record)]`",
    note = "records own their data: instead of `&str` take `String` or `Text<N>`, instead of a slice `Vec` or an array"
)]
pub trait Record: Sized + Send + 'static {
    /// The number of bytes of every value, if all values have the same (a fixed-layout type). Values of other types take
    /// at least one byte.
    const WIDTH: Option<usize>;

    /// How deep the type nests: 1 for a number, 1 more for each struct, enum, tuple or container around it.
    const DEPTH: usize = 1;

    /// What lies over the bytes of a fixed-layout value: `size_of::<Mirror>()` is `WIDTH`. Of no meaning for other types.
    type Mirror: Mirror;

    /// Names, types and offsets.
    fn schema() -> Schema;

    /// What attributes say about the past of this type and of those that it holds; the schema does not change by it.
    #[doc(hidden)]
    fn hints(hints: &mut Hints) {
        let _ = hints;
    }

    /// Appends the encoding.
    ///
    /// # Panics
    /// A `String` or `Vec` in it has 2³² items or more, or a `Vec` of items without bytes more than [`ZERO_WIDTH_MAX`].
    fn encode(&self, out: &mut Vec<u8>);

    /// The encoding as a number, where that is faster: as if it were a fixed layout.
    #[doc(hidden)]
    #[inline(always)]
    fn short(&self) -> Option<Short> {
        None
    }

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

    /// Fixed-layout types: writes the value, every byte of it.
    fn to_mirror(&self, mirror: &mut Self::Mirror) {
        let _ = mirror;
    }

    /// Fixed-layout types: reads the value.
    ///
    /// # Errors
    /// The bytes are not a value, or the type has no fixed layout.
    fn from_mirror(mirror: &Self::Mirror) -> Result<Self, DecodeError> {
        let _ = mirror;
        Err(DecodeError::Invalid("the type has no fixed layout"))
    }

    /// Fixed-layout types: writes the encoding to exactly `WIDTH` bytes.
    ///
    /// # Panics
    /// There are more or fewer bytes, or the type has no fixed layout.
    #[inline]
    fn store(&self, bytes: &mut [u8]) {
        assert!(const { mirror::is_fixed::<Self>() }, "only a record of fixed layout can be stored");
        let mirror = Self::Mirror::mut_from_bytes(bytes);
        self.to_mirror(mirror.unwrap_or_else(|_| panic!("a record is stored to exactly `WIDTH` bytes")));
    }

    /// Fixed-layout types: reads the encoding from exactly `WIDTH` bytes.
    ///
    /// # Errors
    /// The bytes are not a value, or not `WIDTH` of them, or the type has no fixed layout.
    #[inline]
    fn load(bytes: &[u8]) -> Result<Self, DecodeError> {
        if const { !mirror::is_fixed::<Self>() } {
            return Err(DecodeError::Invalid("the type has no fixed layout"));
        }
        Self::from_mirror(Self::Mirror::ref_from_bytes(bytes).map_err(|_| DecodeError::Short)?)
    }
}
