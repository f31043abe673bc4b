//! The whole runtime under a seed: a random dataflow, drawn and run as [`snapring::testing::simulate`] runs one. In the end the
//! committed output must be what a plain computation of the same dataflow gives.
//!
//! The seed is the bug report: `SNAPRING_SEED=17 cargo test --test simulate`. More seeds: `SNAPRING_SEEDS=100000`.

mod recipe;

use recipe::{Ground, Item, Pass, Step};
use snapring::connector::Memory;
use snapring::runtime::StageConfig;
use snapring::testing::{Fault, Seen, World, simulate};
use std::sync::Arc;

const SEEDS: u64 = 2000;

impl Ground for World {
    fn pass(&self) -> Pass {
        let trip = self.trip();
        Arc::new(move || trip.pass())
    }
    fn sink(&mut self, name: &str) -> Memory<Item> {
        World::sink(self, name)
    }
    fn stage(&mut self, name: &str, stage: StageConfig) {
        World::stage(self, name, stage);
    }
}

fn steps(world: &World) -> Vec<Step> {
    recipe::random(&mut world.random())
}

fn check(world: &World) {
    let steps = steps(world);
    for (sink, expected) in recipe::sinks(&steps).iter().zip(recipe::compute(&steps, recipe::sources(&steps))) {
        let mut committed = world.committed::<Item>(sink);
        committed.sort();
        assert!(
            committed == expected,
            "sink {sink} of {steps:?}: {} records and not {}",
            committed.len(),
            expected.len()
        );
    }
}

fn run(seeds: impl IntoIterator<Item = u64>) -> Result<Seen, Fault> {
    simulate(seeds, |world| recipe::draw(&steps(world), world), check)
}

#[test]
fn committed_output_is_that_of_an_undisturbed_run() -> Result<(), Fault> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    if let Some(seed) = number("SNAPRING_SEED") {
        return run([seed]).map(drop);
    }
    let seeds = number("SNAPRING_SEEDS").unwrap_or(SEEDS);
    let seen = run(0..seeds)?;
    println!("{seen:?}");
    // A simulation in which nothing happens would pass as well.
    let enough = [
        seen.crashes > seeds,
        seen.restores > seeds / 2,
        seen.given_up > seeds / 50,
        seen.durable > seeds / 2,
        seen.failed > seeds / 50,
        seen.new_files > seeds / 20,
        seen.went_back > seeds / 20,
        seen.restarts > seeds / 3,
        seen.views > seeds,
        seen.views_compared > seeds,
        seen.views_short > seeds / 5,
    ];
    assert!(seeds < 1000 || enough == [true; 11], "{seen:?}");
    Ok(())
}
