//! What a job came to, for people and for programs.

use crate::follow::Seen;
use crate::metrics;
use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};
use snapring::Protocol;
use snapring::connector::BadLine;
use snapring::runtime::Summary;
use std::time::Duration;

/// A summary, with what only the command line knows.
pub struct Report<'a> {
    pub job: &'a str,
    pub summary: &'a Summary,
    /// From the beginning of `main` to the start of the job.
    pub before: Duration,
    /// What was seen while it ran.
    pub seen: &'a Seen,
    /// Whether the numbers of tasks, channels and checkpoints are asked for.
    pub metrics: bool,
    /// How checkpoints were taken, if they were.
    pub protocol: Option<Protocol>,
}

impl Report<'_> {
    fn records_per_second(&self) -> f64 {
        let seconds = self.summary.elapsed.as_secs_f64();
        if seconds > 0.0 { self.summary.records as f64 / seconds } else { 0.0 }
    }

    /// From the beginning of `main` to the first record read.
    fn start_to_first_record_ns(&self) -> Option<u64> {
        let first = self.before + self.summary.first_record?;
        u64::try_from(first.as_nanos()).ok()
    }

    /// One line.
    pub fn text(&self) -> String {
        let summary = self.summary;
        let rate = HumanCount(self.records_per_second() as u64);
        let seconds = summary.elapsed.as_secs_f64();
        let mut text = format!("{}: {} records in {seconds:.3} s ({rate}/s)", self.job, HumanCount(summary.records));
        if summary.checkpoints > 0 {
            let plural = if summary.checkpoints == 1 { "" } else { "s" };
            let bytes = HumanBytes(summary.checkpoint_bytes);
            text += &format!(", {} checkpoint{plural}, {bytes} written", HumanCount(summary.checkpoints));
        }
        if let Some(epoch) = summary.last_epoch {
            text += &format!(", last epoch {epoch}");
        }
        if summary.given_up > 0 {
            text += &format!(", given up: {}", HumanCount(summary.given_up));
        }
        if summary.restarts > 0 {
            text += &format!(", restarts: {}", summary.restarts);
        }
        text
    }

    /// What was skipped, if anything was: how much, and the first of it.
    pub fn skipped(&self) -> Option<String> {
        let skipped = &self.summary.skipped;
        let first = skipped.first.first()?;
        let plural = if skipped.lines == 1 { "" } else { "s" };
        Some(format!("{} bad line{plural} skipped; the first: {first}", HumanCount(skipped.lines)))
    }

    /// One object.
    pub fn json(&self) -> Value {
        let summary = self.summary;
        let mut object = json!({
            "job": self.job,
            "records": summary.records,
            "seconds": summary.elapsed.as_secs_f64(),
            "bad_lines": {
                "skipped": summary.skipped.lines,
                "first": summary.skipped.first.iter().map(bad_line).collect::<Value>(),
            },
            "records_per_second": self.records_per_second(),
            "protocol": self.protocol.map_or("none", Protocol::name),
            "epochs": summary.checkpoints,
            "bytes": summary.checkpoint_bytes,
            "start_to_first_record_ns": self.start_to_first_record_ns(),
            "resident_bytes_at_first_record": summary.resident_bytes_at_first_record,
            "last_epoch": summary.last_epoch,
            "restored_epoch": summary.restored_epoch,
            "finished_before": summary.finished_before,
            "restarts": summary.restarts,
            "given_up": { "checkpoints": summary.given_up, "last_reason": self.seen.given_up_reason },
            "warnings": self.seen.warnings,
        });
        if self.metrics {
            object["metrics"] = metrics::object(&self.seen.metrics, &self.seen.fills);
        }
        object
    }
}

fn bad_line(line: &BadLine) -> Value {
    json!({ "file": line.file, "line": line.line, "reason": line.reason, "text": line.text })
}
