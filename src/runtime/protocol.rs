//! Who begins a cut.

use std::str::FromStr;

/// Who begins a cut (protocols, rule 18). Sources always do, for nothing tells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initiators {
    /// The sources: every other task hears of it from those ahead.
    Sources,
    /// All tasks at once: no cut has to travel, however deep the graph.
    All,
    /// The tasks of the stages and operators of these names, and the sources.
    Named(Vec<String>),
}

impl FromStr for Initiators {
    type Err = String;

    /// `sources`, `all`, or names with commas between.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sources" => Ok(Self::Sources),
            "all" => Ok(Self::All),
            names => {
                let names: Vec<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
                if names.iter().any(String::is_empty) {
                    return Err(format!("`{text}` is neither `sources` nor `all` nor names with commas between"));
                }
                Ok(Self::Named(names))
            }
        }
    }
}
