//! The code of a struct.

use crate::{fields, plain};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::Fields;

pub fn body(name: &Ident, source: &Fields) -> TokenStream {
    let fields = fields::of(source);
    let name = plain(name);
    let records: Vec<_> = fields.iter().map(fields::Field::record).collect();
    let members: Vec<_> = fields.iter().map(|field| &field.member).collect();
    let schemas = fields::schemas(&fields);
    let mirror = fields::mirror(&fields);
    let places = fields::places(&quote!((*mirror)), fields.len());
    quote! {
        const WIDTH: ::core::option::Option<usize> = ::snapring::record::__private::width(&[#(#records::WIDTH),*]);
        const DEPTH: usize = ::snapring::record::__private::depth(&[#(#records::DEPTH),*]);
        type Mirror = #mirror;

        fn schema() -> ::snapring::record::Schema {
            ::snapring::record::__private::struct_of(#name, #schemas)
        }

        #[inline]
        fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
            if Self::WIDTH.is_some() {
                return ::snapring::record::__private::encode_fixed(self, out);
            }
            #(#records::encode(&self.#members, out);)*
        }

        #[inline]
        fn decode(
            input: &mut ::snapring::record::Input<'_>,
        ) -> ::core::result::Result<Self, ::snapring::record::DecodeError> {
            if Self::WIDTH.is_some() {
                return ::snapring::record::__private::decode_fixed(input);
            }
            ::core::result::Result::Ok(Self { #(#members: #records::decode(input)?),* })
        }

        #[inline]
        fn decode_into(
            &mut self,
            input: &mut ::snapring::record::Input<'_>,
        ) -> ::core::result::Result<(), ::snapring::record::DecodeError> {
            if Self::WIDTH.is_some() {
                *self = ::snapring::record::__private::decode_fixed(input)?;
                return ::core::result::Result::Ok(());
            }
            #(#records::decode_into(&mut self.#members, input)?;)*
            ::core::result::Result::Ok(())
        }

        #[inline]
        fn to_mirror(&self, mirror: &mut Self::Mirror) {
            let _ = &mirror;
            #(#records::to_mirror(&self.#members, &mut #places);)*
        }

        #[inline]
        fn from_mirror(
            mirror: &Self::Mirror,
        ) -> ::core::result::Result<Self, ::snapring::record::DecodeError> {
            let _ = mirror;
            ::core::result::Result::Ok(Self { #(#members: #records::from_mirror(& #places)?),* })
        }
    }
}
