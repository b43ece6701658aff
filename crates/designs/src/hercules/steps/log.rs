//! Steps of the log: premature flushes, eWPQ and extension area, what a miss finds there, log extension.

use crate::hercules::ewpq::Ewpq;
use crate::hercules::ewpq_index::EntryLocation;
use crate::hercules::mapping::Mapping;
use crate::hercules::planted;
use crate::hercules::record::entry_header;
use crate::hercules::state::State;
use crate::hercules::steps::migration::may_migrate;
use crate::hercules::zone::PartZone;
use durasim_design::{Actions, ActiveFault, LineTag, Origin, Token};
use durasim_types::{Cause, LineAddr, PhysAddr, TxId};

/// Premature flushes.
impl State {
    /// What a line that goes home waits for: an older version that a migration carries there.
    #[inline]
    pub fn older_version_under_way(&self, line: LineAddr) -> Option<Token> {
        if self.fault.is(planted::EVICTION_OVERTAKES_MIGRATION) {
            return None;
        }
        self.part(line).migration.in_flight_home(line)
    }

    /// Whether LogHead has wrapped around to LogTail: the entries between them are in use.
    pub fn log_is_full(&self, controller: usize) -> bool {
        if self.fault.is(planted::LOG_OVERTAKES_TAIL) {
            return false;
        }
        let part = &self.parts[controller];
        part.ewpq.log_is_full(&part.zone)
    }

    /// What a premature flush waits for: garbage collection is copying into the log entry at LogHead.
    pub fn log_head_is_taken(&self, controller: usize) -> Option<Token> {
        if self.fault.is(planted::GC_HOLDS_NO_EVICTION) {
            return None;
        }
        self.parts[controller].gc.copying()
    }

    /// The eWPQ takes an entry for a line that leaves the LLC. It has none: a load has nullified the last one.
    pub fn map_to_log(
        &mut self,
        line: LineAddr,
        tx: TxId,
        hardware_id: u64,
        indirect: Option<u64>,
        out: &mut Actions,
    ) -> Mapping {
        if self.fault.is(planted::RELOAD_KEEPS_ENTRY) {
            let part = self.part_mut(line);
            let kept = part.take(line, out);
            part.migration.departed.extend(kept.and_then(|kept| Some((line, kept.migration?))));
        }
        let may_migrate = may_migrate(&self.registers, tx, self.fault);
        let part = self.part_mut(line);
        part.ewpq.insert(tx, hardware_id, line, indirect, &part.zone, may_migrate)
    }

    /// Section 4.1: home address and transaction go into the header of the log entry.
    pub fn write_entry_header(&self, at: PhysAddr, mapping: &Mapping, out: &mut Actions) {
        if self.fault.is(planted::ENTRY_HEADER_SKIPPED) {
            return;
        }
        out.append(Origin::Controller, at, &entry_header(mapping.home, mapping.hardware_id), Cause::Metadata, None);
    }
}

impl Ewpq {
    /// An entry that the eWPQ evicts goes to a slot of its extension area (section 4.2).
    pub fn move_to_extension(
        &mut self,
        slot: usize,
        mapping: Mapping,
        may_migrate: bool,
        zone: &PartZone,
        fault: ActiveFault,
        out: &mut Actions,
    ) {
        if !fault.is(planted::SPILL_NOT_WRITTEN) {
            out.append(
                Origin::Controller,
                zone.extension_slot(slot as u64),
                &mapping.record(zone, fault),
                Cause::Metadata,
                None,
            );
        }
        if !fault.is(planted::SPILL_LOSES_ENTRY) {
            self.put_into_extension(slot, mapping, may_migrate, zone);
        }
    }
}

/// Whether a search comes to an entry that matches in part: it covers eWPQ, extension area and chained blocks, and an
/// entry counts until its migration has ended.
#[inline]
pub fn is_searched(place: EntryLocation, mapping: &Mapping, zone: &PartZone, fault: ActiveFault) -> bool {
    !(fault.is(planted::FILL_IGNORES_LOG)
        || fault.is(planted::EXTENSION_NOT_SEARCHED) && matches!(place, EntryLocation::Extension(_))
        || fault.is(planted::CHAIN_NOT_SEARCHED) && place >= EntryLocation::Extension(zone.extension_entries as usize)
        || fault.is(planted::MIGRATION_FREES_EARLY) && mapping.migration.is_some())
}

/// Whether an entry that matches in part is the line's own: the full home address is in the header of the log entry.
#[inline]
pub fn is_own(mapping: &Mapping, line: LineAddr, fault: ActiveFault) -> bool {
    if fault.is(planted::PARTIAL_MATCH_TRUSTED) {
        return true;
    }
    mapping.home == line
}

/// Loads from the log.
impl State {
    /// Where the data of a log entry is, in the log or in its extension.
    pub fn log_data(&self, found: &Mapping) -> PhysAddr {
        let misled = self.fault.is(planted::INDIRECT_READS_LOG);
        let found = Mapping { indirect: found.indirect && !misled, ..*found };
        found.entry(&self.part(found.home).zone).1
    }

    /// Listing 3: the entry of a line that is loaded again is nullified. A migration of it is still in flight.
    pub fn nullify(&mut self, found: &Mapping, out: &mut Actions) {
        if self.fault.is(planted::RELOAD_KEEPS_ENTRY) {
            return;
        }
        let part = self.part_mut(found.home);
        part.take(found.home, out);
        part.migration.departed.extend(found.migration.map(|token| (found.home, token)));
    }

    /// The TransTag of a line that is loaded from the log: that of its transaction, if it is open.
    pub fn tag_from_log(&self, tx: TxId) -> LineTag {
        if !self.is_open(tx) || self.fault.is(planted::RELOAD_LOSES_TAG) {
            return LineTag::NONE;
        }
        LineTag(tx.0)
    }
}

impl Mapping {
    /// The bit that tells whether the log entry is looked up in the log extension (section 4.4).
    pub fn indirect_bit(&self, fault: ActiveFault) -> bool {
        if fault.is(planted::INDIRECT_BIT_LOST) {
            return false;
        }
        self.indirect
    }
}

/// Growth.
impl PartZone {
    /// The address of a chunk of the log extension goes into the index at the end of the log (section 4.4).
    pub fn index_chunk(&self, chunk: u64, fault: ActiveFault, out: &mut Actions) {
        if fault.is(planted::LOG_INDEX_NOT_WRITTEN) {
            return;
        }
        out.append(
            Origin::Controller,
            self.index_slot(chunk),
            &self.chunk(chunk).0.to_le_bytes(),
            Cause::Metadata,
            None,
        );
    }

    /// What there was of the extension area points to its new block.
    pub fn point_to_block(&self, block: u64, fault: ActiveFault, out: &mut Actions) {
        if fault.is(planted::CHAIN_POINTER_NOT_WRITTEN) {
            return;
        }
        out.append(
            Origin::Controller,
            self.block_pointer(block),
            &self.block(block).0.to_le_bytes(),
            Cause::Metadata,
            None,
        );
    }
}
