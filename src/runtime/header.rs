//! What a checkpoint says about the job that made it.

use crate::checkpoint::Protocol;
use crate::error::{DecodeError, Error, RestoreError, StoreError};
use crate::operator::WentBack;
use crate::record::Record;

/// The header of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) fields: Fields,
    /// Epochs that this one does not build on, though their numbers are lower: somebody went back behind them.
    pub(crate) undone: Vec<(u64, u64)>,
    /// The protocol by which it was made.
    pub(crate) protocol: String,
}

/// What every header has.
#[derive(Clone, Debug, PartialEq, Eq, Record)]
pub(crate) struct Fields {
    /// The dataflow's name.
    pub(crate) job: String,
    /// Rises with each start of the job.
    pub(crate) attempt: u32,
    /// The hash function that spreads the keys, and its seed.
    pub(crate) hash: String,
    pub(crate) hash_seed: u64,
    /// All tasks had finished: nothing is left to run.
    pub(crate) finished: bool,
    /// When it was made: nanoseconds since 1970.
    pub(crate) made_unix_ns: u64,
}

/// What comes behind it, once somebody has gone back.
#[derive(Record)]
struct Ways {
    /// Of an epoch that was not made by a running job.
    went_back: Option<WentBack>,
    undone: Vec<(u64, u64)>,
}

/// What comes behind that, since there is more than one.
#[derive(Record)]
struct How {
    protocol: String,
}

/// The operator and state under which a header's parts are listed: one entry for each sink.
pub(crate) const PARTS: &str = "parts";

impl Header {
    /// Of a job that starts afresh.
    pub(crate) fn fresh(job: &str) -> Self {
        let fields = Fields {
            job: job.to_owned(),
            attempt: 1,
            hash: crate::state::HASH_NAME.to_owned(),
            hash_seed: HASH_SEED,
            finished: false,
            made_unix_ns: 0,
        };
        Self { fields, undone: Vec::new(), protocol: Protocol::default().to_string() }
    }

    /// Of a job that goes on from a snapshot, if it is the same job.
    pub(crate) fn read(bytes: &[u8], job: &str) -> Result<Self, Error> {
        let (mut header, _) = read(bytes)?;
        let fields = &mut header.fields;
        if fields.job != job {
            return Err(RestoreError::OtherJob { expected: job.to_owned(), found: fields.job.clone() }.into());
        }
        if fields.hash != crate::state::HASH_NAME {
            let expected = crate::state::HASH_NAME.to_owned();
            return Err(RestoreError::Hash { expected, found: fields.hash.clone() }.into());
        }
        fields.attempt += 1;
        Ok(header)
    }

    /// As bytes, for an epoch that is made now: by a running job, or as somebody goes back.
    pub(crate) fn bytes(&self, went_back: Option<&WentBack>) -> Vec<u8> {
        let mut bytes = Vec::new();
        Fields { made_unix_ns: unix_ns(), ..self.fields.clone() }.encode(&mut bytes);
        Ways { went_back: went_back.cloned(), undone: self.undone.clone() }.encode(&mut bytes);
        How { protocol: self.protocol.clone() }.encode(&mut bytes);
        bytes
    }
}

fn unix_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// A header, and the way back that its epoch stands for, if it does.
fn read(bytes: &[u8]) -> Result<(Header, Option<WentBack>), StoreError> {
    let mut input = bytes;
    let mut decode = || {
        let fields = Fields::decode(&mut input)?;
        let Ways { went_back, undone } =
            if input.is_empty() { Ways { went_back: None, undone: Vec::new() } } else { Ways::decode(&mut input)? };
        let How { protocol } =
            if input.is_empty() { How { protocol: Protocol::Aligned.to_string() } } else { How::decode(&mut input)? };
        Ok((Header { fields, undone, protocol }, went_back))
    };
    decode().map_err(|error: DecodeError| StoreError::Corrupt {
        path: "the snapshot".into(),
        what: format!("the checkpoint's header: {error}"),
    })
}

/// What a checkpoint says about the job that made it: for tools, which get its header from
/// [`Reader::header`](crate::snapshot::Reader::header).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointInfo {
    /// The dataflow's name.
    pub job: String,
    /// Rises with each start of the job.
    pub attempt: u32,
    /// All tasks had finished: nothing is left to run.
    pub finished: bool,
    /// When it was made: nanoseconds since 1970.
    pub made_unix_ns: u64,
    /// It was not made by a running job: it has the content of an older epoch, to which somebody went back.
    pub went_back: Option<WentBack>,
    /// Lower epochs that it does not build on, since somebody went back behind them: ranges, each with its first and last.
    pub undone: Vec<(u64, u64)>,
    /// The protocol by which it was made, as [`Protocol`] displays it.
    pub protocol: String,
}

impl CheckpointInfo {
    /// Out of a header.
    ///
    /// # Errors
    /// `Corrupt`: it is none.
    pub fn read(header: &[u8]) -> Result<Self, StoreError> {
        let (header, went_back) = read(header)?;
        let Fields { job, attempt, finished, made_unix_ns, .. } = header.fields;
        Ok(Self { job, attempt, finished, made_unix_ns, went_back, undone: header.undone, protocol: header.protocol })
    }
}

/// Any number does, as long as it stays the same: it is kept in the snapshot.
const HASH_SEED: u64 = 0x5eed_0f5a_a9f1_4e67;

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_start_has_a_number_of_its_own() {
        let mut header = Header::fresh("job");
        for attempt in 1..4 {
            assert_eq!((header.fields.attempt, header.fields.finished), (attempt, false));
            header = Header::read(&header.bytes(None), "job").unwrap();
        }
        assert!(Header::read(&[], "job").is_err());
    }

    #[test]
    fn what_was_undone_is_said_by_every_later_epoch() {
        let mut header = Header::fresh("job");
        // 2 again as 4; 3 again as 5, which builds on 3 but not on 4; 4 again as 7, which builds on 2 only.
        let back = WentBack::new(2, 3, header.undone.clone());
        header.undone.clone_from(&back.undone);
        let fourth = header.bytes(Some(&back));
        assert_eq!(CheckpointInfo::read(&fourth).unwrap().went_back, Some(back));
        let later = Header::read(&Header::read(&fourth, "job").unwrap().bytes(None), "job").unwrap();
        assert_eq!(later.undone, [(3, 3)]);
        let again = WentBack::new(4, 6, later.undone);
        assert_eq!((1..9).filter(|epoch| again.takes_back(*epoch)).collect::<Vec<_>>(), [3, 5, 6]);
        assert_eq!((1..9).filter(|epoch| again.brings_back(*epoch)).collect::<Vec<_>>(), [1, 2, 4]);
    }
}
