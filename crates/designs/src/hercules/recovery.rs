//! Recovery (section 4.3): transactions with a TxLen of zero are discarded, those with another one are carried
//! through from the log and from the emergency area.
//!
//! Everything that leads to a decision stays in place until all homes are written; then TxLens are cleared, then the
//! extension area, then the zone is marked recovered. Interrupted anywhere and run again, it comes to the same end.

use super::read_mappings::{Mappings, TOO_MANY, read_mappings};
use super::record::{emergency_owner, is_entry_of};
use super::steps::recovery::{
    Found, Step, emergency_entries_to_read, has_committed, log_entries_to_read, order_of_homes, recovery_order,
};
use super::zone::{FLUSHED, LogZone, RECOVERED};
use durasim_design::{CrashImage, Geometry, RecoveryCut, RecoveryReport};
use durasim_types::PhysAddr;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn recover(
    zone: &LogZone,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<RecoveryReport, RecoveryCut> {
    let fault = geometry.planted;
    let mut report = RecoveryReport::default();
    match image.read_u64(zone.flag()) {
        RECOVERED => return Ok(report),
        FLUSHED => {}
        _ => {
            report.losses.push("the crash flush did not finish: cached data is lost".into());
            return Ok(report);
        }
    }
    let emergency_saved = image.read_u64(zone.emergency_saved());
    let read = |part| read_mappings(part, image, fault);
    let mappings = zone.parts.iter().map(read).collect::<Result<Vec<Mappings>, _>>();
    let mappings =
        mappings.and_then(|all| if emergency_saved <= zone.emergency_entries { Ok(all) } else { Err(TOO_MANY) });
    let mappings = match mappings {
        Ok(mappings) => log_entries_to_read(mappings, fault),
        Err(why) => {
            report.losses.push(format!("the log zone is damaged: {why}"));
            return Ok(report);
        }
    };
    let mut found = found_in_the_log(zone, geometry, image, &mappings);
    let emergency_saved = emergency_entries_to_read(emergency_saved, fault);
    found.extend(found_in_the_emergency_area(zone, geometry, image, emergency_saved, &mut report));
    let mut fates: BTreeMap<u64, bool> = BTreeMap::new();
    for entry in &found {
        let mut len = [0; 4];
        image.read(zone.tx_len(entry.hardware_id), &mut len);
        fates.insert(entry.hardware_id, has_committed(len, fault));
    }
    // All of a transaction or nothing: one whose entries are damaged is lost whole.
    let lost: BTreeSet<u64> =
        found.iter().filter(|e| e.damaged && fates[&e.hardware_id]).map(|e| e.hardware_id).collect();
    for hardware_id in &lost {
        report.losses.push(format!("committed transaction {hardware_id} is damaged in the log: none of it is written"));
    }
    found.retain(|entry| fates[&entry.hardware_id] && !lost.contains(&entry.hardware_id));
    let committed: BTreeSet<u64> = fates.iter().filter(|(_, committed)| **committed).map(|(id, _)| *id).collect();
    let found = order_of_homes(found, fault);
    for step in recovery_order(fault) {
        match step {
            Step::WriteHomes => write_homes(image, &found, &mut report)?,
            Step::ClearTxLens => clear_tx_lens(zone, image, &committed)?,
            Step::ClearExtension => clear_extension(zone, image, &mappings)?,
            Step::MarkRecovered => image.write_u64(zone.flag(), RECOVERED)?,
        }
    }
    report.replayed = (committed.len() - lost.len()) as u64;
    report.discarded = (fates.len() - committed.len()) as u64;
    Ok(report)
}

/// The two words of the header of a log or emergency entry: home and owner.
fn header(image: &CrashImage, at: PhysAddr) -> [u64; 2] {
    [image.read_u64(at), image.read_u64(at.plus(8))]
}

/// The lines whose log entries the eWPQs and their extension areas name.
fn found_in_the_log(zone: &LogZone, geometry: &Geometry, image: &CrashImage, mappings: &[Mappings]) -> Vec<Found> {
    let mut found = Vec::new();
    for (part, mappings) in zone.parts.iter().zip(mappings) {
        for mapping in &mappings.all {
            let hardware_id = mapping.hardware_id;
            let entry = mapping.entry(mappings, part, image);
            let entry = entry.map(|(at, data)| (header(image, at), data));
            let sound = |&([home, owner], _): &([u64; 2], PhysAddr)| {
                geometry.is_home(PhysAddr(home))
                    && part.partial_home(PhysAddr(home).line()) == mapping.partial_home
                    && is_entry_of([home, owner], hardware_id)
            };
            found.push(match entry.filter(sound) {
                Some(([home, _], data)) => Found { hardware_id, home: PhysAddr(home), data, damaged: false },
                None => Found { hardware_id, home: geometry.pmem_base, data: geometry.pmem_base, damaged: true },
            });
        }
    }
    found
}

/// The lines in the emergency area. What belongs to nobody is a loss.
fn found_in_the_emergency_area(
    zone: &LogZone,
    geometry: &Geometry,
    image: &CrashImage,
    saved: u64,
    report: &mut RecoveryReport,
) -> Vec<Found> {
    let mut found = Vec::new();
    for slot in 0..saved {
        let (at, data) = zone.emergency(slot);
        let header = header(image, at);
        let Some(hardware_id) = emergency_owner(header) else {
            report.losses.push("the emergency area is damaged: an entry belongs to no transaction".into());
            continue;
        };
        let home = PhysAddr(header[0]);
        found.push(Found { hardware_id, home, data, damaged: !geometry.is_home(home) });
    }
    found
}

fn write_homes(image: &mut CrashImage, found: &[Found], report: &mut RecoveryReport) -> Result<(), RecoveryCut> {
    for entry in found {
        let data = image.line(entry.data);
        image.write(entry.home, &data)?;
        report.lines_written += 1;
    }
    Ok(())
}

fn clear_tx_lens(zone: &LogZone, image: &mut CrashImage, committed: &BTreeSet<u64>) -> Result<(), RecoveryCut> {
    for &hardware_id in committed {
        image.write(zone.tx_len(hardware_id), &[0; 4])?;
    }
    Ok(())
}

fn clear_extension(zone: &LogZone, image: &mut CrashImage, mappings: &[Mappings]) -> Result<(), RecoveryCut> {
    for slot in mappings.iter().flat_map(|part| &part.extension_slots) {
        image.write_u64(*slot, 0)?;
    }
    for (part, mappings) in zone.parts.iter().zip(mappings) {
        // From the last one on: if recovery is interrupted, what is left is a chain.
        for block in (0..mappings.chained_blocks).rev() {
            image.write_u64(part.block_pointer(block), 0)?;
        }
    }
    Ok(())
}
