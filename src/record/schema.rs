//! What the bytes of a record mean, as data: it goes into the snapshot, so that nobody needs the job's code to read it.

use std::fmt;

/// The type of a record.
///
/// Two schemas are equal if names, types and offsets are. One line is enough to show one:
///
/// ```
/// use snapring::record::{Record, Schema};
///
/// #[derive(Record)]
/// struct Trade { id: u64, price: Option<f64>, tags: Vec<String> }
///
/// let schema = Trade::schema();
/// assert_eq!(schema.to_string(), "Trade { id: u64, price: Option<f64>, tags: Vec<String> }");
/// assert_eq!(Schema::decode(&mut schema.to_bytes().as_slice())?, schema);
/// # Ok::<(), snapring::record::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// What the whole record is.
    pub ty: Type,
}

impl Schema {
    /// The schema of a type.
    pub fn new(ty: Type) -> Self {
        Self { ty }
    }
}

/// A type, as the encoding knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Type {
    U8,
    U16,
    U32,
    U64,
    U128,
    I8,
    I16,
    I32,
    I64,
    I128,
    F32,
    F64,
    Bool,
    Char,
    String,
    /// Inline text of at most so many bytes.
    Text(u32),
    Option(Box<Type>),
    /// A `Vec`.
    List(Box<Type>),
    Array(u32, Box<Type>),
    Tuple(Vec<Type>),
    /// A struct: its name and fields.
    Struct(String, Vec<Field>),
    /// An enum.
    Enum {
        /// Its name in the source.
        name: String,
        /// Its variants, by index.
        variants: Vec<Variant>,
        /// If it has a fixed layout: the bytes behind the index of the variant, in every value. The fields of a smaller
        /// variant are followed by zeros.
        body_bytes: Option<u32>,
    },
}

/// A field of a struct or of a variant. Fields of tuple structs are named `0`, `1`, ….
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the source.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Bytes from the start of the struct or enum; none behind a field of variable length.
    pub offset_bytes: Option<u32>,
}

/// A variant of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name in the source.
    pub name: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

impl Type {
    /// The number of bytes of every value, if all have the same: what [`Record::WIDTH`](super::Record::WIDTH) is to the
    /// type in Rust.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        Some(match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::Char => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::U128 | Self::I128 => 16,
            Self::Text(limit) => 2 + *limit as usize,
            Self::String | Self::List(_) => return None,
            Self::Option(item) => item.width()?.saturating_add(1),
            Self::Array(0, _) => 0,
            Self::Array(len, item) => item.width()?.saturating_mul(*len as usize),
            Self::Tuple(items) => sum(items)?,
            Self::Struct(_, fields) => sum(fields.iter().map(|field| &field.ty))?,
            Self::Enum { body_bytes, .. } => (*body_bytes)? as usize + 2,
        })
    }

    /// The name of a type without parts.
    fn simple_name(&self) -> Option<&'static str> {
        Some(match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::U128 => "u128",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I128 => "i128",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::Char => "char",
            Self::String => "String",
            _ => return None,
        })
    }
}

/// The width of some types in a row.
fn sum<'a>(types: impl IntoIterator<Item = &'a Type>) -> Option<usize> {
    types.into_iter().try_fold(0usize, |sum, ty| Some(sum.saturating_add(ty.width()?)))
}

/// Fields in a row, the first of them `start` bytes from the beginning.
pub(super) fn fields_of(start: usize, parts: impl IntoIterator<Item = (String, Type)>) -> Vec<Field> {
    let mut offset = Some(start);
    let field = |(name, ty): (String, Type)| {
        let offset_bytes = offset.and_then(|offset| u32::try_from(offset).ok());
        offset = offset.zip(ty.width()).map(|(offset, width)| offset.saturating_add(width));
        Field { name, ty, offset_bytes }
    };
    parts.into_iter().map(field).collect()
}

/// The schema of a struct: what the derive calls.
#[doc(hidden)]
pub fn struct_of(name: &str, fields: Vec<(&str, Schema)>) -> Schema {
    Schema::new(Type::Struct(name.to_owned(), named(0, fields)))
}

/// The schema of an enum of that width: what the derive calls.
#[doc(hidden)]
pub fn enum_of(name: &str, width: Option<usize>, variants: Vec<(&str, Vec<(&str, Schema)>)>) -> Schema {
    let variant = |(name, fields): (&str, _)| Variant { name: name.to_owned(), fields: named(2, fields) };
    Schema::new(Type::Enum {
        name: name.to_owned(),
        variants: variants.into_iter().map(variant).collect(),
        body_bytes: width.map(|bytes| super::batch::count(bytes - 2)),
    })
}

fn named(start: usize, fields: Vec<(&str, Schema)>) -> Vec<Field> {
    fields_of(start, fields.into_iter().map(|(name, schema)| (name.to_owned(), schema.ty)))
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ty.fmt(f)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(limit) => write!(f, "Text<{limit}>"),
            Self::Option(item) => write!(f, "Option<{item}>"),
            Self::List(item) => write!(f, "Vec<{item}>"),
            Self::Array(len, item) => write!(f, "[{item}; {len}]"),
            Self::Tuple(items) => {
                f.write_str("(")?;
                separated(f, items, |f, item| write!(f, "{item}"))?;
                f.write_str(if items.len() == 1 { ",)" } else { ")" })
            }
            Self::Struct(name, fields) => show_fields(f, name, fields),
            Self::Enum { name, variants, .. } => {
                write!(f, "{name} {{ ")?;
                separated(f, variants, |f, variant| show_fields(f, &variant.name, &variant.fields))?;
                f.write_str(" }")
            }
            _ => f.write_str(self.simple_name().unwrap_or_default()),
        }
    }
}

/// True for fields of a tuple struct or tuple variant.
pub(super) fn is_tuple(fields: &[Field]) -> bool {
    fields.first().is_some_and(|field| field.name == "0")
}

fn show_fields(f: &mut fmt::Formatter<'_>, name: &str, fields: &[Field]) -> fmt::Result {
    f.write_str(name)?;
    if fields.is_empty() {
        Ok(())
    } else if is_tuple(fields) {
        f.write_str("(")?;
        separated(f, fields, |f, field| write!(f, "{}", field.ty))?;
        f.write_str(")")
    } else {
        f.write_str(" { ")?;
        separated(f, fields, |f, field| write!(f, "{}: {}", field.name, field.ty))?;
        f.write_str(" }")
    }
}

fn separated<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    show: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        show(f, item)?;
    }
    Ok(())
}
