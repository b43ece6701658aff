//! The undo log in persistent memory, with its registers.

use super::PiclSpec;
use durasim_contract::{CrashImage, Geometry, RecoveryCut};

/// Bytes of the region of registers: PersistedEID, the first superblock that is needed, whether the log is being erased.
pub(super) const REGISTER_BYTES: u64 = 24;
pub(super) const ERASING: u64 = 1;

/// Makes the superblocks that the log has invalid.
pub(super) fn erase(spec: &PiclSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<(), RecoveryCut> {
    let log = geometry.region("log").base;
    let touched: Vec<(u64, u64)> =
        image.pmem.touched().map(|(page, bytes)| (page.0, page.0 + bytes.len() as u64)).collect();
    for (first, end) in touched {
        let bytes = spec.superblock_bytes();
        let (from, to) = (first.saturating_sub(log.0).div_ceil(bytes), end.saturating_sub(log.0).div_ceil(bytes));
        for number in from..to.min(spec.superblocks()) {
            let header = log.plus(number * bytes);
            if image.line(header) != [0; 64] {
                image.write(header, &[0; 64])?;
            }
        }
    }
    Ok(())
}
