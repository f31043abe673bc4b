//! States that are gone after a time.

use super::world::World;
use crate::operator::{KeyedState, List, Map, Value};
use std::collections::BTreeSet;

/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

#[derive(KeyedState)]
struct Kinds {
    #[state(ttl_ms = 10)]
    value: Value<String>,
    #[state(ttl_ms = 2 * 10)]
    list: List<u64>,
    #[state(ttl_ms = 20)]
    map: Map<u64, String>,
    kept: Value<u64>,
}

fn fill(state: &mut Kinds) {
    state.value.set("value".to_owned());
    for number in 0..5 {
        state.list.push(number).unwrap();
        state.map.insert(number, number.to_string()).unwrap();
    }
}

/// Lengths of value, list and map.
fn seen(state: &mut Kinds) -> (bool, u64, u64) {
    let (list, map) = (state.list.len().unwrap(), state.map.len().unwrap());
    assert_eq!(state.list.iter().unwrap().count() as u64, list);
    assert_eq!(state.map.iter().unwrap().count() as u64, map);
    assert_eq!((state.list.get(0).unwrap().is_some(), state.map.contains(&0).unwrap()), (list > 0, map > 0));
    (state.value.get().unwrap().is_some(), list, map)
}

fn rows(world: &mut World<Kinds>, states: &[&str]) -> Vec<u64> {
    let entries = world.freeze();
    world.settle(false);
    states.iter().map(|state| World::<Kinds>::rows(&entries, state)).collect()
}

#[test]
fn what_was_written_is_gone_at_its_time_and_not_before() {
    let mut world = World::<Kinds>::new(4096, 2);
    world.set_clock(7);
    world.with("a", fill);
    world.set_clock(7 + 10 * MS - 1);
    assert_eq!(world.with("a", seen), (true, 5, 5));
    world.set_clock(7 + 10 * MS);
    assert_eq!(world.with("a", seen), (false, 5, 5));
    // A change of any item counts for the whole; a look does not.
    world.with("a", |state| assert!(state.list.set(0, 0).unwrap()));
    world.set_clock(7 + 20 * MS);
    assert_eq!(world.with("a", seen), (false, 5, 0));
    world.set_clock(7 + 30 * MS);
    assert_eq!(world.with("a", seen), (false, 0, 0));
    // What comes now is new, and of the old nothing comes back.
    world.with("a", |state| {
        state.list.push(8).unwrap();
        assert_eq!(state.map.insert(0, "new".to_owned()).unwrap(), None);
    });
    assert_eq!(world.with("a", seen).1, 1);
    assert_eq!(world.with("a", |state| state.map.remove(&0).unwrap()), Some("new".to_owned()));
    // All that was met has been removed, elements included, but for what waits to be.
    world.batch("b", 100, |_| Ok(())).unwrap();
    let states = ["value", "list", "map", "list/items", "map/entries", "map/order", "list/cleared", "map/cleared"];
    assert_eq!(rows(&mut world, &states), [0, 1, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn the_end_is_only_for_what_is_left() {
    let mut world = World::<Kinds>::new(4096, 3);
    for number in 0..50u64 {
        world.set_clock(number * MS);
        world.with(&number.to_string(), |state| state.value.set("value".to_owned()));
    }
    world.with("kept", |state| state.kept.set(1));
    world.set_clock(50 * MS);
    let left: BTreeSet<_> = (41..50).map(|number| number.to_string()).chain(["kept".to_owned()]).collect();
    assert_eq!(world.ends(), left);
}

#[test]
fn time_goes_on_from_where_a_checkpoint_was_made() {
    let mut world = World::<Kinds>::new(4096, 2);
    world.set_clock(100 * MS);
    world.with("a", fill);
    world.set_clock(105 * MS);
    world.with("a", |_| ());
    world.with("b", |_| ());
    world.commit();
    for tasks in [2, 3] {
        // As after a start with another clock: not back to the time before, and on from there.
        world.set_clock(0);
        world.restore(tasks);
        assert_eq!(world.with("a", seen), (true, 5, 5));
        world.set_clock(5 * MS - 1);
        assert_eq!(world.with("a", seen), (true, 5, 5));
        world.set_clock(5 * MS);
        assert_eq!(world.with("a", seen), (false, 5, 5));
        world.set_clock(2 * MS);
        assert_eq!(world.with("a", seen), (false, 5, 5), "it never goes back");
    }
}

#[test]
fn what_nobody_meets_is_removed_as_records_come() {
    let mut world = World::<Kinds>::new(4096, 1);
    for number in 0..3000u64 {
        world.with(&number.to_string(), fill);
    }
    world.set_clock(30 * MS);
    let states = ["value", "list", "map", "list/items", "map/entries"];
    assert_eq!(rows(&mut world, &states), [3000, 3000, 3000, 15_000, 15_000]);
    // A round of the cursor takes a quarter as many records as there are entries; elements follow, one a record.
    for _ in 0..30 {
        world.batch("b", 1000, |_| Ok(())).unwrap();
    }
    assert_eq!(rows(&mut world, &states), [0; 5]);
}

/// New keys for ever, each written once.
#[test]
fn memory_levels_off() {
    let mut world = World::<Kinds>::new(4096, 1);
    // 3000 live at any time; the most pages in each third of the run.
    let (mut most, mut live) = ([0; 3], 0);
    for number in 0..60_000u64 {
        world.set_clock(number * MS / 300);
        world.with(&number.to_string(), |state| state.value.set("v".repeat(number as usize % 300)));
        if number % 500 == 0 {
            world.commit();
        }
        let third = &mut most[number as usize / 20_000];
        *third = world.pool.in_use().max(*third);
        if number == 3000 {
            live = world.pool.in_use();
        }
    }
    let [_, middle, last] = most;
    assert!(
        last <= middle * 11 / 10 && last <= 3 * live,
        "{most:?} pages, {live} when there was nothing to remove yet"
    );
}

/// What is over in pages that nothing else has changed makes no checkpoint larger, until it is half of a page.
#[test]
fn removal_leaves_clean_pages_alone() {
    let mut world = World::<Kinds>::new(4096, 1);
    for number in (0..2000u64).step_by(4).chain((0..2000).filter(|number| number % 4 > 0)) {
        world.set_clock(if number % 4 == 0 { 0 } else { 5 * MS });
        world.with(&number.to_string(), |state| state.value.set("value".to_owned()));
    }
    world.set_clock(9 * MS);
    world.commit();
    // A quarter is over.
    world.set_clock(12 * MS);
    world.batch("b", 4000, |state| Ok(state.kept.get().map(|_| ())?)).unwrap();
    let entries = world.freeze();
    assert_eq!(World::<Kinds>::pages(&entries), 0);
    world.settle(false);
    // One page is written anyway: there it goes.
    world.with("1", |state| state.value.set("again".to_owned()));
    world.batch("b", 4000, |_| Ok(())).unwrap();
    let entries = world.freeze();
    assert_eq!(World::<Kinds>::pages(&entries), 1);
    assert!((1900..2000).contains(&World::<Kinds>::rows(&entries, "value")));
    world.settle(false);
    // All is over: now it is worth it.
    world.set_clock(16 * MS);
    world.batch("b", 4000, |_| Ok(())).unwrap();
    assert_eq!(rows(&mut world, &["value"]), [1]);
}
