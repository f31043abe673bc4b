//! `#[derive(KeyedState)]`: the states of an operator, by the names of the fields. What a state is, it does not know: the
//! compiler finds out by a trait.

use crate::plain;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, Ident, Type, WherePredicate, parse_quote};

/// A field, and what it becomes.
struct State<'a> {
    member: &'a Ident,
    name: String,
    ty: &'a Type,
    /// `Option<u64>`.
    ttl_ms: TokenStream,
}

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let states = fields(input)?.map(state).collect::<syn::Result<Vec<_>>>()?;
    if states.is_empty() {
        return Err(Error::new_spanned(&input.ident, "an operator's state has at least one field"));
    }
    let mut generics = input.generics.clone();
    // A field that is no state is then one error, at its type.
    let bounds = states.iter().map(|state| -> WherePredicate {
        let (ty, private) = (state.ty, private());
        let bound = quote_spanned!(ty.span()=> #private::Kind);
        parse_quote!(#ty: #bound)
    });
    generics.make_where_clause().predicates.extend(bounds);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let (name, private, body) = (&input.ident, private(), body(&states));
    Ok(quote! {
        #[automatically_derived]
        #[allow(trivial_bounds)]
        impl #impl_generics ::snapring::operator::KeyedState for #name #type_generics #where_clause {
            type Kept<__Key: ::snapring::record::Record> = #private::Several<__Key, Self>;
        }

        #[automatically_derived]
        #[allow(trivial_bounds)]
        impl #impl_generics #private::States for #name #type_generics #where_clause {
            #body
        }
    })
}

fn body(states: &[State<'_>]) -> TokenStream {
    let private = private();
    let members: Vec<_> = states.iter().map(|state| state.member).collect();
    let names: Vec<_> = states.iter().map(|state| &state.name).collect();
    let types: Vec<_> = states.iter().map(|state| state.ty).collect();
    let ttls: Vec<_> = states.iter().map(|state| &state.ttl_ms).collect();
    quote! {
        const NAMES: &'static [&'static str] = &[#(#names),*];

        fn tables<__Key: ::snapring::record::Record>(tables: &mut #private::Tables) {
            #(tables.state::<__Key, #types>(#names, #ttls);)*
        }

        fn open<__Key: ::snapring::record::Record>(
            opening: &#private::Opening<'_>,
        ) -> ::core::result::Result<Self, ::snapring::Error> {
            ::core::result::Result::Ok(Self {
                #(#members: opening.state::<__Key, #types>(#names, #ttls)?,)*
            })
        }

        #[inline]
        fn each<__Error>(
            &mut self,
            mut show: impl ::core::ops::FnMut(
                &mut dyn #private::Work,
            ) -> ::core::result::Result<(), __Error>,
        ) -> ::core::result::Result<(), __Error> {
            #(show(&mut self.#members)?;)*
            ::core::result::Result::Ok(())
        }
    }
}

fn private() -> TokenStream {
    quote!(::snapring::operator::__private)
}

fn fields(input: &DeriveInput) -> syn::Result<impl Iterator<Item = &Field>> {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(Error::new_spanned(lifetime, "states own what they hold: the struct cannot have a lifetime"));
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter()),
            _ => Err(Error::new_spanned(&input.ident, "states have the names of fields: write `{ name: … }`")),
        },
        _ => Err(Error::new_spanned(&input.ident, "the states of an operator are the fields of a struct")),
    }
}

fn state(field: &Field) -> syn::Result<State<'_>> {
    let member = field.ident.as_ref().ok_or_else(|| Error::new_spanned(field, "states have names"))?;
    let name = plain(member);
    if name == "emitted" {
        let reason = "`emitted` is the name under which the library keeps how far the emission at the end has come";
        return Err(Error::new_spanned(member, reason));
    }
    Ok(State { member, name, ty: &field.ty, ttl_ms: ttl_ms(field)? })
}

/// The time-to-live that the attribute gives.
fn ttl_ms(field: &Field) -> syn::Result<TokenStream> {
    let mut found = quote!(::core::option::Option::None);
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("state")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("ttl_ms") {
                return Err(
                    meta.error("a state has `ttl_ms = …`: after how many milliseconds without a change it is gone")
                );
            }
            let ttl_ms: Expr = meta.value()?.parse()?;
            found = quote!(::core::option::Option::Some(#ttl_ms));
            Ok(())
        })?;
    }
    Ok(found)
}
