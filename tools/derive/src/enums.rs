//! The code of an enum.
//!
//! If every field has a fixed layout, all variants take the room of the largest, which is a constant of the mirror's type.
//! Such a constant cannot depend on a type parameter: enums with type parameters are always of variable length.

use crate::{fields, methods, plain};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{DataEnum, Error};

struct Variant<'a> {
    name: &'a Ident,
    index: u16,
    fields: Vec<fields::Field<'a>>,
}

pub fn body(name: &Ident, data: &DataEnum, generic: bool) -> syn::Result<TokenStream> {
    if data.variants.is_empty() {
        return Err(Error::new_spanned(name, "an enum without variants has no values to record"));
    }
    let mut variants = Vec::new();
    for (index, variant) in data.variants.iter().enumerate() {
        let index = u16::try_from(index).map_err(|_| Error::new_spanned(variant, "more than 65,536 variants"))?;
        variants.push(Variant { name: &variant.ident, index, fields: fields::of(&variant.fields) });
    }
    let description = description(name, &variants, generic);
    let streams = streams(name, &variants);
    let mirrors = if generic { TokenStream::new() } else { mirrors(name, &variants) };
    Ok(quote!(#description #streams #mirrors))
}

/// The constants, the mirror's type and the schema.
fn description(name: &Ident, variants: &[Variant<'_>], generic: bool) -> TokenStream {
    let records: Vec<_> = variants.iter().flat_map(|variant| &variant.fields).map(fields::Field::record).collect();
    let bodies = variants.iter().map(|variant| fields::mirror(&variant.fields));
    let (width, mirror) = if generic {
        (quote!(::core::option::Option::None), quote!(()))
    } else {
        let body = quote!(::snapring::record::__private::max(&[#(::core::mem::size_of::<#bodies>()),*]));
        let width = quote! {
            match ::snapring::record::__private::width(&[#(#records::WIDTH),*]) {
                ::core::option::Option::Some(_) => ::core::option::Option::Some(::core::mem::size_of::<Self::Mirror>()),
                ::core::option::Option::None => ::core::option::Option::None,
            }
        };
        (width, quote!(::snapring::record::__private::Pair<::snapring::record::__private::U16, [u8; #body]>))
    };
    let name = plain(name);
    let names = variants.iter().map(|variant| plain(variant.name));
    let schemas = variants.iter().map(|variant| fields::schemas(&variant.fields));
    let schema = quote! {
        ::snapring::record::__private::enum_of(#name, Self::WIDTH, ::std::vec![#((#names, #schemas)),*])
    };
    methods::description(&records, &width, &mirror, &schema)
}

/// The last arm of a match over indices.
fn unknown(name: &Ident) -> TokenStream {
    let unknown = format!("no variant of `{}` has this index", plain(name));
    quote!(_ => return ::core::result::Result::Err(::snapring::record::DecodeError::Invalid(#unknown)))
}

/// Encoding and decoding, for either layout.
fn streams(name: &Ident, variants: &[Variant<'_>]) -> TokenStream {
    let (mut encode, mut decode, mut decode_into) = (Vec::new(), Vec::new(), Vec::new());
    for Variant { name, index, fields } in variants {
        let records: Vec<_> = fields.iter().map(fields::Field::record).collect();
        let (members, variables): (Vec<_>, Vec<_>) = fields.iter().map(|f| (&f.member, &f.variable)).unzip();
        encode.push(quote! {
            Self::#name { #(#members: #variables),* } => {
                <u16 as ::snapring::record::Record>::encode(&#index, out);
                #(#records::encode(#variables, out);)*
            }
        });
        decode.push(quote!(#index => Self::#name { #(#members: #records::decode(input)?),* },));
        if !fields.is_empty() {
            decode_into.push(quote! {
                (Self::#name { #(#members: #variables),* }, ::core::option::Option::Some(#index)) => {
                    ::snapring::record::__private::take(input, 2)?;
                    #(#records::decode_into(#variables, input)?;)*
                }
            });
        }
    }
    let unknown = unknown(name);
    methods::streams(
        &quote!(match self { #(#encode)* }),
        &quote!(match <u16 as ::snapring::record::Record>::decode(input)? { #(#decode)* #unknown, }),
        &quote! {
            match (&mut *self, ::snapring::record::__private::peek_index(input)) {
                #(#decode_into)*
                _ => *self = <Self as ::snapring::record::Record>::decode(input)?,
            }
        },
    )
}

/// Storing and loading the fixed layout.
fn mirrors(name: &Ident, variants: &[Variant<'_>]) -> TokenStream {
    let (mut store, mut load) = (Vec::new(), Vec::new());
    for Variant { name, index, fields } in variants {
        let mirror = fields::mirror(fields);
        let records: Vec<_> = fields.iter().map(fields::Field::record).collect();
        let (members, variables): (Vec<_>, Vec<_>) = fields.iter().map(|f| (&f.member, &f.variable)).unzip();
        let places = fields::places(&quote!((*body)), fields.len());
        store.push(quote! {
            Self::#name { #(#members: #variables),* } => {
                mirror.0.set(#index);
                let body = ::snapring::record::__private::body_mut::<#mirror>(&mut mirror.1);
                let _ = &body;
                #(#records::to_mirror(#variables, &mut #places);)*
            }
        });
        load.push(quote! {
            #index => {
                let body = ::snapring::record::__private::body::<#mirror>(&mirror.1)?;
                let _ = body;
                Self::#name { #(#members: #records::from_mirror(&#places)?),* }
            }
        });
    }
    let unknown = unknown(name);
    methods::mirrors(&quote!(match self { #(#store)* }), &quote!(match mirror.0.get() { #(#load)* #unknown, }))
}
