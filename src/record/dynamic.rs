//! Values without their Rust types: a tree, decoded by a schema alone. For tools that look into snapshots of jobs whose code
//! they do not have. It believes nothing that the bytes say, and knows nothing of where they come from.

use super::mirror::{clear, take};
use super::{DecodeError, Field, Input, Record, Scalar, Type, Variant};
use std::borrow::Cow;
use std::fmt::{self, Debug as _};

/// A value as its schema says: names are borrowed from the schema, texts from the bytes.
///
/// What is accepted is what [`Record::decode`] of the type accepts, unless it holds very many values without bytes. Displayed, it is one line that reads like
/// the `{:?}` of the value in Rust; [`Datum::to_json`] is what [`write_json`](super::text::write_json) writes.
///
/// ```
/// use snapring::record::{Datum, Record, Schema, to_bytes};
///
/// #[derive(Record)]
/// enum Message { Ping, Transfer { to: u32, amount: i64, note: Option<String> } }
///
/// // As they lie in a snapshot.
/// let schema = Message::schema().to_bytes();
/// let bytes = to_bytes(&Message::Transfer { to: 7, amount: -5, note: None });
///
/// let schema = Schema::decode(&mut schema.as_slice())?;
/// let datum = Datum::from_bytes(&schema.ty, &bytes)?;
/// assert_eq!(datum.to_string(), "Transfer { to: 7, amount: -5, note: None }");
/// assert_eq!(datum.to_json(), r#"{"Transfer":{"to":7,"amount":-5,"note":null}}"#);
/// assert_eq!(datum.field("amount").and_then(Datum::integer), Some(-5));
/// # let _ = Message::Ping;
/// # Ok::<(), snapring::record::DecodeError>(())
/// ```
#[derive(Clone, PartialEq)]
pub enum Datum<'a> {
    /// A value without parts.
    Plain(Scalar<'a>),
    /// An `Option`.
    Option(Option<Box<Datum<'a>>>),
    /// A `Vec` or an array.
    List(Vec<Datum<'a>>),
    /// A tuple.
    Tuple(Vec<Datum<'a>>),
    /// A struct: its name, and its fields by name; those of a tuple struct are named `0`, `1`, ….
    Struct(&'a str, Vec<(&'a str, Datum<'a>)>),
    /// An enum's variant: its name, and its fields as those of a struct.
    Variant(&'a str, Vec<(&'a str, Datum<'a>)>),
}

impl<'a> Datum<'a> {
    /// Reads one value of this type from the front of `input` and moves `input` past it. Takes memory in proportion to the
    /// bytes, and for some values without bytes.
    ///
    /// # Errors
    /// The bytes end too early, do not form a value, or stand for more than 65,536 values without bytes. Never panics, as long as the
    /// type comes from a [`Record`] or from [`Schema::decode`](super::Schema::decode).
    pub fn decode(ty: &'a Type, input: &mut Input<'a>) -> Result<Self, DecodeError> {
        Decoder { zero_width_left: ZERO_WIDTH_MAX }.value(ty, input)
    }

    /// The value that takes up all of `bytes`.
    ///
    /// # Errors
    /// As [`Datum::decode`]; [`DecodeError::Trailing`] if bytes are left.
    pub fn from_bytes(ty: &'a Type, mut bytes: Input<'a>) -> Result<Self, DecodeError> {
        let datum = Self::decode(ty, &mut bytes)?;
        if bytes.is_empty() { Ok(datum) } else { Err(DecodeError::Trailing { bytes: bytes.len() }) }
    }

    /// The field of this name, of a struct or a variant. What has a single unnamed field, or is an option, stands for what is
    /// in it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Datum<'a>> {
        match self {
            Self::Option(item) => item.as_ref()?.field(name),
            Self::Struct(_, fields) | Self::Variant(_, fields) => match fields.as_slice() {
                [("0", only)] if name != "0" => only.field(name),
                fields => fields.iter().find(|(other, _)| *other == name).map(|(_, value)| value),
            },
            _ => None,
        }
    }

    /// The number, if this is an integer, or a struct around nothing else. None above `i128::MAX`.
    #[must_use]
    pub fn integer(&self) -> Option<i128> {
        match self {
            Self::Plain(Scalar::Unsigned(number)) => Some((*number).into()),
            Self::Plain(Scalar::Signed(number)) => Some((*number).into()),
            Self::Plain(Scalar::WideUnsigned(number)) => i128::try_from(*number).ok(),
            Self::Plain(Scalar::WideSigned(number)) => Some(*number),
            Self::Struct(_, fields) => match fields.as_slice() {
                [("0", only)] => only.integer(),
                _ => None,
            },
            _ => None,
        }
    }

    /// As JSON in one line; how: see [`text`](super::text).
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        super::text::write_datum(self, &mut out);
        String::from_utf8(out).unwrap_or_else(|_| unreachable!("what is written is UTF-8"))
    }

    /// Whether this has fields without names.
    pub(super) fn is_tuple(&self) -> bool {
        match self {
            Self::Struct(_, fields) | Self::Variant(_, fields) => fields.first().is_some_and(|(name, _)| *name == "0"),
            _ => false,
        }
    }
}

/// A node of the tree takes memory even where the value takes none.
const ZERO_WIDTH_MAX: usize = 1 << 16;

struct Decoder {
    /// How many more values without bytes may come: no length in a hostile input bounds these.
    zero_width_left: usize,
}

impl Decoder {
    fn value<'a>(&mut self, ty: &'a Type, input: &mut Input<'a>) -> Result<Datum<'a>, DecodeError> {
        let before = input.len();
        let datum = self.any(ty, input)?;
        if input.len() == before {
            let left = self.zero_width_left.checked_sub(1);
            self.zero_width_left = left.ok_or(DecodeError::Invalid("too many values without bytes"))?;
        }
        Ok(datum)
    }

    fn any<'a>(&mut self, ty: &'a Type, input: &mut Input<'a>) -> Result<Datum<'a>, DecodeError> {
        Ok(match ty {
            Type::Option(item) => Datum::Option(self.option(item, input)?),
            Type::List(item) => {
                let count = u32::decode(input)?;
                Datum::List(self.items(count, item, input)?)
            }
            Type::Array(count, item) => Datum::List(self.items(*count, item, input)?),
            Type::Tuple(items) => {
                Datum::Tuple(items.iter().map(|item| self.value(item, input)).collect::<Result<_, _>>()?)
            }
            Type::Struct(name, fields) => Datum::Struct(name, self.fields(fields, input)?),
            Type::Enum { variants, body_bytes, .. } => self.variant(variants, *body_bytes, input)?,
            plain => match Scalar::take(plain, input)? {
                Some(scalar) => Datum::Plain(scalar),
                None => unreachable!("every type with parts is above"),
            },
        })
    }

    fn option<'a>(&mut self, item: &'a Type, input: &mut Input<'a>) -> Result<Option<Box<Datum<'a>>>, DecodeError> {
        if bool::decode(input)? {
            return Ok(Some(Box::new(self.value(item, input)?)));
        }
        clear(take(input, item.width().unwrap_or(0))?)?;
        Ok(None)
    }

    /// The list grows by what has been read: the count is not believed.
    fn items<'a>(&mut self, count: u32, item: &'a Type, input: &mut Input<'a>) -> Result<Vec<Datum<'a>>, DecodeError> {
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(self.value(item, input)?);
        }
        Ok(items)
    }

    fn fields<'a>(
        &mut self,
        fields: &'a [Field],
        input: &mut Input<'a>,
    ) -> Result<Vec<(&'a str, Datum<'a>)>, DecodeError> {
        fields.iter().map(|field| Ok((field.name.as_str(), self.value(&field.ty, input)?))).collect()
    }

    fn variant<'a>(
        &mut self,
        variants: &'a [Variant],
        body_bytes: Option<u32>,
        input: &mut Input<'a>,
    ) -> Result<Datum<'a>, DecodeError> {
        let index = usize::from(u16::decode(input)?);
        let variant = variants.get(index).ok_or(DecodeError::Invalid("an enum has no variant of this index"))?;
        let fields = match body_bytes {
            None => self.fields(&variant.fields, input)?,
            Some(bytes) => {
                let mut body = take(input, bytes as usize)?;
                let fields = self.fields(&variant.fields, &mut body)?;
                clear(body)?;
                fields
            }
        };
        Ok(Datum::Variant(&variant.name, fields))
    }
}

impl fmt::Display for Datum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// As the value's own `{:?}`.
impl fmt::Debug for Datum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(scalar) => show_scalar(*scalar, f),
            Self::Option(item) => item.fmt(f),
            Self::List(items) => f.debug_list().entries(items).finish(),
            Self::Tuple(items) if items.is_empty() => f.write_str("()"),
            Self::Tuple(items) => items.iter().fold(&mut f.debug_tuple(""), |tuple, item| tuple.field(item)).finish(),
            Self::Struct(name, fields) | Self::Variant(name, fields) => {
                let name = in_one_line(name);
                if self.is_tuple() {
                    fields.iter().fold(&mut f.debug_tuple(&name), |tuple, (_, value)| tuple.field(value)).finish()
                } else {
                    let mut shown = f.debug_struct(&name);
                    fields
                        .iter()
                        .fold(&mut shown, |shown, (name, value)| shown.field(&in_one_line(name), value))
                        .finish()
                }
            }
        }
    }
}

fn show_scalar(scalar: Scalar<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match scalar {
        Scalar::Unsigned(number) => number.fmt(f),
        Scalar::Signed(number) => number.fmt(f),
        Scalar::WideUnsigned(number) => number.fmt(f),
        Scalar::WideSigned(number) => number.fmt(f),
        Scalar::Float32(number) => number.fmt(f),
        Scalar::Float64(number) => number.fmt(f),
        Scalar::Bool(is) => is.fmt(f),
        Scalar::Char(char) => char.fmt(f),
        Scalar::Text(text) => text.fmt(f),
    }
}

/// Names come out of the snapshot too: one may hold what a terminal obeys.
fn in_one_line(name: &str) -> Cow<'_, str> {
    if name.contains(char::is_control) { name.escape_debug().to_string().into() } else { name.into() }
}
