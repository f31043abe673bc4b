//! A random configuration for a start of a simulated job: tiny rings and batches, checkpoints at any time, a store with the
//! smallest pages. It must not run anything.

use super::{Random, World};
use crate::checkpoint::Protocol;
use crate::clock::Clock;
use crate::error::Error;
use crate::runtime::{Checkpoints, Config, Hydrate, Initiators, Restart};
use crate::snapshot::{Store, StoreOptions};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The protocols whose cuts count each record exactly once.
const EXACT: [Protocol; 5] = [
    Protocol::Aligned,
    Protocol::ChandyLamport,
    Protocol::Unaligned,
    Protocol::AlignedThenUnaligned,
    Protocol::StopTheWorld,
];

/// The options of a small store on a simulated disk.
pub(super) fn store_options(keep: u32) -> StoreOptions {
    StoreOptions { keep, page_bytes: 4096, segment_bytes: 64 << 10, writer_threads: 1, ..StoreOptions::default() }
}

impl World {
    /// One for the next start. Without `back` it goes on from the newest checkpoint.
    pub(super) fn config(&mut self, clock: &Arc<AtomicU64>, back: bool) -> Result<Config, Error> {
        let keep = self.random.between(2, 4) as u32;
        let store = Store::open_on(Box::new(self.disk.clone()), store_options(keep))?;
        let checkpoints = self.checkpoints(store, back);
        let (random, steps) = (&mut self.random, self.length.steps);
        let pauses = [random.below(1 + steps / 20), random.below(1 + steps / 5)].map(Duration::from_nanos);
        let config = Config::new()
            .restart(Restart::attempts(random.below(5) as u32).backoff(pauses[0], pauses[1]))
            .careful(random.one_in(8))
            .unpinned_workers(1)
            .parallelism(*random.pick(&self.tasks))
            .ring_capacity(random.between(1, 3) as usize)
            .batch_len_max(random.between(1, 6) as usize)
            .clock(Clock::Manual(clock.clone()))
            .checkpoints(checkpoints);
        let stages = self.stages.iter();
        let config = stages.fold(config, |config, (name, stage)| config.stage(name, stage.clone()));
        // Now and then the plain order that embedders see.
        Ok(if random.one_in(8) { config } else { config.seed(random.next()) })
    }

    fn checkpoints(&mut self, store: Store, back: bool) -> Checkpoints {
        let (random, steps) = (&mut self.random, self.length.steps);
        let mut checkpoints = match random.below(3) {
            0 => Checkpoints::on_demand(),
            // The clock goes on by about 1 ns with each step.
            _ => Checkpoints::every(Duration::from_nanos(random.between(5 + steps / 40, 10 + steps * 2))),
        };
        // Mostly nothing but the page map is read at a restore, and what no record needs before the next crash never is.
        let hydrate = if random.one_in(2) { Hydrate::OnTouch } else { Hydrate::Background };
        checkpoints = checkpoints.hydrate(hydrate).verify_on_restore(random.one_in(5));
        if let Some(epoch) = older(random, &store).filter(|_| back) {
            self.seen.went_back += u64::from(Some(epoch) != store.newest());
            checkpoints = checkpoints.from_epoch(epoch);
        }
        // Each start may cut in another way than the one before.
        let protocol = self.protocol.unwrap_or(*random.pick(&EXACT));
        let all = random.one_in(2);
        let initiators = if all { Initiators::All } else { Initiators::Sources };
        let unaligned_after = Duration::from_nanos(random.below(60));
        checkpoints = checkpoints.protocol(protocol).initiators(initiators).unaligned_after(unaligned_after);
        // Where each task sends markers of its own, they need their time: epochs that are given up faster fill the rings. Where all
        // pause, nothing moves until the last has: if views are wanted again and again, nothing would ever.
        let slower = match (protocol, all) {
            (Protocol::ChandyLamport, true) => 100,
            (Protocol::StopTheWorld, _) => 20,
            _ => 1,
        };
        let timeout = if random.one_in(3) { random.between(20, 400) * slower } else { u64::MAX };
        checkpoints.timeout(Duration::from_nanos(timeout)).store(store)
    }
}

/// Now and then, one of the kept epochs.
fn older(random: &mut Random, store: &Store) -> Option<u64> {
    let epochs = store.epochs();
    (!epochs.is_empty() && random.one_in(4)).then(|| random.pick(&epochs).epoch)
}
