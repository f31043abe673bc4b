//! Which steps lead from one type to another, or why none do: the rules at the head of [`super`].

use super::step::{Move, Step, Variant};
use super::{Hints, Mismatch};
use crate::record::check::plain_bytes;
use crate::record::{Field, Type, Variant as VariantType, ZERO_WIDTH_MAX};

pub(super) struct Planner<'a> {
    pub hints: &'a Hints,
}

/// The struct, or the enum and its variant, whose fields are compared.
#[derive(Clone, Copy)]
struct Owner<'a> {
    ty: &'a Type,
    variant: &'a str,
    /// What is in front of the first field.
    start: usize,
}

impl Planner<'_> {
    pub fn step(&self, then: &Type, now: &Type, path: &str) -> Result<Step, Mismatch> {
        if then == now {
            return Ok(plain_bytes(then).map_or_else(|| Step::Keep(then.clone()), Step::Copy));
        }
        if let Some(step) = widened(then, now) {
            return Ok(step);
        }
        match (then, now) {
            (Type::Option(old), Type::Option(new)) => match self.step(old, new, path) {
                Ok(item) => {
                    let none = (old.width().unwrap_or(0), new.width().unwrap_or(0));
                    Ok(Step::Option { item: Box::new(item), none })
                }
                Err(error) => self.step(then, new, path).map(|item| Step::Wrap(Box::new(item))).map_err(|_| error),
            },
            (_, Type::Option(item)) => Ok(Step::Wrap(Box::new(self.step(then, item, path)?))),
            (Type::Tuple(old), Type::Tuple(new)) if old.len() == new.len() => self.tuple(old, new, path),
            (Type::Struct(_, old), Type::Struct(_, new)) => {
                self.fields(old, new, Owner { ty: now, variant: "", start: 0 }, path)
            }
            (Type::Enum { variants: old, body_bytes: then_body, .. }, Type::Enum { body_bytes: now_body, .. }) => {
                let variants = old.iter().map(|variant| self.variant(variant, now, path)).collect::<Result<_, _>>()?;
                Ok(Step::Enum { variants, then_body: *then_body, now_body: *now_body })
            }
            _ => self.items(then, now, path),
        }
    }

    /// Lists and arrays.
    fn items(&self, then: &Type, now: &Type, path: &str) -> Result<Step, Mismatch> {
        let (old, new) = match (then, now) {
            (Type::List(old) | Type::Array(_, old), Type::List(new)) => (old, new),
            (Type::Array(count, old), Type::Array(as_many, new)) if count == as_many => (old, new),
            _ => return Err(mismatch(path, format!("{} cannot become {}", outline(then), outline(now)))),
        };
        let item = Box::new(self.step(old, new, &format!("{path}[]"))?);
        let weightless = old.width() == Some(0) || new.width() == Some(0);
        match then {
            Type::Array(count, _) if weightless && *count as usize > ZERO_WIDTH_MAX && then.width() != now.width() => {
                Err(mismatch(path, "an array of so many items without bytes cannot change"))
            }
            Type::Array(count, _) => Ok(Step::Array { count: *count, item, counted: matches!(now, Type::List(_)) }),
            _ => Ok(Step::List { item, weightless }),
        }
    }

    fn tuple(&self, then: &[Type], now: &[Type], path: &str) -> Result<Step, Mismatch> {
        let mut row = Vec::new();
        for (place, (old, new)) in then.iter().zip(now).enumerate() {
            self.step(old, new, &join(path, &place.to_string()))?.push_to(&mut row);
        }
        Ok(Step::Row(row))
    }

    fn variant(&self, old: &VariantType, now: &Type, path: &str) -> Result<Variant, Mismatch> {
        let Type::Enum { variants, .. } = now else { unreachable!("only enums have variants") };
        let position = |name: &str| variants.iter().position(|new| new.name == name);
        let index = position(&old.name).or_else(|| self.hints.of_variant(now, &old.name).find_map(position));
        let Some(index) = index else {
            return Err(mismatch(path, format!("its variant `{}` is no more, and a value may be one", old.name)));
        };
        let new = &variants[index];
        let owner = Owner { ty: now, variant: &new.name, start: 2 };
        let fields = self.fields(&old.fields, &new.fields, owner, &format!("{path}::{}", new.name))?;
        let index = u16::try_from(index).map_err(|_| mismatch(path, "it has more than 65,536 variants"))?;
        Ok(Variant { index, fields })
    }

    fn fields(&self, then: &[Field], now: &[Field], owner: Owner<'_>, path: &str) -> Result<Step, Mismatch> {
        let mut moves = Vec::with_capacity(now.len());
        for field in now {
            let path = join(path, &field.name);
            moves.push(match self.old_field(then, now, field, owner) {
                Some(index) => {
                    let old = &then[index];
                    let offset = old.offset_bytes.and_then(|offset| (offset as usize).checked_sub(owner.start));
                    Move::Taken { index, offset, step: self.step(&old.ty, &field.ty, &path)? }
                }
                None => Move::Gained(self.gained(field, owner, &path)?),
            });
        }
        let taken = moves.iter().filter_map(|step| match step {
            Move::Taken { index, .. } => Some(*index),
            Move::Gained(_) => None,
        });
        if !then.is_empty() && !now.is_empty() && taken.clone().next().is_none() {
            let what = if owner.variant.is_empty() { "it" } else { "the variant" };
            return Err(mismatch(path, format!("has none of the fields that {what} had: it would be empty")));
        }
        if taken.is_sorted_by(|a, b| a < b) {
            return Ok(in_order(then, moves));
        }
        Ok(Step::Moved { then: then.iter().map(|field| field.ty.clone()).collect(), moves })
    }

    /// The old field that has become this one: it has the same name, or the one that this had; a name that is in use again
    /// is its user's.
    fn old_field(&self, then: &[Field], now: &[Field], field: &Field, owner: Owner<'_>) -> Option<usize> {
        let position = |name: &str| then.iter().position(|old| old.name == name);
        let is_used = |name: &&str| now.iter().any(|field| field.name == *name);
        position(&field.name).or_else(|| {
            let mut names = self.hints.of_field(owner.ty, owner.variant, &field.name).filter(|name| !is_used(name));
            names.find_map(position)
        })
    }

    fn gained(&self, field: &Field, owner: Owner<'_>, path: &str) -> Result<Step, Mismatch> {
        if let Some(bytes) = self.hints.first_value(owner.ty, owner.variant, &field.name, &field.ty) {
            return Ok(Step::Put(bytes.to_vec()));
        }
        let none = || {
            let what = outline(&field.ty);
            mismatch(path, format!("it is new, and {what} has no zero to begin with: make it an Option"))
        };
        zero_bytes(&field.ty).map(Step::Zeros).ok_or_else(none)
    }
}

/// Old fields that are not taken are left out where they stand.
fn in_order(then: &[Field], moves: Vec<Move>) -> Step {
    let (mut row, mut at) = (Vec::new(), 0);
    let skip = |row: &mut Vec<Step>, fields: &[Field]| {
        fields.iter().for_each(|field| Step::Skip(field.ty.clone()).push_to(row));
    };
    for step in moves {
        match step {
            Move::Gained(step) => step.push_to(&mut row),
            Move::Taken { index, step, .. } => {
                skip(&mut row, &then[at..index]);
                step.push_to(&mut row);
                at = index + 1;
            }
        }
    }
    skip(&mut row, &then[at..]);
    Step::Row(row)
}

/// Values without parts that get wider.
fn widened(then: &Type, now: &Type) -> Option<Step> {
    match (then, now) {
        (Type::F32, Type::F64) => Some(Step::Double),
        (Type::Text(from), Type::Text(to)) if from < to => {
            Some(Step::Text { then: then.clone(), now: Some(*to as usize) })
        }
        (Type::Text(_), Type::String) => Some(Step::Text { then: then.clone(), now: None }),
        _ => {
            let ((from, was_signed), (to, signed)) = (integer(then)?, integer(now)?);
            let fits = from < to && (!was_signed || signed);
            fits.then_some(Step::Widen { from, to, signed: was_signed })
        }
    }
}

/// Bytes, and whether it is signed.
fn integer(ty: &Type) -> Option<(usize, bool)> {
    let signed = match ty {
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::U128 => false,
        Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::I128 => true,
        _ => return None,
    };
    Some((ty.width()?, signed))
}

/// The encoding of a type's zero is all zeros: so many.
fn zero_bytes(ty: &Type) -> Option<usize> {
    let sum = |sum: usize, ty: &Type| sum.checked_add(zero_bytes(ty)?);
    match ty {
        Type::Enum { .. } => None,
        Type::String | Type::List(_) => Some(4),
        Type::Option(item) => Some(1 + item.width().unwrap_or(0)),
        Type::Array(0, _) => Some(0),
        Type::Array(count, item) => zero_bytes(item)?.checked_mul(*count as usize),
        Type::Tuple(items) => items.iter().try_fold(0, sum),
        Type::Struct(_, fields) => fields.iter().map(|field| &field.ty).try_fold(0, sum),
        plain => plain.width(),
    }
}

/// A type in a word or two: all of it is shown beside.
fn outline(ty: &Type) -> String {
    match ty {
        Type::Struct(name, _) => format!("the struct {name}"),
        Type::Enum { name, .. } => format!("the enum {name}"),
        ty => ty.to_string(),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn mismatch(path: &str, reason: impl Into<String>) -> Mismatch {
    Mismatch { path: path.to_owned(), reason: reason.into() }
}
