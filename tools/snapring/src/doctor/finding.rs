//! What was found out about one thing, for people and for programs.

use serde_json::{Map, Value};

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// A job runs, but slower or less safe than it could.
    Warning,
    /// A job does not run.
    Error,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What was found out about one thing.
#[derive(Clone, Debug)]
#[must_use]
pub struct Finding {
    pub about: &'static str,
    pub level: Level,
    pub says: String,
    /// What to do.
    pub advice: Option<String>,
    /// The numbers behind it.
    facts: Map<String, Value>,
}

impl Finding {
    pub fn new(level: Level, about: &'static str, says: impl Into<String>) -> Self {
        Self { about, level, says: says.into(), advice: None, facts: Map::new() }
    }

    pub fn ok(about: &'static str, says: impl Into<String>) -> Self {
        Self::new(Level::Ok, about, says)
    }

    /// Not as it should be: how bad that is, and what to do.
    pub fn but(mut self, level: Level, advice: impl Into<String>) -> Self {
        self.level = level;
        self.advice = Some(advice.into());
        self
    }

    /// Adds a number, by its name and unit.
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// A line, and another one for the advice.
    pub fn text(&self) -> String {
        let Self { about, level, says, advice, .. } = self;
        let mut text = format!("{:<7}  {about:<12}  {says}\n", level.name());
        if let Some(advice) = advice {
            text += &format!("{:23}-> {advice}\n", "");
        }
        text
    }

    pub fn object(&self) -> Value {
        let mut object = Map::new();
        object.insert("about".to_owned(), self.about.into());
        object.insert("level".to_owned(), self.level.name().into());
        object.insert("says".to_owned(), self.says.as_str().into());
        object.insert("advice".to_owned(), self.advice.as_deref().into());
        object.insert("facts".to_owned(), Value::Object(self.facts.clone()));
        Value::Object(object)
    }
}
