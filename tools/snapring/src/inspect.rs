//! `snapring inspect`: what is in a state folder, read without the code of the job that wrote it, and without its lock.

use crate::args::InspectCommand;
use crate::outcome::{Outcome, Wrong, print, print_json};
use indicatif::HumanBytes;
use serde_json::{Value, json};
use snapring::error::StoreError;
use snapring::snapshot::{EpochInfo, EpochReport, Reader};
use std::path::Path;

/// Does what is asked for.
pub fn inspect(command: &InspectCommand) -> Outcome {
    match command {
        InspectCommand::Ls { state_dir, json } => list(state_dir, *json),
        InspectCommand::Verify { state_dir, epoch, json } => verify(state_dir, *epoch, *json),
    }
}

fn list(dir: &Path, as_json: bool) -> Outcome {
    let reader = Reader::open(dir)?;
    let epochs = reader.epochs();
    if as_json {
        let epochs: Value = epochs.iter().map(info).collect();
        return print_json(&json!({ "store": hex(&reader.id()), "epochs": epochs }));
    }
    let mut text = format!("{:>8}  {:>7}  {:>8}  {:>12}\n", "epoch", "entries", "pages", "size");
    for EpochInfo { epoch, entries, pages, bytes } in epochs {
        text += &format!("{epoch:>8}  {entries:>7}  {pages:>8}  {:>12}\n", HumanBytes(bytes).to_string());
    }
    print(text)
}

fn info(info: &EpochInfo) -> Value {
    json!({ "epoch": info.epoch, "entries": info.entries, "pages": info.pages, "bytes": info.bytes })
}

fn verify(dir: &Path, epoch: Option<u64>, as_json: bool) -> Outcome {
    let reader = Reader::open(dir)?;
    let kept: Vec<u64> = reader.epochs().iter().map(|info| info.epoch).collect();
    let epochs = match epoch {
        None => kept,
        Some(epoch) if kept.contains(&epoch) => vec![epoch],
        Some(epoch) => return Err(Wrong::Usage(format!("--epoch {epoch}: the store keeps {}", listed(&kept)))),
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

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
