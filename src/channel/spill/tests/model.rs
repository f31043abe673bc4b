//! The spill against a plain queue, by random operations: records of fixed, variable and no width, tiny memory, marks
//! everywhere.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
enum Step {
    /// A batch of so many records.
    Push(u64),
    Mark(Mark),
    /// Takes whatever comes next, so many times.
    Take(u64),
    RemoveBarriers(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let mark = prop_oneof![
        3 => (1u64..9).prop_map(Mark::Barrier),
        2 => (0i64..99).prop_map(Mark::Watermark),
        1 => (1u64..9).prop_map(Mark::Lap),
        1 => Just(Mark::End),
    ];
    let step = prop_oneof![
        6 => (0u64..40).prop_map(Step::Push),
        2 => mark.prop_map(Step::Mark),
        5 => (1u64..9).prop_map(Step::Take),
        1 => (0u64..9).prop_map(Step::RemoveBarriers),
    ];
    prop::collection::vec(step, 0..150)
}

/// A record that tells its number, as far as it can.
trait Numbered: Record + PartialEq + std::fmt::Debug {
    fn of(number: u64) -> Self;
}

impl Numbered for u64 {
    fn of(number: u64) -> Self {
        number
    }
}

impl Numbered for Big {
    fn of(number: u64) -> Self {
        [number; 600]
    }
}

impl Numbered for (u64, String) {
    fn of(number: u64) -> Self {
        (number, "x".repeat(number as usize * 7919 % 20_000))
    }
}

impl Numbered for () {
    fn of(_: u64) -> Self {}
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    Record(u64),
    Mark(Mark),
}

#[derive(Default)]
struct Model(VecDeque<Item>);

impl Model {
    fn mark(&mut self, mark: Mark) {
        if let (Mark::Watermark(new), Some(Item::Mark(Mark::Watermark(old)))) = (mark, self.0.back_mut()) {
            *old = new.max(*old);
        } else {
            self.0.push_back(Item::Mark(mark));
        }
    }

    fn records(&self) -> impl Iterator<Item = u64> {
        self.0.iter().filter_map(|item| if let Item::Record(number) = item { Some(*number) } else { None })
    }

    /// The numbers of the records ahead of a barrier, if it is there.
    fn ahead_of(&self, barrier: Option<u64>) -> Vec<u64> {
        let at =
            self.0.iter().position(|item| matches!(item, Item::Mark(Mark::Barrier(epoch)) if Some(*epoch) == barrier));
        let behind = at.map_or(0, |at| self.0.iter().skip(at).filter(|item| matches!(item, Item::Record(_))).count());
        self.records().take(self.records().count() - behind).collect()
    }
}

fn take<T: Numbered>(spill: &mut Spill<T>, model: &mut Model) -> Result<(), TestCaseError> {
    match spill.front() {
        Some(Front::Records) => {
            let records: Vec<T> = spill.take().unwrap().collect();
            prop_assert!(!records.is_empty());
            for record in records {
                let Some(Item::Record(number)) = model.0.pop_front() else { panic!("more than there was") };
                prop_assert!(record == T::of(number));
            }
        }
        Some(Front::Mark(mark)) => {
            prop_assert_eq!(spill.take_mark(), mark);
            prop_assert_eq!(model.0.pop_front(), Some(Item::Mark(mark)));
        }
        None => prop_assert_eq!(model.0.len(), 0),
    }
    Ok(())
}

fn compare<T: Numbered>(spill: &Spill<T>, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(spill.records(), model.records().count() as u64);
    prop_assert_eq!(spill.is_empty(), model.0.is_empty());
    prop_assert_eq!(spill.bytes() == 0, spill.records() == 0);
    for until in [None, Some(1), Some(5)] {
        let (ahead, mut bytes, mut expected) = (model.ahead_of(until), vec![], vec![]);
        prop_assert_eq!(spill.save(until, &mut bytes).unwrap(), ahead.len() as u64);
        ahead.into_iter().for_each(|number| T::of(number).encode(&mut expected));
        prop_assert!(bytes == expected);
    }
    Ok(())
}

fn run<T: Numbered>(memory_bytes: usize, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut spill, mut model) = (Spill::<T>::new(limits(memory_bytes, u64::MAX)), Model::default());
    let mut number = 0;
    for (index, step) in steps.iter().enumerate() {
        match *step {
            Step::Push(count) => {
                push(&mut spill, (number..number + count).map(T::of).collect()).unwrap();
                model.0.extend((number..number + count).map(Item::Record));
                number += count;
            }
            Step::Mark(mark) => {
                spill.push_mark(mark);
                model.mark(mark);
            }
            Step::Take(times) => (0..times).try_for_each(|_| take(&mut spill, &mut model))?,
            Step::RemoveBarriers(to) => {
                spill.remove_barriers(to);
                model.0.retain(|item| !matches!(item, Item::Mark(Mark::Barrier(epoch)) if *epoch <= to));
            }
        }
        if index % 8 == 0 {
            compare(&spill, &model)?;
        }
    }
    compare(&spill, &model)?;
    while spill.front().is_some() {
        take(&mut spill, &mut model)?;
    }
    compare(&spill, &model)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_spill_is_a_queue(chunks_kept in 0usize..5, steps in steps()) {
        let memory_bytes = chunks_kept * 16 * 1024;
        run::<Big>(memory_bytes, &steps)?;
        run::<(u64, String)>(memory_bytes / 16, &steps)?;
        run::<u64>(memory_bytes / 100, &steps)?;
        run::<()>(memory_bytes / 1000, &steps)?;
    }
}
