//! At-least-once, under the seeded simulator: through crashes no record of a loop is lost, though some may count twice.

use super::pressure::Pass;
use super::{Token, step, token};
use snapring::connector::{Collect, Generate};
use snapring::testing::{Fault, World, simulate};
use snapring::{Dataflow, Protocol};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn at_least_once_loses_nothing() -> Result<(), Fault> {
    let results: RefCell<BTreeMap<u64, Collect<Token>>> = RefCell::default();
    let of_seed = |world: &World| results.borrow_mut().entry(world.seed()).or_default().clone();
    let draw = |world: &mut World| {
        world.protocol(Protocol::AtLeastOnce);
        let flow = Dataflow::new("tokens");
        let tokens = flow.source("tokens", Generate::new(60, 3, |id| token(id, (id % 5) as u32)));
        let (again, tokens) = tokens.feedback::<Token>("again");
        let stepped = tokens.map(world.trip().before(step)).key_by(|token| token.id % 11).process("pass", Pass);
        let (more, over) = stepped.split(|token| token.laps > 0);
        again.close(more);
        over.sink("results", of_seed(world));
        flow
    };
    let check = |world: &World| {
        let found: BTreeSet<u64> = of_seed(world).take().iter().map(|token| token.id).collect();
        let lost: Vec<u64> = (0..60).filter(|id| !found.contains(id)).collect();
        assert!(lost.is_empty(), "{lost:?}");
    };
    let seen = simulate(0..300, draw, check)?;
    assert!(seen.crashes > 200 && seen.restores > 100, "{seen:?}");
    Ok(())
}
