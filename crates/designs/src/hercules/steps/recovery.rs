//! Steps of the flush at a power failure (section 4.2) and of recovery (section 4.3).

use crate::hercules::controller::Part;
use crate::hercules::ewpq::Ewpq;
use crate::hercules::mapping::Mapping;
use crate::hercules::planted;
use crate::hercules::read_mappings::Mappings;
use crate::hercules::zone::PartZone;
use durasim_design::{ActiveFault, BudgetSpent, CachedLine, CrashSink};
use durasim_types::PhysAddr;
use std::borrow::Cow;

/// The cached lines that a power failure saves: all, LLC first, so that the newest version of a line comes last.
pub fn flush_order(lines: &[CachedLine], fault: ActiveFault) -> Cow<'_, [CachedLine]> {
    if fault.is(planted::FLUSH_DROPS_LINE) {
        return Cow::Borrowed(lines.split_last().map_or(lines, |(_, others)| others));
    }
    if fault.is(planted::FLUSH_ORDER_REVERSED) {
        return Cow::Owned(lines.iter().rev().copied().collect());
    }
    Cow::Borrowed(lines)
}

/// The number of emergency entries that a power failure notes: as many as it has saved.
pub fn emergency_count(saved: u64, fault: ActiveFault) -> u64 {
    if fault.is(planted::EMERGENCY_ONE_SHORT) {
        return saved.saturating_sub(1);
    }
    saved
}

impl Ewpq {
    /// What a power failure saves of the eWPQ: all its entries and in which slots, those in flight to the home address too.
    pub fn saved(&self, fault: ActiveFault) -> impl Iterator<Item = (u64, &Mapping)> {
        let free = move |m: &Mapping| m.migration.is_some() && fault.is(planted::MIGRATION_FREES_EARLY);
        let skipped = usize::from(fault.is(planted::FLUSH_DROPS_EWPQ_ENTRY));
        self.queued().filter(move |(_, m)| !free(m)).skip(skipped)
    }
}

impl Part {
    /// The validity bitmap tells recovery which entries of the eWPQ count.
    pub fn save_validity(
        &self,
        validity: &[u64],
        sink: &mut CrashSink<'_>,
        fault: ActiveFault,
    ) -> Result<(), BudgetSpent> {
        if fault.is(planted::VALIDITY_NOT_SAVED) {
            return Ok(());
        }
        for (word, bits) in (0..).zip(validity) {
            sink.write(self.zone.validity(word), &bits.to_le_bytes())?;
        }
        Ok(())
    }
}

impl PartZone {
    /// The slots of the extension area that recovery reads: its own and those of the blocks that are chained to it.
    pub fn slots_to_read(&self, chained_blocks: u64, fault: ActiveFault) -> u64 {
        if fault.is(planted::RECOVERY_SKIPS_EXTENSION) {
            return 0;
        }
        if fault.is(planted::RECOVERY_SKIPS_CHAIN) {
            return self.extension_entries;
        }
        self.extension_entries + chained_blocks * self.block_entries
    }
}

/// The log entries that recovery looks at: all that the eWPQs and their extension areas name.
pub fn log_entries_to_read(mut mappings: Vec<Mappings>, fault: ActiveFault) -> Vec<Mappings> {
    if fault.is(planted::RECOVERY_DROPS_LOG_ENTRY)
        && let Some(last) = mappings.iter_mut().rfind(|part| !part.all.is_empty())
    {
        last.all.pop();
    }
    mappings
}

/// The emergency entries that recovery looks at: as many as were saved.
pub fn emergency_entries_to_read(saved: u64, fault: ActiveFault) -> u64 {
    if fault.is(planted::RECOVERY_SKIPS_EMERGENCY) {
        return 0;
    }
    saved
}

/// Whether a transaction has committed: its TxLen is not zero.
pub fn has_committed(tx_len: [u8; 4], fault: ActiveFault) -> bool {
    if fault.is(planted::RECOVERY_REPLAYS_UNCOMMITTED) {
        return true;
    }
    tx_len != [0; 4]
}

/// What log or emergency area have of a line.
pub struct Found {
    pub hardware_id: u64,
    pub home: PhysAddr,
    pub data: PhysAddr,
    /// Whether it is not there, or its header contradicts itself, its mapping or the machine.
    pub damaged: bool,
}

/// Homes are written in the order of age: log entries, then emergency entries, which are newer.
pub fn order_of_homes(mut found: Vec<Found>, fault: ActiveFault) -> Vec<Found> {
    if fault.is(planted::RECOVERY_NEWEST_FIRST) {
        found.reverse();
    }
    found
}

/// A step of recovery.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    WriteHomes,
    ClearTxLens,
    /// Its records, and the chain of its blocks.
    ClearExtension,
    MarkRecovered,
}

/// What leads to a decision stays in place until all homes are written; that the zone is recovered is marked last.
pub fn recovery_order(fault: ActiveFault) -> &'static [Step] {
    use Step::{ClearExtension, ClearTxLens, MarkRecovered, WriteHomes};
    if fault.is(planted::RECOVERY_MARKS_FIRST) {
        return &[MarkRecovered, WriteHomes, ClearTxLens, ClearExtension, MarkRecovered];
    }
    if fault.is(planted::RECOVERY_CLEARS_TX_LEN_FIRST) {
        return &[ClearTxLens, WriteHomes, ClearTxLens, ClearExtension, MarkRecovered];
    }
    if fault.is(planted::RECOVERY_WRITES_TWICE) {
        return &[WriteHomes, WriteHomes, ClearTxLens, ClearExtension, MarkRecovered];
    }
    if fault.is(planted::RECOVERY_KEEPS_TX_LEN) {
        return &[WriteHomes, ClearExtension, MarkRecovered];
    }
    &[WriteHomes, ClearTxLens, ClearExtension, MarkRecovered]
}
