//! What an evolution must do, said slowly: on trees of values, one rule after the other. It shares no code with the library's.

use snapring::record::{Datum, Field, Scalar, Type, Variant};

fn integer(ty: &Type) -> Option<(u32, bool)> {
    Some(match ty {
        Type::U8 => (8, false),
        Type::U16 => (16, false),
        Type::U32 => (32, false),
        Type::U64 => (64, false),
        Type::U128 => (128, false),
        Type::I8 => (8, true),
        Type::I16 => (16, true),
        Type::I32 => (32, true),
        Type::I64 => (64, true),
        Type::I128 => (128, true),
        _ => return None,
    })
}

/// Whether values of the one type can become values of the other.
pub fn allowed(then: &Type, now: &Type) -> bool {
    if let (Some((from, was_signed)), Some((to, signed))) = (integer(then), integer(now)) {
        return (from, was_signed) == (to, signed) || from < to && (!was_signed || signed);
    }
    match (then, now) {
        (Type::F32, Type::F64) | (Type::Text(_), Type::String) => true,
        (Type::Text(from), Type::Text(to)) => from <= to,
        (Type::Option(old), Type::Option(new)) => allowed(old, new) || allowed(then, new),
        (_, Type::Option(item)) => allowed(then, item),
        (Type::List(old) | Type::Array(_, old), Type::List(new)) => allowed(old, new),
        (Type::Array(count, old), Type::Array(now, new)) => count == now && allowed(old, new),
        (Type::Tuple(old), Type::Tuple(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| allowed(old, new))
        }
        (Type::Struct(_, old), Type::Struct(_, new)) => fields_allowed(old, new),
        (Type::Enum { variants: old, .. }, Type::Enum { variants: new, .. }) => old.iter().all(|old| {
            let new = new.iter().find(|new| new.name == old.name);
            new.is_some_and(|new| fields_allowed(&old.fields, &new.fields))
        }),
        (then, now) => then == now,
    }
}

fn fields_allowed(old: &[Field], new: &[Field]) -> bool {
    let stays = new.iter().any(|new| old.iter().any(|old| old.name == new.name));
    let any_stays = stays || old.is_empty() || new.is_empty();
    any_stays
        && new.iter().all(|new| match old.iter().find(|old| old.name == new.name) {
            Some(old) => allowed(&old.ty, &new.ty),
            None => zero(&new.ty).is_some(),
        })
}

fn zero(ty: &Type) -> Option<Datum<'_>> {
    Some(match ty {
        Type::String | Type::Text(_) => Datum::Plain(Scalar::Text("")),
        Type::Bool => Datum::Plain(Scalar::Bool(false)),
        Type::Char => Datum::Plain(Scalar::Char('\0')),
        Type::F32 => Datum::Plain(Scalar::Float32(0.0)),
        Type::F64 => Datum::Plain(Scalar::Float64(0.0)),
        Type::Option(_) => Datum::Option(None),
        Type::List(_) => Datum::List(Vec::new()),
        Type::Array(count, item) => Datum::List((0..*count).map(|_| zero(item)).collect::<Option<_>>()?),
        Type::Tuple(items) => Datum::Tuple(items.iter().map(zero).collect::<Option<_>>()?),
        Type::Struct(name, fields) => {
            let fields = fields.iter().map(|field| Some((field.name.as_str(), zero(&field.ty)?)));
            Datum::Struct(name, fields.collect::<Option<_>>()?)
        }
        Type::Enum { .. } => return None,
        number => Datum::Plain(number_of(0, 0, number)),
    })
}

/// An integer as one of this type.
fn number_of(positive: u128, signed: i128, ty: &Type) -> Scalar<'static> {
    match ty {
        Type::U128 => Scalar::WideUnsigned(positive),
        Type::I128 => Scalar::WideSigned(signed),
        ty if integer(ty).is_some_and(|(_, signed)| signed) => Scalar::Signed(signed as i64),
        _ => Scalar::Unsigned(positive as u64),
    }
}

/// The tree that a value becomes.
pub fn turn<'a>(datum: &Datum<'a>, then: &Type, now: &'a Type) -> Datum<'a> {
    match (datum, then, now) {
        (Datum::Option(item), Type::Option(old), Type::Option(new)) if allowed(old, new) => {
            Datum::Option(item.as_ref().map(|item| Box::new(turn(item, old, new))))
        }
        (_, _, Type::Option(new)) => Datum::Option(Some(Box::new(turn(datum, then, new)))),
        (Datum::List(items), Type::List(old) | Type::Array(_, old), Type::List(new) | Type::Array(_, new)) => {
            Datum::List(items.iter().map(|item| turn(item, old, new)).collect())
        }
        (Datum::Tuple(items), Type::Tuple(old), Type::Tuple(new)) => {
            Datum::Tuple(items.iter().zip(old).zip(new).map(|((item, old), new)| turn(item, old, new)).collect())
        }
        (Datum::Struct(_, items), Type::Struct(_, old), Type::Struct(name, new)) => {
            Datum::Struct(name, turn_fields(items, old, new))
        }
        (Datum::Variant(name, items), Type::Enum { variants: old, .. }, Type::Enum { variants: new, .. }) => {
            fn find<'v>(variants: &'v [Variant], name: &str) -> &'v Variant {
                variants.iter().find(|variant| variant.name == *name).unwrap()
            }
            let (old, new) = (find(old, name), find(new, name));
            Datum::Variant(&new.name, turn_fields(items, &old.fields, &new.fields))
        }
        (Datum::Plain(scalar), _, now) => Datum::Plain(match *scalar {
            Scalar::Unsigned(number) => number_of(number.into(), number.into(), now),
            Scalar::Signed(number) => number_of(0, number.into(), now),
            Scalar::Float32(number) if *now == Type::F64 => Scalar::Float64(number.into()),
            other => other,
        }),
        _ => unreachable!("{then} does not become {now}"),
    }
}

fn turn_fields<'a>(items: &[(&'a str, Datum<'a>)], old: &[Field], new: &'a [Field]) -> Vec<(&'a str, Datum<'a>)> {
    let field = |new: &'a Field| {
        let place = old.iter().position(|old| old.name == new.name);
        let value = match place {
            Some(place) => turn(&items[place].1, &old[place].ty, &new.ty),
            None => zero(&new.ty).unwrap(),
        };
        (new.name.as_str(), value)
    };
    new.iter().map(field).collect()
}
