//! The steps of an evolution: what is done to the bytes of each value. It must not know why.

use crate::record::check::{check, within};
use crate::record::mirror::take;
use crate::record::{DecodeError, Input, Record, Scalar, Type, ZERO_WIDTH_MAX};

/// What becomes of a piece of a value.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// So many bytes, which may be anything, stay.
    Copy(usize),
    /// A value stays, if it is one.
    Keep(Type),
    /// A value goes, if it is one.
    Skip(Type),
    /// So many zeros come.
    Zeros(usize),
    /// These bytes come.
    Put(Vec<u8>),
    /// An integer gets more bytes.
    Widen { from: usize, to: usize, signed: bool },
    /// An `f32` becomes an `f64`.
    Double,
    /// An inline text gets another limit; none: it becomes a `String`.
    Text { then: Type, now: Option<usize> },
    /// A value becomes `Some`.
    Wrap(Box<Step>),
    /// `none` are the bytes behind the tag of a `None`, before and after.
    Option { item: Box<Step>, none: (usize, usize) },
    List {
        item: Box<Step>,
        /// Items have no bytes before or after: nothing else bounds their number.
        weightless: bool,
    },
    /// `counted`: it becomes a list.
    Array { count: u32, item: Box<Step>, counted: bool },
    /// One after the other.
    Row(Vec<Step>),
    /// Fields in another order.
    Moved { then: Vec<Type>, moves: Vec<Move> },
    Enum {
        /// By old index.
        variants: Vec<Variant>,
        then_body: Option<u32>,
        now_body: Option<u32>,
    },
}

/// Where a field of the new order comes from.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Gained(Step),
    /// From the old field of this index, which lies so far from the start, if that is known.
    Taken {
        index: usize,
        offset: Option<usize>,
        step: Step,
    },
}

/// A variant as it is now.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub index: u16,
    pub fields: Step,
}

impl Step {
    /// Puts a step behind others; neighbours that do the same become one.
    pub fn push_to(self, row: &mut Vec<Step>) {
        match (self, row.last_mut()) {
            (Self::Copy(0) | Self::Zeros(0), _) => {}
            (Self::Row(steps), _) => steps.into_iter().for_each(|step| step.push_to(row)),
            (Self::Skip(ty), _) if ty.width() == Some(0) => {}
            (Self::Copy(more), Some(Self::Copy(bytes))) | (Self::Zeros(more), Some(Self::Zeros(bytes))) => {
                *bytes += more;
            }
            (step, _) => row.push(step),
        }
    }

    /// Whether it leaves every value as it is.
    pub fn is_same(&self) -> bool {
        match self {
            Self::Copy(_) | Self::Keep(_) => true,
            Self::Option { item, none: (then, now) } => then == now && item.is_same(),
            Self::List { item, .. } | Self::Array { item, counted: false, .. } => item.is_same(),
            Self::Row(steps) => steps.iter().all(Self::is_same),
            Self::Enum { variants, then_body, now_body } => {
                let stays = |(index, variant): (usize, &Variant)| usize::from(variant.index) == index;
                then_body == now_body
                    && variants.iter().enumerate().all(stays)
                    && variants.iter().all(|variant| variant.fields.is_same())
            }
            _ => false,
        }
    }

    pub fn apply(&self, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        match self {
            Self::Copy(bytes) => out.extend_from_slice(take(input, *bytes)?),
            Self::Keep(ty) => {
                let before = *input;
                check(ty, input)?;
                out.extend_from_slice(&before[..before.len() - input.len()]);
            }
            Self::Skip(ty) => check(ty, input)?,
            Self::Zeros(bytes) => zeros(*bytes, out),
            Self::Put(bytes) => out.extend_from_slice(bytes),
            Self::Widen { from, to, signed } => widen(take(input, *from)?, *to, *signed, out),
            Self::Double => f64::from(f32::decode(input)?).encode(out),
            Self::Text { then, now } => text(then, *now, input, out)?,
            Self::Wrap(step) => {
                out.push(1);
                step.apply(input, out)?;
            }
            Self::Option { item, none } => option(item, *none, input, out)?,
            Self::List { item, weightless } => {
                let count = u32::decode(input)?;
                if *weightless && count as usize > ZERO_WIDTH_MAX {
                    return Err(DecodeError::Invalid("too many items without bytes"));
                }
                count.encode(out);
                (0..count).try_for_each(|_| item.apply(input, out))?;
            }
            Self::Array { count, item, counted } => {
                if *counted {
                    count.encode(out);
                }
                (0..*count).try_for_each(|_| item.apply(input, out))?;
            }
            Self::Row(steps) => steps.iter().try_for_each(|step| step.apply(input, out))?,
            Self::Moved { then, moves } => moved(then, moves, input, out)?,
            Self::Enum { variants, then_body, now_body } => variant(variants, *then_body, *now_body, input, out)?,
        }
        Ok(())
    }
}

fn zeros(bytes: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + bytes, 0);
}

fn widen(bytes: &[u8], to: usize, signed: bool, out: &mut Vec<u8>) {
    let negative = signed && bytes.last().is_some_and(|high| high & 0x80 != 0);
    let end = out.len() + to;
    out.extend_from_slice(bytes);
    out.resize(end, if negative { 0xff } else { 0 });
}

fn text(then: &Type, now: Option<usize>, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let Some(Scalar::Text(text)) = Scalar::take(then, input)? else { return Ok(()) };
    match now {
        Some(limit) => {
            (text.len() as u16).encode(out);
            let end = out.len() + limit;
            out.extend_from_slice(text.as_bytes());
            out.resize(end, 0);
        }
        None => {
            (text.len() as u32).encode(out);
            out.extend_from_slice(text.as_bytes());
        }
    }
    Ok(())
}

fn option(item: &Step, none: (usize, usize), input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let is_some = bool::decode(input)?;
    is_some.encode(out);
    if is_some {
        return item.apply(input, out);
    }
    crate::record::mirror::clear(take(input, none.0)?)?;
    zeros(none.1, out);
    Ok(())
}

/// The fields of the new order are looked for one by one; an old one behind those of unknown length is found by walking.
fn moved(then: &[Type], moves: &[Move], input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let start = *input;
    then.iter().try_for_each(|ty| check(ty, input))?;
    let (mut at, mut rest) = (0, start);
    for step in moves {
        match step {
            Move::Gained(step) => step.apply(&mut rest, out)?,
            Move::Taken { index, offset, step } => {
                if let Some(offset) = offset {
                    (at, rest) = (*index, start.get(*offset..).ok_or(DecodeError::Short)?);
                } else if *index < at {
                    (at, rest) = (0, start);
                }
                then[at..*index].iter().try_for_each(|ty| check(ty, &mut rest))?;
                step.apply(&mut rest, out)?;
                at = index + 1;
            }
        }
    }
    Ok(())
}

fn variant(
    variants: &[Variant],
    then_body: Option<u32>,
    now_body: Option<u32>,
    input: &mut Input<'_>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let index = usize::from(u16::decode(input)?);
    let variant = variants.get(index).ok_or(DecodeError::Invalid("an enum has no variant of this index"))?;
    variant.index.encode(out);
    let end = now_body.map(|bytes| out.len() + bytes as usize);
    within(then_body, input, |body| variant.fields.apply(body, out))?;
    match end {
        Some(end) if end < out.len() => Err(DecodeError::Invalid("a variant is larger than its enum")),
        Some(end) => {
            out.resize(end, 0);
            Ok(())
        }
        None => Ok(()),
    }
}
