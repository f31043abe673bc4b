//! Random operations on all kinds of state of a few keys, with freezes that become durable or not, and restores at the same
//! and at other parallelisms, against plain collections.

use super::world::{World, text};
use crate::error::StateError;
use crate::operator::{Aggregate, Aggregator, KeyedState, List, Map, Value};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

struct Longest;

impl Aggregator for Longest {
    type In = u32;
    type Acc = (u64, u32);
    type Out = (u64, u32);
    fn start() -> (u64, u32) {
        (0, 0)
    }
    fn add(acc: &mut (u64, u32), input: u32) {
        *acc = (acc.0 + 1, acc.1.max(input));
    }
    fn result(acc: &(u64, u32)) -> (u64, u32) {
        *acc
    }
}

#[derive(KeyedState)]
struct All {
    value: Value<String>,
    number: Value<u64>,
    texts: List<String>,
    numbers: List<u32>,
    by_text: Map<String, u32>,
    by_number: Map<u64, String>,
    longest: Aggregate<Longest>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Plain {
    value: Option<String>,
    number: Option<u64>,
    texts: VecDeque<String>,
    numbers: VecDeque<u32>,
    by_text: BTreeMap<String, u32>,
    by_number: BTreeMap<u64, String>,
    longest: Option<(u64, u32)>,
}

#[derive(Clone, Debug)]
enum Op {
    Value(u32),
    Number(u32),
    Texts(u32, u32),
    Numbers(u32, u32),
    ByText(u32, u32),
    ByNumber(u32, u32),
    Longest(u32),
    /// Many at once.
    Fill(u32),
    Look,
}

#[derive(Clone, Debug)]
enum Event {
    Record(u32, Op),
    Commit,
    Abandon,
    Restore(u32),
    RestoreSame,
    Hydrate,
    Look,
}

fn op() -> impl Strategy<Value = Op> {
    let number = any::<u32>;
    prop_oneof![
        1 => number().prop_map(Op::Value),
        1 => number().prop_map(Op::Number),
        3 => (number(), number()).prop_map(|(what, by)| Op::Texts(what, by)),
        3 => (number(), number()).prop_map(|(what, by)| Op::Numbers(what, by)),
        4 => (number(), number()).prop_map(|(what, by)| Op::ByText(what, by)),
        4 => (number(), number()).prop_map(|(what, by)| Op::ByNumber(what, by)),
        1 => number().prop_map(Op::Longest),
        1 => number().prop_map(Op::Fill),
        1 => Just(Op::Look),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        40 => (0..9u32, op()).prop_map(|(key, op)| Event::Record(key, op)),
        2 => Just(Event::Commit),
        1 => Just(Event::Abandon),
        1 => (1..6u32).prop_map(Event::Restore),
        1 => Just(Event::RestoreSame),
        2 => Just(Event::Hydrate),
        1 => Just(Event::Look),
    ]
}

fn value(state: &mut All, plain: &mut Plain, by: u32) -> Result<(), StateError> {
    match by % 7 {
        0 => assert_eq!(state.value.take()?, plain.value.take()),
        1 => {
            state.value.set(text(by));
            plain.value = Some(text(by));
        }
        2 => {
            let texts = (state.value.get_or_insert_with(String::new)?, plain.value.get_or_insert_default());
            texts.0.push_str("more");
            texts.1.push_str("more");
        }
        3 => {
            state.value.clear();
            plain.value = None;
            assert!(state.value.is_none()?);
        }
        4 => assert_eq!(state.value.get_mut()?.map(|text| text.pop()), plain.value.as_mut().map(String::pop)),
        _ => assert_eq!(state.value.get()?, plain.value.as_ref()),
    }
    Ok(())
}

fn list<T: crate::record::Record + Clone + PartialEq + std::fmt::Debug>(
    list: &mut List<T>,
    plain: &mut VecDeque<T>,
    (what, by): (u32, u32),
    make: impl Fn(u32) -> T,
) -> Result<(), StateError> {
    let index = u64::from(by) % (plain.len() as u64 + 2);
    match what % 16 {
        0 => assert_eq!(list.pop_back()?, plain.pop_back()),
        1 | 2 => assert_eq!(list.pop_front()?, plain.pop_front()),
        3 => assert_eq!(list.get(index)?.as_ref(), plain.get(index as usize)),
        4 | 5 => {
            let place = plain.get_mut(index as usize);
            assert_eq!(list.set(index, make(by))?, place.is_some());
            if let Some(place) = place {
                *place = make(by);
            }
        }
        6 => {
            list.clear()?;
            plain.clear();
        }
        7 => assert!(list.iter()?.collect::<Result<VecDeque<_>, _>>()? == *plain),
        _ => {
            list.push(make(by))?;
            plain.push_back(make(by));
        }
    }
    assert_eq!((list.len()?, list.is_empty()?), (plain.len() as u64, plain.is_empty()));
    Ok(())
}

fn map<Q: crate::record::Record + Clone + Ord, V: crate::record::Record + Clone + PartialEq + std::fmt::Debug>(
    map: &mut Map<Q, V>,
    plain: &mut BTreeMap<Q, V>,
    (what, by): (u32, u32),
    key: Q,
    make: impl Fn(u32) -> V,
) -> Result<(), StateError> {
    match what % 16 {
        0..4 => assert_eq!(map.remove(&key)?, plain.remove(&key)),
        4 => assert_eq!((map.get(&key)?.as_ref(), map.contains(&key)?), (plain.get(&key), plain.contains_key(&key))),
        5 => {
            map.clear()?;
            plain.clear();
        }
        6 => {
            let entries: Vec<_> = map.iter()?.collect::<Result<_, _>>()?;
            assert_eq!(entries.len(), plain.len());
            assert!(entries.into_iter().collect::<BTreeMap<_, _>>() == *plain);
        }
        7..10 => {
            let found = map.update(key.clone(), || make(0), |value| std::mem::replace(value, make(by)))?;
            let there = plain.entry(key).or_insert_with(|| make(0));
            assert_eq!(found, std::mem::replace(there, make(by)));
        }
        _ => assert_eq!(map.insert(key.clone(), make(by))?, plain.insert(key, make(by))),
    }
    assert_eq!((map.len()?, map.is_empty()?), (plain.len() as u64, plain.is_empty()));
    Ok(())
}

fn run(op: &Op, state: &mut All, plain: &mut Plain) -> Result<(), StateError> {
    match *op {
        Op::Value(by) => value(state, plain, by)?,
        Op::Number(0..1000) => {
            state.number.clear();
            plain.number = None;
        }
        Op::Number(by) => {
            *state.number.get_or_insert_with(|| 0)? += u64::from(by);
            *plain.number.get_or_insert_default() += u64::from(by);
        }
        Op::Texts(what, by) => list(&mut state.texts, &mut plain.texts, (what, by), text)?,
        Op::Numbers(what, by) => list(&mut state.numbers, &mut plain.numbers, (what, by), |by| by)?,
        Op::ByText(what, by) => map(&mut state.by_text, &mut plain.by_text, (what, by), text(by % 40), |by| by)?,
        Op::ByNumber(what, by) => {
            map(&mut state.by_number, &mut plain.by_number, (what, by), u64::from(by % 40), text)?;
        }
        Op::Longest(by) if by % 5 == 0 => {
            state.longest.clear();
            plain.longest = None;
        }
        Op::Longest(by) => {
            state.longest.add(by)?;
            Longest::add(plain.longest.get_or_insert_default(), by);
        }
        Op::Fill(by) => {
            for number in by..by.saturating_add(200) {
                state.numbers.push(number)?;
                plain.numbers.push_back(number);
                assert_eq!(state.by_text.insert(text(number), number)?, plain.by_text.insert(text(number), number));
            }
        }
        Op::Look => look(state, plain)?,
    }
    Ok(())
}

fn look(state: &mut All, plain: &Plain) -> Result<(), StateError> {
    let found = Plain {
        value: state.value.get()?.cloned(),
        number: state.number.get()?.copied(),
        texts: state.texts.iter()?.collect::<Result<_, _>>()?,
        numbers: state.numbers.iter()?.collect::<Result<_, _>>()?,
        by_text: state.by_text.iter()?.collect::<Result<_, _>>()?,
        by_number: state.by_number.iter()?.collect::<Result<_, _>>()?,
        longest: state.longest.result()?,
    };
    assert!(found == *plain, "{found:?}\n{plain:?}");
    Ok(())
}

type Model = BTreeMap<u32, Plain>;

/// Keys of which some are too long for a page.
fn key(number: u32) -> String {
    format!("{number}{}", "k".repeat(number as usize % 3 * 600))
}

fn look_at_all(world: &mut World<All>, model: &Model) {
    for (number, plain) in model {
        world.with(&key(*number), |state| look(state, plain)).unwrap();
    }
}

fn simulate(page_bytes: usize, tasks: u32, events: Vec<Event>) {
    let mut world = World::<All>::new(page_bytes, tasks);
    let (mut model, mut durable) = (Model::new(), None);
    let has_store = page_bytes >= 4096;
    for event in events {
        match event {
            Event::Record(number, op) => {
                let plain = model.entry(number).or_default();
                world.with(&key(number), |state| run(&op, state, plain)).unwrap();
            }
            Event::Commit => {
                world.commit();
                durable = Some(model.clone());
            }
            Event::Abandon => {
                drop(world.freeze());
                world.settle(false);
            }
            Event::Restore(tasks) if has_store && durable.is_some() => {
                world.restore(tasks);
                model.clone_from(durable.as_ref().unwrap());
            }
            Event::RestoreSame if has_store && durable.is_some() => {
                world.restore(world.tasks.len() as u32);
                model.clone_from(durable.as_ref().unwrap());
            }
            Event::Hydrate => world.hydrate(),
            _ => look_at_all(&mut world, &model),
        }
    }
    look_at_all(&mut world, &model);
    // Whoever has anything is met at the end, and nobody else.
    model.retain(|_, plain| *plain != Plain::default());
    assert_eq!(world.ends(), model.keys().map(|number| key(*number)).collect::<BTreeSet<_>>());
    if has_store {
        world.commit();
        world.restore(3);
        look_at_all(&mut world, &model);
        assert!(world.ends().is_empty(), "the end has been for all");
    }
    let pool = world.pool.clone();
    drop(world);
    assert_eq!(pool.in_use(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn states_are_like_plain_collections(
        page_bytes in prop_oneof![Just(512usize), Just(4096), Just(16384)],
        tasks in 1..5u32,
        events in prop::collection::vec(event(), 1..300),
    ) {
        simulate(page_bytes, tasks, events);
    }
}
