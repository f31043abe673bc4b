//! Records made of others without a name of their own: `String`, `Vec`, `Option`, `Box`, arrays.

use super::batch::{count, decode_items, encode_items};
use super::mirror::{Pair, clear, decode_fixed, depth, encode_fixed, take};
use super::short::Short;
use super::{DecodeError, Hints, Input, Record, Schema, Type};
use zerocopy::{FromZeros, IntoBytes};

/// The text at the front of an input.
pub(super) fn take_text<'a>(input: &mut Input<'a>) -> Result<&'a str, DecodeError> {
    let len = u32::decode(input)? as usize;
    std::str::from_utf8(take(input, len)?).map_err(|_| DecodeError::Invalid("text is not UTF-8"))
}

/// Appends a text: without a call, if it is a word.
#[inline]
pub(super) fn put_text(text: &str, out: &mut Vec<u8>) {
    if let Some(short) = Short::of_text(text.as_bytes()) {
        let padded = short.padded();
        out.extend_from_slice(padded.whole());
        return out.truncate(out.len() - (padded.whole().len() - short.len()));
    }
    count(text.len()).encode(out);
    out.extend_from_slice(text.as_bytes());
}

impl Record for String {
    const WIDTH: Option<usize> = None;
    type Mirror = ();

    fn schema() -> Schema {
        Schema::new(Type::String)
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        put_text(self, out);
    }

    #[inline(always)]
    fn short(&self) -> Option<Short> {
        Short::of_text(self.as_bytes())
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        Ok(take_text(input)?.to_owned())
    }

    fn decode_into(&mut self, input: &mut Input<'_>) -> Result<(), DecodeError> {
        let text = take_text(input)?;
        self.clear();
        self.push_str(text);
        Ok(())
    }
}

impl<T: Record> Record for Vec<T> {
    const WIDTH: Option<usize> = None;
    const DEPTH: usize = depth(&[T::DEPTH]);
    type Mirror = ();

    fn schema() -> Schema {
        Schema::new(Type::List(Box::new(T::schema().ty)))
    }

    fn hints(hints: &mut Hints) {
        T::hints(hints);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        super::encode_batch(self, out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let mut items = Vec::new();
        decode_items(&mut items, input)?;
        Ok(items)
    }

    fn decode_into(&mut self, input: &mut Input<'_>) -> Result<(), DecodeError> {
        decode_items(self, input)
    }
}

impl<T: Record> Record for Option<T> {
    const WIDTH: Option<usize> = super::mirror::width(&[Some(1), T::WIDTH]);
    const DEPTH: usize = depth(&[T::DEPTH]);
    type Mirror = Pair<u8, T::Mirror>;

    fn schema() -> Schema {
        Schema::new(Type::Option(Box::new(T::schema().ty)))
    }

    fn hints(hints: &mut Hints) {
        T::hints(hints);
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        if Self::WIDTH.is_some() {
            return encode_fixed(self, out);
        }
        self.is_some().encode(out);
        if let Some(item) = self {
            item.encode(out);
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        if Self::WIDTH.is_some() {
            return decode_fixed(input);
        }
        Ok(if bool::decode(input)? { Some(T::decode(input)?) } else { None })
    }

    #[inline]
    fn decode_into(&mut self, input: &mut Input<'_>) -> Result<(), DecodeError> {
        match self {
            Some(item) if Self::WIDTH.is_none() && input.first() == Some(&1) => {
                take(input, 1)?;
                item.decode_into(input)
            }
            _ => {
                *self = Self::decode(input)?;
                Ok(())
            }
        }
    }

    #[inline]
    fn to_mirror(&self, mirror: &mut Self::Mirror) {
        mirror.0 = u8::from(self.is_some());
        match self {
            Some(item) => item.to_mirror(&mut mirror.1),
            None => mirror.1.zero(),
        }
    }

    #[inline]
    fn from_mirror(mirror: &Self::Mirror) -> Result<Self, DecodeError> {
        if bool::from_mirror(&mirror.0)? {
            return T::from_mirror(&mirror.1).map(Some);
        }
        clear(mirror.1.as_bytes())?;
        Ok(None)
    }
}

impl<T: Record> Record for Box<T> {
    const WIDTH: Option<usize> = T::WIDTH;
    const DEPTH: usize = T::DEPTH;
    type Mirror = T::Mirror;

    fn schema() -> Schema {
        T::schema()
    }

    fn hints(hints: &mut Hints) {
        T::hints(hints);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        T::encode(self, out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        T::decode(input).map(Box::new)
    }

    fn decode_into(&mut self, input: &mut Input<'_>) -> Result<(), DecodeError> {
        T::decode_into(self, input)
    }

    fn to_mirror(&self, mirror: &mut Self::Mirror) {
        T::to_mirror(self, mirror);
    }

    fn from_mirror(mirror: &Self::Mirror) -> Result<Self, DecodeError> {
        T::from_mirror(mirror).map(Box::new)
    }
}

/// An array whose items may turn out not to be there.
#[inline]
fn try_array<T, const N: usize>(mut item: impl FnMut(usize) -> Result<T, DecodeError>) -> Result<[T; N], DecodeError> {
    let mut failed = Ok(());
    let items: [Option<T>; N] = std::array::from_fn(|i| match failed {
        Ok(()) => item(i).map_err(|error| failed = Err(error)).ok(),
        Err(_) => None,
    });
    failed?;
    Ok(items.map(|item| item.unwrap_or_else(|| unreachable!("no item failed"))))
}

impl<T: Record, const N: usize> Record for [T; N] {
    const WIDTH: Option<usize> = match T::WIDTH {
        Some(bytes) => Some(bytes * N),
        None if N == 0 => Some(0),
        None => None,
    };
    const DEPTH: usize = depth(&[T::DEPTH]);
    type Mirror = [T::Mirror; N];

    fn schema() -> Schema {
        let len = u32::try_from(N).unwrap_or_else(|_| panic!("an array in a record has fewer than 2^32 items"));
        Schema::new(Type::Array(len, Box::new(T::schema().ty)))
    }

    fn hints(hints: &mut Hints) {
        T::hints(hints);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        encode_items(self, out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        if Self::WIDTH.is_some() { decode_fixed(input) } else { try_array(|_| T::decode(input)) }
    }

    fn decode_into(&mut self, input: &mut Input<'_>) -> Result<(), DecodeError> {
        self.iter_mut().try_for_each(|item| item.decode_into(input))
    }

    #[inline]
    fn to_mirror(&self, mirror: &mut Self::Mirror) {
        for (item, mirror) in self.iter().zip(mirror) {
            item.to_mirror(mirror);
        }
    }

    #[inline]
    fn from_mirror(mirror: &Self::Mirror) -> Result<Self, DecodeError> {
        // All are looked at before any is taken: of numbers nothing is left of that but a copy, of as few bytes as are used.
        // Keeping them with whether they are there, until all are, would cost many times as much.
        mirror.iter().try_for_each(|item| T::from_mirror(item).map(drop))?;
        let item = |i: usize| T::from_mirror(&mirror[i]).unwrap_or_else(|_| unreachable!("it was a value just now"));
        Ok(std::array::from_fn(item))
    }
}
