//! The end of a run: its exit code, its pool file and its digest.

use crate::machine::Ending;
use crate::setup::budget::MEMORY_MIB;
use crate::setup::program::PoolContents;
use crate::setup::request::RunRequest;
use durasim_types::{ConfigError, Error};
use std::path::Path;

/// Writes the pool file of a run.
pub(crate) fn save_pool(path: &Path, contents: &PoolContents, variant: &str) -> Result<(), Error> {
    contents.to_file(variant).save(path).map(drop)
}

/// The program's exit code; none if it was to be stopped after its region of interest.
pub(crate) fn exit_code(ending: &Ending, request: &RunRequest) -> Result<Option<i32>, Error> {
    match ending {
        Ending::Exited(code) => Ok(Some(*code)),
        Ending::RegionEnd => Ok(None),
        Ending::InstructionLimit | Ending::CycleLimit | Ending::Stopped | Ending::SnapshotPoint => {
            let limit = request.max_instructions.unwrap_or(u64::MAX);
            let problem = format!("the program did not end within {limit} instructions");
            Err(ConfigError::new("max_instructions", problem).into())
        }
    }
}

/// The end of a run that has written more memory than it may.
pub(crate) fn memory_exceeded(request: &RunRequest, pc: u64) -> Error {
    let limit_mib = request.max_memory_mib.unwrap_or(MEMORY_MIB);
    ConfigError::new(
        "max_memory_mib",
        format!("the program has written more than {limit_mib} MiB of memory, at pc {pc:#x}"),
    )
    .into()
}

/// Ties the hash of a given pool file into a digest.
pub(crate) fn blend(digest: &str, pool_hash: &str) -> String {
    use std::hash::Hasher;
    let mut both = durasim_types::Digest::default();
    both.write(digest.as_bytes());
    both.write(pool_hash.as_bytes());
    both.hex()
}
