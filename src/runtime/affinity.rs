//! Which cores this process may use, and pinning to them. A refusal is a warning, never a failure.

use super::Config;
use crate::error::BuildError;
use core_affinity::CoreId;
use rustix::thread::{CpuSet, sched_setaffinity};

/// The core of each worker: those asked for, or all that are allowed and that the process's CPU quota pays for. None: not
/// pinned. Called before anything is pinned: a pinned thread sees its own core only.
pub(crate) fn allowed_cores(config: &Config) -> Result<Vec<Option<CoreId>>, BuildError> {
    let allowed = core_affinity::get_core_ids().unwrap_or_default();
    let quota = std::thread::available_parallelism().map_or(1, usize::from);
    match (&config.cores, config.workers) {
        (None, Some(workers)) => Ok(vec![None; workers]),
        (None, None) if allowed.is_empty() => Ok(vec![None; quota]),
        (None, None) => Ok(allowed.into_iter().take(quota).map(Some).collect()),
        (Some(asked), _) => asked.iter().map(|core| find(*core, &allowed).map(Some)).collect(),
    }
}

fn find(core: usize, allowed: &[CoreId]) -> Result<CoreId, BuildError> {
    allowed.iter().find(|id| id.id == core).copied().ok_or_else(|| BuildError::Core {
        core,
        allowed: allowed.iter().map(|id| id.id.to_string()).collect::<Vec<_>>().join(", "),
    })
}

/// Pins the calling thread. False if the system refuses.
pub(crate) fn pin(core: CoreId) -> bool {
    core_affinity::set_for_current(core)
}

/// Keeps the calling thread, and those that it will start, off the cores of workers, if the process has others: a thread
/// that a busy worker wakes would else be put on that worker's core. No harm is done where the system refuses.
pub(crate) fn keep_off(workers: &[Option<CoreId>]) {
    let allowed = core_affinity::get_core_ids().unwrap_or_default();
    let mut set = CpuSet::new();
    let free = allowed.iter().filter(|core| !workers.contains(&Some(**core)) && core.id < CpuSet::MAX_CPU);
    free.for_each(|core| set.set(core.id));
    if set.count() > 0 {
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_does_not_exist_is_refused_without_a_panic() {
        // On a thread of its own: a test that succeeded in pinning would pin its neighbours.
        assert!(!std::thread::spawn(|| pin(CoreId { id: 1023 })).join().unwrap());
    }

    #[test]
    fn cores_are_those_asked_for_or_all() {
        let all = allowed_cores(&Config::new()).unwrap();
        assert!(!all.is_empty());
        let last = all.last().unwrap().unwrap();
        assert_eq!(allowed_cores(&Config::new().cores([last.id])).unwrap(), [Some(last)]);
        assert_eq!(allowed_cores(&Config::new().unpinned_workers(3)).unwrap(), [None; 3]);
        assert!(matches!(
            allowed_cores(&Config::new().cores([last.id, 1023])),
            Err(BuildError::Core { core: 1023, .. })
        ));
    }
}
