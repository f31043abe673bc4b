//! What cannot be a record, told at the place where it is written. Whether the other types are records, the compiler
//! finds out by the trait.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Data, DeriveInput, Error, Fields, GenericArgument, Generics, Ident, PathArguments, Type};

pub fn owns_its_data(input: &DeriveInput) -> syn::Result<()> {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(Error::new_spanned(lifetime, "a record owns its data: it cannot have a lifetime"));
    }
    match &input.data {
        Data::Struct(data) => fields(&input.ident, &data.fields),
        Data::Enum(data) => data.variants.iter().try_for_each(|variant| fields(&input.ident, &variant.fields)),
        Data::Union(_) => Ok(()),
    }
}

fn fields(name: &Ident, fields: &Fields) -> syn::Result<()> {
    fields.iter().try_for_each(|field| {
        owned(&field.ty)?;
        match contains(&field.ty, name) {
            true => Err(Error::new_spanned(&field.ty, "a record cannot contain itself: its schema would have no end")),
            false => Ok(()),
        }
    })
}

/// The types of all fields that mention no parameter of the item.
pub fn types_without_parameters(input: &DeriveInput) -> Vec<&Type> {
    let types = types(input).into_iter();
    types.filter(|ty| !mentions_any(ty.to_token_stream(), &input.generics)).collect()
}

/// The types of all fields.
pub fn types(input: &DeriveInput) -> Vec<&Type> {
    let fields: Vec<&Fields> = match &input.data {
        Data::Struct(data) => vec![&data.fields],
        Data::Enum(data) => data.variants.iter().map(|variant| &variant.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    fields.into_iter().flatten().map(|field| &field.ty).collect()
}

fn mentions_any(tokens: TokenStream, generics: &Generics) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => mentions_any(group.stream(), generics),
        TokenTree::Ident(ident) => {
            ident == "Self"
                || generics.type_params().any(|parameter| parameter.ident == ident)
                || generics.const_params().any(|parameter| parameter.ident == ident)
        }
        _ => false,
    })
}

/// Whether the type is spelt with this name. Longer ways round are found by the constant `Record::DEPTH`, which then has
/// no value; this only gives the usual mistake a message of its own.
fn contains(ty: &Type, name: &Ident) -> bool {
    match ty {
        Type::Array(array) => contains(&array.elem, name),
        Type::Tuple(tuple) => tuple.elems.iter().any(|item| contains(item, name)),
        Type::Path(path) => {
            let is_name = path.path.is_ident(name) || path.path.is_ident("Self");
            is_name
                || path.path.segments.iter().any(|segment| match &segment.arguments {
                    PathArguments::AngleBracketed(arguments) => arguments
                        .args
                        .iter()
                        .any(|argument| matches!(argument, GenericArgument::Type(ty) if contains(ty, name))),
                    _ => false,
                })
        }
        _ => false,
    }
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
