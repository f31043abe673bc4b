//! Who waits for a checkpoint, and hears what becomes of it; and what follows the one that was to be the last.

use super::super::pending::{Answer, Unmade};
use super::{CheckpointReport, Coordination, Event};
use crate::runtime::ledger::CheckpointOutcome;

impl Coordination {
    /// Somebody wants a checkpoint. Says which epoch answers.
    pub(super) fn demand(&mut self, answer: Answer) -> u64 {
        let epoch = self.machine.demand();
        self.demands.push((epoch, answer));
        epoch
    }

    /// The attempt is over. Whoever waits for a checkpoint hears why it does not come. (If another attempt follows, it could
    /// be made then; but what he saw happen before he asked has not happened any more.)
    pub(in crate::runtime) fn refuse_demands(&mut self, why: &Unmade) {
        self.ledger.note(|checkpoint| checkpoint.outcome = CheckpointOutcome::GivenUp(why.to_string()));
        self.ledger.update(|status| status.parts = 0);
        let mut answers: Vec<Answer> = self.demands.drain(..).map(|(_, answer)| answer).collect();
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::Demand(answer) | Event::Last(answer) => answers.push(answer),
                Event::View(answer) => self.views.want(answer),
                _ => {}
            }
        }
        self.views.refuse(why);
        for answer in answers {
            answer.give(&Err(why.clone()), None);
        }
    }

    /// An epoch is durable and its parts are published: whoever wants to know hears of it.
    pub(super) fn note_durable(&mut self, report: CheckpointReport) {
        let CheckpointReport { epoch, bytes, duration_ns, cut_ns, .. } = report;
        let is_kept = self.store.is_some();
        self.ledger.update(|status| {
            status.parts = 0;
            if is_kept {
                status.last = Some(report);
                status.checkpoints += 1;
                status.checkpoint_bytes += bytes;
            }
        });
        self.ledger.committed(epoch, duration_ns);
        tracing::debug!(epoch, bytes, duration_ns, cut_ns, "checkpoint durable");
        self.answer(epoch, &Ok(report));
        if self.last.is_some_and(|last| epoch >= last) {
            self.has_ended = true;
            self.shared.stop();
        }
    }

    pub(super) fn answer(&mut self, epoch: u64, result: &Result<CheckpointReport, Unmade>) {
        let over = self.running == 0;
        self.demands.retain(|(demanded, answer)| {
            let waits = *demanded > epoch && !over;
            if !waits {
                answer.give(result, self.store.as_ref());
            }
            waits
        });
    }
}
