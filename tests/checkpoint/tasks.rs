//! Between tasks: whole jobs on small graphs, every interleaving, under every protocol (protocols, rule 44). Rings of one
//! slot, leftovers, two epochs, one given up, ends, loops.
//!
//! A graph with more states than the bound is explored breadth-first up to it, and then along ways drawn at random to the
//! end. With SNAPRING_LONG set the bound is twenty million.

use super::explore::{explore, explore_and_walk};
use super::graphs::Setup;
use snapring::checkpoint::Protocol;
use std::time::Instant;

const LOOPS: [&str; 9] = ["self", "loop", "cross", "fused22", "grid22", "mid", "shared", "nested", "twice"];
const SMALL: [&str; 5] = ["fanin", "self", "loop", "mid", "twice"];

fn bounds() -> (usize, u64) {
    if std::env::var_os("SNAPRING_LONG").is_some() { (20_000_000, 20_000) } else { (30_000, 150) }
}

/// Returns the number of states.
fn check(setup: &Setup, note: &str) -> usize {
    let (states_max, walks) = bounds();
    let begin = Instant::now();
    let found = explore_and_walk(setup, states_max, walks);
    let name = format!("{} {note} {}, {} messages", setup.protocol, setup.graph.name, setup.graph.ways.len());
    assert!(found.fault.is_none(), "{name}: {}", found.fault.expect("just seen"));
    let more = if found.is_whole { "" } else { " and more" };
    println!("{name}: {} states{more}, {:.1?}", found.states, begin.elapsed());
    found.states
}

fn check_all(protocol: Protocol) -> usize {
    let plain = |graph, messages| Setup::new(graph, messages, protocol);
    let mut states = 0;
    for graph in ["fanin", "chain", "diamond", "grid"].into_iter().chain(LOOPS) {
        let setup = Setup { ends: false, ..plain(graph, 2) };
        states += check(&setup, "one epoch");
        let setup = Setup { ends: false, epochs: 2, aborts: 1, ..plain(graph, 1) };
        states += check(&setup, "two epochs, one given up");
        let setup = plain(graph, if SMALL.contains(&graph) { 2 } else { 1 });
        states += check(&setup, "ends");
    }
    for graph in SMALL {
        let plain = plain(graph, 2);
        states += check(&Setup { aborts: 1, epochs: 2, ..Setup::new(graph, 1, protocol) }, "two epochs and ends");
        states += check(&Setup { strict: true, hasty: true, ..plain.clone() }, "marks wait for leftovers");
        states += check(&Setup { capacity: 2, ends: false, ..plain.clone() }, "two slots");
        states += check(&Setup { late: true, ..plain.clone() }, "late reports");
        states += check(&Setup { all_begin: true, aborts: 1, ..plain.clone() }, "all begin");
        states += check(&Setup { rest: Some(1), ..plain.clone() }, "restored");
        states += check(&Setup { rest: Some(2), ends: false, ..plain }, "restored");
    }
    for graph in ["cross", "mid", "shared"] {
        let setup = Setup { low_water: Some(0), ends: false, ..plain(graph, 2) };
        states += check(&setup, "held from without");
    }
    // The first message goes round and round.
    let rounds: [(&str, &[usize]); 4] =
        [("self", &[0, 1]), ("loop", &[0, 1, 2]), ("cross", &[0, 2, 3]), ("mid", &[0, 2, 3])];
    for (graph, round) in rounds {
        let mut setup = Setup { eternal: true, ends: false, low_water: Some(0), ..plain(graph, 2) };
        setup.graph.ways[0] = round;
        let found = explore(&setup, bounds().0);
        states += found.states;
        assert!(found.fault.is_none(), "{protocol}, for ever in {graph}: {}", found.fault.expect("just seen"));
    }
    println!("{protocol}: {states} states");
    states
}

// The numbers say that the exploration still reaches what it should.

#[test]
fn aligned() {
    assert!(check_all(Protocol::Aligned) > 600_000);
}

#[test]
fn chandy_lamport() {
    assert!(check_all(Protocol::ChandyLamport) > 700_000);
}

#[test]
fn unaligned() {
    assert!(check_all(Protocol::Unaligned) > 900_000);
}

#[test]
fn aligned_then_unaligned() {
    assert!(check_all(Protocol::AlignedThenUnaligned) > 1_500_000);
}

#[test]
fn at_least_once() {
    assert!(check_all(Protocol::AtLeastOnce) > 600_000);
}

#[test]
fn stop_the_world() {
    assert!(check_all(Protocol::StopTheWorld) > 700_000);
}
