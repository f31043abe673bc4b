//! Stages: the stateless operators, fused by the compiler into one loop per batch. They know neither channels nor
//! tasks: a stage takes a record and emits what becomes of it.

use super::Emit;
use crate::error::{Cause, Failed};
use crate::state::{Ahead, Encoding};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

mod sealed {
    pub trait Sealed {}
}

/// A chain of fused stateless operators. Sealed: user code draws with [`crate::dataflow::Stream`].
pub trait Stage: sealed::Sealed + Send + 'static {
    /// What goes in.
    type In: Send + 'static;
    /// What comes out.
    type Out: Send + 'static;

    /// Takes one record.
    ///
    /// # Errors
    /// What user code or the way down returned.
    fn push<E: Emit<Self::Out>>(&mut self, record: Self::In, out: &mut E) -> Result<(), Failed>;

    /// A copy for another task. Closures are shared.
    fn replicate(&self) -> Self;
}

/// The beginning of a chain: hands on what comes in.
pub struct Start<T>(PhantomData<fn(T) -> T>);

impl<T> Start<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> sealed::Sealed for Start<T> {}
impl<T: Send + 'static> Stage for Start<T> {
    type In = T;
    type Out = T;
    #[inline]
    fn push<E: Emit<T>>(&mut self, record: T, out: &mut E) -> Result<(), Failed> {
        out.emit(record)
    }
    fn replicate(&self) -> Self {
        Self::new()
    }
}

/// `A`, then `B`.
pub struct Then<A, B> {
    first: A,
    second: B,
}

impl<A, B> Then<A, B> {
    pub(crate) fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

/// What `A` emits into: `B`, and what is behind it.
struct Into<'a, B, E> {
    stage: &'a mut B,
    out: &'a mut E,
}

impl<T, B: Stage<In = T>, E: Emit<B::Out>> Emit<T> for Into<'_, B, E> {
    #[inline]
    fn emit(&mut self, record: T) -> Result<(), Failed> {
        self.stage.push(record, self.out)
    }
}

impl<A, B> sealed::Sealed for Then<A, B> {}
impl<A: Stage, B: Stage<In = A::Out>> Stage for Then<A, B> {
    type In = A::In;
    type Out = B::Out;
    #[inline]
    fn push<E: Emit<B::Out>>(&mut self, record: A::In, out: &mut E) -> Result<(), Failed> {
        self.first.push(record, &mut Into { stage: &mut self.second, out })
    }
    fn replicate(&self) -> Self {
        Self { first: self.first.replicate(), second: self.second.replicate() }
    }
}

/// A user's closure, under the name of its operator.
pub struct Closure<F> {
    name: Arc<str>,
    f: Arc<F>,
}

impl<F> Closure<F> {
    pub(crate) fn new(name: Arc<str>, f: F) -> Self {
        Self { name, f: Arc::new(f) }
    }
}

impl<F> Clone for Closure<F> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), f: self.f.clone() }
    }
}

impl<F> Closure<F> {
    /// Runs user code. Costs nothing unless it panics: then the operator's name is left for the runtime to find.
    #[inline]
    pub(crate) fn call<R>(&self, run: impl FnOnce(&F) -> R) -> R {
        blamed(&self.name, || run(&self.f))
    }

    /// Says whose error it is.
    #[cold]
    pub(crate) fn error(&self, cause: impl std::convert::Into<Cause>) -> Failed {
        Failed::from(cause).at(&self.name)
    }
}

/// Records that an operator has taken in together and looks at one by one. If it fails with some of them left,
/// [`take_left`] tells how many: they lie behind the one to blame.
pub(crate) struct Taken<I: ExactSizeIterator>(pub(crate) I);

impl<I: ExactSizeIterator> Iterator for Taken<I> {
    type Item = I::Item;
    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }
}

impl<I: ExactSizeIterator + Ahead> Ahead for Taken<I> {
    type Key = I::Key;
    type Record = I::Record;

    #[inline]
    fn hashes(&self) -> impl Iterator<Item = u64> {
        self.0.hashes()
    }

    #[inline]
    fn encoding(&self) -> Option<Encoding<'_>> {
        self.0.encoding()
    }

    #[inline]
    fn next_record(&mut self) -> Option<I::Record> {
        self.0.next_record()
    }
}

impl<I: ExactSizeIterator> Drop for Taken<I> {
    #[inline]
    fn drop(&mut self) {
        if self.0.len() > 0 {
            LEFT.set(self.0.len() as u64);
        }
    }
}

/// Records that had been taken in behind the one at which the last failure of this thread happened.
pub(crate) fn take_left() -> u64 {
    LEFT.take()
}

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static BLAMED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs code of the operator `name`; if it unwinds, [`take_blamed`] tells the name.
#[inline]
pub(crate) fn blamed<R>(name: &str, run: impl FnOnce() -> R) -> R {
    struct OnUnwind<'a>(&'a str);
    impl Drop for OnUnwind<'_> {
        #[cold]
        fn drop(&mut self) {
            // The innermost guard unwinds first, and knows best.
            BLAMED.with_borrow_mut(|slot| {
                slot.get_or_insert_with(|| self.0.to_owned());
            });
        }
    }
    let guard = OnUnwind(name);
    let result = run();
    std::mem::forget(guard);
    result
}

/// The operator in whose code the last panic of this thread happened.
pub(crate) fn take_blamed() -> Option<String> {
    BLAMED.take()
}

/// Declares the stage of a closure: its types, and what it does with a record.
macro_rules! closure_stage {
    ($(#[$doc:meta])* $name:ident<$($p:ident),*>: $t:ty => $u:ty, [$($bound:tt)*],
     |$f:ident, $record:ident, $out:ident| $body:expr) => {
        $(#[$doc])*
        pub struct $name<$($p,)* F>(Closure<F>, PhantomData<fn($($p),*)>);

        impl<$($p,)* F> $name<$($p,)* F> {
            pub(crate) fn new(name: Arc<str>, f: F) -> Self {
                Self(Closure::new(name, f), PhantomData)
            }
        }

        impl<$($p,)* F> sealed::Sealed for $name<$($p,)* F> {}
        impl<$($p: Send + 'static,)* F> Stage for $name<$($p,)* F>
        where
            $($bound)*
        {
            type In = $t;
            type Out = $u;
            #[inline]
            fn push<E: Emit<$u>>(&mut self, $record: $t, $out: &mut E) -> Result<(), Failed> {
                let $f = &self.0;
                $body
            }
            fn replicate(&self) -> Self {
                Self(self.0.clone(), PhantomData)
            }
        }
    };
}

closure_stage! {
    /// Each record becomes another.
    Map<T, U>: T => U, [F: Fn(T) -> U + Send + Sync + 'static],
    |f, record, out| out.emit(f.call(|f| f(record)))
}
closure_stage! {
    /// Keeps the records for which the closure says true.
    Filter<T>: T => T, [F: Fn(&T) -> bool + Send + Sync + 'static],
    |f, record, out| if f.call(|f| f(&record)) { out.emit(record) } else { Ok(()) }
}
closure_stage! {
    /// Each record becomes another, or nothing.
    FilterMap<T, U>: T => U, [F: Fn(T) -> Option<U> + Send + Sync + 'static],
    |f, record, out| match f.call(|f| f(record)) {
        Some(record) => out.emit(record),
        None => Ok(()),
    }
}
closure_stage! {
    /// Each record becomes any number of others.
    FlatMap<T, I>: T => I::Item, [I: IntoIterator, I::Item: Send + 'static, F: Fn(T) -> I + Send + Sync + 'static],
    |f, record, out| {
        let mut items = f.call(|f| f(record).into_iter());
        while let Some(item) = f.call(|_| items.next()) {
            out.emit(item)?;
        }
        f.call(|_| drop(items));
        Ok(())
    }
}
closure_stage! {
    /// Each record becomes another, or stops the job with an error.
    TryMap<T, U, X>: T => U, [
        X: std::convert::Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Fn(T) -> Result<U, X> + Send + Sync + 'static,
    ],
    |f, record, out| match f.call(|f| f(record)) {
        Ok(record) => out.emit(record),
        Err(error) => Err(f.error(Cause::User(error.into()))),
    }
}
closure_stage! {
    /// Looks at each record.
    Inspect<T>: T => T, [F: Fn(&T) + Send + Sync + 'static],
    |f, record, out| {
        f.call(|f| f(&record));
        out.emit(record)
    }
}
