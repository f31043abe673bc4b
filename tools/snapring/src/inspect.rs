//! `snapring inspect`: what is in a state folder, read without the code of the job that wrote it, and without its lock.

use crate::args::InspectCommand;
use crate::outcome::{Outcome, Wrong, print, print_json};
use indicatif::HumanBytes;
use serde_json::{Value, json};
use snapring::error::StoreError;
use snapring::operator::WentBack;
use snapring::runtime::CheckpointInfo;
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
    let epochs: Vec<_> = reader.epochs().into_iter().map(|info| (info, about(&reader, info.epoch))).collect();
    if as_json {
        let epochs: Value = epochs.iter().map(|(info, about)| object_of(info, about.as_ref())).collect();
        return print_json(&json!({ "store": hex(&reader.id()), "epochs": epochs }));
    }
    let mut text = format!("{:>8}  {:>7}  {:>8}  {:>12}  {}\n", "epoch", "entries", "pages", "size", "job");
    for (EpochInfo { epoch, entries, pages, bytes }, about) in epochs {
        let bytes = HumanBytes(bytes).to_string();
        text += &format!("{epoch:>8}  {entries:>7}  {pages:>8}  {bytes:>12}  {}\n", remark(about.as_ref()));
    }
    print(text)
}

/// What the checkpoint says about its job; none: it cannot be read, as `verify` will say.
fn about(reader: &Reader, epoch: u64) -> Option<CheckpointInfo> {
    CheckpointInfo::read(&reader.header(epoch).ok()?).ok()
}

fn remark(about: Option<&CheckpointInfo>) -> String {
    let Some(about) = about else { return "(cannot be read)".to_owned() };
    let mut text = about.job.clone();
    if let Some(WentBack { to, from, .. }) = &about.went_back {
        text += &format!(" (went back to epoch {to} from {from})");
    }
    if about.finished {
        text += " (finished)";
    }
    text
}

fn object_of(info: &EpochInfo, about: Option<&CheckpointInfo>) -> Value {
    let back = about.and_then(|about| about.went_back.as_ref());
    json!({
        "epoch": info.epoch,
        "entries": info.entries,
        "pages": info.pages,
        "bytes": info.bytes,
        "job": about.map(|about| &about.job),
        "attempt": about.map(|about| about.attempt),
        "finished": about.map(|about| about.finished),
        "made_unix_ns": about.map(|about| about.made_unix_ns),
        "went_back": back.map(|back| json!({ "to": back.to, "from": back.from })),
    })
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

/// What to do about a folder whose newest checkpoint is damaged. Older ones have pages in common with it, and may be too.
pub fn way_back(dir: &Path) -> String {
    let kept = Reader::open(dir).map(|reader| reader.epochs()).unwrap_or_default();
    let kept: Vec<u64> = kept.iter().map(|info| info.epoch).collect();
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

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
