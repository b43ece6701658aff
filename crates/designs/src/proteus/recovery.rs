//! Recovery: for each log, the newest transaction that has entries and no tx-end record is undone, its entries applied in
//! reverse, so that the oldest of several entries for a block decides. Entries are in the log pending queues that
//! survived and in the logs. Then its tx-end record is written, and everything is cleared: a later run counts its
//! transactions anew. All of it may be repeated at will.

use super::entry::{BLOCK_BYTES, ENTRY_BYTES, LogEntry};
use super::{ProteusSpec, planted};
use durasim_contract::{CrashImage, Geometry, RecoveryCut, RecoveryReport};
use durasim_types::{Domain, PAGE_BYTES, PhysAddr, TxId};
use std::collections::BTreeMap;

/// The log pending queues of all controllers in a crash image.
pub(super) const STRUCTURE: &str = "proteus.lpq";

/// The entries found for the transactions of a log, by transaction and number.
type Found = BTreeMap<TxId, BTreeMap<u32, LogEntry>>;

/// A recovery that is at work.
struct Recovery<'a> {
    spec: &'a ProteusSpec,
    geometry: &'a Geometry,
    report: RecoveryReport,
}

/// Undoes everything that has not ended.
pub(super) fn recover(
    spec: &ProteusSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<RecoveryReport, RecoveryCut> {
    let mut recovery = Recovery { spec, geometry, report: RecoveryReport::default() };
    if geometry.domain == Domain::Eadr && image.dirty_shutdown {
        recovery.report.losses.push("the energy ended before the caches were flushed: cached data is lost".into());
    }
    // They stay in the image until all is restored.
    let kept = recovery.kept(image);
    if geometry.planted.skips(planted::RECOVERY_CLEARS_FIRST) {
        image.keep(STRUCTURE, Vec::new())?;
    }
    for log in 0..spec.logs(geometry) {
        recovery.undo_transactions(image, log, &kept)?;
    }
    // From here on no entry counts: each is of a transaction that has ended.
    if image.structure(STRUCTURE).is_some_and(|kept| !kept.is_empty()) {
        image.keep(STRUCTURE, Vec::new())?;
    }
    for log in 0..spec.logs(geometry) {
        recovery.clear(image, log)?;
    }
    Ok(recovery.report)
}

impl Recovery<'_> {
    /// The place of the tx-end record of a log.
    fn end_of(&self, log: u32) -> PhysAddr {
        self.geometry.region("tx_ends").base.plus(u64::from(log) * ENTRY_BYTES)
    }

    /// The entries that the log pending queues held. Those that cannot be believed are losses.
    fn kept(&mut self, image: &CrashImage) -> Vec<LogEntry> {
        let bytes = image.structure(STRUCTURE).unwrap_or(&[]);
        let entries: Vec<LogEntry> =
            bytes.as_chunks().0.iter().filter_map(LogEntry::from_line).filter(|e| self.is_believed(e)).collect();
        let lost = bytes.len().div_ceil(ENTRY_BYTES as usize) - entries.len();
        if lost > 0 {
            self.report.losses.push(format!("{lost} entries of the log pending queues are damaged"));
        }
        entries
    }

    /// Whether an entry names a block of the program and a log that exists.
    fn is_believed(&self, entry: &LogEntry) -> bool {
        let block = entry.block.0;
        block.is_multiple_of(BLOCK_BYTES)
            && self.geometry.is_home(PhysAddr(block - block % ENTRY_BYTES))
            && entry.log < self.spec.logs(self.geometry)
    }

    /// The slots of a log that were ever written, with their addresses.
    fn slots(&self, image: &CrashImage, log: u32) -> Vec<PhysAddr> {
        let bytes = u64::from(self.spec.log_entries) * ENTRY_BYTES;
        let first = self.geometry.region("logs").base.plus(u64::from(log) * bytes);
        let mut slots = Vec::new();
        let mut at = 0;
        while at < bytes {
            let slot = first.plus(at);
            if image.pmem.is_touched(slot) {
                slots.push(slot);
                at += ENTRY_BYTES;
            } else {
                at += PAGE_BYTES - slot.0 % PAGE_BYTES;
            }
        }
        slots
    }

    fn undo_transactions(&mut self, image: &mut CrashImage, log: u32, kept: &[LogEntry]) -> Result<(), RecoveryCut> {
        // The newest transaction of the log that has a tx-end record.
        let ended = TxId(image.read_u64(self.end_of(log)));
        let ended = self.geometry.planted.swaps(planted::RECOVERY_IGNORES_END, ended, TxId(0));
        let mut found = Found::new();
        for entry in self.entries_in_log(image, log).iter().chain(kept) {
            if entry.log == log && entry.tx > ended {
                found.entry(entry.tx).or_default().insert(entry.number, *entry);
            }
        }
        // A log has one open transaction: the newest.
        let Some((tx, entries)) = found.pop_last() else { return Ok(()) };
        self.restore(image, log, tx, &entries)
    }

    /// The entries in a log, those of older transactions included.
    fn entries_in_log(&self, image: &CrashImage, log: u32) -> Vec<LogEntry> {
        let slots = self.slots(image, log).into_iter();
        let slots = slots.filter(|_| !self.geometry.planted.skips(planted::RECOVERY_FORGETS_LOG));
        let entries = slots.filter_map(|slot| LogEntry::from_line(&image.line(slot)));
        entries.filter(|entry| self.is_believed(entry)).collect()
    }

    /// Undoes a transaction by its entries in reverse: of several for a block the oldest decides. Its tx-end record is written
    /// when all blocks are restored.
    fn restore(
        &mut self,
        image: &mut CrashImage,
        log: u32,
        tx: TxId,
        entries: &BTreeMap<u32, LogEntry>,
    ) -> Result<(), RecoveryCut> {
        let fault = self.geometry.planted;
        if fault.skips(planted::RECOVERY_ENDS_FIRST) {
            image.write_u64(self.end_of(log), tx.0)?;
        }
        let newest_first: Vec<&LogEntry> = entries.values().rev().collect();
        let count = newest_first.len();
        let count = fault.swaps(planted::RECOVERY_DROPS_OLDEST, count, count.saturating_sub(1));
        for _ in 0..fault.swaps(planted::RECOVERY_RESTORES_TWICE, 1, 2) {
            for nth in 0..count {
                let entry = newest_first[fault.swaps(planted::RECOVERY_OLDEST_FIRST, nth, count - 1 - nth)];
                let bytes = fault.swaps(planted::RECOVERY_RESTORES_HALF, entry.old.len(), entry.old.len() / 2);
                image.write(entry.block, &entry.old[..bytes])?;
                self.report.lines_written += 1;
            }
        }
        self.report.discarded += 1;
        image.write_u64(self.end_of(log), tx.0)
    }

    /// Empties a log: its entries first, since without its tx-end record they would count.
    fn clear(&mut self, image: &mut CrashImage, log: u32) -> Result<(), RecoveryCut> {
        for slot in self.slots(image, log) {
            if image.line(slot) != [0; ENTRY_BYTES as usize] {
                image.write(slot, &[0; ENTRY_BYTES as usize])?;
            }
        }
        if image.read_u64(self.end_of(log)) != 0 {
            image.write_u64(self.end_of(log), 0)?;
        }
        Ok(())
    }
}
