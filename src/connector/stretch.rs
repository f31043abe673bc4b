//! Splits of an input that is a numbered sequence: generated events, items of a list. Knows nothing of what they are.

use crate::error::ConnectorError;
use crate::operator::Split;
use crate::record::Record;
use std::path::PathBuf;

/// A part of the sequence 0..total: what the descriptor of its split says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// What the sequence is made of, so that another one is not taken for it.
    what: String,
    total: u64,
    pub from: u64,
    pub to: u64,
}

impl Stretch {
    /// Cuts 0..total into `splits` stretches whose lengths differ by at most one.
    pub fn cut(what: &str, total: u64, splits: u32) -> Vec<Split> {
        let edge = |id: u32| (u128::from(total) * u128::from(id) / u128::from(splits)) as u64;
        (0..splits)
            .map(|id| {
                let stretch = Self { what: what.to_owned(), total, from: edge(id), to: edge(id + 1) };
                let name = format!("{what}[{}..{}]", stretch.from, stretch.to);
                Split { id, name, descriptor: stretch.encode() }
            })
            .collect()
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.what.encode(&mut bytes);
        for number in [self.total, self.from, self.to] {
            number.encode(&mut bytes);
        }
        bytes
    }

    /// The stretch of a split.
    pub fn of(split: &Split) -> Result<Self, ConnectorError> {
        let mut input = split.descriptor.as_slice();
        let mut read = || {
            Ok(Self {
                what: String::decode(&mut input)?,
                total: u64::decode(&mut input)?,
                from: u64::decode(&mut input)?,
                to: u64::decode(&mut input)?,
            })
        };
        let stretch: Result<Self, crate::error::DecodeError> = read();
        match stretch {
            Ok(stretch) if stretch.from <= stretch.to && stretch.to <= stretch.total => Ok(stretch),
            _ => Err(changed(&split.name, "its split in the checkpoint is not one of a numbered sequence".to_owned())),
        }
    }

    /// The number of the element at an offset, which counts from the start of the stretch.
    pub fn seek(&self, offset: u64) -> Result<u64, ConnectorError> {
        match self.from.checked_add(offset) {
            Some(next) if next <= self.to => Ok(next),
            _ => Err(changed(&self.what, format!("offset {offset} lies behind the end of {}..{}", self.from, self.to))),
        }
    }

    /// Whether the splits of a checkpoint are the whole of this sequence. How many there are is no matter.
    pub fn verify(what: &str, total: u64, splits: &[Split]) -> Result<(), ConnectorError> {
        let mut stretches = splits.iter().map(Self::of).collect::<Result<Vec<_>, _>>()?;
        stretches.sort_by_key(|stretch| (stretch.from, stretch.to));
        let mut next = 0;
        for stretch in &stretches {
            if stretch.what != what || stretch.total != total {
                return Err(changed(
                    what,
                    format!("it was {} of {}, it is {total} of {what}", stretch.total, stretch.what),
                ));
            }
            if stretch.from != next {
                return Err(changed(what, format!("no split holds element {next}, or two do")));
            }
            next = stretch.to;
        }
        if next == total { Ok(()) } else { Err(changed(what, format!("no split holds element {next}"))) }
    }
}

fn changed(what: &str, how: String) -> ConnectorError {
    ConnectorError::Changed { path: PathBuf::from(what), what: how }
}
