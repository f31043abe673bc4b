//! Where a chain parts into several within the same task: every record to each branch, or to the one that a closure picks.
//! The records' ways are told apart here; how they get to another task is not known here.

use super::outgoing::VisitOutgoing;
use super::pipe::{Link, Out, Output, Visit};
use super::stage::Closure;
use super::{Emit, Progress};
use crate::error::{Cause, Failed};

/// The branches of a fan, whatever their types.
pub(crate) trait Branches: Send {
    /// Calls `run` for each of them, until one fails.
    fn try_each(&mut self, run: &mut dyn FnMut(&mut dyn Branch) -> Result<(), Failed>) -> Result<(), Failed>;
    /// Whether one of them is broken.
    fn is_broken(&self) -> bool;
}

/// A branch, its type forgotten.
pub(crate) trait Branch: Link {
    /// The batch is over: what was gathered for it goes.
    fn deliver(&mut self) -> Result<(), Failed>;
}

impl<T: Send> Branch for Out<T> {
    fn deliver(&mut self) -> Result<(), Failed> {
        Out::deliver(self)
    }
}

impl<T: Send> Branches for Vec<Out<T>> {
    fn try_each(&mut self, run: &mut dyn FnMut(&mut dyn Branch) -> Result<(), Failed>) -> Result<(), Failed> {
        self.iter_mut().try_for_each(|branch| run(branch))
    }
    fn is_broken(&self) -> bool {
        self.iter().any(Link::is_broken)
    }
}

impl<T: Send, X: Send> Branches for (Out<T>, Out<X>) {
    fn try_each(&mut self, run: &mut dyn FnMut(&mut dyn Branch) -> Result<(), Failed>) -> Result<(), Failed> {
        run(&mut self.0)?;
        run(&mut self.1)
    }
    fn is_broken(&self) -> bool {
        self.0.is_broken() || self.1.is_broken()
    }
}

/// Gives a record to branches.
pub(crate) trait Deal<T, B>: Send {
    fn deal(&mut self, record: T, branches: &mut B) -> Result<(), Failed>;
}

/// Each record goes to every branch.
pub(crate) struct ToEach;

impl<T: Clone + Send> Deal<T, Vec<Out<T>>> for ToEach {
    fn deal(&mut self, record: T, branches: &mut Vec<Out<T>>) -> Result<(), Failed> {
        if let Some((last, others)) = branches.split_last_mut() {
            for branch in others {
                branch.emit(record.clone())?;
            }
            last.emit(record)?;
        }
        Ok(())
    }
}

/// Each record goes to the branch that a closure picks.
pub(crate) struct ToPicked<F>(pub(crate) Closure<F>);

impl<T: Send, F: Fn(&T) -> usize + Send + Sync> Deal<T, Vec<Out<T>>> for ToPicked<F> {
    #[inline]
    fn deal(&mut self, record: T, branches: &mut Vec<Out<T>>) -> Result<(), Failed> {
        let picked = self.0.call(|pick| pick(&record));
        let count = branches.len();
        match branches.get_mut(picked) {
            Some(branch) => branch.emit(record),
            None => Err(self.0.error(no_such_branch(picked, count))),
        }
    }
}

#[cold]
fn no_such_branch(picked: usize, count: usize) -> Cause {
    Cause::User(format!("it picked stream {picked} for a record, and there are {count}, counted from 0").into())
}

/// What is right goes one way, what is wrong the other.
pub(crate) struct ByResult;

impl<T: Send, X: Send> Deal<Result<T, X>, (Out<T>, Out<X>)> for ByResult {
    #[inline]
    fn deal(&mut self, record: Result<T, X>, (right, wrong): &mut (Out<T>, Out<X>)) -> Result<(), Failed> {
        match record {
            Ok(record) => right.emit(record),
            Err(error) => wrong.emit(error),
        }
    }
}

/// A chain's output into branches of the same task.
pub(crate) struct Fan<B, D> {
    branches: B,
    deal: D,
}

impl<B, D> Fan<B, D> {
    pub(crate) fn new(branches: B, deal: D) -> Self {
        Self { branches, deal }
    }
}

impl<B: Branches, D> Fan<B, D> {
    /// For what cannot fail.
    fn each(&mut self, mut run: impl FnMut(&mut dyn Branch)) {
        let _ = self.branches.try_each(&mut |branch| {
            run(branch);
            Ok(())
        });
    }
}

impl<T, B: Branches, D: Deal<T, B>> Emit<T> for Fan<B, D> {
    #[inline]
    fn emit(&mut self, record: T) -> Result<(), Failed> {
        self.deal.deal(record, &mut self.branches)
    }
}

impl<T, B: Branches, D: Deal<T, B>> Output<T> for Fan<B, D> {
    fn batch_over(&mut self) -> Result<(), Failed> {
        self.branches.try_each(&mut |branch| branch.deliver())
    }
}

impl<B: Branches, D: Send> Link for Fan<B, D> {
    fn flush(&mut self) -> bool {
        // All of them, whatever the others say: one branch that is full must not hold up the rest.
        let mut flushed = true;
        self.each(|branch| flushed &= branch.flush());
        flushed
    }
    fn is_broken(&self) -> bool {
        self.branches.is_broken()
    }
    fn poison(&mut self) {
        self.each(|branch| branch.poison());
    }
    fn publish(&mut self) -> Result<(), Failed> {
        self.branches.try_each(&mut |branch| branch.publish())
    }
    fn outgoing(&mut self, visit: &mut VisitOutgoing<'_>) {
        self.each(|branch| branch.outgoing(visit));
    }
    fn end(&mut self) -> Result<Progress, Failed> {
        let mut progress = Progress::Done;
        self.branches.try_each(&mut |branch| {
            if branch.end()? != Progress::Done {
                progress = Progress::Made;
            }
            Ok(())
        })?;
        Ok(progress)
    }
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed> {
        self.branches.try_each(&mut |branch| branch.visit(visit))
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::super::pipe::Pipe;
    use super::*;
    use crate::channel::Records;
    use std::sync::{Arc, Mutex};

    /// A pipe that writes down what it is told.
    struct Fake {
        log: Arc<Mutex<String>>,
        name: char,
        is_full: bool,
        /// So many portions are still to come.
        portions: u32,
    }

    impl Fake {
        fn note(&self, what: &str) {
            self.log.lock().unwrap().push_str(&format!("{}{what} ", self.name));
        }
    }

    impl Link for Fake {
        fn flush(&mut self) -> bool {
            self.note("flush");
            !self.is_full
        }
        fn is_broken(&self) -> bool {
            self.portions == 0
        }
        fn poison(&mut self) {
            self.note("poison");
        }
        fn publish(&mut self) -> Result<(), Failed> {
            self.note("publish");
            Ok(())
        }
        fn outgoing(&mut self, _: &mut VisitOutgoing<'_>) {
            self.note("outgoing");
        }
        fn end(&mut self) -> Result<Progress, Failed> {
            if self.portions == 0 {
                return Ok(Progress::Done);
            }
            self.note("portion");
            self.portions -= 1;
            Ok(Progress::Made)
        }
        fn visit(&mut self, _: &mut Visit<'_>) -> Result<(), Failed> {
            self.note("visit");
            Ok(())
        }
    }

    impl Pipe<u8> for Fake {
        fn batch(&mut self, records: &mut Records<'_, u8>) -> Result<(), Failed> {
            self.note(&records.count().to_string());
            Ok(())
        }
    }

    #[test]
    fn whatever_is_said_reaches_every_branch() {
        let log = Arc::<Mutex<String>>::default();
        let branch = |name, is_full, portions| {
            Out::new(4, Box::new(Fake { log: log.clone(), name, is_full, portions }) as Box<dyn Pipe<u8>>)
        };
        let mut branches = Fan::new(vec![branch('a', true, 1), branch('b', false, 2)], ToEach);
        let heard = || std::mem::take(&mut *log.lock().unwrap());
        branches.emit(1).unwrap();
        branches.batch_over().unwrap();
        assert_eq!(heard(), "a1 b1 ");
        assert!(!branches.flush(), "one is full");
        assert_eq!(heard(), "aflush bflush ");
        branches.publish().unwrap();
        branches.outgoing(&mut |_| {});
        branches.visit(&mut |_| Ok(())).unwrap();
        branches.poison();
        assert_eq!(heard(), "apublish bpublish aoutgoing boutgoing avisit bvisit apoison bpoison ");
        assert!(!branches.is_broken());
        while branches.end().unwrap() != Progress::Done {}
        assert_eq!(heard(), "aportion bportion bportion ");
        assert!(branches.is_broken());
    }
    #[test]
    fn a_record_goes_where_it_is_sent() {
        let log = Arc::<Mutex<String>>::default();
        let branch = |name| {
            Out::new(4, Box::new(Fake { log: log.clone(), name, is_full: false, portions: 0 }) as Box<dyn Pipe<u8>>)
        };
        let heard = || std::mem::take(&mut *log.lock().unwrap());
        let pick = Closure::new("pick".into(), |record: &u8| usize::from(record % 3));
        let mut picked = Fan::new(vec![branch('a'), branch('b')], ToPicked(pick));
        [0, 1, 3].into_iter().for_each(|record| picked.emit(record).unwrap());
        picked.batch_over().unwrap();
        assert_eq!(heard(), "a2 b1 ");
        let message = picked.emit(2).unwrap_err().0.to_string();
        assert!(message.contains("`pick`") && message.contains("stream 2"), "{message}");
        let mut parted = Fan::new((branch('a'), branch('b')), ByResult);
        [Ok(0), Err(1), Err(2)].into_iter().for_each(|record| parted.emit(record).unwrap());
        parted.batch_over().unwrap();
        assert_eq!(heard(), "a1 b2 ");
    }
}
