//! What the bytes of a record mean, as data: it goes into the snapshot, so that nobody needs the job's code to read it.

/// The type of a record.
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
    List(Box<Type>),
    Array(u32, Box<Type>),
    Tuple(Vec<Type>),
    /// A struct: its name and fields.
    Struct(String, Vec<Field>),
    /// An enum: its name and variants.
    Enum(String, Vec<Variant>),
}

/// A field of a struct or of a variant. Fields of tuple structs are named `0`, `1`, ….
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the source.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Bytes from the start of the struct; none behind a field of variable length.
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
