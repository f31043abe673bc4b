//! How a [`Schema`] is written into a snapshot, and read from one that may be hostile.
//!
//! A version byte (1), then the type: a tag byte (the order of [`Type`], from 0), then its parts. Counts and lengths are
//! u32, names u32 length and UTF-8. A field is name, type, offset (u32; 2³²-1 for none); an enum is name, body bytes (u32;
//! 2³²-1 for none), variants. Offsets follow from the types and are checked: a reader may rely on them.

use super::compound::{put_text, take_text};
use super::mirror::take;
use super::schema::fields_of;
use super::{DEPTH_MAX, DecodeError, Field, Input, Record, Schema, Type, Variant};

const VERSION: u8 = 1;
/// No offset, no fixed layout.
const NONE: u32 = u32::MAX;
/// A name that is longer is not one: it would only make small inputs print large.
const NAME_BYTES_MAX: usize = 4096;

/// The types without parts, by tag.
const SIMPLE: [Type; 15] = [
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::U128,
    Type::I8,
    Type::I16,
    Type::I32,
    Type::I64,
    Type::I128,
    Type::F32,
    Type::F64,
    Type::Bool,
    Type::Char,
    Type::String,
];
const TEXT: u8 = 15;
const OPTION: u8 = 16;
const LIST: u8 = 17;
const ARRAY: u8 = 18;
const TUPLE: u8 = 19;
const STRUCT: u8 = 20;
const ENUM: u8 = 21;

impl Schema {
    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        put_type(&self.ty, out);
    }

    /// The encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Reads a schema from the front of `input` and moves `input` past it.
    ///
    /// # Errors
    /// The bytes end too early, come from a newer version, nest deeper than [`DEPTH_MAX`], or contradict themselves. What
    /// is accepted is safe to walk along.
    pub fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        if u8::decode(input)? != VERSION {
            return Err(DecodeError::Invalid(
                "the schema was written by a newer version of snapring: read it with that",
            ));
        }
        Ok(Self::new(take_type(input, DEPTH_MAX)?))
    }
}

fn put_type(ty: &Type, out: &mut Vec<u8>) {
    match ty {
        Type::Text(limit) => put_tagged(TEXT, &[*limit], out),
        Type::Option(item) => {
            out.push(OPTION);
            put_type(item, out);
        }
        Type::List(item) => {
            out.push(LIST);
            put_type(item, out);
        }
        Type::Array(len, item) => {
            put_tagged(ARRAY, &[*len], out);
            put_type(item, out);
        }
        Type::Tuple(items) => {
            put_tagged(TUPLE, &[items.len() as u32], out);
            items.iter().for_each(|item| put_type(item, out));
        }
        Type::Struct(name, fields) => {
            out.push(STRUCT);
            put_text(name, out);
            put_fields(fields, out);
        }
        Type::Enum { name, variants, body_bytes } => {
            out.push(ENUM);
            put_text(name, out);
            body_bytes.unwrap_or(NONE).encode(out);
            (variants.len() as u32).encode(out);
            for variant in variants {
                put_text(&variant.name, out);
                put_fields(&variant.fields, out);
            }
        }
        simple => out.extend(SIMPLE.iter().position(|ty| ty == simple).map(|tag| tag as u8)),
    }
}

fn put_tagged(tag: u8, numbers: &[u32], out: &mut Vec<u8>) {
    out.push(tag);
    numbers.iter().for_each(|number| number.encode(out));
}

fn put_fields(fields: &[Field], out: &mut Vec<u8>) {
    (fields.len() as u32).encode(out);
    for field in fields {
        put_text(&field.name, out);
        put_type(&field.ty, out);
        field.offset_bytes.unwrap_or(NONE).encode(out);
    }
}

fn take_type(input: &mut Input<'_>, depth: usize) -> Result<Type, DecodeError> {
    let depth = depth.checked_sub(1).ok_or(DecodeError::Invalid("the schema nests too deeply"))?;
    let tag = u8::decode(input)?;
    let ty = match tag {
        TEXT => Type::Text(u32::from(u16::try_from(u32::decode(input)?).map_err(|_| CONTRADICTION)?)),
        OPTION => Type::Option(Box::new(take_type(input, depth)?)),
        LIST => Type::List(Box::new(take_type(input, depth)?)),
        ARRAY => Type::Array(u32::decode(input)?, Box::new(take_type(input, depth)?)),
        TUPLE => Type::Tuple(take_many(input, |input| take_type(input, depth))?),
        STRUCT => Type::Struct(take_name(input)?, take_fields(input, 0, depth)?),
        ENUM => take_enum(input, depth)?,
        tag => SIMPLE.get(usize::from(tag)).ok_or(DecodeError::Invalid("the schema has an unknown type"))?.clone(),
    };
    match ty.width() {
        Some(width) if u32::try_from(width).is_err() => Err(DecodeError::Invalid("the schema has a type above 4 GiB")),
        _ => Ok(ty),
    }
}

const CONTRADICTION: DecodeError = DecodeError::Invalid("the schema contradicts itself");

fn take_enum(input: &mut Input<'_>, depth: usize) -> Result<Type, DecodeError> {
    let name = take_name(input)?;
    let body_bytes = Some(u32::decode(input)?).filter(|bytes| *bytes != NONE);
    let variants =
        take_many(input, |input| Ok(Variant { name: take_name(input)?, fields: take_fields(input, 2, depth)? }))?;
    if let Some(body_bytes) = body_bytes {
        let end = |field: &Field| Some(field.offset_bytes? as usize + field.ty.width()?);
        let fits = |field: &Field| end(field).is_some_and(|end| end <= body_bytes as usize + 2);
        if !variants.iter().flat_map(|variant| &variant.fields).all(fits) {
            return Err(CONTRADICTION);
        }
    }
    Ok(Type::Enum { name, variants, body_bytes })
}

fn take_fields(input: &mut Input<'_>, start: usize, depth: usize) -> Result<Vec<Field>, DecodeError> {
    let mut offsets = Vec::new();
    let parts = take_many(input, |input| {
        let part = (take_name(input)?, take_type(input, depth)?);
        offsets.push(Some(u32::decode(input)?).filter(|offset| *offset != NONE));
        Ok(part)
    })?;
    let fields = fields_of(start, parts);
    if fields.iter().map(|field| field.offset_bytes).ne(offsets) {
        return Err(CONTRADICTION);
    }
    Ok(fields)
}

fn take_name(input: &mut Input<'_>) -> Result<String, DecodeError> {
    let name = take_text(input)?;
    if name.len() > NAME_BYTES_MAX {
        return Err(DecodeError::Invalid("the schema has a name of more than 4096 bytes"));
    }
    Ok(name.to_owned())
}

/// A count, then so many: each takes at least a byte, and the list grows by what has been read.
fn take_many<T>(
    input: &mut Input<'_>,
    mut one: impl FnMut(&mut Input<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = u32::decode(input)?;
    take(&mut &input[..], count as usize)?;
    let mut many = Vec::new();
    for _ in 0..count {
        many.push(one(input)?);
    }
    Ok(many)
}
