//! Plain values: read from an encoding, written as text.

use super::compound::take_text;
use super::mirror::{clear, take};
use super::{DecodeError, Input, Record, Type};
use std::io::Write;

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// Of any unsigned type up to 64 bits.
    Unsigned(u64),
    /// Of any signed type up to 64 bits.
    Signed(i64),
    /// A `u128`.
    WideUnsigned(u128),
    /// An `i128`.
    WideSigned(i128),
    /// An `f32`.
    Float32(f32),
    /// An `f64`.
    Float64(f64),
    /// A `bool`.
    Bool(bool),
    /// A `char`.
    Char(char),
    /// A `String` or a [`Text`](super::Text).
    Text(&'a str),
}

impl<'a> Scalar<'a> {
    /// The value at the front of `input`; none if the type has parts.
    pub(super) fn take(ty: &Type, input: &mut Input<'a>) -> Result<Option<Self>, DecodeError> {
        Ok(Some(match ty {
            Type::U8 => Self::Unsigned(u8::decode(input)?.into()),
            Type::U16 => Self::Unsigned(u16::decode(input)?.into()),
            Type::U32 => Self::Unsigned(u32::decode(input)?.into()),
            Type::U64 => Self::Unsigned(u64::decode(input)?),
            Type::U128 => Self::WideUnsigned(u128::decode(input)?),
            Type::I8 => Self::Signed(i8::decode(input)?.into()),
            Type::I16 => Self::Signed(i16::decode(input)?.into()),
            Type::I32 => Self::Signed(i32::decode(input)?.into()),
            Type::I64 => Self::Signed(i64::decode(input)?),
            Type::I128 => Self::WideSigned(i128::decode(input)?),
            Type::F32 => Self::Float32(f32::decode(input)?),
            Type::F64 => Self::Float64(f64::decode(input)?),
            Type::Bool => Self::Bool(bool::decode(input)?),
            Type::Char => Self::Char(char::decode(input)?),
            Type::String => Self::Text(take_text(input)?),
            Type::Text(limit) => Self::Text(take_inline(*limit as usize, input)?),
            _ => return Ok(None),
        }))
    }

    /// As people write it. Floats: the shortest text that reads back as the same number.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let written = match self {
            Self::Unsigned(number) => return digits(number, out),
            Self::Signed(number) => {
                if number < 0 {
                    out.push(b'-');
                }
                return digits(number.unsigned_abs(), out);
            }
            Self::WideUnsigned(number) => write!(out, "{number}"),
            Self::WideSigned(number) => write!(out, "{number}"),
            Self::Float32(number) => write!(out, "{number:?}"),
            Self::Float64(number) => write!(out, "{number:?}"),
            Self::Bool(is) => write!(out, "{is}"),
            Self::Char(char) => write!(out, "{char}"),
            Self::Text(text) => out.write_all(text.as_bytes()),
        };
        written.unwrap_or_else(|_| unreachable!("a Vec takes everything"));
    }
}

/// The text within its limit.
fn take_inline<'a>(limit: usize, input: &mut Input<'a>) -> Result<&'a str, DecodeError> {
    let len = usize::from(u16::decode(input)?);
    let bytes = take(input, limit)?;
    let (text, unused) = bytes.split_at_checked(len).ok_or(DecodeError::Invalid("a Text is longer than its limit"))?;
    clear(unused)?;
    std::str::from_utf8(text).map_err(|_| DecodeError::Invalid("text is not UTF-8"))
}

/// Decimal digits; half of the text that jobs write is made here, without the machinery of `fmt`.
fn digits(mut number: u64, out: &mut Vec<u8>) {
    let mut text = [0; 20];
    let mut start = text.len();
    loop {
        start -= 1;
        text[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[start..]);
}
