//! The fields of a struct or of a variant, and the code that goes over them in order.

use crate::plain;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Fields, Index, Member, Type};

pub struct Field<'a> {
    /// How the source calls it; tuple fields by their number.
    pub member: Member,
    /// A variable for it. The names cannot clash with anything a user writes.
    pub variable: Ident,
    ty: &'a Type,
}

pub fn of(fields: &Fields) -> Vec<Field<'_>> {
    fields
        .members()
        .zip(fields)
        .enumerate()
        .map(|(i, (member, field))| Field { member, variable: format_ident!("__field{i}"), ty: &field.ty })
        .collect()
}

impl Field<'_> {
    /// The field's type as a record. Errors point at the type.
    pub fn record(&self) -> TokenStream {
        let ty = self.ty;
        quote_spanned!(ty.span()=> <#ty as ::snapring::record::Record>)
    }

    /// The field's name and schema.
    fn schema(&self) -> TokenStream {
        let name = match &self.member {
            Member::Named(name) => plain(name),
            Member::Unnamed(index) => index.index.to_string(),
        };
        let record = self.record();
        quote!((#name, #record::schema()))
    }
}

/// `vec![(name, schema), …]`.
pub fn schemas(fields: &[Field<'_>]) -> TokenStream {
    let schemas = fields.iter().map(Field::schema);
    quote!(::std::vec![#(#schemas),*])
}

/// The mirror of fields in a row: a balanced tree, since deep types run into the compiler's recursion limit.
pub fn mirror(fields: &[Field<'_>]) -> TokenStream {
    match fields {
        [] => quote!(()),
        [field] => {
            let record = field.record();
            quote!(#record::Mirror)
        }
        _ => {
            let (left, right) = fields.split_at(fields.len() / 2);
            let (left, right) = (mirror(left), mirror(right));
            quote!(::snapring::record::__private::Pair<#left, #right>)
        }
    }
}

/// Where each of `count` fields lies in the mirror that `root` names.
pub fn places(root: &TokenStream, count: usize) -> Vec<TokenStream> {
    if count < 2 {
        return vec![root.clone(); count];
    }
    let side = |index: usize, count| {
        let index = Index::from(index);
        places(&quote!(#root.#index), count)
    };
    [side(0, count / 2), side(1, count - count / 2)].concat()
}
