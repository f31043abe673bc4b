//! `snapring inspect prune`, `compact`: fewer checkpoints, and a smaller file. The only commands that write to a state folder;
//! they take its lock, so they are refused while a job runs.

use super::listed;
use crate::outcome::{Outcome, Wrong, print, print_json};
use indicatif::HumanBytes;
use serde_json::json;
use snapring::error::StoreError;
use snapring::snapshot::{Compacted, Pruned, Reader, Store, StoreOptions};
use std::path::Path;

/// Gives up all checkpoints but the newest `keep`, or those of these epochs.
pub fn prune(dir: &Path, keep: Option<u32>, epochs: &[u64], as_json: bool) -> Outcome {
    let mut store = open(dir)?;
    let pruned = if epochs.is_empty() { store.prune(keep.unwrap_or(1)) } else { store.forget(epochs) };
    let Pruned { gone, held, kept, freed_bytes } = pruned.map_err(as_usage)?;
    if as_json {
        print_json(&json!({ "gone": gone, "held": held, "kept": kept, "freed_bytes": freed_bytes }))?;
        return Ok(0);
    }
    let mut text = match &gone[..] {
        [] => "gave up no checkpoint\n".to_owned(),
        _ => format!("gave up {}, {} are free for others\n", listed(&gone), HumanBytes(freed_bytes)),
    };
    if !held.is_empty() {
        text += &format!("kept {} all the same: it is being read, or shares a file with others\n", listed(&held));
    }
    print(text + &format!("kept: {}\n", listed(&kept)))?;
    Ok(0)
}

/// Makes the file about as small as what is in it: whole segments of some MiB stay.
pub fn compact(dir: &Path, as_json: bool) -> Outcome {
    let Compacted { epochs, bytes_before, bytes_after } = open(dir)?.compact()?;
    if as_json {
        print_json(&json!({ "checkpoints": epochs, "bytes_before": bytes_before, "bytes_after": bytes_after }))?;
    } else {
        let plural = if epochs == 1 { "" } else { "s" };
        let (before, after) = (HumanBytes(bytes_before), HumanBytes(bytes_after));
        print(format!("{epochs} checkpoint{plural}: {before} before, {after} now\n"))?;
    }
    Ok(0)
}

/// For writing; there must be a store.
fn open(dir: &Path) -> Result<Store, Wrong> {
    let page_bytes = Reader::open(dir)?.page_bytes();
    Ok(Store::open(dir, StoreOptions { page_bytes, ..StoreOptions::default() })?)
}

/// A checkpoint that cannot be given up was named by a flag.
fn as_usage(error: StoreError) -> Wrong {
    match error {
        StoreError::NoEpoch { epoch, kept, .. } => {
            Wrong::Usage(format!("--epoch {epoch}: the store keeps {}", listed(&kept)))
        }
        StoreError::Refused { epoch, reason, .. } => {
            Wrong::Usage(format!("--epoch {epoch} cannot be given up: {reason}"))
        }
        other => other.into(),
    }
}
