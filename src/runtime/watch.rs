//! Looks at what tasks and workers show, now and then: counts the states of tasks, names the worker that does not come back
//! from a step, and notices a job in which nothing moves though something should. It must not know who has it look.

use super::Config;
use super::gauges::{Dials, TaskState, Whereabouts};
use std::time::Duration;

/// How often it is worth a look.
pub(super) const LOOKS_EVERY: Duration = Duration::from_millis(20);

pub(super) struct Watch {
    limit_ns: u64,
    stall: Stalled,
    looked_ns: Option<u64>,
    workers: Vec<Seen>,
}

/// A worker, at the last look.
#[derive(Clone, Copy)]
struct Seen {
    steps: u64,
    /// When the step under way was first seen.
    since_ns: u64,
    is_stuck: bool,
}

/// Whether the job stands still.
struct Stalled {
    limit_ns: u64,
    /// What has been taken in and handed on, in all, at the last look that found it changed.
    moved: u64,
    since_ns: u64,
    is_told: bool,
}

/// What a look found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Noticed {
    /// It has been in a step of this task for too long.
    Stuck { worker: usize, task: u32, ns: u64 },
    /// It has returned from such a step.
    Back { worker: usize, ns: u64 },
    /// Nothing has moved for so long, though some task waits for another.
    Stalled { ns: u64 },
}

impl Watch {
    /// By the limits of a configuration.
    pub(super) fn new(config: &Config) -> Self {
        Self::within(config.watchdog, config.stall_limit)
    }

    /// One that notices nothing: where there are no workers, nobody gets stuck unseen.
    pub(super) fn idle() -> Self {
        Self::within(Duration::MAX, Duration::MAX)
    }

    /// Workers that are within one step for longer than `limit` are stuck; a job in which nothing moves for longer than
    /// `stall_limit` stands still.
    fn within(limit: Duration, stall_limit: Duration) -> Self {
        let ns = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let stall = Stalled { limit_ns: ns(stall_limit), moved: 0, since_ns: 0, is_told: false };
        Self { limit_ns: ns(limit), stall, looked_ns: None, workers: Vec::new() }
    }

    /// Looks, if it is time to.
    pub(super) fn look(&mut self, dials: &Dials, now_ns: u64) -> Vec<Noticed> {
        let every_ns = LOOKS_EVERY.as_nanos() as u64;
        if self.looked_ns.is_some_and(|looked_ns| now_ns < looked_ns.saturating_add(every_ns)) {
            return Vec::new();
        }
        self.looked_ns = Some(now_ns);
        self.workers.resize(dials.pulses.len(), Seen { steps: u64::MAX, since_ns: now_ns, is_stuck: false });
        let mut noticed = Vec::new();
        // Tasks whose workers have been in one step of theirs since the last look: what they show is from before it.
        let mut stays = Vec::new();
        for (worker, (pulse, seen)) in dials.pulses.iter().zip(&mut self.workers).enumerate() {
            let (steps, at) = pulse.look();
            let Whereabouts::In(task) = at else {
                noticed.extend(seen.moved(worker, steps, now_ns));
                continue;
            };
            if steps != seen.steps {
                noticed.extend(seen.moved(worker, steps, now_ns));
                continue;
            }
            stays.push(task);
            let ns = now_ns - seen.since_ns;
            if ns >= self.limit_ns && !seen.is_stuck {
                seen.is_stuck = true;
                noticed.push(Noticed::Stuck { worker, task, ns });
            }
        }
        for (number, task) in (0u32..).zip(&dials.tasks) {
            task.sample(if stays.contains(&number) { TaskState::Busy } else { task.gauge.state() });
        }
        // Where a worker does not come back, that is the reason, and has been told.
        if !self.workers.iter().any(|worker| worker.is_stuck) {
            noticed.extend(self.stall.look(dials, now_ns));
        }
        noticed
    }
}

impl Stalled {
    fn look(&mut self, dials: &Dials, now_ns: u64) -> Option<Noticed> {
        let moved = dials.moved();
        if moved != self.moved || self.since_ns == 0 {
            (self.moved, self.since_ns, self.is_told) = (moved, now_ns.max(1), false);
        }
        let ns = now_ns.saturating_sub(self.since_ns);
        if self.is_told || ns < self.limit_ns || !dials.waits() {
            return None;
        }
        self.is_told = true;
        Some(Noticed::Stalled { ns })
    }
}

impl Seen {
    /// It is not where it was.
    fn moved(&mut self, worker: usize, steps: u64, now_ns: u64) -> Option<Noticed> {
        let back = self.is_stuck.then(|| Noticed::Back { worker, ns: now_ns - self.since_ns });
        *self = Self { steps, since_ns: now_ns, is_stuck: false };
        back
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::super::gauges::{Pulse, TaskDial};
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    const LOOK_NS: u64 = 20_000_000;

    #[test]
    fn a_job_that_stands_is_told_once_and_again_after_it_has_moved() {
        let task = TaskDial::new("a".into(), 0, 0, Vec::new(), Arc::default());
        let dials = Dials { tasks: vec![task], channels: Vec::new(), pulses: Vec::new() };
        let mut watch = Watch::within(Duration::from_secs(3600), Duration::from_millis(100));
        let mut look = |at: u64| watch.look(&dials, at * LOOK_NS);
        let gauge = &dials.tasks[0].gauge;
        gauge.show(TaskState::Idle);
        assert!(look(1).is_empty() && look(50).is_empty(), "a job without input is idle");
        gauge.show(TaskState::BlockedByOutput);
        assert_eq!(look(51), [Noticed::Stalled { ns: 50 * LOOK_NS }]);
        assert!(look(90).is_empty(), "said once");
        gauge.took_batch(3);
        assert!(look(91).is_empty() && look(95).is_empty());
        assert_eq!(look(96), [Noticed::Stalled { ns: 5 * LOOK_NS }]);
    }

    #[test]
    fn a_worker_that_stays_in_a_step_is_noticed_once_and_again_when_it_is_back() {
        let (pulse, task) = (Arc::new(Pulse::default()), TaskDial::new("a".into(), 0, 0, Vec::new(), Arc::default()));
        let dials = Dials { tasks: vec![task], channels: Vec::new(), pulses: vec![pulse.clone()] };
        let mut watch = Watch::within(Duration::from_millis(50), Duration::from_secs(3600));
        let mut look = |at: u64| watch.look(&dials, at * LOOK_NS);
        assert!(look(0).is_empty() && look(5).is_empty(), "it rests");
        pulse.step(0);
        assert!(look(6).is_empty() && look(7).is_empty(), "for 20 ms");
        let ns = 3 * LOOK_NS;
        assert_eq!(look(9), [Noticed::Stuck { worker: 0, task: 0, ns }]);
        assert!(look(10).is_empty(), "said once");
        pulse.step(0);
        assert_eq!(look(11), [Noticed::Back { worker: 0, ns: 5 * LOOK_NS }]);
        // A worker that steps on is busy as often as its task says so.
        dials.tasks[0].gauge.show(TaskState::Idle);
        for at in 12..20 {
            pulse.step(0);
            assert!(look(at).is_empty());
        }
        pulse.rest();
        assert!(look(90).is_empty(), "it has parked");
        let samples = dials.tasks[0].samples.each_ref().map(|count| count.load(Ordering::Relaxed));
        assert_eq!(samples.iter().sum::<u64>(), 16, "{samples:?}");
        assert_eq!(samples[TaskState::Idle as usize], 9, "{samples:?}");
    }
}
