//! Which cell of a row is which field of a record.

use super::{cell, columns_of};
use crate::record::{Schema, Type};

/// A row cut into cells, as `csv-core` leaves it: the text of all cells without separators, and where each ends.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    text: &'a [u8],
    ends: &'a [usize],
}

impl<'a> Row<'a> {
    /// A row. `ends` rise, and none is beyond the text.
    #[must_use]
    pub fn new(text: &'a [u8], ends: &'a [usize]) -> Self {
        Self { text, ends }
    }

    /// The number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is no cell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A cell.
    #[must_use]
    pub fn cell(&self, index: usize) -> Option<&'a [u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(start..end)
    }
}

/// Why a header does not serve a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnsError {
    /// Columns that the record needs.
    #[error("no column {}; there are {}", list(.missing), list(.found))]
    Missing {
        /// Those that are not there.
        missing: Vec<String>,
        /// Those that are.
        found: Vec<String>,
    },
    /// Two columns have a name that the record needs.
    #[error("there are two columns `{0}`: rename one of them")]
    Twice(String),
    /// A field that no cell can hold.
    #[error(
        "field `{field}` is {expected}, which cannot be read from a cell: read it as text and parse it in a `try_map`"
    )]
    NoCell {
        /// The field.
        field: String,
        /// Its type.
        expected: String,
    },
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Why a row is not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// A cell's text is not a value of the field's type.
    #[error("column `{column}`: {text:?} is not {expected}")]
    Value {
        /// The column's name.
        column: String,
        /// The text, shortened if it is long.
        text: String,
        /// The field's type.
        expected: String,
    },
    /// The row has more or fewer cells than the header.
    #[error("{found} cells where there should be {expected}")]
    Count {
        /// What the row has.
        found: usize,
        /// What the header has.
        expected: usize,
    },
}

/// Where the fields of a record are in a row. See the [module](super).
///
/// Types a cell can hold: numbers (spaces around them are ignored), `bool` (`true`, `false`, `1`, `0`), `char`, text,
/// enums of variants without fields (by name), structs around one unnamed field of these, and `Option`s: an empty cell
/// is `None`, and so is the marker that [`na`](Self::na) sets.
#[derive(Clone, Debug)]
pub struct Columns {
    /// In the order of the fields.
    columns: Vec<Column>,
    /// The number of cells of a row.
    cells: usize,
    na: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    cell: usize,
    ty: Type,
}

impl Columns {
    /// Finds the fields of a struct by their names in a header. The items of a tuple, the unnamed fields of a struct, and
    /// a record that is a single cell have no names: they are the first columns.
    ///
    /// # Errors
    /// Columns are missing or there twice, or a field has a type that no cell can hold.
    pub fn new(schema: &Schema, header: &[impl AsRef<str>]) -> Result<Self, ColumnsError> {
        let header: Vec<_> = header.iter().map(|name| name.as_ref().trim()).collect();
        let fields = columns_of(schema);
        let by_name =
            matches!(super::peel(&schema.ty), Type::Struct(_, fields) if !crate::record::schema::is_tuple(fields));
        let (mut columns, mut missing) = (Vec::new(), Vec::new());
        for (i, (name, ty)) in fields.into_iter().enumerate() {
            if !cell::fits(ty) {
                return Err(ColumnsError::NoCell { field: name, expected: ty.to_string() });
            }
            let cell = if by_name { find(&header, &name)? } else { Some(i).filter(|i| *i < header.len()) };
            match cell {
                Some(cell) => columns.push(Column { name, cell, ty: ty.clone() }),
                None => missing.push(name),
            }
        }
        if !missing.is_empty() {
            let found = header.iter().map(|name| (*name).to_owned()).collect();
            return Err(ColumnsError::Missing { missing, found });
        }
        Ok(Self { columns, cells: header.len(), na: None })
    }

    /// For rows without a header: the fields in their order.
    ///
    /// # Errors
    /// A field has a type that no cell can hold.
    pub fn in_order(schema: &Schema) -> Result<Self, ColumnsError> {
        Self::new(schema, &super::column_names(schema))
    }

    /// A text that stands for `None`, beside the empty one.
    #[must_use]
    pub fn na(mut self, marker: &str) -> Self {
        self.na = Some(marker.as_bytes().to_vec());
        self
    }

    /// Appends the encoding of the record that the row holds. Allocates nothing if `out` has room.
    ///
    /// # Errors
    /// A cell is not a value of its field's type, or the row has not as many cells as the header; `out` is then as before.
    pub fn parse(&self, row: Row<'_>, out: &mut Vec<u8>) -> Result<(), CellError> {
        if row.len() != self.cells {
            return Err(CellError::Count { found: row.len(), expected: self.cells });
        }
        let start = out.len();
        for column in &self.columns {
            let text = row.cell(column.cell).unwrap_or_default();
            if cell::encode(&column.ty, text, self.na.as_deref(), out).is_none() {
                out.truncate(start);
                return Err(column.refuse(text));
            }
        }
        Ok(())
    }
}

impl Column {
    #[cold]
    fn refuse(&self, text: &[u8]) -> CellError {
        const SHOWN_CHARS: usize = 60;
        let text = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN_CHARS + 4)]);
        let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        CellError::Value { column: self.name.clone(), text: shown, expected: self.ty.to_string() }
    }
}

fn find(header: &[&str], name: &str) -> Result<Option<usize>, ColumnsError> {
    let mut places = (0..header.len()).filter(|i| header[*i] == name);
    match (places.next(), places.next()) {
        (_, Some(_)) => Err(ColumnsError::Twice(name.to_owned())),
        (place, None) => Ok(place),
    }
}
