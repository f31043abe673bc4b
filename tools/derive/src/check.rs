//! What cannot be a record, told at the place where it is written. Whether the other types are records, the compiler
//! finds out by the trait.

use syn::{Data, DeriveInput, Error, Fields, Type};

pub fn owns_its_data(input: &DeriveInput) -> syn::Result<()> {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(Error::new_spanned(lifetime, "a record owns its data: it cannot have a lifetime"));
    }
    match &input.data {
        Data::Struct(data) => fields(&data.fields),
        Data::Enum(data) => data.variants.iter().try_for_each(|variant| fields(&variant.fields)),
        Data::Union(_) => Ok(()),
    }
}

fn fields(fields: &Fields) -> syn::Result<()> {
    fields.iter().try_for_each(|field| owned(&field.ty))
}

fn owned(ty: &Type) -> syn::Result<()> {
    let reason = match ty {
        Type::Reference(_) => "a record owns its data: use `String` or `Text<N>` for text, `Vec` or an array for items",
        Type::Ptr(_) | Type::BareFn(_) => "an address means nothing in a snapshot: a record holds values only",
        Type::TraitObject(_) => "a record has one known type: use an enum of the possible ones",
        Type::Slice(_) => "a record has a known size: use `Vec` or an array",
        Type::Array(array) => return owned(&array.elem),
        Type::Paren(paren) => return owned(&paren.elem),
        Type::Tuple(tuple) => return tuple.elems.iter().try_for_each(owned),
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, reason))
}
