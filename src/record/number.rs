//! Records of one machine word: integers, floats, `bool`, `char`.

use super::mirror::decode_fixed;
use super::{DecodeError, Input, Record, Schema, Type};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{F32, F64, I16, I32, I64, I128, U16, U32, U64, U128};

/// `$back` turns what lies in memory into a value, or says why it is none.
macro_rules! number {
    ($($t:ty as $ty:ident in $mirror:ty: |$this:ident| $there:expr, |$raw:ident| $back:expr;)*) => {$(
        impl Record for $t {
            const WIDTH: Option<usize> = Some(size_of::<$mirror>());
            type Mirror = $mirror;

            fn schema() -> Schema {
                Schema::new(Type::$ty)
            }

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let $this = *self;
                out.extend_from_slice(<$mirror>::from($there).as_bytes());
            }

            #[inline]
            fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
                decode_fixed(input)
            }

            #[inline]
            fn to_mirror(&self, mirror: &mut $mirror) {
                let $this = *self;
                *mirror = <$mirror>::from($there);
            }

            #[inline]
            fn from_mirror(mirror: &$mirror) -> Result<Self, DecodeError> {
                let $raw = *mirror;
                $back
            }
        }
    )*};
}

number! {
    u8 as U8 in u8: |value| value, |raw| Ok(raw);
    i8 as I8 in i8: |value| value, |raw| Ok(raw);
    u16 as U16 in U16: |value| value, |raw| Ok(raw.get());
    u32 as U32 in U32: |value| value, |raw| Ok(raw.get());
    u64 as U64 in U64: |value| value, |raw| Ok(raw.get());
    u128 as U128 in U128: |value| value, |raw| Ok(raw.get());
    usize as U64 in U64: |value| value as u64, |raw| Ok(raw.get() as usize);
    i16 as I16 in I16: |value| value, |raw| Ok(raw.get());
    i32 as I32 in I32: |value| value, |raw| Ok(raw.get());
    i64 as I64 in I64: |value| value, |raw| Ok(raw.get());
    i128 as I128 in I128: |value| value, |raw| Ok(raw.get());
    isize as I64 in I64: |value| value as i64, |raw| Ok(raw.get() as isize);
    f32 as F32 in F32: |value| value, |raw| Ok(raw.get());
    f64 as F64 in F64: |value| value, |raw| Ok(raw.get());
    bool as Bool in u8: |value| value, |raw| match raw {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::Invalid("a bool is 0 or 1")),
    };
    char as Char in U32: |value| value as u32,
        |raw| char::from_u32(raw.get()).ok_or(DecodeError::Invalid("no Unicode character has this number"));
}
