//! Whether bytes are a value of a type, without making one. What it accepts is what [`Record::decode`] of the type accepts;
//! it allocates nothing.

use super::mirror::{clear, take};
use super::{DecodeError, Field, Input, Record, Scalar, Type, Variant, ZERO_WIDTH_MAX};

/// Moves `input` past one value of this type.
pub(super) fn check(ty: &Type, input: &mut Input<'_>) -> Result<(), DecodeError> {
    if let Some(bytes) = plain_bytes(ty) {
        return take(input, bytes).map(|_| ());
    }
    match ty {
        Type::Option(item) if bool::decode(input)? => check(item, input),
        Type::Option(item) => clear(take(input, item.width().unwrap_or(0))?),
        Type::List(item) => {
            let count = u32::decode(input)? as usize;
            match item.width() {
                Some(0) if count > ZERO_WIDTH_MAX => Err(DecodeError::Invalid("too many items without bytes")),
                Some(0) => Ok(()),
                _ => (0..count).try_for_each(|_| check(item, input)),
            }
        }
        Type::Array(count, item) => (0..*count).try_for_each(|_| check(item, input)),
        Type::Tuple(items) => items.iter().try_for_each(|item| check(item, input)),
        Type::Struct(_, fields) => check_fields(fields, input),
        Type::Enum { variants, body_bytes, .. } => {
            let variant = variant_of(variants, input)?.1;
            within(*body_bytes, input, |body| check_fields(&variant.fields, body))
        }
        plain => Scalar::take(plain, input).map(|_| ()),
    }
}

fn check_fields(fields: &[Field], input: &mut Input<'_>) -> Result<(), DecodeError> {
    fields.iter().try_for_each(|field| check(&field.ty, input))
}

/// The index at the front of an enum's value, and the variant of it.
pub(super) fn variant_of<'a>(
    variants: &'a [Variant],
    input: &mut Input<'_>,
) -> Result<(usize, &'a Variant), DecodeError> {
    let index = usize::from(u16::decode(input)?);
    let variant = variants.get(index).ok_or(DecodeError::Invalid("an enum has no variant of this index"))?;
    Ok((index, variant))
}

/// Reads the fields of a variant out of the body that a fixed layout has; what they leave of it is zero.
pub(super) fn within<'a>(
    body_bytes: Option<u32>,
    input: &mut Input<'a>,
    read: impl FnOnce(&mut Input<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let Some(bytes) = body_bytes else { return read(input) };
    let mut body = take(input, bytes as usize)?;
    read(&mut body)?;
    clear(body)
}

/// The width of a type of which any bytes are a value.
pub(super) fn plain_bytes(ty: &Type) -> Option<usize> {
    let all = |mut types: std::slice::Iter<'_, Type>| types.all(|ty| plain_bytes(ty).is_some());
    let is_plain = match ty {
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::U128 => true,
        Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::I128 => true,
        Type::F32 | Type::F64 | Type::Array(0, _) => true,
        Type::Array(_, item) => plain_bytes(item).is_some(),
        Type::Tuple(items) => all(items.iter()),
        Type::Struct(_, fields) => fields.iter().all(|field| plain_bytes(&field.ty).is_some()),
        _ => false,
    };
    if is_plain { ty.width() } else { None }
}
