//! The jobs with loops, from their input to their end, against plain computations.

use crate::plain::{gunzipped, sorted};
use crate::plain_loops::{components, reached};
use crate::support::{Room, run};

/// Balances that a run of `transfers` has left: each account once, and all the money.
#[track_caller]
pub fn check_balances(lines: &[String], accounts: usize, total: i64) {
    let mut balances = vec![None; accounts];
    for line in lines {
        let (account, balance) = line.split_once(',').expect("account,balance");
        let twice = balances[account.parse::<usize>().unwrap()].replace(balance.parse::<i64>().unwrap());
        assert_eq!(twice, None, "account {account} is there twice");
    }
    assert_eq!(lines.len(), accounts);
    assert_eq!(balances.iter().flatten().sum::<i64>(), total);
    assert!(balances.iter().flatten().all(|balance| *balance >= 0), "nobody gives what he does not have");
}

#[test]
fn transfers_make_and_lose_no_money() {
    let limits = ["--accounts", "100", "--amount", "50", "--transfers"];
    for (transfers, parallelism) in [("0", "1"), ("7", "2"), ("10000", "1"), ("10000", "3")] {
        let ran = run([&["run", "transfers", "--parallelism", parallelism], &limits[..], &[transfers]].concat()).ok();
        check_balances(&ran.lines(), 100, 5000);
        let unmoved = ran.lines().iter().filter(|line| line.ends_with(",50")).count();
        assert_eq!(unmoved == 100, transfers == "0", "{ran:?}");
    }
    let room = Room::new();
    let often = [&["--checkpoint-interval", "10ms", "--parallelism", "2"], &limits[..], &["100000"]].concat();
    run(room.stateful("transfers", &[], &often)).ok();
    check_balances(&room.committed(), 100, 5000);
}

#[test]
fn components_are_those_of_union_find() {
    let csv = gunzipped("wordnet-verbs.csv.gz");
    let wanted = components(&csv);
    let roots = wanted.iter().filter(|line| line.split_once(',').is_some_and(|(node, root)| node == root)).count();
    assert_eq!((wanted.len(), roots), (13_688, 41));
    for parallelism in ["1", "3"] {
        let ran = run(["run", "components", "--parallelism", parallelism]).ok();
        assert_eq!(sorted(ran.lines()), wanted);
    }
    let room = Room::new();
    run(room.stateful("components", &[], &["--checkpoint-interval", "10ms"])).ok();
    assert_eq!(sorted(room.committed()), wanted);
}

#[test]
fn components_of_odd_graphs() {
    let room = Room::new();
    for rows in ["", "7,7\n", "2,1\n1,2\n2,1\n", "1,2\n3,4\n5,5\n4,1\n9,8\n", "5,4\n4,3\n3,2\n2,1\n1,0\n"] {
        let csv = format!("source,target\n{rows}");
        let ran = run(["run", "components", "--input", &room.file("edges.csv", &csv)]).ok();
        assert_eq!(sorted(ran.lines()), components(&csv), "{rows}");
    }
}

#[test]
fn what_is_reached_is_what_a_search_finds() {
    let csv = gunzipped("wordnet-verbs-reach.csv.gz");
    let wanted = reached(&csv);
    assert_eq!(wanted.len(), 3_095);
    for parallelism in ["1", "3"] {
        let ran = run(["run", "reachability", "--parallelism", parallelism]).ok();
        assert_eq!(sorted(ran.lines()), wanted);
    }
    let room = Room::new();
    run(room.stateful("reachability", &[], &["--checkpoint-interval", "10ms"])).ok();
    assert_eq!(sorted(room.committed()), wanted);
}

#[test]
fn edges_and_starts_may_come_in_any_order() {
    let room = Room::new();
    let edges = room.file("edges.csv", "source,target\n1,2\n2,3\n3,1\n3,3\n3,4\n1,2\n6,4\n");
    let starts = room.file("starts.csv", "source,target\n1,\n4,\n9,\n1,\n");
    let wanted = reached("source,target\n1,2\n2,3\n3,1\n3,3\n3,4\n6,4\n1,\n4,\n9,\n");
    assert_eq!(wanted, ["1,1", "1,2", "1,3", "1,4", "4,4", "9,9"]);
    for inputs in [[&edges, &starts], [&starts, &edges]] {
        let ran = run(["run", "reachability", "--input", inputs[0], "--input", inputs[1]]).ok();
        assert_eq!(sorted(ran.lines()), wanted);
    }
}

#[test]
fn tokens_go_all_their_laps() {
    for (tokens, operators, laps, parallelism) in
        [(0, 2, 3, "1"), (1, 1, 1000, "1"), (100, 4, 50, "1"), (100, 3, 20, "2")]
    {
        let [of_tokens, of_operators, of_laps] =
            [("tokens", tokens), ("operators", operators), ("laps", laps)].map(|(flag, n)| format!("--{flag}={n}"));
        let ran = run(["run", "tokens", "--parallelism", parallelism, &of_tokens, &of_operators, &of_laps]).ok();
        let wanted = (0..tokens).map(|token| format!("{token},{laps}")).collect();
        assert_eq!(sorted(ran.lines()), sorted(wanted));
    }
}
