//! What attributes say about a type's past: old names, and what a field is at first that an old value does not have. It
//! stands beside the schema, which does not change by it.

use crate::record::{Record, Type, to_bytes};

/// What attributes of a record, and of all that it holds, say about its past.
#[derive(Clone, Debug, Default)]
pub struct Hints(Vec<Hint>);

#[derive(Clone, Debug)]
struct Hint {
    /// The struct or enum that it speaks of.
    of: Type,
    variant: String,
    /// Empty: it speaks of the variant.
    field: String,
    was: Option<String>,
    default: Option<Vec<u8>>,
}

impl Hints {
    /// Of a type.
    #[must_use]
    pub fn of<T: Record>() -> Self {
        let mut hints = Self::default();
        T::hints(&mut hints);
        hints
    }

    /// A field had another name. `variant` is empty in a struct, `field` is empty for the variant itself.
    #[doc(hidden)]
    pub fn was<T: Record>(&mut self, variant: &str, field: &str, was: &str) {
        self.hint::<T>(variant, field).was = Some(was.to_owned());
    }

    /// A field that is gained has this value at first.
    #[doc(hidden)]
    pub fn first<T: Record, F: Record>(&mut self, variant: &str, field: &str, default: &F) {
        self.hint::<T>(variant, field).default = Some(to_bytes(default));
    }

    fn hint<T: Record>(&mut self, variant: &str, field: &str) -> &mut Hint {
        let of = T::schema().ty;
        let at = self.0.iter().position(|hint| hint.of == of && hint.variant == variant && hint.field == field);
        let at = at.unwrap_or_else(|| {
            let (variant, field) = (variant.to_owned(), field.to_owned());
            self.0.push(Hint { of, variant, field, was: None, default: None });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    fn find(&self, of: &Type, variant: &str, field: &str) -> Option<&Hint> {
        self.0.iter().find(|hint| hint.variant == variant && hint.field == field && hint.of == *of)
    }

    /// The old name of a field or variant.
    pub(super) fn old_name(&self, of: &Type, variant: &str, field: &str) -> Option<&str> {
        self.find(of, variant, field)?.was.as_deref()
    }

    /// The encoding of what a field is at first.
    pub(super) fn first_value(&self, of: &Type, variant: &str, field: &str) -> Option<&[u8]> {
        self.find(of, variant, field)?.default.as_deref()
    }
}
