//! The protocols by name.

use std::fmt;
use std::str::FromStr;

/// How tasks agree on a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Barriers; an input waits at its barrier until all have it. Only states are saved, and in loops what comes round
    /// until the barrier does.
    #[default]
    Aligned,
    /// Markers; a task is cut at the first, and saves what the other inputs bring until theirs.
    ChandyLamport,
    /// Cuts that are seen over whatever lies queued; what lies queued is saved.
    Unaligned,
    /// Aligned; what takes too long is cut unaligned.
    AlignedThenUnaligned,
    /// Barriers without waiting: after a restore no record is missing, but some may count twice.
    AtLeastOnce,
    /// All tasks pause, everything is saved, all go on.
    StopTheWorld,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Aligned,
        Self::ChandyLamport,
        Self::Unaligned,
        Self::AlignedThenUnaligned,
        Self::AtLeastOnce,
        Self::StopTheWorld,
    ];

    /// Whether its cuts count each record exactly once.
    #[must_use]
    pub fn is_exact(self) -> bool {
        self != Self::AtLeastOnce
    }

    /// Its name: what is displayed and parsed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Aligned => "aligned",
            Self::ChandyLamport => "chandy-lamport",
            Self::Unaligned => "unaligned",
            Self::AlignedThenUnaligned => "aligned-then-unaligned",
            Self::AtLeastOnce => "at-least-once",
            Self::StopTheWorld => "stop-the-world",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|protocol| protocol.name()).collect();
            format!("`{name}` is no protocol: {}", names.join(", "))
        })
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.to_string().parse(), Ok(protocol));
        }
        assert!("none".parse::<Protocol>().unwrap_err().contains("stop-the-world"));
    }
}
