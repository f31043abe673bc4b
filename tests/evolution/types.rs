//! Types of every kind, and values of them, out of numbers: for the tests of evolution. They know nothing of it.

use snapring::record::{Field, Record, Type, Variant};

/// A small generator: its seed is the test.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 20
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn fields_from(start: usize, parts: &[(&str, Type)]) -> Vec<Field> {
    let mut offset = Some(start);
    let field = |(name, ty): &(&str, Type)| {
        let offset_bytes = offset.map(|offset| offset as u32);
        offset = offset.zip(ty.width()).map(|(offset, width)| offset + width);
        Field { name: (*name).to_owned(), ty: ty.clone(), offset_bytes }
    };
    parts.iter().map(field).collect()
}

pub fn structure(name: &str, parts: &[(&str, Type)]) -> Type {
    Type::Struct(name.to_owned(), fields_from(0, parts))
}

pub fn choice(name: &str, variants: &[(&str, &[(&str, Type)])]) -> Type {
    let width = |parts: &[(&str, Type)]| parts.iter().try_fold(0, |sum, (_, ty)| Some(sum + ty.width()?));
    let widths: Option<Vec<usize>> = variants.iter().map(|(_, parts)| width(parts)).collect();
    let body_bytes = widths.map(|widths| widths.into_iter().max().unwrap_or(0) as u32);
    let variant =
        |(name, parts): &(&str, &[(&str, Type)])| Variant { name: (*name).to_owned(), fields: fields_from(2, parts) };
    Type::Enum { name: name.to_owned(), variants: variants.iter().map(variant).collect(), body_bytes }
}

const PLAIN: [Type; 15] = [
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

/// A type that nests at most so deep. There are few names, so that two types have some in common.
pub fn any_type(dice: &mut Dice, depth: u32) -> Type {
    let kinds = if depth == 0 { 7 } else { 14 };
    let item = |dice: &mut Dice| Box::new(any_type(dice, depth.saturating_sub(1)));
    match dice.below(kinds) {
        0..=5 => PLAIN[dice.below(15) as usize].clone(),
        6 => Type::Text(dice.below(4) as u32 * 3),
        7 => Type::Option(item(dice)),
        8 => Type::List(item(dice)),
        9 => Type::Array(dice.below(4) as u32, item(dice)),
        10 => Type::Tuple((0..dice.below(4)).map(|_| *item(dice)).collect()),
        11 | 12 => {
            let names = some_of(dice, &["a", "b", "c", "d"]);
            let parts: Vec<_> = names.into_iter().map(|name| (name, *item(dice))).collect();
            structure(["S", "T"][dice.below(2) as usize], &parts)
        }
        _ => {
            let names = some_of(dice, &["X", "Y", "Z"]);
            let names = if names.is_empty() { vec!["X"] } else { names };
            let variant = |name| {
                let fields = some_of(dice, &["0", "1"]);
                (name, fields.into_iter().map(|name| (name, *item(dice))).collect::<Vec<_>>())
            };
            let variants: Vec<_> = names.into_iter().map(variant).collect();
            let variants: Vec<_> = variants.iter().map(|(name, parts)| (*name, parts.as_slice())).collect();
            choice("E", &variants)
        }
    }
}

/// Some of them, in any order.
fn some_of<'a>(dice: &mut Dice, names: &[&'a str]) -> Vec<&'a str> {
    let mut left = names.to_vec();
    (0..dice.below(names.len() as u64 + 1)).map(|_| left.remove(dice.below(left.len() as u64) as usize)).collect()
}

/// A type that this one may have become, mostly.
pub fn changed(dice: &mut Dice, ty: &Type, depth: u32) -> Type {
    if dice.below(12) == 0 {
        return any_type(dice, depth);
    }
    if dice.below(12) == 0 {
        return Type::Option(Box::new(ty.clone()));
    }
    let below = depth.saturating_sub(1);
    let fields = |dice: &mut Dice, fields: &[Field], names: &[&'static str]| -> Vec<(String, Type)> {
        let mut parts: Vec<_> =
            fields.iter().map(|field| (field.name.clone(), changed(dice, &field.ty, below))).collect();
        if !parts.is_empty() && dice.below(3) == 0 {
            parts.swap_remove(dice.below(parts.len() as u64) as usize);
        }
        let new = names[dice.below(names.len() as u64) as usize];
        if dice.below(3) == 0 && parts.iter().all(|(name, _)| name != new) {
            let at = dice.below(parts.len() as u64 + 1) as usize;
            parts.insert(at, (new.to_owned(), any_type(dice, below)));
        }
        parts
    };
    fn borrowed(parts: &[(String, Type)]) -> Vec<(&str, Type)> {
        parts.iter().map(|(name, ty)| (name.as_str(), ty.clone())).collect()
    }
    match ty {
        Type::Option(item) => Type::Option(Box::new(changed(dice, item, below))),
        Type::List(item) => Type::List(Box::new(changed(dice, item, below))),
        Type::Array(_, item) if dice.below(4) == 0 => Type::List(Box::new(changed(dice, item, below))),
        Type::Array(count, item) => Type::Array(*count, Box::new(changed(dice, item, below))),
        Type::Tuple(items) => Type::Tuple(items.iter().map(|item| changed(dice, item, below)).collect()),
        Type::Struct(_, old) => structure("S", &borrowed(&fields(dice, old, &["a", "b", "c", "d"]))),
        Type::Enum { variants, .. } => {
            let mut new: Vec<_> = variants
                .iter()
                .map(|variant| (variant.name.clone(), fields(dice, &variant.fields, &["0", "1"])))
                .collect();
            let at = dice.below(new.len() as u64 + 1) as usize;
            if dice.below(2) == 0 {
                new.rotate_left(at);
            } else if new.iter().all(|(name, _)| name != "Z") {
                new.insert(at, ("Z".to_owned(), Vec::new()));
            }
            let new: Vec<_> = new.iter().map(|(name, parts)| (name.as_str(), borrowed(parts))).collect();
            let new: Vec<_> = new.iter().map(|(name, parts)| (*name, parts.as_slice())).collect();
            choice("E", &new)
        }
        Type::U8 | Type::U16 | Type::U32 | Type::I8 | Type::I16 | Type::I32 if dice.below(2) == 0 => Type::I64,
        Type::F32 => Type::F64,
        Type::Text(limit) if dice.below(2) == 0 => Type::Text(limit + 1),
        Type::Text(_) => Type::String,
        plain => plain.clone(),
    }
}

/// Appends the encoding of some value of this type.
pub fn any_value(dice: &mut Dice, ty: &Type, out: &mut Vec<u8>) {
    const TEXT: &str = "abcdefghijk";
    let text = |dice: &mut Dice, max: usize| &TEXT[..dice.below(max.min(TEXT.len()) as u64 + 1) as usize];
    let end = ty.width().map(|width| out.len() + width);
    match ty {
        Type::Bool => out.push(dice.below(2) as u8),
        Type::Char => ['x', '\0', '🦀'][dice.below(3) as usize].encode(out),
        Type::String => text(dice, 11).to_owned().encode(out),
        Type::Text(limit) => {
            let text = text(dice, *limit as usize);
            (text.len() as u16).encode(out);
            out.extend(text.as_bytes());
        }
        Type::Option(item) => {
            let is_some = dice.below(2) == 1;
            is_some.encode(out);
            if is_some {
                any_value(dice, item, out);
            }
        }
        Type::List(item) => {
            let count = dice.below(4) as u32;
            count.encode(out);
            (0..count).for_each(|_| any_value(dice, item, out));
        }
        Type::Array(count, item) => (0..*count).for_each(|_| any_value(dice, item, out)),
        Type::Tuple(items) => items.iter().for_each(|item| any_value(dice, item, out)),
        Type::Struct(_, fields) => fields.iter().for_each(|field| any_value(dice, &field.ty, out)),
        Type::Enum { variants, .. } => {
            let index = dice.below(variants.len() as u64) as usize;
            (index as u16).encode(out);
            variants[index].fields.iter().for_each(|field| any_value(dice, &field.ty, out));
        }
        number => out.extend((0..number.width().unwrap()).map(|_| dice.next() as u8)),
    }
    if let Some(end) = end {
        out.resize(end, 0);
    }
}
