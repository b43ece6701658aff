//! Recovery: what a committing register names is finished, every other uncommitted line of the last level is dropped, and
//! old lines of transactions that no register names come back from the copy area. All of it may be repeated at will; the
//! registers are cleared last, because they decide. Where commits are distributed, the DTX_CIDs of the banks stand for them.

use super::area::Area;
use super::banks::Consensus;
use super::planted;
use super::spec::KilnSpec;
use super::survivors::{LINES, REGISTERS, Survivor, load_lines, load_registers};
use durasim_contract::{CrashImage, Geometry, RecoveryCut, RecoveryReport};
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

/// The evidence by which a transaction has committed.
enum Decision {
    /// The transactions that committing registers name.
    Registers(BTreeSet<TxId>),
    /// The transactions that any bank has committed.
    Banks(Consensus),
}

impl Decision {
    fn has_committed(&self, tx: TxId) -> bool {
        match self {
            Decision::Registers(committing) => committing.contains(&tx),
            Decision::Banks(consensus) => consensus.has_committed(tx),
        }
    }

    /// Clears what decides, last of all.
    fn clear(&self, geometry: &Geometry, image: &mut CrashImage) -> Result<(), RecoveryCut> {
        match self {
            Decision::Registers(_) => empty(image, REGISTERS),
            Decision::Banks(_) => Consensus::clear(image, geometry.llc_banks),
        }
    }
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
    let mut discarded: BTreeSet<TxId> = BTreeSet::new();
    let finished = lines_to_finish(decision, geometry, image, &mut discarded, &mut report);
    let area = Area::new(spec, geometry);
    let records = (0..area.lines).filter_map(|slot| area.read_record(image, slot).map(|record| (slot, record)));
    let records: Vec<_> = records.collect();
    if fault.skips(planted::RECOVERY_CLEARS_REGISTERS_FIRST) {
        decision.clear(geometry, image)?;
    }
    // Lines of finished transactions go home from the last level.
    for _ in 0..fault.swaps(planted::RECOVERY_WRITES_TWICE, 1, 2) {
        for survivor in &finished {
            image.write(survivor.line.base(), &survivor.data)?;
            report.lines_written += 1;
        }
    }
    if fault.skips(planted::RECOVERY_CLEARS_RECORDS_FIRST) {
        clear(&area, image, records.iter().map(|(slot, _)| *slot))?;
    }
    // Old lines of the other transactions come back from the copy area.
    for &(slot, (home, tx)) in &records {
        let is_undone = fault.assumes(planted::RECOVERY_UNDOES_COMMITTING, !decision.has_committed(tx));
        // The media may have half of a record, or half of its end: the line that it names is home.
        let is_whole = home.0 != 0 && tx.0 != 0;
        if !fault.ignores(planted::RECOVERY_FORGETS_COPIES, is_undone) || !is_whole {
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
    // The records go when the old lines are home, and the registers last, because they decide.
    clear(&area, image, records.iter().map(|(slot, _)| *slot))?;
    empty(image, LINES)?;
    decision.clear(geometry, image)?;
    if let Decision::Banks(_) = decision {
        report.replayed = finished.iter().map(|survivor| survivor.tx).collect::<BTreeSet<_>>().len() as u64;
    }
    report.discarded = discarded.len() as u64;
    Ok(report)
}

/// The lines that finished transactions have left in the last level: a committing register names them, or a bank has committed
/// them. The others are discarded.
fn lines_to_finish(
    decision: &Decision,
    geometry: &Geometry,
    image: &CrashImage,
    discarded: &mut BTreeSet<TxId>,
    report: &mut RecoveryReport,
) -> Vec<Survivor> {
    let fault = geometry.planted;
    let survivors = load_lines(image).unwrap_or_else(|| {
        report.losses.push("the uncommitted lines of the last level are damaged".into());
        Vec::new()
    });
    let mut finished = Vec::new();
    for survivor in survivors {
        if !fault.ignores(planted::RECOVERY_IGNORES_REGISTER, decision.has_committed(survivor.tx)) {
            discarded.insert(survivor.tx);
        } else if survivor.line.0 >= 1 << 58 || !geometry.is_home(survivor.line.base()) {
            report.losses.push(format!("a line of transaction {} has no home address", survivor.tx.0));
        } else {
            finished.push(survivor);
        }
    }
    let count = finished.len();
    finished.truncate(fault.swaps(planted::RECOVERY_DROPS_LINE, count, count.saturating_sub(1)));
    finished
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
