//! `snapring doctor`: what to know of a machine before a job runs on it. Everything is read or measured, and nothing is
//! changed. What cannot be found out is said, and is no failure: a container may hide any of it.
//!
//! Each file here looks at one thing and knows no other; this one puts their findings in order.

mod clock;
mod cores;
mod finding;
mod folder;
mod limits;
mod memory;
mod probe;
mod quota;
mod system;
mod trip;

use crate::outcome::{Outcome, Wrong, print, print_json};
use crate::signals::outlive_file_limits;
use finding::{Finding, Level};
use serde_json::json;
use std::path::Path;
use system::System;

/// Looks at everything, and prints what was found. Leaves with 5 if the folder cannot be used.
pub fn examine(state: Option<&Path>, as_json: bool) -> Outcome {
    outlive_file_limits().map_err(|error| Wrong::System("watch for signals", error))?;
    let system = System::here();
    let mut findings = cores::look(&system);
    findings.push(trip::look(&cores::allowed()));
    findings.push(clock::look(&system));
    findings.extend(memory::look(&system));
    findings.extend(limits::look());
    findings.extend(folder::look(state));
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    if as_json {
        let findings: serde_json::Value = findings.iter().map(Finding::object).collect();
        print_json(&json!({ "worst": worst.name(), "findings": findings }))?;
    } else {
        print(findings.iter().map(Finding::text).collect::<String>())?;
    }
    Ok(if worst == Level::Error { 5 } else { 0 })
}
