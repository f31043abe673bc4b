//! `snapring inspect channels`: the records that a checkpoint holds of channels, decoded by their schema.

use super::{about, channels_of};
use crate::outcome::{Outcome, Wrong, print, print_json};
use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};
use snapring::error::StoreError;
use snapring::runtime::CheckpointInfo;
use snapring::snapshot::{ChannelPart, EdgePart, REST, Reader, Side};
use std::path::Path;

/// Records of channels together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub parts: u64,
    pub records: u64,
    pub bytes: u64,
}

impl Sums {
    pub fn of(edges: &[EdgePart]) -> Self {
        let parts = edges.iter().flat_map(|edge| &edge.parts);
        parts.fold(Self::default(), |sums, part| Self {
            parts: sums.parts + 1,
            records: sums.records.saturating_add(part.records),
            bytes: sums.bytes + part.bytes.len() as u64,
        })
    }
}

/// Lists the channels of a checkpoint, and the first records of each.
pub fn show(dir: &Path, epoch: Option<u64>, records_max: usize, as_json: bool) -> Outcome {
    let mut reader = Reader::open(dir)?;
    let (epoch, edges) = channels_of(&mut reader, epoch)?;
    let mut lines = Vec::new();
    for edge in &edges {
        for part in &edge.parts {
            lines.push(Line { edge, part, first: first(edge, part, records_max, as_json)? });
        }
    }
    lines.sort_by(|one, other| one.place().cmp(&other.place()));
    let (about, sums) = (about(&reader, epoch), Sums::of(&edges));
    if as_json { print_json(&object(epoch, about.as_ref(), &lines, sums)) } else { print(text(&lines, sums)) }
}

/// A channel.
struct Line<'a> {
    edge: &'a EdgePart,
    part: &'a ChannelPart,
    /// Its first records, as asked for: text, or JSON.
    first: Vec<String>,
}

fn first(edge: &EdgePart, part: &ChannelPart, records_max: usize, as_json: bool) -> Result<Vec<String>, Wrong> {
    let show = |record: snapring::record::Datum<'_>| if as_json { record.to_json() } else { record.to_string() };
    let records = edge.records(part).take(records_max);
    Ok(records.map(|record| record.map(show)).collect::<Result<_, StoreError>>()?)
}

impl Line<'_> {
    /// Channel by channel, and in each the records that are to be processed first.
    fn place(&self) -> (&str, u32, Side, Option<u32>) {
        (&self.edge.edge, self.part.to, self.edge.side, self.from())
    }

    /// Who has kept them, and why.
    fn kind(&self) -> &'static str {
        match (self.edge.side, self.part.from) {
            (Side::Input, REST) => "rest",
            (Side::Input, _) => "log",
            (Side::Output, _) => "leftovers",
        }
    }

    /// The task that has sent them. It is not known of what a restore has brought.
    fn from(&self) -> Option<u32> {
        Some(self.part.from).filter(|from| *from != REST)
    }

    fn text(&self, edge_width: usize) -> String {
        let Self { edge: EdgePart { edge, .. }, part: ChannelPart { to, records, bytes, .. }, first } = self;
        let (kind, from, bytes) =
            (self.kind(), self.from().map_or("-".to_owned(), |from| from.to_string()), bytes.len());
        let mut text = format!("{edge:<edge_width$}  {kind:<9}  {from:>5}  {to:>5}  {records:>9}  {bytes:>11}\n");
        first.iter().for_each(|record| text += &format!("  {record}\n"));
        text
    }

    fn object(&self) -> Value {
        let Self { edge, part, first } = self;
        json!({
            "edge": edge.edge,
            "kind": self.kind(),
            "from": self.from(),
            "to": part.to,
            "operator": edge.operator,
            "task": edge.task,
            "tasks": edge.tasks,
            "records": part.records,
            "bytes": part.bytes.len(),
            "schema": edge.schema.to_string(),
            "first": first.iter().map(|record| json_of(record)).collect::<Value>(),
        })
    }
}

/// What nests deeper than the parser takes is left as text.
fn json_of(record: &str) -> Value {
    serde_json::from_str(record).unwrap_or_else(|_| record.into())
}

fn text(lines: &[Line<'_>], sums: Sums) -> String {
    let width = lines.iter().map(|line| line.edge.edge.chars().count()).max().unwrap_or(0).max("edge".len());
    let [edge, kind, from, to, records, bytes] = ["edge", "kind", "from", "to", "records", "bytes"];
    let mut text = format!("{edge:<width$}  {kind:<9}  {from:>5}  {to:>5}  {records:>9}  {bytes:>11}\n");
    lines.iter().for_each(|line| text += &line.text(width));
    let (records, bytes) = (HumanCount(sums.records), HumanBytes(sums.bytes));
    let plural = if sums.records == 1 { "" } else { "s" };
    text + &format!("{records} record{plural}, {bytes}, in {} parts of channels\n", sums.parts)
}

fn object(epoch: u64, about: Option<&CheckpointInfo>, lines: &[Line<'_>], sums: Sums) -> Value {
    json!({
        "epoch": epoch,
        "job": about.map(|about| &about.job),
        "protocol": about.map(|about| &about.protocol),
        "channels": lines.iter().map(Line::object).collect::<Value>(),
        "records": sums.records,
        "bytes": sums.bytes,
    })
}
