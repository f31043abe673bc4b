//! What attributes say about a type's past: old names, and what a field is at first that an old value does not have. It
//! stands beside the schema, which does not change by it.
//!
//! It goes by the names of types and fields, not by the types of today: values may have to go through types in between, of
//! which no attribute is left but those of today.

use crate::record::{Record, Type, to_bytes};

/// What attributes of a record, and of all that it holds, say about its past.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    synonyms: Vec<Synonyms>,
    firsts: Vec<First>,
}

/// A field or variant, and the names that it has had.
#[derive(Clone, Debug)]
struct Synonyms {
    of: Place,
    names: Vec<String>,
}

/// What a field is at first.
#[derive(Clone, Debug)]
struct First {
    of: Place,
    field: String,
    ty: Type,
    bytes: Vec<u8>,
}

/// A struct, or a variant of an enum; of the variants of an enum themselves: none.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    ty: String,
    variant: Option<String>,
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
        let Some(ty) = name(&T::schema().ty).map(str::to_owned) else { return };
        let (of, name) = match field {
            "" => (Place { ty, variant: None }, variant),
            field => (Place { ty, variant: Some(variant.to_owned()) }, field),
        };
        let has = |synonyms: &&mut Synonyms| synonyms.of == of && synonyms.names[0] == name;
        match self.synonyms.iter_mut().find(has) {
            Some(synonyms) => synonyms.names.push(was.to_owned()),
            None => self.synonyms.push(Synonyms { of, names: vec![name.to_owned(), was.to_owned()] }),
        }
    }

    /// A field that is gained has this value at first.
    #[doc(hidden)]
    pub fn first<T: Record, F: Record>(&mut self, variant: &str, field: &str, first: &F) {
        let Some(ty) = name(&T::schema().ty).map(str::to_owned) else { return };
        let of = Place { ty, variant: Some(variant.to_owned()) };
        self.firsts.push(First { of, field: field.to_owned(), ty: F::schema().ty, bytes: to_bytes(first) });
    }

    /// Other names of a variant of a type, as it may have or have had.
    pub(super) fn of_variant<'a>(&'a self, ty: &'a Type, variant: &'a str) -> impl Iterator<Item = &'a str> {
        let is_it = move |of: &Place| of.variant.is_none() && name(ty) == Some(&of.ty);
        self.others(is_it, variant)
    }

    /// Other names of a field, as it may have or have had.
    pub(super) fn of_field<'a>(
        &'a self,
        ty: &'a Type,
        variant: &'a str,
        field: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        self.others(move |of| self.is_place(of, ty, variant), field)
    }

    fn others<'a>(&'a self, is_it: impl Fn(&Place) -> bool + 'a, name: &'a str) -> impl Iterator<Item = &'a str> {
        let ours = self.synonyms.iter().filter(move |synonyms| is_it(&synonyms.of));
        let with_it = ours.map(|synonyms| &synonyms.names).filter(move |names| names.iter().any(|other| other == name));
        with_it.flatten().map(String::as_str).filter(move |other| *other != name)
    }

    fn is_place(&self, of: &Place, ty: &Type, variant: &str) -> bool {
        let Some(of_variant) = &of.variant else { return false };
        name(ty) == Some(&of.ty)
            && (of_variant == variant || self.of_variant(ty, variant).any(|other| other == of_variant))
    }

    /// The encoding of what a field is at first.
    pub(super) fn first_value(&self, of: &Type, variant: &str, field: &str, ty: &Type) -> Option<&[u8]> {
        let is_it = |first: &&First| first.field == field && first.ty == *ty && self.is_place(&first.of, of, variant);
        self.firsts.iter().find(is_it).map(|first| first.bytes.as_slice())
    }
}

/// The name of a struct or an enum.
fn name(ty: &Type) -> Option<&str> {
    match ty {
        Type::Struct(name, _) | Type::Enum { name, .. } => Some(name),
        _ => None,
    }
}
