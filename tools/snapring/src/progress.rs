//! The progress bar: only where somebody sees it, and where it does not get between the lines of the results.

use crate::outcome::say;
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use snapring::runtime::JobProgress;
use std::fmt;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// The bar, if there is one. It goes when this is dropped.
pub struct Progress {
    bar: Option<ProgressBar>,
    shown: Instant,
}

const SHOWS_EVERY: Duration = Duration::from_millis(100);

impl Progress {
    /// A bar on standard error, if that is a terminal that does not show the results at the same time.
    pub fn new(results_on_stdout: bool) -> Self {
        let seen = io::stderr().is_terminal() && !(results_on_stdout && io::stdout().is_terminal());
        Self { bar: seen.then(bar), shown: Instant::now() }
    }

    /// Shows how far the job has come.
    pub fn show(&mut self, progress: impl FnOnce() -> JobProgress) {
        let Some(bar) = &self.bar else { return };
        if self.shown.elapsed() < SHOWS_EVERY {
            return;
        }
        self.shown = Instant::now();
        let progress = progress();
        bar.set_position(progress.records);
        bar.set_message(checkpoint(&progress));
    }
}

impl Progress {
    /// Says a line beside the bar.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(line)),
            None => say(line),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // Without colours, so that NO_COLOR has nothing to turn off.
    let style = ProgressStyle::with_template("{spinner} {elapsed_precise}  {human_pos} records  {rate}  {msg}")
        .expect("the template is a constant")
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // What a formatter of text returns says nothing that the reader of a progress bar needs.
            let _ = write!(out, "{}/s", HumanCount(state.per_sec() as u64));
        });
    bar.with_style(style)
}

fn checkpoint(progress: &JobProgress) -> String {
    progress.last_checkpoint.map_or_else(String::new, |last| {
        let took = Duration::from_nanos(last.duration_ns);
        format!("epoch {}  checkpoint {took:.1?}, {}", last.epoch, HumanBytes(last.bytes))
    })
}
