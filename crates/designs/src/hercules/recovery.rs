//! Recovery (section 4.3): transactions with a TxLen of zero are discarded, those with another one are carried
//! through from the log and from the emergency area.
//!
//! Everything that leads to a decision stays in place until all homes are written; then TxLens are cleared, then the
//! extension area, then the zone is marked recovered. Cut anywhere and run again, it comes to the same end.

use super::planted;
use super::zone::{FLUSHED, LogZone, RECOVERED};
use durasim_design::{CrashImage, Cut, Fault, RecoveryReport};
use durasim_types::PhysAddr;
use std::collections::{BTreeMap, BTreeSet};

struct Found {
    hardware_id: u64,
    home: PhysAddr,
    data: PhysAddr,
}

pub(super) fn recover(zone: &LogZone, image: &mut CrashImage, fault: Fault) -> Result<RecoveryReport, Cut> {
    let mut report = RecoveryReport::default();
    match image.read_u64(zone.flag()) {
        RECOVERED => return Ok(report),
        FLUSHED => {}
        _ => {
            report.losses.push("the crash flush did not finish: cached data is lost".into());
            return Ok(report);
        }
    }
    let mut found = Vec::new();
    let (ewpq_saved, emergency_saved) = zone.saved_counts();
    let mut mappings = Vec::new();
    for slot in 0..image.read_u64(ewpq_saved) {
        mappings.extend(zone.mapping_of(image.read_u64(zone.ewpq_slot(slot))));
    }
    let mut extension_slots = Vec::new();
    for slot in (0..zone.extension_entries).filter(|_| !fault.is(planted::RECOVERY_SKIPS_EXTENSION)) {
        if let Some(mapping) = zone.mapping_of(image.read_u64(zone.extension_slot(slot))) {
            mappings.push(mapping);
            extension_slots.push(slot);
        }
    }
    if fault.is(planted::RECOVERY_DROPS_LOG_ENTRY) {
        mappings.pop();
    }
    for (hardware_id, log) in mappings {
        let home = PhysAddr(image.read_u64(zone.entry_header_at(log)));
        found.push(Found { hardware_id, home, data: zone.entry_data(log) });
    }
    let emergency = image.read_u64(emergency_saved);
    for slot in (0..emergency).filter(|_| !fault.is(planted::RECOVERY_SKIPS_EMERGENCY)) {
        let (header, data) = zone.emergency(slot);
        let home = PhysAddr(image.read_u64(header));
        let hardware_id = image.read_u64(header.plus(8)) & !(1 << 63);
        found.push(Found { hardware_id, home, data });
    }

    let mut fates: BTreeMap<u64, bool> = BTreeMap::new();
    for entry in &found {
        let mut len = [0; 4];
        image.read(zone.tx_len(entry.hardware_id), &mut len);
        fates.insert(entry.hardware_id, len != [0; 4] || fault.is(planted::RECOVERY_REPLAYS_UNCOMMITTED));
    }
    let committed: BTreeSet<u64> = fates.iter().filter(|(_, committed)| **committed).map(|(id, _)| *id).collect();
    if fault.is(planted::RECOVERY_MARKS_FIRST) {
        image.write_u64(zone.flag(), RECOVERED)?;
    }
    if fault.is(planted::RECOVERY_CLEARS_TX_LEN_FIRST) {
        clear_tx_lens(zone, image, &committed)?;
    }
    if fault.is(planted::RECOVERY_NEWEST_FIRST) {
        found.reverse();
    }
    if fault.is(planted::RECOVERY_WRITES_TWICE) {
        write_homes(image, &found, &fates, &mut report)?;
    }
    write_homes(image, &found, &fates, &mut report)?;
    if !fault.is(planted::RECOVERY_KEEPS_TX_LEN) {
        clear_tx_lens(zone, image, &committed)?;
    }
    for slot in extension_slots {
        image.write_u64(zone.extension_slot(slot), 0)?;
    }
    image.write_u64(zone.flag(), RECOVERED)?;
    report.replayed = committed.len() as u64;
    report.discarded = fates.len() as u64 - report.replayed;
    Ok(report)
}

fn write_homes(
    image: &mut CrashImage,
    found: &[Found],
    fates: &BTreeMap<u64, bool>,
    report: &mut RecoveryReport,
) -> Result<(), Cut> {
    for entry in found.iter().filter(|entry| fates[&entry.hardware_id]) {
        let data = image.line(entry.data);
        image.write(entry.home, &data)?;
        report.lines_written += 1;
    }
    Ok(())
}

fn clear_tx_lens(zone: &LogZone, image: &mut CrashImage, committed: &BTreeSet<u64>) -> Result<(), Cut> {
    for &hardware_id in committed {
        image.write(zone.tx_len(hardware_id), &[0; 4])?;
    }
    Ok(())
}
