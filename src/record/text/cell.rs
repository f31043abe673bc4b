//! A cell's text as the encoding of a plain value.

use super::peel;
use crate::record::compound::put_text;
use crate::record::{Record, Type, Variant};
use std::str::FromStr;

/// True for types that a cell can hold: plain values, enums of variants without fields, and options of these.
pub fn fits(ty: &Type) -> bool {
    match peel(ty) {
        Type::Option(item) => !matches!(peel(item), Type::Option(_)) && fits(item),
        Type::Enum { variants, .. } => variants.iter().all(|variant| variant.fields.is_empty()),
        Type::List(_) | Type::Array(..) | Type::Tuple(_) | Type::Struct(..) => false,
        _ => true,
    }
}

/// Appends the encoding of the value that the text stands for; none if it stands for no such value.
pub fn encode(ty: &Type, text: &[u8], na: Option<&[u8]>, out: &mut Vec<u8>) -> Option<()> {
    match peel(ty) {
        Type::Option(item) if text.is_empty() || Some(text) == na => {
            out.resize(out.len() + 1 + item.width().unwrap_or(0), 0);
            Some(())
        }
        Type::Option(item) => {
            out.push(1);
            encode(item, text, None, out)
        }
        Type::Enum { variants, body_bytes, .. } => variant(variants, *body_bytes, text, out),
        item => plain(item, text, out),
    }
}

/// A value without parts; none if the type is of another kind.
fn plain(ty: &Type, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match ty {
        Type::U8 => number::<u8>(text, out),
        Type::U16 => number::<u16>(text, out),
        Type::U32 => number::<u32>(text, out),
        Type::U64 => number::<u64>(text, out),
        Type::U128 => number::<u128>(text, out),
        Type::I8 => number::<i8>(text, out),
        Type::I16 => number::<i16>(text, out),
        Type::I32 => number::<i32>(text, out),
        Type::I64 => number::<i64>(text, out),
        Type::I128 => number::<i128>(text, out),
        Type::F32 => number::<f32>(text, out),
        Type::F64 => number::<f64>(text, out),
        Type::Bool => truth(text, out),
        Type::Char => character(text, out),
        Type::String => {
            put_text(std::str::from_utf8(text).ok()?, out);
            Some(())
        }
        Type::Text(limit) => inline(*limit as usize, text, out),
        Type::Option(_) | Type::Enum { .. } => None,
        Type::List(_) | Type::Array(..) | Type::Tuple(_) | Type::Struct(..) => None,
    }
}

fn number<T: FromStr + Record>(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse::<T>().ok()?.encode(out);
    Some(())
}

fn truth(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.push(match text.trim_ascii() {
        b"true" | b"TRUE" | b"True" | b"1" => 1,
        b"false" | b"FALSE" | b"False" | b"0" => 0,
        _ => return None,
    });
    Some(())
}

fn character(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut chars = std::str::from_utf8(text).ok()?.chars();
    chars.next().filter(|_| chars.next().is_none())?.encode(out);
    Some(())
}

fn inline(limit: usize, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    std::str::from_utf8(text).ok().filter(|text| text.len() <= limit)?;
    u16::try_from(text.len()).ok()?.encode(out);
    let end = out.len() + limit;
    out.extend_from_slice(text);
    out.resize(end, 0);
    Some(())
}

fn variant(variants: &[Variant], body_bytes: Option<u32>, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let index = variants.iter().position(|variant| variant.name.as_bytes() == text.trim_ascii())?;
    u16::try_from(index).ok()?.encode(out);
    out.resize(out.len() + body_bytes.unwrap_or(0) as usize, 0);
    Some(())
}
