//! `snapring jobs`: what there is to run.

use crate::outcome::{Outcome, print, print_json};
use serde_json::{Value, json};
use snapring_jobs::{BuiltIn, jobs};

/// Prints a line for each job.
pub fn list(as_json: bool) -> Outcome {
    if as_json {
        return print_json(&jobs().iter().map(object).collect());
    }
    let width = jobs().iter().map(|job| job.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for job in jobs() {
        text += &format!("{:width$}  {}\n{:width$}  options: {}\n", job.name, job.about, "", flags(job).join(" "));
    }
    print(text)
}

fn object(job: &BuiltIn) -> Value {
    json!({ "name": job.name, "about": job.about, "options": flags(job) })
}

/// A job's own flags.
fn flags(job: &BuiltIn) -> Vec<String> {
    job.options
        .iter()
        .map(
            |option| if *option == "inputs" { "--input".to_owned() } else { format!("--{}", option.replace('_', "-")) },
        )
        .collect()
}
