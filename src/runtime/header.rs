//! What a checkpoint says about the job that made it.

use crate::error::{DecodeError, Error, RestoreError, StoreError};
use crate::operator::WentBack;
use crate::record::Record;

/// The header of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Record)]
pub(crate) struct Header {
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

/// The operator and state under which a header's parts are listed: one entry for each sink.
pub(crate) const PARTS: &str = "parts";

impl Header {
    /// Of a job that starts afresh.
    pub(crate) fn fresh(job: &str) -> Self {
        Self {
            job: job.to_owned(),
            attempt: 1,
            hash: crate::state::HASH_NAME.to_owned(),
            hash_seed: HASH_SEED,
            finished: false,
            made_unix_ns: 0,
        }
    }

    /// Of a job that goes on from a snapshot, if it is the same job.
    pub(crate) fn read(bytes: &[u8], job: &str) -> Result<Self, Error> {
        let (mut header, _) = read(bytes)?;
        if header.job != job {
            return Err(RestoreError::OtherJob { expected: job.to_owned(), found: header.job }.into());
        }
        if header.hash != crate::state::HASH_NAME {
            let expected = crate::state::HASH_NAME.to_owned();
            return Err(RestoreError::Hash { expected, found: header.hash }.into());
        }
        header.attempt += 1;
        Ok(header)
    }

    /// As bytes, for the epoch that a job goes back by.
    pub(crate) fn going_back(&self, back: WentBack) -> Vec<u8> {
        let header = Self { made_unix_ns: unix_ns(), ..self.clone() };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        back.encode(&mut bytes);
        bytes
    }
}

pub(super) fn unix_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// A header, and behind it the way back that its epoch stands for, if it was not made by a running job.
fn read(bytes: &[u8]) -> Result<(Header, Option<WentBack>), StoreError> {
    let mut input = bytes;
    let mut decode = || {
        let header = Header::decode(&mut input)?;
        let back = if input.is_empty() { None } else { Some(WentBack::decode(&mut input)?) };
        Ok((header, back))
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
}

impl CheckpointInfo {
    /// Out of a header.
    ///
    /// # Errors
    /// `Corrupt`: it is none.
    pub fn read(header: &[u8]) -> Result<Self, StoreError> {
        let (Header { job, attempt, finished, made_unix_ns, .. }, went_back) = read(header)?;
        Ok(Self { job, attempt, finished, made_unix_ns, went_back })
    }
}

/// Any number does, as long as it stays the same: it is kept in the snapshot.
const HASH_SEED: u64 = 0x5eed_0f5a_a9f1_4e67;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_has_a_number_of_its_own() {
        let mut header = Header::fresh("job");
        for attempt in 1..4 {
            assert_eq!((header.attempt, header.finished), (attempt, false));
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            header = Header::read(&bytes, "job").unwrap();
        }
        assert!(Header::read(&[], "job").is_err());
    }
}
