//! A random dataflow as a plain list of steps, which can be drawn and can be computed.

use snapring::connector::{Generate, Memory};
use snapring::dataflow::{Dataflow, Stream};
use snapring::error::Failed;
use snapring::operator::{Aggregate, Aggregator, Emit, KeyedState, List, Map, Operator, Value};
use snapring::record::Record;
use snapring::runtime::StageConfig;
use snapring::testing::Random;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What flows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Record)]
pub struct Item {
    pub id: u64,
    pub key: u64,
    pub amount: i64,
    /// Variable length, so that both forms of the table are walked.
    pub word: String,
}

impl Item {
    pub fn nth(source: u64, index: u64, keys: u64) -> Self {
        let mixed = mix(source << 32 | index);
        let (key, amount) = (mixed % keys, (mixed >> 32) as i64 % 100);
        Self { id: mixed, key, amount, word: format!("w{}", key % 7) }
    }
}

/// A step. Streams are numbered in the order in which steps make them; a step takes the oldest one that is open.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Source { number: u64, events: u64, splits: u32, keys: u64 },
    Map,
    Filter,
    FlatMap,
    Stage,
    Broadcast,
    Rebalance,
    Fork,
    Split,
    Merge,
    Union,
    Process,
    Count,
    Fold,
    Reduce,
    FoldToEnd,
    FoldWordsToEnd,
    Loop,
    NestedLoop,
    MidLoop,
    SharedLoop,
    Sink,
}

pub fn mix(value: u64) -> u64 {
    let mixed = (value ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (mixed >> 32)
}

/// User code that may fail when it passes.
pub type Pass = Arc<dyn Fn() + Send + Sync>;

/// Where a recipe is drawn.
pub trait Ground {
    fn pass(&self) -> Pass;
    fn sink(&mut self, name: &str) -> Memory<Item>;
    /// How an operator runs, at every start.
    fn stage(&mut self, name: &str, stage: StageConfig);

    /// A step that is a source.
    fn source(&mut self, flow: &Dataflow, name: &str, step: &Step) -> Stream<Item> {
        let &Step::Source { number, events, splits, keys } = step else { panic!("{step:?} is no source") };
        let nth = before(&self.pass(), move |index| Item::nth(number, index, keys));
        flow.source(name, Generate::new(events, splits, nth))
    }

    /// A step that is a sink.
    fn end(&mut self, name: &str, stream: Stream<Item>) {
        stream.sink(name, self.sink(name));
    }
}

/// The same function, but that it may fail.
pub fn before<T, U, F: Fn(T) -> U>(pass: &Pass, f: F) -> impl Fn(T) -> U + use<T, U, F> {
    let pass = pass.clone();
    move |value| {
        pass();
        f(value)
    }
}

/// Sources, then random steps, until every stream has ended in a sink.
pub fn random(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    let sources = random.between(1, 3);
    for number in 0..sources {
        let (events, splits) = (random.between(0, 400), random.between(1, 5) as u32);
        steps.push(Step::Source { number, events, splits, keys: random.between(1, 20) });
    }
    let mut open = sources;
    for _ in 0..random.between(0, 9) {
        let step = match random.below(21) {
            0 => Step::Map,
            1 => Step::Filter,
            2 => Step::FlatMap,
            3 => Step::Stage,
            4 => Step::Rebalance,
            // Each makes three of one.
            5 if !steps.iter().any(|step| matches!(step, Step::Broadcast)) => Step::Broadcast,
            6 if open < 4 => Step::Fork,
            7 if open < 4 => Step::Split,
            8 | 9 if open > 1 => Step::Merge,
            10 if open > 2 => Step::Union,
            11 => Step::Count,
            12 => Step::Fold,
            13 => Step::FoldToEnd,
            14 => Step::FoldWordsToEnd,
            15 | 16 => Step::Process,
            17 => Step::Loop,
            18 => Step::NestedLoop,
            19 if open > 1 => Step::MidLoop,
            20 => Step::SharedLoop,
            _ => Step::Reduce,
        };
        match step {
            Step::Fork | Step::Split => open += 1,
            Step::Merge | Step::MidLoop => open -= 1,
            Step::Union => open -= 2,
            _ => {}
        }
        steps.push(step);
    }
    steps.extend((0..open).map(|_| Step::Sink));
    steps
}

// What the steps do with records, the same for both ways. Nothing depends on the order within a key: only how many there
// are, their sum, and the running number.

fn map(item: Item) -> Item {
    Item { amount: item.amount + 1, key: item.key * 3 + 1, ..item }
}
fn filter(item: &Item) -> bool {
    !item.id.is_multiple_of(3)
}
fn flat_map(item: Item) -> Vec<Item> {
    (0..item.id % 3).map(|copy| Item { id: mix(item.id + copy), ..item.clone() }).collect()
}
/// The `number`th record of its key.
fn counted(key: u64, number: u64) -> Item {
    Item { id: mix(key << 20 | number), key, amount: number as i64, word: format!("n{}", number % 5) }
}
/// A key's sum.
fn summed(key: u64, number: u64, sum: i64) -> Item {
    Item { id: mix(key), key: key / 2, amount: sum, word: format!("s{number}") }
}

fn is_left(item: &Item) -> bool {
    item.id.is_multiple_of(2)
}
/// How many records of a key make a group: then they go, and the key with them.
const GROUP: u64 = 3;
fn grouped(key: u64, sum: i64, end: bool) -> Item {
    Item { id: mix(key ^ sum as u64), key: key / 3, amount: sum, word: format!("g{end}") }
}

/// What is kept of a key's records. Each kind of state tells the same in its way.
#[derive(KeyedState)]
struct Group {
    /// What the records of the group under way add.
    adds: List<i64>,
    /// How often each place in a group has been taken.
    places: Map<String, u64>,
    /// Groups that are whole.
    groups: Value<u64>,
    records: Aggregate<Counted>,
}

struct Counted;

impl Aggregator for Counted {
    type In = ();
    type Acc = u64;
    type Out = u64;
    fn start() -> u64 {
        0
    }
    fn add(count: &mut u64, (): ()) {
        *count += 1;
    }
    fn result(count: &u64) -> u64 {
        *count
    }
}

/// Emits the sum of each group of a key's records, and at the end that of the rest. Every record adds the same, so that
/// their order is no matter.
struct Groups;

impl Operator for Groups {
    type Key = u64;
    type In = Item;
    type Out = Item;
    type State = Group;

    fn on_record<E: Emit<Item>>(&self, key: &u64, _: Item, state: &mut Group, out: &mut E) -> Result<(), Failed> {
        state.adds.push(*key as i64)?;
        state.records.add(())?;
        let (len, groups) = (state.adds.len()?, state.groups.get()?.copied().unwrap_or(0));
        let times = state.places.update(
            format!("place {len}"),
            || 0,
            |times| {
                *times += 1;
                *times
            },
        )?;
        assert_eq!(
            (Some(groups * GROUP + len), times),
            (state.records.result()?, groups + 1),
            "the states of {key} differ"
        );
        if len < GROUP {
            return Ok(());
        }
        let sum = state.adds.iter()?.sum::<Result<i64, _>>()?;
        match groups % 3 {
            0 => state.adds.clear()?,
            1 => while state.adds.pop_back()?.is_some() {},
            _ => while state.adds.pop_front()?.is_some() {},
        }
        *state.groups.get_or_insert_with(|| 0)? += 1;
        if groups == 3 {
            // All from the beginning: nothing is left of the key.
            state.places.clear()?;
            state.groups.take()?;
            state.records.clear();
        }
        out.emit(grouped(*key, sum, false))
    }

    fn on_end<E: Emit<Item>>(&self, key: &u64, state: &mut Group, out: &mut E) -> Result<(), Failed> {
        let sum = state.adds.iter()?.sum::<Result<i64, _>>()?;
        if state.adds.is_empty()? { Ok(()) } else { out.emit(grouped(*key, sum, true)) }
    }
}

/// Each `+` ahead of the word is a turn through a loop.
fn wind(item: Item) -> Item {
    Item { word: format!("{}{}", "+".repeat((item.id % 4) as usize), item.word), ..item }
}
/// Each `*` is one through the outer of two.
fn wind_outer(item: Item) -> Item {
    Item { word: format!("{}{}", "*".repeat((item.key % 3) as usize), item.word), ..item }
}
fn unwind(item: Item, turn: char) -> Item {
    match item.word.strip_prefix(turn) {
        Some(word) => {
            let word = word.to_owned();
            Item { amount: item.amount + 1, key: item.key.wrapping_mul(3) % 1000, word, ..item }
        }
        None => item,
    }
}
fn is_wound(item: &Item, turn: char) -> bool {
    item.word.starts_with(turn)
}
/// All turns at once.
fn unwound(mut item: Item, turn: char) -> Item {
    while is_wound(&item, turn) {
        item = unwind(item, turn);
    }
    item
}

fn nested(item: Item) -> Item {
    let mut item = wind_outer(item);
    loop {
        item = unwind(unwound(wind(item), '+'), '*');
        if !is_wound(&item, '*') {
            return item;
        }
    }
}

/// Counts what passes, and hands it on: state within a loop.
struct Passing;

impl Operator for Passing {
    type Key = u64;
    type In = Item;
    type Out = Item;
    type State = Value<u64>;

    fn on_record<E: Emit<Item>>(&self, _: &u64, item: Item, value: &mut Value<u64>, out: &mut E) -> Result<(), Failed> {
        let passed = value.take()?.unwrap_or_default();
        value.set(passed + 1);
        out.emit(item)
    }
}

fn draw_loop(items: Stream<Item>, middle: Option<Stream<Item>>, name: &str, pass: &Pass) -> Stream<Item> {
    let (again, mut items) = items.map(wind).feedback::<Item>(name);
    if let Some(middle) = middle {
        items = items.merge(middle.map(wind));
    }
    let passed = items.key_by(|item| item.key).process(&format!("{name}-in"), Passing);
    let (wound, done) = passed.map(before(pass, |item| unwind(item, '+'))).split(|item| is_wound(item, '+'));
    again.close(wound);
    done
}

fn draw_nested(items: Stream<Item>, name: &str, pass: &Pass) -> Stream<Item> {
    let (again, items) = items.map(wind_outer).feedback::<Item>(name);
    let done = draw_loop(items.boxed(), None, &format!("{name}-inner"), pass);
    let (wound, done) = done.map(|item| unwind(item, '*')).split(|item| is_wound(item, '*'));
    again.close(wound);
    done
}

/// Two loops through the same operator.
fn draw_shared(items: Stream<Item>, name: &str, pass: &Pass) -> Stream<Item> {
    let (outer, items) = items.map(wind).feedback::<Item>(name);
    let (inner, items) = items.feedback::<Item>(&format!("{name}-inner"));
    let passed = items.map(before(pass, |item| unwind(item, '+'))).key_by(|item| item.key);
    let passed = passed.process(&format!("{name}-in"), Passing);
    let [done, odd, even] =
        passed.split_by(|item| if is_wound(item, '+') { 1 + usize::from(item.key % 2 == 0) } else { 0 });
    inner.close(odd);
    outer.close(even);
    done
}

/// The number of tasks of a broadcast, in every run: what it makes of one record.
const BROADCAST_TASKS: u32 = 3;

fn broadcast(items: Stream<Item>, name: &str, ground: &mut impl Ground) -> Stream<Item> {
    ground.stage(name, StageConfig::new().parallelism(BROADCAST_TASKS));
    items.broadcast(name)
}

/// The names of the sinks, in their order.
pub fn sinks(steps: &[Step]) -> Vec<String> {
    (0..steps.len()).filter(|at| matches!(steps[*at], Step::Sink)).map(|at| at.to_string()).collect()
}

/// State with a heap: a list that grows above a quarter page for busy words.
fn words(word: &str, ids: &[u64]) -> Item {
    let sum = ids.iter().fold(0u64, |sum, id| sum.wrapping_add(*id));
    Item { id: sum, key: ids.len() as u64, amount: 1, word: word.to_owned() }
}

/// A step that keeps something per key.
fn draw_keyed(step: &Step, items: Stream<Item>, at: usize, pass: &Pass) -> Stream<Item> {
    let (name, pass, other) = (at.to_string(), pass.clone(), pass.clone());
    match step {
        Step::Count => items
            .key_by(move |item| {
                pass();
                item.key
            })
            .count(&name)
            .map(|(key, number)| counted(key, number))
            .stage(&at.to_string().repeat(3)),
        Step::Fold => {
            let folded = items.key_by(|item| item.key).fold(&name, (0u64, 0i64), move |(number, sum), item| {
                pass();
                *number += 1;
                other();
                *sum += item.amount;
            });
            folded.map(|(key, (number, _))| counted(key, number)).stage(&format!("{at}-after"))
        }
        Step::Reduce => {
            let reduced = items.map(|item| Item { amount: 1, id: 0, word: String::new(), ..item });
            let reduced = reduced.key_by_ref(|item| &item.key).reduce(&name, |sum, item| sum.amount += item.amount);
            reduced.map(|(key, sum)| counted(key, sum.amount as u64)).stage(&format!("{at}-after"))
        }
        Step::FoldToEnd => {
            let folded = items.key_by(|item| item.key).fold_to_end(&name, (0u64, 0i64), |(number, sum), item| {
                *number += 1;
                *sum += item.amount;
            });
            folded.map(|(key, (number, sum))| summed(key, number, sum)).stage(&format!("{at}-after"))
        }
        Step::FoldWordsToEnd => {
            let folded =
                items.key_by_ref(|item| &item.word).fold_to_end(&name, Vec::new(), |ids: &mut Vec<u64>, item| {
                    ids.push(item.id);
                });
            folded.map(|(word, ids)| words(&word, &ids)).stage(&format!("{at}-after"))
        }
        _ => panic!("{step:?} keeps nothing"),
    }
}

/// Draws the recipe.
pub fn draw(steps: &[Step], ground: &mut impl Ground) -> Dataflow {
    let flow = Dataflow::new("simulated");
    let mut open: Vec<Stream<Item>> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let name = format!("{at}");
        let mut take = || open.remove(0);
        let pass = ground.pass();
        let made = match *step {
            Step::Source { .. } => ground.source(&flow, &name, step),
            Step::Map => take().map(before(&pass, map)).stage(&name),
            Step::Filter => take().filter(filter).stage(&name),
            Step::FlatMap => take().flat_map(before(&pass, flat_map)).stage(&name),
            Step::Stage => take().stage(&name),
            Step::Broadcast => broadcast(take(), &name, ground),
            Step::Rebalance => take().rebalance(),
            Step::Split => {
                let (left, right) = take().split(is_left);
                open.push(left);
                right
            }
            Step::Union => {
                let (one, other, third) = (take(), take(), take());
                one.union([other, third])
            }
            Step::Process => take().key_by(|item| item.key).process(&name, Groups),
            Step::Fork => {
                let (one, other) = take().fork();
                open.push(one);
                other
            }
            Step::Merge => {
                let (one, other) = (take(), take());
                one.merge(other)
            }
            Step::Count | Step::Fold | Step::Reduce | Step::FoldToEnd | Step::FoldWordsToEnd => {
                draw_keyed(step, take(), at, &pass)
            }
            Step::Loop => draw_loop(take(), None, &name, &pass).stage(&format!("{at}-after")),
            Step::MidLoop => {
                let (one, other) = (take(), take());
                draw_loop(one, Some(other), &name, &pass)
            }
            Step::NestedLoop => draw_nested(take(), &name, &pass),
            Step::SharedLoop => draw_shared(take(), &name, &pass),
            Step::Sink => {
                ground.end(&name, take());
                continue;
            }
        };
        open.push(made);
    }
    flow
}

/// What each source has.
pub fn sources(steps: &[Step]) -> Vec<Vec<Item>> {
    let source = |step: &Step| match *step {
        Step::Source { number, events, keys, .. } => {
            Some((0..events).map(|index| Item::nth(number, index, keys)).collect())
        }
        _ => None,
    };
    steps.iter().filter_map(source).collect()
}

/// Computes the recipe plainly, of what the sources gave: for each sink, its records, sorted.
pub fn compute(steps: &[Step], sources: Vec<Vec<Item>>) -> Vec<Vec<Item>> {
    let mut sources = sources.into_iter();
    let mut open: Vec<Vec<Item>> = Vec::new();
    let mut results = Vec::new();
    for step in steps {
        let mut take = || open.remove(0);
        let by_key = |items: Vec<Item>| {
            let mut keys: BTreeMap<u64, (u64, i64)> = BTreeMap::new();
            for item in items {
                let (number, sum) = keys.entry(item.key).or_default();
                *number += 1;
                *sum += item.amount;
            }
            keys
        };
        let made = match *step {
            Step::Source { .. } => sources.next().expect("the records of each"),
            Step::Map => take().into_iter().map(map).collect(),
            Step::Filter => take().into_iter().filter(filter).collect(),
            Step::FlatMap => take().into_iter().flat_map(flat_map).collect(),
            Step::Stage | Step::Rebalance => take(),
            Step::Broadcast => vec![take(); BROADCAST_TASKS as usize].concat(),
            Step::Split => {
                let (left, right) = take().into_iter().partition(is_left);
                open.push(left);
                right
            }
            Step::Union => [take(), take(), take()].concat(),
            Step::Process => {
                let groups = by_key(take()).into_iter().flat_map(|(key, (count, _))| {
                    let whole = (0..count / GROUP).map(move |_| grouped(key, (GROUP * key) as i64, false));
                    let rest = count % GROUP;
                    whole.chain((rest > 0).then(|| grouped(key, (rest * key) as i64, true)))
                });
                groups.collect()
            }
            Step::Fork => {
                let items = take();
                open.push(items.clone());
                items
            }
            Step::Merge => [take(), take()].concat(),
            Step::Count | Step::Fold | Step::Reduce => {
                let keys = by_key(take());
                keys.into_iter()
                    .flat_map(|(key, (count, _))| (1..=count).map(move |number| counted(key, number)))
                    .collect()
            }
            Step::FoldToEnd => {
                by_key(take()).into_iter().map(|(key, (number, sum))| summed(key, number, sum)).collect()
            }
            Step::FoldWordsToEnd => {
                let mut by_word: BTreeMap<String, Vec<u64>> = BTreeMap::new();
                for item in take() {
                    by_word.entry(item.word).or_default().push(item.id);
                }
                by_word.iter().map(|(word, ids)| words(word, ids)).collect()
            }
            Step::Loop | Step::SharedLoop => take().into_iter().map(|item| unwound(wind(item), '+')).collect(),
            Step::MidLoop => [take(), take()].concat().into_iter().map(|item| unwound(wind(item), '+')).collect(),
            Step::NestedLoop => take().into_iter().map(nested).collect(),
            Step::Sink => {
                let mut items = take();
                items.sort();
                results.push(items);
                continue;
            }
        };
        open.push(made);
    }
    results
}
