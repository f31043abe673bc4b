//! Whole dataflows under seeds.

use snapring::connector::{Collect, Generate};
use snapring::dataflow::Dataflow;
use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Emit, Read, Reader, Source, Split};
use snapring::testing::{Fault, World, simulate};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn numbers(world: &mut World) -> Dataflow {
    let flow = Dataflow::new("numbers");
    flow.source("numbers", Generate::new(100, 3, |index| index)).sink("sink", world.sink("sink"));
    flow
}

#[test]
fn a_seed_repeats_all_of_a_run() {
    let run = || {
        let committed = std::cell::RefCell::new(Vec::new());
        let seen =
            simulate(0..30, numbers, |world| committed.borrow_mut().push(world.committed::<u64>("sink"))).unwrap();
        (seen, committed.into_inner())
    };
    let (first, again) = (run(), run());
    assert_eq!(first, again);
    assert!(first.0.seeds == 30 && first.0.crashes > 20 && first.0.durable > 20, "{:?}", first.0);
    assert!(first.1.iter().any(|committed| *committed != first.1[0]), "all runs are the same");
}

#[test]
fn the_first_seed_that_fails_is_named_and_repeats_it() {
    let lose = |world: &mut World| {
        let flow = Dataflow::new("loses");
        let processed = Arc::new(AtomicU64::new(0));
        flow.source("numbers", Generate::new(100, 3, |index| index))
            // Right until the job is started anew.
            .filter(move |_| processed.fetch_add(1, Ordering::Relaxed) != 60)
            .sink("sink", world.sink("sink"));
        flow
    };
    let check = |world: &World| assert_eq!(world.committed::<u64>("sink").len(), 99);
    let fault = simulate(0..100, lose, check).unwrap_err();
    let Fault::Panic { message, run } = &fault else { panic!("{fault}") };
    assert!(message.contains("assertion"), "{fault}");
    let seed: u64 = run["seed ".len()..].split(':').next().unwrap().parse().unwrap();
    assert_eq!(simulate([seed], lose, check).unwrap_err(), fault);
    if seed > 0 {
        simulate(0..seed, lose, check).unwrap();
    }
}

#[test]
fn user_code_that_fails_by_itself_is_a_fault() {
    let fails = |world: &mut World| {
        let flow = Dataflow::new("fails");
        let numbers = flow.source("numbers", Generate::new(100, 3, |index| index));
        numbers.try_map(|number| if number == 77 { Err("no 77") } else { Ok(number) }).sink("sink", world.sink("sink"));
        flow
    };
    let fault = simulate([3], fails, |_| {}).unwrap_err();
    assert!(
        matches!(&fault, Fault::Job { error, run } if error.contains("no 77") && run.contains("seed 3")),
        "{fault}"
    );
}

/// Gives nothing, for ever.
struct Silent;

impl Source for Silent {
    type Item = u64;
    type Reader = Silent;

    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        Ok(vec![Split { id: 0, name: "silence".to_owned(), descriptor: Vec::new() }])
    }
    fn verify(&self, _: &[Split]) -> Result<(), ConnectorError> {
        Ok(())
    }
    fn open(&self, _: &Split, _: u64) -> Result<Self, ConnectorError> {
        Ok(Self)
    }
}

impl Reader for Silent {
    type Item = u64;
    fn read<E: Emit<u64>>(&mut self, _: usize, _: &mut E) -> Result<Read, Failed> {
        Ok(Read::Pending)
    }
    fn offset(&self) -> u64 {
        0
    }
}

#[test]
fn a_job_without_an_end_is_a_fault() {
    let silent = |world: &mut World| {
        let flow = Dataflow::new("silent");
        flow.source("silence", Silent).sink("sink", world.sink("sink"));
        flow
    };
    let fault = simulate([0], silent, |_| {}).unwrap_err();
    assert!(matches!(fault, Fault::Stuck { .. }), "{fault}");
}

#[test]
fn sinks_of_other_kinds_may_show_records_twice_but_miss_none() -> Result<(), Fault> {
    let seen = Collect::new();
    let draw = |world: &mut World| {
        world.parallelism([2]);
        let flow = Dataflow::new("plain");
        flow.source("numbers", Generate::new(100, 3, |index| index)).sink("sink", seen.clone());
        flow
    };
    simulate(0..20, draw, |_| {
        let mut all = seen.take();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, (0..100).collect::<Vec<u64>>());
    })?;
    Ok(())
}

#[test]
fn a_sink_that_was_not_drawn_is_named() {
    for (name, what) in [("other", "no sink `other` was drawn; there are [\"sink\"]"), ("sink", "of other records")] {
        let fault = simulate([0], numbers, |world| drop(world.committed::<String>(name))).unwrap_err();
        assert!(matches!(&fault, Fault::Panic { message, .. } if message.contains(what)), "{fault}");
    }
}
