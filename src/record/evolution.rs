//! From the type that a value was written with to the type that the program has now: which changes keep a value's meaning,
//! and how its bytes become those of today. It knows schemas and bytes; where values lie, and when they are migrated, it
//! must not know.
//!
//! 1. Fields are matched by name, variants of an enum by theirs, items of a tuple by their place. Names of structs and
//!    enums themselves mean nothing.
//! 2. A field may be gained: it is zero at first (0, `false`, `""`, `None`, an empty list, arrays, tuples and structs of
//!    these). An enum has no zero, and is gained within an `Option` or with a default of its own.
//! 3. A field may be lost, and fields may change their order. A variant may be gained anywhere; it cannot be lost, for a
//!    value may be one. If of a struct's or a variant's fields none has stayed, and there are others, it is another thing.
//! 4. What a field holds may become wider: an integer one with more bits (an unsigned one a signed one too), `f32` `f64`,
//!    `Text<N>` a longer one or a `String`, `T` an `Option<T>`, an array a `Vec`. Structs, lists, options, tuples and enums
//!    may change in what they hold, by the same rules.
//! 5. All else is refused, with the path of the field and the reason.
//! 6. Bytes that are no value of the old type give an error, never a value.

mod hints;
mod plan;
mod step;

use super::{DecodeError, Input, Record, Type};
pub use hints::Hints;
use plan::Planner;
use step::Step;

/// How values of one type become values of another. Made once, applied to any number of values.
///
/// ```
/// use snapring::record::{Evolution, Record, from_bytes, to_bytes};
///
/// mod then {
///     #[derive(snapring::Record)]
///     pub struct Account { pub balance: i32, pub kind: u8, pub owner: String }
/// }
///
/// #[derive(Record, Debug, PartialEq)]
/// struct Account { owner: String, balance: i64, limit: Option<i64> }
///
/// let evolution = Evolution::to::<Account>(&then::Account::schema().ty)?;
/// let (old, mut new) = (to_bytes(&then::Account { balance: -5, kind: 2, owner: "ada".into() }), Vec::new());
/// evolution.apply(&old, &mut new)?;
/// assert_eq!(from_bytes::<Account>(&new)?, Account { owner: "ada".into(), balance: -5, limit: None });
///
/// let error = Evolution::between(&Account::schema().ty, &then::Account::schema().ty).unwrap_err();
/// assert_eq!(error.to_string(), "`balance`: i64 cannot become i32");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Evolution {
    /// From type to type: as many as lie in between, and one.
    steps: Vec<Step>,
    /// The layout of tables follows from the widths too.
    same_width: bool,
}

/// Why values of one type cannot become values of another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", within(path))]
#[non_exhaustive]
pub struct Mismatch {
    /// Which part: `legs[].price`, or nothing for the value itself.
    pub path: String,
    /// What is in the way.
    pub reason: String,
}

fn within(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("`{path}`: ") }
}

impl Evolution {
    /// From values of a type to those of another.
    ///
    /// # Errors
    /// Their meaning would be lost: see the path and the reason.
    pub fn between(then: &Type, now: &Type) -> Result<Self, Mismatch> {
        Self::hinted(then, now, &Hints::default())
    }

    /// From values of a type to those of a [`Record`], of which attributes may say more than its schema does.
    ///
    /// # Errors
    /// As [`Evolution::between`].
    pub fn to<T: Record>(then: &Type) -> Result<Self, Mismatch> {
        Self::hinted(then, &T::schema().ty, &Hints::of::<T>())
    }

    /// From values of a type to those of another, of which `hints` say more.
    ///
    /// # Errors
    /// As [`Evolution::between`].
    pub fn hinted(then: &Type, now: &Type, hints: &Hints) -> Result<Self, Mismatch> {
        let step = Planner { hints }.step(then, now, "")?;
        Ok(Self { steps: vec![step], same_width: then.width() == now.width() })
    }

    /// First this, then another, which begins with what this has come to. One after the other may mean something else than
    /// both at once: a field that was lost on the way does not come back.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.steps.extend(next.steps);
        self.same_width &= next.same_width;
        self
    }

    /// Whether every value stays as it is, byte by byte, and lies in a table as it did.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.same_width && self.steps.iter().all(Step::is_same)
    }

    /// Appends the value of the new type that the bytes of an old one become. Nothing else is allocated, unless there are types
    /// in between.
    ///
    /// # Errors
    /// The bytes are not just one value of the old type; `out` is then as it was.
    pub fn apply(&self, mut old: Input<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let before = out.len();
        let done = self.advance(&mut old, out);
        let trailing = |()| if old.is_empty() { Ok(()) } else { Err(DecodeError::Trailing { bytes: old.len() }) };
        done.and_then(trailing).inspect_err(|_| out.truncate(before))
    }

    /// The same for a value at the front of `input`, which moves past it.
    ///
    /// # Errors
    /// The bytes are not a value of the old type; what has been appended means nothing then.
    pub fn advance(&self, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let [ahead @ .., last] = self.steps.as_slice() else { return Ok(()) };
        let Some((first, between)) = ahead.split_first() else { return last.apply(input, out) };
        let (mut old, mut new) = (Vec::new(), Vec::new());
        first.apply(input, &mut old)?;
        for step in between {
            step.apply(&mut old.as_slice(), &mut new)?;
            std::mem::swap(&mut old, &mut new);
            new.clear();
        }
        last.apply(&mut old.as_slice(), out)
    }
}
