//! The signatures of a record and what is the same in all of them. The bodies come from [`structs`](crate::structs) and
//! [`enums`](crate::enums), which may use `self`, `out`, `input`, `mirror` and `?`.

use proc_macro2::TokenStream;
use quote::quote;

/// The constants, the mirror's type and the schema. `records` are the types of all fields.
pub fn description(
    records: &[TokenStream],
    width: &TokenStream,
    mirror: &TokenStream,
    schema: &TokenStream,
) -> TokenStream {
    quote! {
        const WIDTH: ::core::option::Option<usize> = #width;
        const DEPTH: usize = ::snapring::record::__private::depth(&[#(#records::DEPTH),*]);
        type Mirror = #mirror;

        fn schema() -> ::snapring::record::Schema {
            #schema
        }
    }
}

/// Encoding and decoding, field by field unless the layout is fixed.
pub fn streams(encode: &TokenStream, decode: &TokenStream, decode_into: &TokenStream) -> TokenStream {
    quote! {
        #[inline]
        fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
            if Self::WIDTH.is_some() {
                return ::snapring::record::__private::encode_fixed(self, out);
            }
            #encode
        }

        #[inline]
        fn decode(
            input: &mut ::snapring::record::Input<'_>,
        ) -> ::core::result::Result<Self, ::snapring::record::DecodeError> {
            if Self::WIDTH.is_some() {
                return ::snapring::record::__private::decode_fixed(input);
            }
            ::core::result::Result::Ok(#decode)
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
            #decode_into
            ::core::result::Result::Ok(())
        }
    }
}

/// Storing and loading the fixed layout.
pub fn mirrors(to_mirror: &TokenStream, from_mirror: &TokenStream) -> TokenStream {
    quote! {
        #[inline]
        fn to_mirror(&self, mirror: &mut Self::Mirror) {
            #to_mirror
        }

        #[inline]
        fn from_mirror(
            mirror: &Self::Mirror,
        ) -> ::core::result::Result<Self, ::snapring::record::DecodeError> {
            ::core::result::Result::Ok(#from_mirror)
        }
    }
}
