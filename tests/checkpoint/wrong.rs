//! Shells that break a rule, and what comes of it: the exploration must find that. One of them follows a variant of the
//! aligned protocol from the literature; its counterexample is in the docs page on loops.

use super::explore::{Fault, explore};
use super::graphs::{Setup, Wrong};
use snapring::checkpoint::Protocol;

const STATES_MAX: usize = 1_000_000;

fn fault(wrong: Wrong, setup: Setup, what: &str) -> Fault {
    let fault = explore(&Setup { wrong, ..setup }, STATES_MAX).expect_fault(what);
    println!("{wrong:?}: {fault}");
    fault
}

fn without_ends(graph: &str, messages: usize, protocol: Protocol) -> Setup {
    Setup { ends: false, ..Setup::new(graph, messages, protocol) }
}

#[test]
fn a_head_that_waits_without_a_log_loses_what_it_emits_meanwhile() {
    for graph in ["loop", "self"] {
        // One message that goes round twice.
        let mut setup = without_ends(graph, 2, Protocol::Aligned);
        setup.graph.ways.remove(0);
        let _ = fault(Wrong::HeadWaits, setup, "LOST");
    }
}

#[test]
fn without_holding_back_a_message_counts_twice() {
    let _ = fault(Wrong::NoHoldBack, without_ends("cross", 2, Protocol::Aligned), "DOUBLED");
    let _ = fault(Wrong::NoHoldBack, without_ends("fused22", 2, Protocol::Aligned), "DOUBLED");
}

#[test]
fn a_log_that_begins_without_the_spill_loses_a_message() {
    for protocol in [Protocol::Aligned, Protocol::ChandyLamport, Protocol::AtLeastOnce, Protocol::Unaligned] {
        let _ = fault(Wrong::LogWithoutSpill, without_ends("cross", 2, protocol), "LOST");
    }
    let _ = fault(Wrong::LogWithoutSpill, without_ends("loop", 2, Protocol::Aligned), "LOST");
}

#[test]
fn a_log_that_goes_on_behind_its_barrier_doubles_a_message() {
    let _ = fault(Wrong::LogBehindBarrier, without_ends("cross", 2, Protocol::Aligned), "DOUBLED");
    let _ = fault(Wrong::BarrierWhenProcessed, without_ends("loop", 2, Protocol::Aligned), "DOUBLED");
}

#[test]
fn leftovers_that_are_not_saved_are_lost() {
    let _ = fault(Wrong::NoLeftovers, without_ends("chain", 3, Protocol::Unaligned), "LOST");
    let _ = fault(Wrong::NoLeftovers, without_ends("chain", 3, Protocol::StopTheWorld), "LOST");
    let _ = fault(Wrong::NotAmended, without_ends("chain", 3, Protocol::AlignedThenUnaligned), "LOST");
}

#[test]
fn a_task_that_finishes_too_early_spoils_the_cut() {
    let _ = fault(Wrong::FinishesWithLeftovers, Setup::new("fanin", 3, Protocol::Unaligned), "LOST");
}

#[test]
#[should_panic(expected = "finished while it was Frozen")]
fn a_task_that_finishes_in_an_epoch_is_noticed_by_the_coordinator() {
    let _ = fault(Wrong::FinishesInEpoch, Setup::new("fanin", 2, Protocol::Unaligned), "");
}

#[test]
fn a_paused_task_that_flushes_spoils_the_cut() {
    let _ = fault(Wrong::FlushesPaused, without_ends("chain", 3, Protocol::StopTheWorld), "message");
}

#[test]
fn an_abort_that_is_not_told_leaves_inputs_blocked() {
    let setup = Setup { aborts: 1, epochs: 1, ..without_ends("fanin", 2, Protocol::Aligned) };
    let _ = fault(Wrong::NoAborts, setup, "STUCK");
}

#[test]
fn without_a_spill_a_loop_is_stuck() {
    let setup = Setup { epochs: 0, ..without_ends("self", 3, Protocol::Aligned) };
    let _ = fault(Wrong::NoSpill, setup, "STUCK");
}

#[test]
fn outside_inputs_that_are_held_even_for_a_barrier_are_stuck() {
    let setup = Setup { low_water: Some(0), ..without_ends("cross", 2, Protocol::Aligned) };
    let _ = fault(Wrong::HoldsAlways, setup, "STUCK");
}

#[test]
fn laps_that_do_not_look_end_a_loop_too_early() {
    let setup = Setup { epochs: 0, hasty: true, ..Setup::new("cross", 2, Protocol::Aligned) };
    let _ = fault(Wrong::AlwaysClean, setup, "the loop ends");
    let setup = Setup { epochs: 0, hasty: true, ..Setup::new("mid", 2, Protocol::Aligned) };
    let _ = fault(Wrong::BodyPassesEarly, setup, "the loop ends");
}
