//! `#[derive(Record)]`: the field-wise code of a record. What the bytes look like is told in `snapring::record`, which the
//! generated code calls by its full path; this crate knows tokens only. `#[derive(KeyedState)]`: the states of an operator,
//! likewise for `snapring::operator`.

mod check;
mod enums;
mod fields;
mod hints;
mod methods;
mod states;
mod structs;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Ident, WherePredicate, parse_macro_input, parse_quote};

/// Makes a struct or an enum a record: see `snapring::record`.
///
/// Every field must be a record; type parameters are asked to be records. `#[record(was = "…")]` on a field or a variant: it
/// had that name before. `#[record(default = …)]` on a field: what it is in values from before it was there.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes a struct of states what an operator holds of a key: see `snapring::operator::KeyedState`.
///
/// States have the names of the fields. `#[state(ttl_ms = …)]`: after so many milliseconds without a change it is gone.
#[proc_macro_derive(KeyedState, attributes(state))]
pub fn derive_keyed_state(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    states::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    check::owns_its_data(input)?;
    let body = match &input.data {
        Data::Struct(data) => structs::body(&input.ident, &data.fields),
        Data::Enum(data) => enums::body(&input.ident, data, input.generics.type_params().next().is_some())?,
        Data::Union(data) => {
            let reason = "a union cannot be a record: its bytes do not say which field they hold; use an enum";
            return Err(syn::Error::new(data.union_token.span, reason));
        }
    };
    let hints = hints::method(input)?;
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::snapring::record::Record));
    }
    // A field that is no record is then one error, at its type; without these bounds it is many, most of them here.
    let types = check::types_without_parameters(input);
    let bounds = types.iter().map(|ty| -> WherePredicate {
        let bound = quote_spanned!(ty.span()=> ::snapring::record::Record);
        parse_quote!(#ty: #bound)
    });
    generics.make_where_clause().predicates.extend(bounds);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let name = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        #[allow(trivial_bounds)]
        impl #impl_generics ::snapring::record::Record for #name #type_generics #where_clause {
            #body
            #hints
        }
    })
}

/// The name of an item as people write it.
fn plain(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").unwrap_or(&name).to_owned()
}
