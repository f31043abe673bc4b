//! `Result` as a record: what `#[derive(Record)]` would make of `enum Result<T, E> { Ok(T), Err(E) }`.

use super::mirror::{depth, peek_index, take};
use super::schema::enum_of;
use super::{DecodeError, Hints, Input, Record, Schema};

const OK: u16 = 0;
const ERR: u16 = 1;

impl<T: Record, E: Record> Record for Result<T, E> {
    /// As of any enum with type parameters.
    const WIDTH: Option<usize> = None;
    const DEPTH: usize = depth(&[T::DEPTH, E::DEPTH]);
    type Mirror = ();

    fn schema() -> Schema {
        let variants = vec![("Ok", vec![("0", T::schema())]), ("Err", vec![("0", E::schema())])];
        enum_of("Result", None, variants)
    }

    fn hints(hints: &mut Hints) {
        T::hints(hints);
        E::hints(hints);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Ok(value) => {
                OK.encode(out);
                value.encode(out);
            }
            Err(error) => {
                ERR.encode(out);
                error.encode(out);
            }
        }
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        match u16::decode(input)? {
            OK => T::decode(input).map(Ok),
            ERR => E::decode(input).map(Err),
            _ => Err(DecodeError::Invalid("no variant of `Result` has this index")),
        }
    }

    fn decode_into(&mut self, input: &mut Input<'_>) -> Result<(), DecodeError> {
        match (&mut *self, peek_index(input)) {
            (Ok(value), Some(OK)) => {
                take(input, 2)?;
                value.decode_into(input)
            }
            (Err(error), Some(ERR)) => {
                take(input, 2)?;
                error.decode_into(input)
            }
            _ => {
                *self = Self::decode(input)?;
                Ok(())
            }
        }
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::super::{from_bytes, to_bytes};
    use super::*;

    /// What the derive makes of the same shape.
    #[derive(Record)]
    enum Same<T, E> {
        Ok(T),
        Err(E),
    }

    #[test]
    fn it_is_encoded_as_an_enum_of_the_same_shape() {
        let both: [(Result<u32, String>, Same<u32, String>); 2] =
            [(Ok(7), Same::Ok(7)), (Err("bad".into()), Same::Err("bad".into()))];
        for (result, same) in &both {
            assert_eq!(to_bytes(result), to_bytes(same));
            assert_eq!(from_bytes::<Result<u32, String>>(&to_bytes(same)).as_ref(), Ok(result));
            for (before, _) in &both {
                let mut before = before.clone();
                before.decode_into(&mut to_bytes(result).as_slice()).unwrap();
                assert_eq!(&before, result);
            }
        }
        assert_eq!(Result::<u32, String>::schema().to_string(), "Result { Ok(u32), Err(String) }");
        assert!(from_bytes::<Result<u32, String>>(&[2, 0]).is_err());
    }
}
