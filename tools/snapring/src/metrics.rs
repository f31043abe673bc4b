//! `--metrics`: what tasks, channels and checkpoints came to, for people and for programs.

use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};
use snapring::runtime::{ChannelMetrics, CheckpointMetrics, CheckpointOutcome, MemoryMetrics, Metrics, Samples};
use std::time::Duration;

/// More channels than that are told by the fullest ones.
const CHANNELS_MAX: usize = 12;

/// How full channels were, over all looks at them.
#[derive(Debug, Default)]
pub struct Fills {
    restarts: u32,
    looks: u64,
    sums: Vec<u64>,
}

impl Fills {
    pub fn add(&mut self, metrics: &Metrics) {
        let Metrics { channels, restarts, .. } = metrics;
        if *restarts != self.restarts || channels.len() != self.sums.len() {
            // Other channels.
            *self = Self { restarts: *restarts, looks: 0, sums: vec![0; channels.len()] };
        }
        self.looks += 1;
        self.sums.iter_mut().zip(channels).for_each(|(sum, channel)| *sum += channel.filled);
    }

    /// Slots of a channel, in the mean; none: nobody has looked.
    fn mean(&self, channel: usize) -> Option<f64> {
        Some(*self.sums.get(channel)? as f64 / (self.looks > 0).then_some(self.looks as f64)?)
    }
}

/// The four tables.
pub fn text(metrics: &Metrics, fills: &Fills) -> String {
    let mut text = table(tasks(metrics));
    text += &table(channels(metrics, fills));
    text += &table(checkpoints(metrics));
    text += &memory(&metrics.memory);
    text
}

/// One line about the memory for state.
fn memory(memory: &MemoryMetrics) -> String {
    let MemoryMetrics { in_use_bytes, limit_bytes, stalls, stalled_ns, .. } = *memory;
    // A job that has ended has given back all.
    if (in_use_bytes, stalls) == (0, 0) {
        return String::new();
    }
    let mut text = format!("memory for state: {}", HumanBytes(in_use_bytes));
    if limit_bytes < usize::MAX as u64 {
        text += &format!(" of {}", HumanBytes(limit_bytes));
    }
    if stalls > 0 {
        text += &format!("; waited for {stalls} times, {:.1?} in all", Duration::from_nanos(stalled_ns));
    }
    text + "\n"
}

/// A name and numbers: the first column to the left, the others to the right. Nothing, if there is only the head.
fn table(rows: Vec<Vec<String>>) -> String {
    let mut text = String::new();
    if rows.len() < 2 {
        return text;
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        text += cells.collect::<String>().trim_end();
        text.push('\n');
    }
    text
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn task_name(metrics: &Metrics, task: usize) -> String {
    metrics.tasks.get(task).map_or_else(|| format!("task {task}"), |task| format!("{}/{}", task.name, task.index))
}

/// In percent of the time until the task was done; none: it was not looked at before.
fn shares(samples: &Samples) -> Option<[f64; 4]> {
    let Samples { busy, blocked_by_output, blocked_by_alignment, idle, .. } = *samples;
    let counts = [busy, blocked_by_output, blocked_by_alignment, idle];
    let all: u64 = counts.iter().sum();
    (all > 0).then(|| counts.map(|count| count as f64 * 100.0 / all as f64))
}

fn tasks(metrics: &Metrics) -> Vec<Vec<String>> {
    let head = ["task", "worker", "records", "batches", "busy", "output full", "aligning", "idle"];
    let mut rows = vec![row(head)];
    for (number, task) in metrics.tasks.iter().enumerate() {
        let shares = shares(&task.samples);
        let mut cells = vec![task_name(metrics, number), task.worker.to_string()];
        cells.extend([task.records, task.batches].map(|count| HumanCount(count).to_string()));
        cells.extend((0..4).map(|at| shares.map_or_else(|| "-".to_owned(), |shares| format!("{:.0} %", shares[at]))));
        rows.push(cells);
    }
    rows
}

fn channels(metrics: &Metrics, fills: &Fills) -> Vec<Vec<String>> {
    let mut rows = vec![row(["channel", "slots", "filled", "records", "batches"])];
    let mut order: Vec<usize> = (0..metrics.channels.len()).collect();
    let left_out = order.len().saturating_sub(CHANNELS_MAX);
    if left_out > 0 {
        order.sort_by(|one, other| fills.mean(*other).unwrap_or(0.0).total_cmp(&fills.mean(*one).unwrap_or(0.0)));
        order.truncate(CHANNELS_MAX);
    }
    for number in order {
        let ChannelMetrics { from, to, slots, batches, records, .. } = metrics.channels[number];
        let filled = fills.mean(number).map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"));
        let mut cells = vec![format!("{} -> {}", task_name(metrics, from), task_name(metrics, to))];
        cells.extend([slots.to_string(), filled, HumanCount(records).to_string(), HumanCount(batches).to_string()]);
        rows.push(cells);
    }
    if left_out > 0 {
        rows.push(vec![format!("and {left_out} less full ones")]);
    }
    rows
}

/// A phase of checkpoints, and when it was over.
type Phase = (&'static str, fn(&CheckpointMetrics) -> Option<u64>);

const PHASES: [Phase; 4] = [
    ("cut", |checkpoint| checkpoint.cut_ns),
    ("synced", |checkpoint| checkpoint.synced_ns),
    ("durable", |checkpoint| checkpoint.durable_ns),
    ("committed", |checkpoint| checkpoint.committed_ns),
];

fn durable(metrics: &Metrics) -> impl Iterator<Item = &CheckpointMetrics> {
    metrics.checkpoints.iter().filter(|checkpoint| checkpoint.outcome == CheckpointOutcome::Durable)
}

/// Median, 99th percentile and greatest, over the newest durable ones.
fn percentiles(metrics: &Metrics, of: impl Fn(&CheckpointMetrics) -> Option<u64>) -> Option<[u64; 3]> {
    let mut values: Vec<u64> = durable(metrics).filter_map(of).collect();
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    Some([values[last / 2], values[(last * 99).div_ceil(100)], values[last]])
}

fn checkpoints(metrics: &Metrics) -> Vec<Vec<String>> {
    let head = format!("newest {} checkpoints", durable(metrics).count());
    let mut rows = vec![row([&head, "p50", "p99", "max"])];
    for (name, of) in PHASES {
        let Some(values) = percentiles(metrics, of) else { continue };
        let cells = values.map(|ns| format!("{:.1?}", Duration::from_nanos(ns)));
        rows.push([vec![format!("until {name}")], cells.to_vec()].concat());
    }
    if let Some(values) = percentiles(metrics, |checkpoint| checkpoint.pause_ns) {
        let cells = values.map(|ns| format!("{:.1?}", Duration::from_nanos(ns)));
        rows.push([vec!["longest pause".to_owned()], cells.to_vec()].concat());
    }
    if let Some(interval) = metrics.checkpoint_interval() {
        rows.push(row(["from begin to begin", &format!("{interval:.1?}"), "", ""]));
    }
    if let Some(values) = percentiles(metrics, |checkpoint| Some(checkpoint.bytes)) {
        rows.push([vec!["written".to_owned()], values.map(|bytes| HumanBytes(bytes).to_string()).to_vec()].concat());
    }
    rows
}

/// One object.
pub fn object(metrics: &Metrics, fills: &Fills) -> Value {
    let phases: serde_json::Map<String, Value> = PHASES
        .iter()
        .map(|(name, of)| {
            let values = percentiles(metrics, of);
            (format!("{name}_ns"), values.map(|[p50, p99, max]| json!({ "p50": p50, "p99": p99, "max": max })).into())
        })
        .collect();
    let channel = |(number, channel): (usize, &ChannelMetrics)| {
        let ChannelMetrics { from, to, slots, batches, records, .. } = channel;
        json!({
            "from": task_name(metrics, *from), "to": task_name(metrics, *to), "slots": slots,
            "filled_mean": fills.mean(number), "batches": batches, "records": records,
        })
    };
    json!({
        "tasks": metrics.tasks.iter().map(task).collect::<Value>(),
        "channels": metrics.channels.iter().enumerate().map(channel).collect::<Value>(),
        "checkpoint_phases": phases,
        "checkpoint_pause_ns": percentiles(metrics, |checkpoint| checkpoint.pause_ns)
            .map(|[p50, p99, max]| json!({ "p50": p50, "p99": p99, "max": max })),
        "memory": {
            "in_use_bytes": metrics.memory.in_use_bytes, "limit_bytes": metrics.memory.limit_bytes,
            "stalls": metrics.memory.stalls, "stalled_ns": metrics.memory.stalled_ns,
        },
        "checkpoint_interval_ns": metrics.checkpoint_interval().map(|interval| interval.as_nanos() as u64),
    })
}

fn task(task: &snapring::runtime::TaskMetrics) -> Value {
    let shares = shares(&task.samples).map(|shares| {
        let [busy, blocked_by_output, blocked_by_alignment, idle] = shares.map(|percent| percent / 100.0);
        json!({
            "busy": busy, "blocked_by_output": blocked_by_output,
            "blocked_by_alignment": blocked_by_alignment, "idle": idle,
        })
    });
    json!({
        "name": task.name, "index": task.index, "operators": task.operators, "worker": task.worker,
        "records": task.records, "batches": task.batches, "shares": shares,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_before_the_end() {
        let samples = Samples { busy: 3, idle: 1, finished: 96, ..Samples::default() };
        assert_eq!(shares(&samples), Some([75.0, 0.0, 0.0, 25.0]));
        assert_eq!(shares(&Samples { finished: 5, ..Samples::default() }), None);
    }

    #[test]
    fn columns_are_aligned() {
        let rows = vec![row(["task", "n"]), row(["a", "1,000"]), row(["longer", "7"])];
        assert_eq!(table(rows), "task        n\na       1,000\nlonger      7\n");
        assert_eq!(table(vec![row(["task"])]), "");
    }
}
