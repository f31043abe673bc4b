//! Pieces of dataflow in the bed.

use snapring::error::Failed;
use snapring::operator::{Emit, KeyedState, List, Map, Operator, Value};
use snapring::testing::{Fault, OperatorBed};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Emits the sum of each two records of a key, and at the end what is left.
struct Pairs;

impl Operator for Pairs {
    type Key = u64;
    type In = (u64, i64);
    type Out = (u64, i64);
    type State = Value<i64>;

    fn on_record<E: Emit<(u64, i64)>>(
        &self,
        key: &u64,
        (_, amount): (u64, i64),
        first: &mut Value<i64>,
        out: &mut E,
    ) -> Result<(), Failed> {
        match first.take()? {
            Some(first) => out.emit((*key, first + amount)),
            None => {
                first.set(amount);
                Ok(())
            }
        }
    }

    fn on_end<E: Emit<(u64, i64)>>(&self, key: &u64, first: &mut Value<i64>, out: &mut E) -> Result<(), Failed> {
        first.take()?.map_or(Ok(()), |first| out.emit((*key, first)))
    }
}

fn amounts() -> Vec<(u64, i64)> {
    (0..40).map(|index| (index % 7, index as i64)).collect()
}

#[test]
fn what_is_right_passes_in_every_way() -> Result<(), Fault> {
    let seen = OperatorBed::new(amounts(), |amounts| amounts.key_by(|(key, _)| *key).process("pairs", Pairs))
        .in_order_per_key(|(key, _)| *key)
        .run()?;
    assert!(seen.seeds == 50 && seen.restarts > 10 && seen.restores > 30, "{seen:?}");

    OperatorBed::new(0..50u64, |numbers| {
        numbers.filter(|number| number % 2 == 0).flat_map(|number| [number, number + 1])
    })
    .expect(0..50)
    .in_splits(4)
    .run()?;
    OperatorBed::new(0..50u64, |numbers| {
        numbers.key_by(|number| number % 3).fold_to_end("sum", 0, |sum, add| *sum += add)
    })
    .expect([(2, 392), (0, 408), (1, 425)])
    .in_any_order()
    .run()?;
    OperatorBed::new([0u64; 0], |numbers| numbers.key_by(|number| *number).count("none")).expect([]).run()?;
    Ok(())
}

/// The last few amounts of a key, and how often it has had each amount.
#[derive(KeyedState)]
struct History {
    last: List<i64>,
    times: Map<i64, u64>,
    /// Longer than any run: under a clock that stands still it must not matter.
    #[state(ttl_ms = 1)]
    most: Value<i64>,
}

struct Histories;

impl Operator for Histories {
    type Key = u64;
    type In = (u64, i64);
    type Out = (u64, Vec<i64>);
    type State = History;

    fn on_record<E: Emit<Self::Out>>(
        &self,
        key: &u64,
        (_, amount): (u64, i64),
        state: &mut History,
        out: &mut E,
    ) -> Result<(), Failed> {
        state.last.push(amount)?;
        if state.last.len()? > 3 {
            state.last.pop_front()?;
        }
        let times = state.times.update(
            amount % 3,
            || 0,
            |times| {
                *times += 1;
                *times
            },
        )?;
        let most = state.most.get_or_insert_with(|| amount)?;
        *most = amount.max(*most);
        let mut all = vec![times as i64, *most];
        for amount in state.last.iter()? {
            all.push(amount?);
        }
        out.emit((*key, all))
    }

    fn on_end<E: Emit<Self::Out>>(&self, key: &u64, state: &mut History, out: &mut E) -> Result<(), Failed> {
        let mut times: Vec<_> = state.times.iter()?.collect::<Result<_, _>>()?;
        times.sort();
        out.emit((*key, times.into_iter().map(|(amount, times)| amount * 100 + times as i64).collect()))
    }
}

#[test]
fn several_states_are_right_in_every_way() -> Result<(), Fault> {
    let seen = OperatorBed::new(amounts(), |amounts| amounts.key_by(|(key, _)| *key).process("histories", Histories))
        .in_order_per_key(|(key, _)| *key)
        .run()?;
    assert!(seen.seeds == 50 && seen.restarts > 10 && seen.restores > 30, "{seen:?}");
    Ok(())
}

fn output(fault: &Fault) -> (&str, &str) {
    match fault {
        Fault::Output { difference, run } => (difference, run),
        other => panic!("{other}"),
    }
}

/// Counts in a place that is not the library's.
struct Counts(Arc<AtomicU64>);

impl Operator for Counts {
    type Key = u64;
    type In = u64;
    type Out = u64;
    type State = Value<()>;

    fn on_record<E: Emit<u64>>(&self, _: &u64, _: u64, _: &mut Value<()>, out: &mut E) -> Result<(), Failed> {
        out.emit(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

#[test]
fn state_that_does_not_survive_is_found() {
    let fault = OperatorBed::new(0..9u64, |numbers| {
        numbers.key_by(|number| number % 2).process("counts", Counts(Arc::default()))
    })
    .expect(0..9)
    .run()
    .unwrap_err();
    let (difference, run) = output(&fault);
    assert!(difference.starts_with("output 1 (counted from 0): expected 1, found 0; 9 were"), "{difference}");
    assert!(run.starts_with("restored from a checkpoint after each record, parallelism 1,"), "{run}");
}

#[test]
fn state_that_survives_too_long_is_found() {
    let outside = Arc::new(AtomicU64::new(0));
    let bed = OperatorBed::new(0..9u64, move |numbers| {
        numbers.key_by(|number| number % 2).process("counts", Counts(outside.clone()))
    });
    let fault = bed.run().unwrap_err();
    assert!(output(&fault).1.starts_with("all input at once, parallelism 1,"), "{fault}");
}

/// Where nothing fails, what was seen is seen; only a record that comes again after a failure shows it.
#[test]
fn what_only_a_crash_or_a_restart_shows_is_found() {
    for seeded in [false, true] {
        let seen: Arc<Mutex<BTreeSet<u64>>> = Arc::default();
        let bed = OperatorBed::new(0..9u64, move |numbers| {
            // For the seeds, also forgotten with the process: then only a restart within it is left.
            if seeded {
                seen.lock().unwrap().clear();
            }
            let seen = seen.clone();
            numbers.filter(move |number| {
                let mut seen = seen.lock().unwrap();
                if *number == 0 && !seeded {
                    seen.clear();
                }
                seen.insert(*number)
            })
        });
        let bed = if seeded { bed.seeds(0..100) } else { bed.seeds([]) };
        let fault = bed.expect(0..9).run().unwrap_err();
        let (difference, run) = output(&fault);
        assert!(difference.contains("expected"), "{difference}");
        assert!(run.starts_with(if seeded { "seed " } else { "crashed and restored" }), "{run}");
    }
}

#[test]
fn an_order_that_several_tasks_do_not_keep_is_found() {
    let bed = || {
        OperatorBed::new(amounts(), |amounts| amounts.rebalance()).in_order_per_key(|(key, _)| *key).parallelism([1, 3])
    };
    let fault = bed().run().unwrap_err();
    assert!(output(&fault).0.contains("of its key"), "{fault}");
    assert!(output(&fault).1.contains("parallelism 3") || output(&fault).1.contains("by turns"), "{fault}");
    bed().in_any_order().run().unwrap();
    bed().parallelism([1]).run().unwrap();
}

#[test]
fn what_is_missing_or_too_much_is_named() {
    let bed = || OperatorBed::new([7u64, 8, 9, 9], |numbers| numbers.map(|number| number));
    let difference = |bed: OperatorBed<u64, u64>| output(&bed.run().unwrap_err()).0.to_owned();
    assert_eq!(
        difference(bed().expect([7, 8])),
        "output 2 (counted from 0): expected nothing more, found 9; 2 were expected, 4 found"
    );
    assert_eq!(
        difference(bed().expect([9, 9, 9, 8, 7]).in_any_order()),
        "output is missing: 9 was expected 3 times, found 2 times; 5 were expected in all, 4 found"
    );
    assert_eq!(
        difference(bed().expect([7, 9, 9]).in_any_order()),
        "output that was not expected: 8 was expected 0 times, found 1 times; 3 were expected in all, 4 found"
    );
}

#[test]
fn an_operator_that_fails_is_named() {
    let bed = OperatorBed::new(0..9u64, |numbers| {
        numbers.map(|number| if number == 5 { panic!("five") } else { number }).stage("fails")
    });
    let fault = bed.run().unwrap_err();
    let Fault::Job { error, run } = &fault else { panic!("{fault}") };
    assert!(error.contains("map@") && error.contains("five") && run.contains("at once"), "{fault}");

    let fault = OperatorBed::new(0..9u64, |_| panic!("drawn badly") as snapring::Stream<u64>).run().unwrap_err();
    assert!(matches!(&fault, Fault::Panic { message, .. } if message == "drawn badly"), "{fault}");
}
