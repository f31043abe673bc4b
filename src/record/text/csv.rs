//! Encoded bytes as the cells of a CSV row.

use super::json::{Json, take_option};
use super::{columns_of, peel};
use crate::record::{DecodeError, Input, Scalar, Schema, Type};

/// The names of the columns that [`write_csv`] writes: those of the fields; `0`, `1`, … for a tuple; `value` for a record
/// that is a single cell.
#[must_use]
pub fn column_names(schema: &Schema) -> Vec<String> {
    columns_of(schema).into_iter().map(|(name, _)| name).collect()
}

/// Appends the record at the front of `input` as a CSV row, without the line's end, and moves `input` past it. How: see
/// the [module](super).
///
/// ```
/// use snapring::record::text::{column_names, write_csv};
/// use snapring::record::{Record, to_bytes};
///
/// #[derive(Record)]
/// struct Total { route: (String, String), flights: u64, delay_min: Option<i64>, note: String }
///
/// let schema = Total::schema();
/// let total =
///     Total { route: ("EWR".into(), "IAH".into()), flights: 3, delay_min: None, note: "late, again".into() };
/// let mut row = Vec::new();
/// write_csv(&schema, &mut to_bytes(&total).as_slice(), &mut row)?;
/// assert_eq!(column_names(&schema), ["route", "flights", "delay_min", "note"]);
/// assert_eq!(row, br#""[""EWR"",""IAH""]",3,,"late, again""#);
/// # Ok::<(), snapring::record::DecodeError>(())
/// ```
///
/// # Errors
/// The bytes are no record of this schema. What has been appended until then stays.
pub fn write_csv(schema: &Schema, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let start = out.len();
    match peel(&schema.ty) {
        Type::Struct(_, fields) => cells(fields.iter().map(|field| &field.ty), input, out)?,
        Type::Tuple(items) => cells(items, input, out)?,
        ty => cell(ty, input, out)?,
    }
    if out.len() == start {
        // An empty line would be no row at all.
        out.extend_from_slice(b"\"\"");
    }
    Ok(())
}

fn cells<'t>(
    types: impl IntoIterator<Item = &'t Type>,
    input: &mut Input<'_>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    for (i, ty) in types.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        cell(ty, input, out)?;
    }
    Ok(())
}

fn cell(ty: &Type, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let mut ty = peel(ty);
    while let Type::Option(item) = ty {
        if !take_option(item, input)? {
            return Ok(());
        }
        ty = peel(item);
    }
    let start = out.len();
    match Scalar::take(ty, input)? {
        Some(scalar @ (Scalar::Text(_) | Scalar::Char(_))) => scalar.write(out),
        Some(number) => {
            number.write(out);
            return Ok(());
        }
        None => {
            Json::to(out).value(ty, input)?;
            unquote_name(start, out);
        }
    }
    quote_if_needed(start, out);
    Ok(())
}

/// A variant without fields is a JSON string; in a cell its name says it all.
fn unquote_name(start: usize, out: &mut Vec<u8>) {
    if out[start] == b'"' {
        out.pop();
        out.remove(start);
    }
}

/// Quotes the cell that begins at `start`, if a reader would misread it otherwise.
fn quote_if_needed(start: usize, out: &mut Vec<u8>) {
    if !out[start..].iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return;
    }
    let mut from = out.len();
    let quotes = out[start..].iter().filter(|byte| **byte == b'"').count();
    out.resize(from + quotes + 2, b'"');
    let mut to = out.len() - 1;
    while from > start {
        from -= 1;
        to -= 1;
        out[to] = out[from];
        if out[from] == b'"' {
            to -= 1;
            out[to] = b'"';
        }
    }
    out[start] = b'"';
}
