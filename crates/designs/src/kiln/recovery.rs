//! Recovery: what a committing register names is finished, every other uncommitted line of the last level is dropped, and
//! old lines of transactions that no register names come back from the copy area. All of it may be repeated at will; the
//! registers are cleared last, because they decide. Where commits are distributed, the DTX_CIDs of the banks stand for them.

use super::area::Area;
use super::spec::KilnSpec;
use super::steps::banks::Consensus;
use super::steps::{Decision, Step, is_finished, is_undone, lines_to_finish, recovery_order};
use super::survivors::{LINES, REGISTERS, load_lines, load_registers};
use durasim_design::{CrashImage, Geometry, RecoveryCut, RecoveryReport};
use durasim_types::{LINE_BYTES, TxId};
use std::collections::BTreeSet;

/// Recovery of Kiln: the committing registers decide.
pub(super) fn recover(
    spec: &KilnSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<RecoveryReport, RecoveryCut> {
    let mut report = RecoveryReport::default();
    let committing = load_registers(image, geometry.cores).unwrap_or_else(|| {
        report.losses.push("the committing registers are damaged".into());
        Vec::new()
    });
    let committing: BTreeSet<TxId> = committing.into_iter().collect();
    report.replayed = committing.len() as u64;
    recover_by(&Decision::Registers(committing), spec, geometry, image, report)
}

/// Recovery of LAD-LLC: what any bank has committed counts.
pub(crate) fn recover_distributed(
    spec: &KilnSpec,
    id_bits: u32,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<RecoveryReport, RecoveryCut> {
    let mut report = RecoveryReport::default();
    let fault = geometry.planted;
    let consensus = Consensus::read(image, geometry.llc_banks, id_bits, fault).unwrap_or_else(|| {
        report.losses.push("the DTX_CIDs of the banks are damaged".into());
        Consensus::of_nothing(id_bits, fault)
    });
    recover_by(&Decision::Banks(consensus), spec, geometry, image, report)
}

fn recover_by(
    decision: &Decision,
    spec: &KilnSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
    mut report: RecoveryReport,
) -> Result<RecoveryReport, RecoveryCut> {
    let fault = geometry.planted;
    if image.dirty_shutdown {
        report.losses.push("the energy ended before the caches were flushed: cached data is lost".into());
    }
    let survivors = load_lines(image).unwrap_or_else(|| {
        report.losses.push("the uncommitted lines of the last level are damaged".into());
        Vec::new()
    });
    let mut discarded: BTreeSet<TxId> = BTreeSet::new();
    let mut finished = Vec::new();
    for survivor in survivors {
        if !is_finished(survivor.tx, decision, fault) {
            discarded.insert(survivor.tx);
        } else if survivor.line.0 >= 1 << 58 || !geometry.is_home(survivor.line.base()) {
            report.losses.push(format!("a line of transaction {} has no home address", survivor.tx.0));
        } else {
            finished.push(survivor);
        }
    }
    let finished = lines_to_finish(finished, fault);
    let area = Area::new(spec, geometry);
    let records = (0..area.lines).filter_map(|slot| area.read_record(image, slot).map(|record| (slot, record)));
    let records: Vec<_> = records.collect();
    for step in recovery_order(fault) {
        match step {
            Step::FinishCommits => {
                for survivor in &finished {
                    image.write(survivor.line.base(), &survivor.data)?;
                    report.lines_written += 1;
                }
            }
            Step::BringOldLinesBack => {
                for &(slot, (home, tx)) in records.iter().filter(|(_, (_, tx))| is_undone(*tx, decision, fault)) {
                    // The media had half of a record, or half of its end: the line that it names is home.
                    if home.0 == 0 || tx.0 == 0 {
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
            }
            Step::ClearRecords => clear(&area, image, records.iter().map(|(slot, _)| *slot))?,
            Step::ClearLines => empty(image, LINES)?,
            Step::ClearRegisters => match decision {
                Decision::Registers(_) => empty(image, REGISTERS)?,
                Decision::Banks(_) => Consensus::clear(image, geometry.llc_banks)?,
            },
        }
    }
    if let Decision::Banks(_) = decision {
        report.replayed = finished.iter().map(|survivor| survivor.tx).collect::<BTreeSet<_>>().len() as u64;
    }
    report.discarded = discarded.len() as u64;
    Ok(report)
}

/// Clears records, each in one write.
fn clear(area: &Area, image: &mut CrashImage, slots: impl Iterator<Item = u64>) -> Result<(), RecoveryCut> {
    for slot in slots {
        image.write(area.record(slot), &[0; 16])?;
    }
    Ok(())
}

/// Leaves nothing of a structure that survived.
fn empty(image: &mut CrashImage, name: &str) -> Result<(), RecoveryCut> {
    match image.structure(name) {
        Some(bytes) if !bytes.is_empty() => image.keep(name, Vec::new()),
        _ => Ok(()),
    }
}
