//! `snapring inspect`: what is in a state folder, read without the code of the job that wrote it, and without its lock.

mod channels;
mod deadlock;
mod ls;
mod room;

use crate::args::InspectCommand;
use crate::outcome::{Outcome, Wrong, print, print_json};
use serde_json::{Value, json};
use snapring::error::StoreError;
use snapring::runtime::CheckpointInfo;
use snapring::snapshot::{EdgePart, EpochReport, Reader};
use std::path::Path;

/// Does what is asked for.
pub fn inspect(command: &InspectCommand) -> Outcome {
    match command {
        InspectCommand::Ls { state_dir, json } => ls::list(state_dir, *json),
        InspectCommand::Verify { state_dir, epoch, json } => verify(state_dir, *epoch, *json),
        InspectCommand::Channels { state_dir, epoch, records, json } => {
            channels::show(state_dir, *epoch, *records, *json)
        }
        InspectCommand::Prune { state_dir, keep, epoch, json } => room::prune(state_dir, *keep, epoch, *json),
        InspectCommand::Compact { state_dir, json } => room::compact(state_dir, *json),
        InspectCommand::Deadlock { state_dir, epoch, json } => deadlock::show(state_dir, *epoch, *json),
    }
}

/// What the checkpoint says about its job; none: it cannot be read, as `verify` will say.
fn about(reader: &Reader, epoch: u64) -> Option<CheckpointInfo> {
    CheckpointInfo::read(&reader.header(epoch).ok()?).ok()
}

fn kept(reader: &Reader) -> Vec<u64> {
    reader.epochs().iter().map(|info| info.epoch).collect()
}

/// The epoch that was asked for by `--epoch`, or the newest, and what it holds of channels.
fn channels_of(reader: &mut Reader, epoch: Option<u64>) -> Result<(u64, Vec<EdgePart>), Wrong> {
    loop {
        let number = chosen(reader, epoch)?;
        match reader.channels(number) {
            Ok(edges) => return Ok((number, edges)),
            // The job may be running; this one was not asked for by its number.
            Err(StoreError::NoEpoch { .. }) if epoch.is_none() => reader.refresh()?,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The epoch that was asked for by `--epoch`, or the newest.
fn chosen(reader: &Reader, epoch: Option<u64>) -> Result<u64, Wrong> {
    let kept = kept(reader);
    match epoch {
        Some(epoch) if kept.contains(&epoch) => Ok(epoch),
        Some(epoch) => Err(Wrong::Usage(format!("--epoch {epoch}: the store keeps {}", listed(&kept)))),
        None => kept.last().copied().ok_or_else(|| Wrong::Missing("the store keeps no checkpoint".to_owned())),
    }
}

fn verify(dir: &Path, epoch: Option<u64>, as_json: bool) -> Outcome {
    let reader = Reader::open(dir)?;
    let epochs = match epoch {
        None => kept(&reader),
        Some(_) => vec![chosen(&reader, epoch)?],
    };
    let mut reports = Vec::new();
    for number in epochs {
        match reader.verify(number) {
            Ok(report) => reports.push(report),
            // The job may be running; what has expired since was not asked for by its number.
            Err(StoreError::NoEpoch { .. }) if epoch.is_none() => {}
            Err(error) => return Err(error.into()),
        }
    }
    if as_json {
        print_json(&reports.iter().map(object).collect())
    } else {
        print(reports.iter().map(text).collect::<String>())
    }?;
    if reports.iter().all(|report| report.damage.is_empty()) { Ok(0) } else { Err(Wrong::Damaged) }
}

fn object(report: &EpochReport) -> Value {
    let EpochReport { epoch, entries, pages_good, damage } = report;
    json!({ "epoch": epoch, "sound": damage.is_empty(), "entries": entries, "pages_good": pages_good, "damage": damage })
}

fn text(report: &EpochReport) -> String {
    let EpochReport { epoch, entries, pages_good, damage } = report;
    if damage.is_empty() {
        return format!("epoch {epoch}: sound ({entries} entries, {pages_good} pages)\n");
    }
    let mut text = format!("epoch {epoch}: DAMAGED ({entries} entries, {pages_good} good pages)\n");
    damage.iter().for_each(|what| text += &format!("  {what}\n"));
    text
}

/// What to do about a folder whose newest checkpoint is damaged. Older ones have pages in common with it, and may be too.
pub fn way_back(dir: &Path) -> String {
    let kept = Reader::open(dir).map(|reader| kept(&reader)).unwrap_or_default();
    let dir = dir.display();
    if kept.len() < 2 {
        return format!("{dir} keeps no other checkpoint: put back a copy of the folder, or begin anew in another one");
    }
    let kept = listed(&kept);
    format!("{kept} are kept: `snapring inspect verify {dir}` says which are sound, and `--epoch N` goes back to one")
}

fn listed(epochs: &[u64]) -> String {
    match epochs {
        [] => "no checkpoint".to_owned(),
        [one] => format!("epoch {one}"),
        [rest @ .., last] => {
            let rest: Vec<String> = rest.iter().map(u64::to_string).collect();
            format!("epochs {} and {last}", rest.join(", "))
        }
    }
}
