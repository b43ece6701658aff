//! Recovery: what a committing register names is finished, every other uncommitted line of the last level is dropped, and
//! old lines of transactions that no register names come back from the copy area. All of it may be repeated at will; the
//! registers are cleared last, because they decide.

use super::area::Area;
use super::planted;
use super::spec::KilnSpec;
use super::survivors::{LINES, REGISTERS, load_lines, load_registers};
use durasim_design::{CrashImage, Cut, Geometry, RecoveryReport};
use durasim_types::{LINE_BYTES, TxId};
use std::collections::BTreeSet;

pub(super) fn recover(spec: &KilnSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, Cut> {
    let mut report = RecoveryReport::default();
    let fault = geometry.planted;
    if image.dirty_shutdown {
        report.losses.push("the energy ended before the caches were flushed: cached data is lost".into());
    }
    let committing = load_registers(image, geometry.cores).unwrap_or_else(|| {
        report.losses.push("the committing registers are damaged".into());
        Vec::new()
    });
    let survivors = load_lines(image).unwrap_or_else(|| {
        report.losses.push("the uncommitted lines of the last level are damaged".into());
        Vec::new()
    });
    let committing: BTreeSet<TxId> = committing.into_iter().collect();
    let names = |tx: TxId| committing.contains(&tx);
    if fault.is(planted::RECOVERY_CLEARS_REGISTERS_FIRST) {
        image.keep(REGISTERS, Vec::new())?;
    }
    let mut discarded: BTreeSet<TxId> = BTreeSet::new();
    let mut finished = Vec::new();
    for survivor in &survivors {
        if !names(survivor.tx) || fault.is(planted::RECOVERY_IGNORES_REGISTER) {
            discarded.insert(survivor.tx);
        } else if survivor.line.0 >= 1 << 58 || !geometry.is_home(survivor.line.base()) {
            report.losses.push(format!("a line of transaction {} has no home", survivor.tx.0));
        } else {
            finished.push(survivor);
        }
    }
    if fault.is(planted::RECOVERY_DROPS_LINE) {
        finished.pop();
    }
    let rounds = if fault.is(planted::RECOVERY_WRITES_TWICE) { 2 } else { 1 };
    for survivor in (0..rounds).flat_map(|_| &finished) {
        image.write(survivor.line.base(), &survivor.data)?;
        report.lines_written += 1;
    }

    let area = Area::new(spec, geometry);
    let records = (0..area.lines).filter_map(|slot| area.read_record(image, slot).map(|record| (slot, record)));
    let records: Vec<_> = records.collect();
    if fault.is(planted::RECOVERY_CLEARS_RECORDS_FIRST) {
        clear(&area, image, records.iter().map(|(slot, _)| *slot))?;
    }
    for &(slot, (home, tx)) in &records {
        if names(tx) && !fault.is(planted::RECOVERY_UNDOES_COMMITTING) || fault.is(planted::RECOVERY_FORGETS_COPIES) {
            continue;
        }
        if !geometry.is_home(home) || home.0 % LINE_BYTES != 0 {
            report.losses.push(format!("the record of place {slot} of the copy area is damaged"));
            continue;
        }
        let old = image.line(area.old_line(slot));
        image.write(home, &old)?;
        report.lines_written += 1;
        discarded.insert(tx);
    }
    clear(&area, image, records.iter().map(|(slot, _)| *slot))?;
    report.replayed = committing.len() as u64;
    report.discarded = discarded.len() as u64;
    for name in [LINES, REGISTERS] {
        if image.structure(name).is_some_and(|bytes| !bytes.is_empty()) {
            image.keep(name, Vec::new())?;
        }
    }
    Ok(report)
}

/// Clears records, each in one write.
fn clear(area: &Area, image: &mut CrashImage, slots: impl Iterator<Item = u64>) -> Result<(), Cut> {
    for slot in slots {
        image.write(area.record(slot), &[0; 16])?;
    }
    Ok(())
}
