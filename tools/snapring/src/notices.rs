//! What a user should hear of while a job runs: its warnings, and checkpoints that were given up. Each once, and never more
//! lines than somebody can read: a disk that stays full gives up a checkpoint after the other, for hours.

use snapring::runtime::{CheckpointOutcome, Metrics};
use std::time::{Duration, Instant};

const LINES_MAX: u32 = 3;
/// As long as lines have to be left out, each window is twice as long as the one before.
const WINDOW_FIRST: Duration = Duration::from_secs(1);
const WINDOW_MAX: Duration = Duration::from_secs(60);
/// Warnings that are remembered for the end.
const KEPT_MAX: usize = 100;

pub struct Notices {
    /// The job's list of warnings, when it was last looked at.
    listed: Vec<String>,
    /// All warnings, as far as they are remembered.
    pub warnings: Vec<String>,
    /// When the newest checkpoint began that is known to have been given up; more than one may have the same epoch.
    given_up_to_ns: Option<u64>,
    /// Why the last one was.
    pub reason: Option<String>,
    limit: Limit,
}

/// So many lines in so much time.
struct Limit {
    since: Instant,
    window: Duration,
    lines: u32,
    left_out: u32,
}

impl Notices {
    pub fn new() -> Self {
        let limit = Limit::new(Instant::now());
        Self { listed: Vec::new(), warnings: Vec::new(), given_up_to_ns: None, reason: None, limit }
    }

    /// The lines to say now.
    pub fn look(&mut self, warnings: Vec<String>, metrics: &Metrics, now: Instant) -> Vec<String> {
        let mut news: Vec<String> = new_ones(&self.listed, &warnings).to_vec();
        self.listed = warnings;
        self.warnings.extend(news.iter().cloned());
        self.warnings.drain(..self.warnings.len().saturating_sub(KEPT_MAX));
        for checkpoint in &metrics.checkpoints {
            let CheckpointOutcome::GivenUp(reason) = &checkpoint.outcome else { continue };
            if self.given_up_to_ns.is_none_or(|known_ns| known_ns < checkpoint.begun_ns) {
                self.given_up_to_ns = Some(checkpoint.begun_ns);
                news.push(format!("checkpoint {} was given up, the job runs on: {reason}", checkpoint.epoch));
                self.reason = Some(reason.clone());
            }
        }
        let mut lines = self.limit.end_window(now);
        lines.extend(news.iter().filter(|_| self.limit.allows()).map(|news| format!("warning: {news}")));
        lines
    }

    /// The last line, if lines were left out.
    pub fn end(&mut self) -> Option<String> {
        self.limit.left_out()
    }
}

impl Limit {
    fn new(now: Instant) -> Self {
        Self { since: now, window: WINDOW_FIRST, lines: 0, left_out: 0 }
    }

    fn end_window(&mut self, now: Instant) -> Vec<String> {
        if now.duration_since(self.since) < self.window {
            return Vec::new();
        }
        let told = self.left_out();
        self.window = if told.is_some() { (self.window * 2).min(WINDOW_MAX) } else { WINDOW_FIRST };
        (self.since, self.lines) = (now, 0);
        told.into_iter().collect()
    }

    fn allows(&mut self) -> bool {
        let allows = self.lines < LINES_MAX;
        if allows {
            self.lines += 1
        } else {
            self.left_out += 1
        }
        allows
    }

    fn left_out(&mut self) -> Option<String> {
        let left_out = std::mem::take(&mut self.left_out);
        (left_out > 0).then(|| format!("warning: … and {left_out} more"))
    }
}

/// What a list has more than before at its end, while it may have lost some at its beginning.
fn new_ones<'a>(before: &[String], now: &'a [String]) -> &'a [String] {
    let kept = (0..=before.len()).find(|lost| now.starts_with(&before[*lost..])).unwrap_or(before.len());
    &now[before.len() - kept..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_new_is_told_though_the_oldest_go() {
        let new = |before: &str, now: &str| new_ones(&list(before), &list(now)).join(" ");
        assert_eq!(new("", "a b"), "a b");
        assert_eq!(new("a b", "a b"), "");
        assert_eq!(new("a b", "a b c"), "c");
        assert_eq!(new("a b c", "c d e"), "d e");
        assert_eq!(new("a b c", "x y"), "x y");
    }

    #[test]
    fn so_many_lines_and_then_their_number() {
        let start = Instant::now();
        let mut limit = Limit::new(start);
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!((0..12).filter(|_| limit.allows()).count(), 3);
        assert!(limit.end_window(at(900)).is_empty() && !limit.allows());
        assert_eq!(limit.end_window(at(1100)), ["warning: … and 10 more"]);
        // It goes on: another number twice as long after the first.
        assert_eq!((0..5).filter(|_| limit.allows()).count(), 3);
        assert!(limit.end_window(at(3000)).is_empty());
        assert_eq!(limit.end_window(at(3200)), ["warning: … and 2 more"]);
        // It is over: the next time is like the first.
        assert!(limit.end_window(at(20_000)).is_empty() && limit.left_out().is_none());
        assert_eq!(limit.window, WINDOW_FIRST);
    }

    #[test]
    fn a_disk_that_stays_full_is_told_for_hours_in_few_lines() {
        let start = Instant::now();
        let mut limit = Limit::new(start);
        let lines = (0..36_000).map(|tenth_s| {
            let ended = limit.end_window(start + Duration::from_millis(100 * tenth_s)).len();
            ended + usize::from(limit.allows())
        });
        let lines: usize = lines.sum();
        assert!((100..300).contains(&lines), "{lines} in an hour");
    }
}
