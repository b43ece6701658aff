//! The log in persistent memory, with the register of its head.

use super::FwbSpec;
use super::record::RECORD_BYTES;
use durasim_contract::{CrashImage, Geometry, RecoveryCut};
use durasim_types::{PAGE_BYTES, PhysAddr};

/// Bytes of the region with the head: its number, then whether the log is being erased.
pub(super) const HEAD_BYTES: u64 = 16;
pub(super) const ERASING: u64 = 1;

/// Erases what is left in the log, line by line.
pub(super) fn erase(spec: &FwbSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<(), RecoveryCut> {
    let log = geometry.region("log").base;
    let end = log.plus(spec.capacity() * RECORD_BYTES);
    let pages: Vec<PhysAddr> = image.pmem.touched().map(|(page, _)| page).collect();
    for page in pages.into_iter().filter(|page| page.0 + PAGE_BYTES > log.0 && page.0 < end.0) {
        for line in (page.0.max(log.0)..(page.0 + PAGE_BYTES).min(end.0)).step_by(64).map(PhysAddr) {
            if image.line(line) != [0; 64] {
                image.write(line, &[0; 64])?;
            }
        }
    }
    Ok(())
}
