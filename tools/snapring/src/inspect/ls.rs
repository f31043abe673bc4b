//! `snapring inspect ls`: the checkpoints of a state folder, a line each.

use super::{about, channels};
use crate::outcome::{Outcome, print, print_json};
use indicatif::HumanBytes;
use serde_json::{Value, json};
use snapring::operator::WentBack;
use snapring::runtime::CheckpointInfo;
use snapring::snapshot::{EpochInfo, Reader};
use std::path::Path;

/// Lists them.
pub fn list(dir: &Path, as_json: bool) -> Outcome {
    let reader = Reader::open(dir)?;
    let epochs: Vec<_> = reader.epochs().into_iter().map(|info| Listed::of(&reader, info)).collect();
    if as_json {
        let epochs: Value = epochs.iter().map(Listed::object).collect();
        return print_json(&json!({ "store": hex(&reader.id()), "epochs": epochs }));
    }
    let mut text = Listed::header();
    epochs.iter().for_each(|epoch| text += &epoch.line());
    print(text)
}

/// A checkpoint as the list has it. What cannot be read is none: `verify` will say why.
struct Listed {
    info: EpochInfo,
    /// What it says about its job.
    about: Option<CheckpointInfo>,
    /// Records of channels that it holds.
    channel_bytes: Option<u64>,
}

impl Listed {
    fn of(reader: &Reader, info: EpochInfo) -> Self {
        let channel_bytes = reader.channels(info.epoch).ok().map(|edges| channels::Sums::of(&edges).bytes);
        Self { info, about: about(reader, info.epoch), channel_bytes }
    }

    fn header() -> String {
        let [epoch, entries, pages, size] = ["epoch", "entries", "pages", "size"];
        format!("{epoch:>8}  {entries:>7}  {pages:>8}  {size:>12}  {:>12}  {:<22}  job\n", "channels", "protocol")
    }

    fn line(&self) -> String {
        let EpochInfo { epoch, entries, pages, bytes } = self.info;
        let size = HumanBytes(bytes).to_string();
        let channels = self.channel_bytes.map_or("?".to_owned(), |bytes| HumanBytes(bytes).to_string());
        let protocol = self.about.as_ref().map_or("?", |about| &about.protocol);
        let remark = remark(self.about.as_ref());
        format!("{epoch:>8}  {entries:>7}  {pages:>8}  {size:>12}  {channels:>12}  {protocol:<22}  {remark}\n")
    }

    fn object(&self) -> Value {
        let Self { info, about, channel_bytes } = self;
        let about = about.as_ref();
        let back = about.and_then(|about| about.went_back.as_ref());
        json!({
            "epoch": info.epoch,
            "entries": info.entries,
            "pages": info.pages,
            "bytes": info.bytes,
            "channel_bytes": channel_bytes,
            "protocol": about.map(|about| &about.protocol),
            "job": about.map(|about| &about.job),
            "attempt": about.map(|about| about.attempt),
            "finished": about.map(|about| about.finished),
            "made_unix_ns": about.map(|about| about.made_unix_ns),
            "went_back": back.map(|back| json!({ "to": back.to, "from": back.from })),
        })
    }
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

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
