//! What attributes say about a type's past: `#[record(was = "…", default = …)]`. It stands beside the schema and does not
//! touch it.

use crate::{check, plain};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, LitStr, Member};

#[derive(Default)]
struct Hint {
    was: Option<LitStr>,
    default: Option<Expr>,
}

impl Hint {
    fn of(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut hint = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("record")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("was") {
                    hint.was = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("default") {
                    hint.default = Some(meta.value()?.parse()?);
                } else {
                    return Err(meta.error("expected `was = \"its old name\"` or `default = …`"));
                }
                Ok(())
            })?;
        }
        Ok(hint)
    }
}

/// The method that tells of them, and of those of all fields' types.
pub fn method(input: &DeriveInput) -> syn::Result<TokenStream> {
    if let Some(attribute) = input.attrs.iter().find(|attribute| attribute.path().is_ident("record")) {
        return Err(Error::new_spanned(attribute, "names of types may change: there is nothing to say about them"));
    }
    let mut said = TokenStream::new();
    match &input.data {
        Data::Struct(data) => said.extend(of_fields("", &data.fields)?),
        Data::Enum(data) => {
            for variant in &data.variants {
                let name = plain(&variant.ident);
                let hint = Hint::of(&variant.attrs)?;
                if let Some(default) = hint.default {
                    return Err(Error::new_spanned(default, "a variant has no default: its fields may have one each"));
                }
                said.extend(hint.was.map(|was| quote!(hints.was::<Self>(#name, "", #was);)));
                said.extend(of_fields(&name, &variant.fields)?);
            }
        }
        Data::Union(_) => {}
    }
    let types = check::types(input);
    Ok(quote! {
        fn hints(hints: &mut ::snapring::record::Hints) {
            #(<#types as ::snapring::record::Record>::hints(hints);)*
            #said
        }
    })
}

fn of_fields(variant: &str, fields: &Fields) -> syn::Result<TokenStream> {
    let mut said = TokenStream::new();
    for (member, field) in fields.members().zip(fields) {
        let Hint { was, default } = Hint::of(&field.attrs)?;
        let name = match member {
            Member::Named(name) => plain(&name),
            Member::Unnamed(index) => index.index.to_string(),
        };
        said.extend(was.map(|was| quote!(hints.was::<Self>(#variant, #name, #was);)));
        let ty = &field.ty;
        said.extend(default.map(|default| {
            quote_spanned! {default.span()=>
                let first: #ty = #default;
                hints.first::<Self, #ty>(#variant, #name, &first);
            }
        }));
    }
    Ok(said)
}
