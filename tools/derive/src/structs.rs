//! The code of a struct.

use crate::{fields, methods, plain};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::Fields;

pub fn body(name: &Ident, source: &Fields) -> TokenStream {
    let fields = fields::of(source);
    let name = plain(name);
    let records: Vec<_> = fields.iter().map(fields::Field::record).collect();
    let members: Vec<_> = fields.iter().map(|field| &field.member).collect();
    let places = fields::places(&quote!((*mirror)), fields.len());
    let schemas = fields::schemas(&fields);
    let description = methods::description(
        &records,
        &quote!(::snapring::record::__private::width(&[#(#records::WIDTH),*])),
        &fields::mirror(&fields),
        &quote!(::snapring::record::__private::struct_of(#name, #schemas)),
    );
    let streams = methods::streams(
        &quote!(#(#records::encode(&self.#members, out);)*),
        &quote!(Self { #(#members: #records::decode(input)?),* }),
        &quote!(#(#records::decode_into(&mut self.#members, input)?;)*),
    );
    let mirrors = methods::mirrors(
        &quote! {
            let _ = &mirror;
            #(#records::to_mirror(&self.#members, &mut #places);)*
        },
        &quote!({
            let _ = mirror;
            Self { #(#members: #records::from_mirror(&#places)?),* }
        }),
    );
    quote!(#description #streams #mirrors)
}
