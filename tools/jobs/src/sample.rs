//! Finds the bundled samples: they lie in the source tree that this crate was built from.

use snapring::error::ConnectorError;
use std::path::{Path, PathBuf};

/// The inputs asked for; if there are none, the sample of this name.
pub(crate) fn inputs_or_sample(inputs: &[PathBuf], sample: &str) -> Result<Vec<PathBuf>, ConnectorError> {
    if !inputs.is_empty() {
        return Ok(inputs.to_vec());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(sample);
    let found = path.canonicalize().map_err(|error| ConnectorError::Io {
        path,
        action: "open the bundled sample (name a file of your own with --input)",
        error,
    })?;
    Ok(vec![found])
}
