//! What it costs: by pages that a checkpoint is handed, and by elements that are left behind.

use super::world::World;
use crate::operator::{KeyedState, List, Map, Value};

#[derive(KeyedState)]
struct Kinds {
    list: List<u64>,
    map: Map<u64, u64>,
    value: Value<String>,
}

fn fill(world: &mut World<Kinds>, key: &str, len: u64) {
    world
        .with(key, |state| {
            for number in 0..len {
                state.list.push(number)?;
                state.map.insert(number, number)?;
            }
            Ok::<(), crate::error::StateError>(())
        })
        .unwrap();
}

/// Pages that change by one small operation.
fn dirtied(world: &mut World<Kinds>, key: &str, f: impl FnOnce(&mut Kinds)) -> usize {
    world.commit();
    world.with(key, f);
    let pages = World::<Kinds>::pages(&world.freeze());
    world.settle(false);
    world.commit();
    pages
}

#[test]
fn an_operation_touches_as_many_pages_in_a_long_collection_as_in_a_short_one() {
    let mut world = World::new(4096, 1);
    fill(&mut world, "long", 100_000);
    fill(&mut world, "short", 10);
    for key in ["short", "long"] {
        let mut of = |f: fn(&mut Kinds)| dirtied(&mut world, key, f);
        // A head, and the element.
        assert_eq!(of(|state| state.list.push(7).unwrap()), 2, "{key}");
        assert_eq!(of(|state| _ = state.list.pop_front().unwrap()), 2, "{key}");
        assert_eq!(of(|state| _ = state.list.pop_back().unwrap()), 2, "{key}");
        assert_eq!(of(|state| _ = state.list.set(3, 9).unwrap()), 1, "{key}");
        // The entry and its slot; when one goes, the last one moves to its slot: at most three entries and slots in all.
        assert_eq!(of(|state| _ = state.map.insert(1 << 40, 1).unwrap()), 3, "{key}");
        assert_eq!(of(|state| state.map.update(5, || 0, |value| *value += 1).unwrap()), 1, "{key}");
        assert!(of(|state| _ = state.map.remove(&5).unwrap()) <= 5, "{key}");
        let look = |state: &mut Kinds| {
            assert!(state.list.get(5).unwrap().is_some() && state.map.contains(&6).unwrap());
            assert_eq!(state.list.iter().unwrap().take(9).map(Result::unwrap).collect::<Vec<_>>()[1..2], [2]);
            assert_eq!(state.map.iter().unwrap().take(9).count(), 9);
            assert_eq!(state.value.get().unwrap(), None);
        };
        assert_eq!(of(look), 0, "{key}");
        // The head goes, and a note of what is left behind comes; each record then takes one element out.
        let pages = of(|state| {
            state.list.clear().unwrap();
            state.map.clear().unwrap();
        });
        assert!(pages <= 7, "{key}: {pages}");
        // Until nothing waits any more that later records would pay for.
        world.batch("other", if key == "short" { 100 } else { 0 }, |_| Ok(())).unwrap();
    }
}

#[test]
fn what_was_cleared_is_removed_bit_by_bit() {
    let mut world = World::new(4096, 1);
    fill(&mut world, "long", 5000);
    world.with("long", |state| {
        state.list.clear().unwrap();
        state.map.clear().unwrap();
    });
    let left = |world: &mut World<Kinds>| {
        let entries = world.freeze();
        ["list/items", "map/entries", "map/order", "list/cleared"].map(|state| World::<Kinds>::rows(&entries, state))
    };
    // What came itself paid for the first of it.
    let [items, entries, order, cleared] = left(&mut world);
    assert!(items < 5000 && entries < 5000 && entries == order && cleared == 0 || cleared == 1);
    world.with("other", |_| ());
    let before = left(&mut world);
    world.batch("other", 100, |_| Ok(())).unwrap();
    let after = left(&mut world);
    assert_eq!(before[0].min(100), before[0] - after[0]);
    world.commit();
    world.restore(3);
    for number in 0..5000 {
        world.with(&number.to_string(), |_| ());
    }
    world.batch("long", 5000, |_| Ok(())).unwrap();
    assert_eq!(left(&mut world), [0; 4]);
}

/// A key that is cleared again and again beside new elements: nothing piles up.
#[test]
fn clearing_keeps_up_with_filling() {
    let mut world = World::new(4096, 1);
    let mut most = 0;
    for round in 0..60 {
        fill(&mut world, "a", 1000);
        world.with("a", |state| state.list.clear().unwrap());
        world.with("a", |state| state.map.clear().unwrap());
        let items = World::<Kinds>::rows(&world.freeze(), "list/items");
        world.settle(false);
        most = if round < 5 { items } else { most.max(items) };
    }
    assert!(most <= 2000, "{most}");
}

#[test]
fn an_error_that_is_not_passed_on_fails_all_the_same() {
    let mut world = World::<Kinds>::new(512, 1);
    let pool = world.pool.clone();
    let mut failed = None;
    // More than there is.
    for key in 0..100_000u64 {
        let result = world.batch(&key.to_string(), 1, |state| {
            for number in 0..10_000 {
                if state.list.push(number).is_err() {
                    break;
                }
            }
            Ok(())
        });
        if let Err(error) = result {
            failed = Some(error);
            break;
        }
    }
    let error = failed.expect("the pool has an end").0.cause.to_string();
    assert!(error.contains(&format!("limit of {} bytes", pool.limit_bytes())), "{error}");
}

#[test]
#[should_panic(expected = "states must stay in the fields")]
fn states_that_were_swapped_are_found() {
    #[derive(KeyedState)]
    struct Two {
        one: Value<u64>,
        other: Value<u64>,
    }
    let mut world = World::<Two>::new(512, 1);
    world.with("key", |state| std::mem::swap(&mut state.one, &mut state.other));
    world.freeze();
}
