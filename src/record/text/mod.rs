//! Records as text, and back, driven by the [`Schema`] alone: CSV and JSON out, CSV cells in.
//!
//! Knows nothing of files, lines or compression: it works on encoded bytes and on cells that someone else has cut.
//!
//! # Out
//! [`write_csv`] writes the fields of a struct (or the items of a tuple) as the cells of a row, and anything
//! else as a single cell; [`column_names`] names them. What is not a plain value goes into its cell as JSON. Cells with
//! comma, quote or line break are quoted (RFC 4180). `None` is an empty cell; so is an empty text.
//!
//! [`write_json`] follows serde's habits: structs are objects, tuples and tuple structs arrays, a struct around one
//! unnamed field is that field, `None` is `null`, a variant without fields is its name, others are `{"Name": …}`. JSON has
//! no number for everything: `u128` and `i128` are written as strings of digits, and floats that are no numbers as
//! `"NaN"`, `"Infinity"` and `"-Infinity"`. 64-bit integers are written in full, though readers that take every number for
//! a double keep 53 bits only.
//!
//! # In
//! [`Columns`] finds the fields of a record in a header, once, and then turns rows of cells into encodings without
//! allocating:
//!
//! ```
//! use snapring::record::text::{Columns, Row};
//! use snapring::record::{Record, from_bytes};
//!
//! #[derive(Record, Debug, PartialEq)]
//! struct Flight { dest: String, dep_delay: Option<i32> }
//!
//! let columns = Columns::new(&Flight::schema(), &["dep_delay", "origin", "dest"])?.na("NA");
//! let mut bytes = Vec::new();
//! columns.parse(Row::new(b"NAEWRIAH", &[2, 5, 8]), &mut bytes)?;
//! assert_eq!(from_bytes::<Flight>(&bytes)?, Flight { dest: "IAH".into(), dep_delay: None });
//!
//! bytes.clear();
//! let error = columns.parse(Row::new(b"soonEWRIAH", &[4, 7, 10]), &mut bytes).unwrap_err();
//! assert_eq!(error.to_string(), "column `dep_delay`: \"soon\" is not Option<i32>");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod columns;
mod csv;
mod json;

pub use columns::{CellError, Columns, ColumnsError, Row};
pub use csv::{column_names, write_csv};
pub(super) use json::write_datum;
pub use json::write_json;

use super::{Schema, Type};

/// The type within structs of one unnamed field.
fn peel(mut ty: &Type) -> &Type {
    while let Type::Struct(_, fields) = ty
        && let [field] = fields.as_slice()
        && field.name == "0"
    {
        ty = &field.ty;
    }
    ty
}

/// The columns of a record: names and types.
fn columns_of(schema: &Schema) -> Vec<(String, &Type)> {
    match peel(&schema.ty) {
        Type::Struct(_, fields) => fields.iter().map(|field| (field.name.clone(), &field.ty)).collect(),
        Type::Tuple(items) => items.iter().enumerate().map(|(i, ty)| (i.to_string(), ty)).collect(),
        ty => vec![("value".to_owned(), ty)],
    }
}
