//! Tuples of up to twelve records.

use super::mirror::{Pair, decode_fixed, depth, encode_fixed, width};
use super::{DecodeError, Hints, Input, Record, Schema, Type};

/// The mirror of some types in a row.
macro_rules! mirror {
    () => { () };
    ($first:ident $($rest:ident)*) => { Pair<$first::Mirror, mirror!($($rest)*)> };
}

/// The pattern that takes such a mirror apart.
macro_rules! parts {
    () => { () };
    ($first:ident $($rest:ident)*) => { Pair($first, parts!($($rest)*)) };
}

macro_rules! tuple {
    ($($t:ident $item:ident $place:ident),*) => {
        impl<$($t: Record),*> Record for ($($t,)*) {
            const WIDTH: Option<usize> = width(&[$($t::WIDTH),*]);
            const DEPTH: usize = depth(&[$($t::DEPTH),*]);
            type Mirror = mirror!($($t)*);

            fn schema() -> Schema {
                Schema::new(Type::Tuple(vec![$($t::schema().ty),*]))
            }

            fn hints(hints: &mut Hints) {
                $($t::hints(hints);)*
            }

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                if Self::WIDTH.is_some() {
                    return encode_fixed(self, out);
                }
                let ($($item,)*) = self;
                $($item.encode(out);)*
            }

            #[inline]
            fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
                if Self::WIDTH.is_some() {
                    return decode_fixed(input);
                }
                Ok(($($t::decode(input)?,)*))
            }

            #[inline]
            fn decode_into(&mut self, input: &mut Input<'_>) -> Result<(), DecodeError> {
                if Self::WIDTH.is_some() {
                    *self = decode_fixed(input)?;
                    return Ok(());
                }
                let ($($item,)*) = self;
                $($item.decode_into(input)?;)*
                Ok(())
            }

            #[inline]
            fn to_mirror(&self, mirror: &mut Self::Mirror) {
                let ($($item,)*) = self;
                let parts!($($place)*) = mirror;
                $($item.to_mirror($place);)*
            }

            #[inline]
            fn from_mirror(mirror: &Self::Mirror) -> Result<Self, DecodeError> {
                let parts!($($place)*) = mirror;
                Ok(($($t::from_mirror($place)?,)*))
            }
        }
    };
}

impl Record for () {
    const WIDTH: Option<usize> = Some(0);
    type Mirror = ();

    fn schema() -> Schema {
        Schema::new(Type::Tuple(Vec::new()))
    }

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &mut Input<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }

    fn from_mirror((): &()) -> Result<Self, DecodeError> {
        Ok(())
    }
}

tuple!(A a pa);
tuple!(A a pa, B b pb);
tuple!(A a pa, B b pb, C c pc);
tuple!(A a pa, B b pb, C c pc, D d pd);
tuple!(A a pa, B b pb, C c pc, D d pd, E e pe);
tuple!(A a pa, B b pb, C c pc, D d pd, E e pe, F f pf);
tuple!(A a pa, B b pb, C c pc, D d pd, E e pe, F f pf, G g pg);
tuple!(A a pa, B b pb, C c pc, D d pd, E e pe, F f pf, G g pg, H h ph);
tuple!(A a pa, B b pb, C c pc, D d pd, E e pe, F f pf, G g pg, H h ph, I i pi);
tuple!(A a pa, B b pb, C c pc, D d pd, E e pe, F f pf, G g pg, H h ph, I i pi, J j pj);
tuple!(A a pa, B b pb, C c pc, D d pd, E e pe, F f pf, G g pg, H h ph, I i pi, J j pj, K k pk);
tuple!(A a pa, B b pb, C c pc, D d pd, E e pe, F f pf, G g pg, H h ph, I i pi, J j pj, K k pk, L l pl);
