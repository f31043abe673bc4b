//! Encoded bytes as JSON.

use super::peel;
use crate::record::mirror::take;
use crate::record::schema::is_tuple;
use crate::record::{Datum, DecodeError, Field, Input, Record, Scalar, Schema, Type, Variant, ZERO_WIDTH_MAX};
use std::convert::Infallible;

/// Appends the record at the front of `input` as JSON in one line, and moves `input` past it. How: see the
/// [module](super).
///
/// ```
/// use snapring::record::text::write_json;
/// use snapring::record::{Record, to_bytes};
///
/// #[derive(Record)]
/// struct Trade { symbol: String, side: Side, price: Option<f64>, id: u128 }
/// #[derive(Record)]
/// enum Side { Buy, Sell { short: bool } }
///
/// let mut line = Vec::new();
/// let trade = Trade { symbol: "A\"B".into(), side: Side::Sell { short: true }, price: None, id: 7 };
/// write_json(&Trade::schema(), &mut to_bytes(&trade).as_slice(), &mut line)?;
/// assert_eq!(line, br#"{"symbol":"A\"B","side":{"Sell":{"short":true}},"price":null,"id":"7"}"#);
/// # let _ = Side::Buy;
/// # Ok::<(), snapring::record::DecodeError>(())
/// ```
///
/// # Errors
/// The bytes are no record of this schema. What has been appended until then stays.
pub fn write_json(schema: &Schema, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    Json::to(out).value(&schema.ty, input)
}

/// Appends a value that has been decoded, as [`write_json`] would have written its bytes.
pub(in crate::record) fn write_datum(datum: &Datum<'_>, out: &mut Vec<u8>) {
    let Ok(()) = Json::to(out).datum(datum);
}

pub(super) struct Json<'o> {
    out: &'o mut Vec<u8>,
    /// How many more values without bytes it writes: no length in a hostile input bounds these.
    zero_width_left: usize,
}

impl<'o> Json<'o> {
    pub fn to(out: &'o mut Vec<u8>) -> Self {
        Self { out, zero_width_left: ZERO_WIDTH_MAX }
    }

    pub fn value(&mut self, ty: &Type, input: &mut Input<'_>) -> Result<(), DecodeError> {
        match peel(ty) {
            Type::Option(item) => match take_option(item, input)? {
                true => self.value(item, input),
                false => self.null(),
            },
            Type::List(item) => {
                let count = u32::decode(input)?;
                self.items(count, item, input)
            }
            Type::Array(count, item) => self.items(*count, item, input),
            Type::Tuple(items) => self.row(b"[]", items, |this, item| this.value(item, input)),
            Type::Struct(_, fields) => self.fields(fields, input),
            Type::Enum { variants, body_bytes, .. } => {
                let (variant, mut body) = take_variant(variants, *body_bytes, input)?;
                let fixed = body_bytes.is_some();
                self.variant(variant, if fixed { &mut body } else { input })
            }
            plain => match Scalar::take(plain, input)? {
                Some(scalar) => {
                    self.scalar(scalar);
                    Ok(())
                }
                None => unreachable!("every type with parts is above"),
            },
        }
    }

    /// A value that has been decoded.
    fn datum(&mut self, datum: &Datum<'_>) -> Result<(), Infallible> {
        match datum {
            Datum::Plain(scalar) => {
                self.scalar(*scalar);
                Ok(())
            }
            Datum::Option(None) => self.null(),
            Datum::Option(Some(item)) => self.datum(item),
            Datum::List(items) | Datum::Tuple(items) => self.row(b"[]", items, Self::datum),
            Datum::Struct(_, fields) => match fields.as_slice() {
                [(_, only)] if datum.is_tuple() => self.datum(only),
                fields => self.datum_fields(fields, datum.is_tuple()),
            },
            Datum::Variant(name, fields) if fields.is_empty() => {
                self.string(name);
                Ok(())
            }
            Datum::Variant(name, fields) => self.row(b"{}", [fields.as_slice()], |this, fields| {
                this.name(name);
                match fields {
                    [(_, only)] if datum.is_tuple() => this.datum(only),
                    fields => this.datum_fields(fields, datum.is_tuple()),
                }
            }),
        }
    }

    fn datum_fields(&mut self, fields: &[(&str, Datum<'_>)], is_tuple: bool) -> Result<(), Infallible> {
        if is_tuple {
            return self.row(b"[]", fields, |this, (_, value)| this.datum(value));
        }
        self.row(b"{}", fields, |this, (name, value)| {
            this.name(name);
            this.datum(value)
        })
    }

    fn null<E>(&mut self) -> Result<(), E> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    /// In front of a value.
    fn name(&mut self, name: &str) {
        self.string(name);
        self.out.push(b':');
    }

    /// Things with commas between them, and brackets around.
    fn row<T, E>(
        &mut self,
        brackets: &[u8; 2],
        things: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.out.push(brackets[0]);
        for (i, thing) in things.into_iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            write(self, thing)?;
        }
        self.out.push(brackets[1]);
        Ok(())
    }

    fn items(&mut self, count: u32, item: &Type, input: &mut Input<'_>) -> Result<(), DecodeError> {
        if item.width() == Some(0) {
            let left = self.zero_width_left.checked_sub((count as usize).saturating_mul(nodes(item)));
            self.zero_width_left = left.ok_or(DecodeError::Invalid("too many items without bytes"))?;
        }
        self.row(b"[]", 0..count, |this, _| this.value(item, input))
    }

    fn fields(&mut self, fields: &[Field], input: &mut Input<'_>) -> Result<(), DecodeError> {
        if is_tuple(fields) {
            return self.row(b"[]", fields, |this, field| this.value(&field.ty, input));
        }
        self.row(b"{}", fields, |this, field| {
            this.name(&field.name);
            this.value(&field.ty, input)
        })
    }

    fn variant(&mut self, variant: &Variant, input: &mut Input<'_>) -> Result<(), DecodeError> {
        if variant.fields.is_empty() {
            self.string(&variant.name);
            return Ok(());
        }
        self.row(b"{}", [variant], |this, variant| {
            this.name(&variant.name);
            match variant.fields.as_slice() {
                [only] if is_tuple(&variant.fields) => this.value(&only.ty, input),
                fields => this.fields(fields, input),
            }
        })
    }

    fn scalar(&mut self, scalar: Scalar<'_>) {
        match scalar {
            Scalar::Text(text) => self.string(text),
            Scalar::Char(char) => self.string(char.encode_utf8(&mut [0; 4])),
            Scalar::Float32(number) if !number.is_finite() => self.no_number(number.into()),
            Scalar::Float64(number) if !number.is_finite() => self.no_number(number),
            Scalar::WideUnsigned(_) | Scalar::WideSigned(_) => {
                self.out.push(b'"');
                scalar.write(self.out);
                self.out.push(b'"');
            }
            _ => scalar.write(self.out),
        }
    }

    fn no_number(&mut self, number: f64) {
        let name = if number.is_nan() { "NaN" } else { "Infinity" };
        self.string(if number == f64::NEG_INFINITY { "-Infinity" } else { name });
    }

    /// A string with what JSON wants escaped.
    fn string(&mut self, text: &str) {
        self.out.push(b'"');
        let mut plain = text.as_bytes();
        while let Some(at) = plain.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
            self.out.extend_from_slice(&plain[..at]);
            self.escape(plain[at]);
            plain = &plain[at + 1..];
        }
        self.out.extend_from_slice(plain);
        self.out.push(b'"');
    }

    fn escape(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        match byte {
            b'\n' => self.out.extend_from_slice(b"\\n"),
            b'\r' => self.out.extend_from_slice(b"\\r"),
            b'\t' => self.out.extend_from_slice(b"\\t"),
            b'"' | b'\\' => self.out.extend_from_slice(&[b'\\', byte]),
            control => {
                let [high, low] = [control >> 4, control & 15].map(|half| HEX[usize::from(half)]);
                self.out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        }
    }
}

/// The number of types that a type is made of.
fn nodes(ty: &Type) -> usize {
    1 + match ty {
        Type::Option(item) | Type::List(item) | Type::Array(_, item) => nodes(item),
        Type::Tuple(items) => items.iter().map(nodes).sum(),
        Type::Struct(_, fields) => fields.iter().map(|field| nodes(&field.ty)).sum(),
        // Takes bytes, so it bounds itself.
        _ => 0,
    }
}

/// Whether an option holds something; if not, its room is skipped.
pub(super) fn take_option(item: &Type, input: &mut Input<'_>) -> Result<bool, DecodeError> {
    let some = bool::decode(input)?;
    if !some {
        take(input, item.width().unwrap_or(0))?;
    }
    Ok(some)
}

/// The variant of an enum, and its fields if they have a fixed room (else they follow in `input`).
fn take_variant<'v, 'a>(
    variants: &'v [Variant],
    body_bytes: Option<u32>,
    input: &mut Input<'a>,
) -> Result<(&'v Variant, Input<'a>), DecodeError> {
    let index = usize::from(u16::decode(input)?);
    let variant = variants.get(index).ok_or(DecodeError::Invalid("an enum has no variant of this index"))?;
    Ok((variant, take(input, body_bytes.unwrap_or(0) as usize)?))
}
