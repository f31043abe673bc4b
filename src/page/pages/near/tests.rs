//! Addresses under all that happens to pages: whatever a near part names is a page that may be written, and nothing that is
//! written by it shows in a frozen page or in a cut.

use crate::page::{FrozenPage, FrozenPages, PageError, PageId, PageSource, Pages, Pool};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE_BYTES: usize = 512;
const HEAD: usize = 64;
const PART: usize = 104;
const PARTS: u64 = 4;

type Image = BTreeMap<PageId, Vec<u8>>;

/// Where absent pages are.
struct Stored(Image);

impl PageSource for Stored {
    fn pages(&self) -> Box<dyn Iterator<Item = (PageId, u64)> + '_> {
        Box::new(self.0.keys().map(|&id| (id, 0)))
    }
    fn read(&self, id: PageId, into: &mut [u8]) -> Result<u64, PageError> {
        into.copy_from_slice(&self.0[&id]);
        Ok(0)
    }
    fn name(&self, id: PageId) -> String {
        format!("the test's page {id}")
    }
}

/// One of two that share a small pool.
struct World {
    pages: Pages,
    model: Image,
    held: Vec<(Image, FrozenPages)>,
    cut: Option<Image>,
    cuts: Vec<(Image, Vec<(PageId, FrozenPage)>)>,
    list: Vec<PageId>,
    number: u64,
}

impl World {
    fn new(pool: &Pool) -> Self {
        let (held, cut, cuts) = (Vec::new(), None, Vec::new());
        Self { pages: Pages::new(pool), model: Image::new(), held, cut, cuts, list: (0..9).collect(), number: 0 }
    }

    fn pick(&self, by: u32) -> Option<PageId> {
        self.model.keys().nth(by as usize % self.model.len().max(1)).copied()
    }

    fn run(&mut self, pool: &Pool, op: u8, by: u32) -> Result<(), TestCaseError> {
        let picked = self.pick(by >> 8);
        match op {
            0 | 1 => {
                if let Ok(id) = self.pages.allocate() {
                    prop_assert!(self.model.insert(id, vec![0; PAGE_BYTES]).is_none());
                }
            }
            2 if picked.is_some() => {
                self.pages.free(picked.unwrap());
                self.model.remove(&picked.unwrap());
            }
            3..=6 if picked.is_some() => {
                let at = by as usize % PAGE_BYTES;
                if let Ok(page) = self.pages.write(picked.unwrap()) {
                    page[at] = op;
                    self.model.get_mut(&picked.unwrap()).unwrap()[at] = op;
                }
            }
            7 => {
                let frozen = self.pages.freeze();
                let image = frozen.changed.iter().map(|(id, _)| (*id, self.model[id].clone())).collect();
                self.held.push((image, frozen));
            }
            8 => self.pages.durable(),
            9 => self.pages.abandon(),
            10 if !self.held.is_empty() => drop(self.held.remove(0)),
            11 if !self.cuts.is_empty() => drop(self.cuts.remove(0)),
            12 => {
                self.pages.begin_view();
                self.cut = Some(self.model.clone());
            }
            13 | 14 => match self.pages.view_step(by % 7) {
                Ok(Some(cut)) => {
                    let mut whole = cut.hand_over().expect("nobody takes a page in between");
                    let pages: Vec<_> = whole.drain().collect();
                    let ids = pages.iter().map(|(id, _)| *id).collect::<std::collections::BTreeSet<_>>();
                    let cut = self.cut.take().expect("one has been begun");
                    prop_assert!(ids.iter().eq(cut.keys()), "the cut is whole");
                    self.cuts.push((cut, pages));
                }
                Ok(None) => {}
                Err(_) => self.cut = None,
            },
            15 => drop(self.pages.renew()),
            16 => drop(self.pages.hydrate(by % 4)),
            17 if by.is_multiple_of(4) => {
                self.cut = None;
                self.pages = Pages::restore_absent(pool, Arc::new(Stored(self.model.clone())));
                self.number = 0;
            }
            18 => {
                self.list = (0..by % 20).map(|at| (by >> 3).wrapping_mul(at) % 23).collect();
                self.number += 1;
            }
            _ => {}
        }
        Ok(())
    }

    fn check(&mut self, by: u32) -> Result<(), TestCaseError> {
        for (index, &id) in self.list.iter().enumerate() {
            let written = self.pages.written(id).map(|page| page.as_ptr());
            let fraction = by.wrapping_mul(0x9E37_79B9).wrapping_add(id << 24);
            let at = HEAD + ((u64::from(fraction) * PARTS) >> 32) as usize * PART;
            let mut near = self.pages.near(self.number, &self.list, HEAD, PART);
            let part = near.part(index, fraction);
            prop_assert_eq!(part.is_some(), written.is_some(), "page {}", id);
            let Some(part) = part else { continue };
            let bytes = part.bytes();
            prop_assert_eq!(bytes.as_ptr(), written.unwrap().wrapping_add(at));
            prop_assert_eq!(&*bytes, &self.model[&id][at..at + PART]);
            bytes[index] = bytes[index].wrapping_add(1);
            self.model.get_mut(&id).unwrap()[at + index] = bytes[index];
        }
        for (&id, image) in self.model.iter().filter(|(id, _)| !self.pages.is_absent(**id)) {
            prop_assert_eq!(self.pages.read(id).unwrap(), &**image);
        }
        for (image, frozen) in &self.held {
            prop_assert!(frozen.changed.iter().all(|(id, page)| **page == *image[id]), "a frozen page changed");
        }
        for (image, pages) in &self.cuts {
            prop_assert!(pages.iter().all(|(id, page)| **page == *image[id]), "a page of a cut changed");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn addresses_are_those_of_pages_that_may_be_written(
        room in 20..60usize, ops in prop::collection::vec((0..2usize, 0..19u8, any::<u32>()), 1..700)
    ) {
        let pool = Pool::new(PAGE_BYTES, room * PAGE_BYTES);
        let mut worlds = [World::new(&pool), World::new(&pool)];
        for (number, op, by) in ops {
            worlds[number].run(&pool, op, by)?;
            // What happens to one is nothing to the other.
            worlds[1 - number].check(by)?;
            worlds[number].check(by.rotate_left(7))?;
        }
    }
}
