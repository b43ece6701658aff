//! Recovery goes backwards through the undo log and applies each pre-image that is valid at the end of PersistedEID:
//! ValidFrom <= PersistedEID < ValidTill. The oldest that is applied to a line is the one that stays.
//!
//! The result depends on the log alone, so it may be cut and run again. When all is home, the log is marked as being
//! erased, its superblocks are made invalid, and epochs restart.

use super::log_region::{ERASING, REGISTER_BYTES, erase};
use super::undo_log::{ENTRY_BYTES, HEADER_BYTES, superblock};
use super::{PiclSpec, planted};
use durasim_contract::{CrashImage, Geometry, RecoveryCut, RecoveryReport};
use durasim_types::{LINE_BYTES, Line, PhysAddr};
use std::collections::BTreeMap;

/// Applies the pre-images of a superblock to lines, youngest first. Err: something is damaged.
fn apply(
    geometry: &Geometry,
    image: &CrashImage,
    spec: &PiclSpec,
    base: PhysAddr,
    persisted: u64,
    lines: &mut BTreeMap<PhysAddr, Line>,
) -> Result<(), ()> {
    let count = image.read_u64(base.plus(8));
    if count > u64::from(spec.undo_buffer_entries) {
        return Err(());
    }
    let data = base.plus(superblock_data(spec));
    for entry in (0..count).rev() {
        let at = base.plus(HEADER_BYTES + entry * ENTRY_BYTES);
        let (home, epochs) = (PhysAddr(image.read_u64(at)), image.read_u64(at.plus(8)));
        let (from, till) = (epochs & u64::from(u32::MAX), epochs >> 32);
        if !geometry.is_home(home) || till <= from {
            return Err(());
        }
        let fault = geometry.planted;
        let is_valid = from <= persisted && fault.assumes(planted::RECOVERY_IGNORES_VALID_TILL, persisted < till);
        if fault.ignores(planted::RECOVERY_RESTORES_NOTHING, is_valid) {
            lines.insert(home, image.line(data.plus(entry * LINE_BYTES)));
        }
    }
    Ok(())
}

/// The offset of the pre-images in a superblock.
fn superblock_data(spec: &PiclSpec) -> u64 {
    HEADER_BYTES + u64::from(spec.undo_buffer_entries).div_ceil(4) * LINE_BYTES
}

pub(super) fn recover(
    spec: &PiclSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<RecoveryReport, RecoveryCut> {
    let register = geometry.region("registers").base;
    let log = geometry.region("log").base;
    let fault = geometry.planted;
    let [persisted, head, state] = [0, 8, 16].map(|offset| image.read_u64(register.plus(offset)));
    let persisted = fault.swaps(planted::RECOVERY_IGNORES_PERSISTED, persisted, 0);
    let mut report = RecoveryReport::default();
    if state != ERASING {
        let mut lines = BTreeMap::new();
        if state != 0 || head > u64::MAX / 2 {
            report.losses.push("the registers of the undo log are damaged".into());
        } else {
            let at = |number: u64| superblock(spec, log, number);
            let valid = |number: &u64| image.read_u64(at(*number)) == number + 1;
            let numbers: Vec<u64> = (head..head + spec.superblocks()).take_while(valid).collect();
            let count = fault.swaps(planted::RECOVERY_OVERLOOKS_LAST, numbers.len(), numbers.len().saturating_sub(1));
            for nth in 0..count {
                let number = numbers[fault.swaps(planted::RECOVERY_GOES_FORWARDS, count - 1 - nth, nth)];
                if apply(geometry, image, spec, at(number), persisted, &mut lines).is_err() {
                    report.losses.push(format!("superblock {number} of the undo log is damaged"));
                }
            }
        }
        report.lines_written = lines.len() as u64;
        // The log stays until all lines are home.
        if fault.skips(planted::RECOVERY_ERASES_FIRST) {
            erase(spec, geometry, image)?;
        }
        for (home, data) in (0..fault.swaps(planted::RECOVERY_WRITES_TWICE, 1, 2)).flat_map(|_| &lines) {
            image.write(*home, data)?;
        }
    }
    // All is home: the log is marked as being erased, if it is not already, erased, and epochs restart.
    let is_marked = state == ERASING;
    if is_marked || !fault.skips(planted::RECOVERY_KEEPS_LOG) {
        if !is_marked {
            let mut bytes = [0; REGISTER_BYTES as usize];
            bytes[16..].copy_from_slice(&ERASING.to_le_bytes());
            image.write(register, &bytes)?;
        }
        erase(spec, geometry, image)?;
    }
    image.write(register, &[0; REGISTER_BYTES as usize])?;
    Ok(report)
}
