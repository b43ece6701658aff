//! The extended write pending queue of a controller and its extension area in the log zone (sections 4.1 and 4.2):
//! where the log keeps the lines that were flushed prematurely.

use super::ewpq_index::{EntryLocation, Index};
use super::extension_chain::Occupancy;
use super::planted;
use super::spec::{ExtensionLookup, HerculesSpec};
use super::zone::PartZone;
use durasim_contract::{Actions, ActiveFault, Origin, Token};
use durasim_types::{Cause, Cycle, LineAddr, PhysAddr, TxId};
use serde::{Deserialize, Serialize};

/// An entry of the eWPQ or of its extension. Its TxState is '1' as long as its transaction is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mapping {
    pub tx: TxId,
    pub hardware_id: u64,
    pub home: LineAddr,
    /// Number of the log entry, counted without wrap-around.
    pub log: u64,
    /// Whether that is an entry of the log extension, which is counted by itself (section 4.4).
    pub indirect: bool,
    /// For LRU spilling.
    pub used: u64,
    /// The migration that is carrying it home.
    pub migration: Option<Token>,
}

impl Mapping {
    /// Its compact form in persistent memory.
    pub fn record(&self, zone: &PartZone, fault: ActiveFault) -> [u8; 8] {
        zone.mapping_record(
            self.hardware_id,
            self.home,
            self.log,
            fault.ignores(planted::INDIRECT_BIT_LOST, self.indirect),
        )
    }

    /// Whether the entry counts: it does until its migration has ended (section 4.2).
    pub fn is_valid(&self, fault: ActiveFault) -> bool {
        !(fault.skips(planted::MIGRATION_FREES_EARLY) && self.migration.is_some())
    }

    /// Header and data of its log entry.
    pub fn entry(&self, zone: &PartZone) -> (PhysAddr, PhysAddr) {
        if self.indirect {
            zone.indirect_entry(zone.chunk(self.log / zone.chunk_entries), self.log)
        } else {
            (zone.entry_header_at(self.log), zone.entry_data(self.log))
        }
    }
}

/// The queue, the extension area and LogHead.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ewpq {
    /// The queue by slot: an entry stays in its own as long as it is valid.
    entries: Vec<Option<Mapping>>,
    /// The extension area and its chained blocks by slot; its contents are in persistent memory, this is what a search of it finds.
    extension: Vec<Option<Mapping>>,
    /// Slots of the extension area in use.
    extended: usize,
    /// LogHead, counted without wrap-around.
    log_head: u64,
    /// LogTail: no older log entry is in use.
    log_tail: u64,
    used: u64,
    #[serde(skip)]
    index: Index,
    /// Follows from the entries, too.
    #[serde(skip)]
    occupancy: Occupancy,
}

impl Ewpq {
    pub fn new(zone: &PartZone) -> Self {
        Ewpq {
            entries: Vec::new(),
            extension: vec![None; zone.extension_entries as usize],
            extended: 0,
            log_head: 0,
            log_tail: 0,
            used: 0,
            index: Index::default(),
            occupancy: Occupancy::default(),
        }
    }

    /// Builds the index of entries that were read from outside. `may_migrate`: the migration may take entries of a transaction.
    pub fn reindex(&mut self, zone: &PartZone, may_migrate: impl Fn(TxId) -> bool) {
        (self.index, self.occupancy) = (Index::default(), Occupancy::default());
        let queue = self.entries.iter().enumerate().filter_map(|(n, m)| Some((EntryLocation::Queue(n), m.as_ref()?)));
        let extension =
            self.extension.iter().enumerate().filter_map(|(n, m)| Some((EntryLocation::Extension(n), m.as_ref()?)));
        for (place, mapping) in queue.chain(extension) {
            self.index.link(place, mapping, zone, may_migrate(mapping.tx));
            if let EntryLocation::Extension(slot) = place {
                self.occupancy.add(slot, zone);
            }
        }
    }

    /// The contradiction to hardware of this size, if there is one: for states that were read from outside.
    pub fn inconsistency(&self, spec: &HerculesSpec, zone: &PartZone) -> Option<&'static str> {
        let in_use = self.extension.iter().flatten().count();
        if self.entries.len() > spec.ewpq_entries as usize {
            Some("more eWPQ entries than there are")
        } else if !self.has_whole_blocks(zone) {
            Some("an extension area of another size")
        } else if self.extended != in_use || !self.frames_its_entries(zone) || !self.entries_lie_in_their_buckets(zone)
        {
            Some("an eWPQ that contradicts itself")
        } else {
            None
        }
    }

    fn has_whole_blocks(&self, zone: &PartZone) -> bool {
        let chained = (self.extension.len() as u64).checked_sub(zone.extension_entries);
        chained
            .is_some_and(|slots| slots.is_multiple_of(zone.block_entries) && slots / zone.block_entries <= zone.blocks)
    }

    fn entries_lie_in_their_buckets(&self, zone: &PartZone) -> bool {
        let mut in_use =
            self.extension.iter().enumerate().filter_map(|(slot, mapping)| Some((slot, mapping.as_ref()?)));
        zone.extension_lookup == ExtensionLookup::Scan
            || in_use.all(|(slot, mapping)| zone.bucket(zone.area_of(slot as u64), mapping.home).contains(&slot))
    }

    fn frames_its_entries(&self, zone: &PartZone) -> bool {
        let window = self.log_tail..self.log_head;
        // Numbers of log entries never wrap around.
        self.log_head < 1 << 62
            && self.log_tail <= self.log_head
            && self.log_head - self.log_tail <= zone.log_entries
            && self.mappings().all(|m| m.indirect || window.contains(&m.log))
    }

    /// All entries, those of the extension area last.
    pub fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        // The extension area is nearly always empty.
        let extension = if self.extended == 0 { &[][..] } else { &self.extension[..] };
        self.entries.iter().chain(extension).flatten()
    }

    /// The entries of the eWPQ itself, with their slots.
    pub fn queued(&self) -> impl Iterator<Item = (u64, &Mapping)> {
        (0..).zip(&self.entries).filter_map(|(slot, m)| Some((slot, m.as_ref()?)))
    }

    /// Entries in the extension area.
    pub fn extended(&self) -> usize {
        self.extended
    }

    /// Blocks that are chained to the extension area.
    pub fn chained_blocks(&self, zone: &PartZone) -> u64 {
        (self.extension.len() as u64 - zone.extension_entries) / zone.block_entries
    }

    /// Whether those hold entries.
    pub fn is_chain_in_use(&self, zone: &PartZone) -> bool {
        self.extension[zone.extension_entries as usize..].iter().any(Option::is_some)
    }

    /// A further block is chained to the extension area.
    pub fn add_block(&mut self, zone: &PartZone) {
        self.extension.resize(self.extension.len() + zone.block_entries as usize, None);
    }

    pub fn log_head(&self) -> u64 {
        self.log_head
    }

    pub fn log_tail(&self) -> u64 {
        self.log_tail
    }

    /// Log entries from LogTail to LogHead, valid or not.
    pub fn window(&self) -> u64 {
        self.log_head - self.log_tail
    }

    /// Whether premature flushes have to wait. The last log entry is for garbage collection, which needs one to begin.
    pub fn log_is_full(&self, zone: &PartZone) -> bool {
        self.window() + 1 >= zone.log_entries
    }

    /// LogTail slides to the oldest log entry in use.
    pub fn slide(&mut self) {
        self.log_tail = self.log_tail.max(self.index.oldest_log().unwrap_or(self.log_head));
    }

    /// LogTail slides to this log entry, whatever lies before it.
    pub fn slide_to(&mut self, log: u64) {
        self.log_tail = self.log_tail.max(log);
    }

    /// LogHead moves by one.
    pub fn move_log_head(&mut self) {
        self.log_head += 1;
    }

    /// Entries of the log in use, without those of the log extension.
    pub fn log_entries(&self) -> u64 {
        self.index.log_entries()
    }

    /// The entry with the oldest log entry from `first` on and before `end`.
    pub fn oldest_in(&self, first: u64, end: u64) -> Option<Mapping> {
        self.index.oldest_in(first, end).map(|place| *self.at(place))
    }

    /// The entry of a line.
    pub fn entry(&self, home: LineAddr, zone: &PartZone) -> Option<&Mapping> {
        self.place_of(home, zone).map(|place| self.at(place))
    }

    /// The entries whose part of the home address is that of this line, in the order in which a search looks them up.
    pub fn partial_matches(&self, line: LineAddr, zone: &PartZone) -> impl Iterator<Item = (EntryLocation, &Mapping)> {
        self.index.of_partial_home(zone.partial_home(line)).map(|place| (place, self.at(place)))
    }

    fn place_of(&self, home: LineAddr, zone: &PartZone) -> Option<EntryLocation> {
        self.partial_matches(home, zone).find(|(_, mapping)| mapping.home == home).map(|(place, _)| place)
    }

    /// The entry of a line names another log entry from now on (section 4.4, garbage collection).
    pub fn relocate(&mut self, home: LineAddr, log: u64, zone: &PartZone, fault: ActiveFault, out: &mut Actions) {
        let Some(place) = self.place_of(home, zone) else { return };
        let before = *self.at(place);
        let may_migrate = self.index.unlink(place, &before, zone);
        let after = Mapping { log, ..before };
        *self.at_mut(place) = after;
        self.index.link(place, &after, zone, may_migrate);
        // The record of an entry in the extension area names the new log entry, too.
        if let EntryLocation::Extension(slot) = place
            && !fault.skips(planted::GC_FORGETS_EXTENSION)
        {
            let at = zone.extension_slot(slot as u64);
            out.append(Origin::Controller, at, &after.record(zone, fault), Cause::Metadata, None);
        }
    }

    pub fn is_full(&self, spec: &HerculesSpec) -> bool {
        self.index.queued() >= spec.ewpq_entries as usize
    }

    /// Whether a transaction has lines in the log.
    pub fn holds(&self, tx: TxId) -> bool {
        self.index.of_tx(tx).next().is_some()
    }

    /// Whether an entry names a transaction by this identifier.
    pub fn names(&self, hardware_id: u64) -> bool {
        self.index.names(hardware_id)
    }

    /// The lines that a transaction has in the log, in the order of the entries.
    pub fn homes_of(&self, tx: TxId) -> Vec<LineAddr> {
        self.index.of_tx(tx).map(|place| self.at(place).home).collect()
    }

    fn at(&self, place: EntryLocation) -> &Mapping {
        let slot = match place {
            EntryLocation::Queue(n) => &self.entries[n],
            EntryLocation::Extension(n) => &self.extension[n],
        };
        slot.as_ref().expect("the index names entries in use")
    }

    fn at_mut(&mut self, place: EntryLocation) -> &mut Mapping {
        let slot = match place {
            EntryLocation::Queue(n) => &mut self.entries[n],
            EntryLocation::Extension(n) => &mut self.extension[n],
        };
        slot.as_mut().expect("the index names entries in use")
    }

    /// A line that leaves the LLC takes this entry of the log extension or, if it is given none, the next log entry
    /// (Listing 2, "write victim to pmem").
    pub fn insert(
        &mut self,
        tx: TxId,
        hardware_id: u64,
        home: LineAddr,
        indirect: Option<u64>,
        zone: &PartZone,
        may_migrate: bool,
    ) -> Mapping {
        let log = indirect.unwrap_or(self.log_head);
        self.log_head += u64::from(indirect.is_none());
        self.used += 1;
        let indirect = indirect.is_some();
        let mapping = Mapping { tx, hardware_id, home, log, indirect, used: self.used, migration: None };
        let slot = self.index.free_queue_slot();
        if slot == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[slot] = Some(mapping);
        self.index.link(EntryLocation::Queue(slot), &mapping, zone, may_migrate);
        mapping
    }

    /// Takes an entry of the queue out, and whether it might have migrated: its slot is free.
    fn take_from_queue(&mut self, n: usize, zone: &PartZone) -> (Mapping, bool) {
        let mapping = *self.at(EntryLocation::Queue(n));
        self.entries[n] = None;
        (mapping, self.index.unlink(EntryLocation::Queue(n), &mapping, zone))
    }

    /// A free slot of the extension area for the entry of this line, if there is one.
    fn free_slot_for(&self, home: LineAddr, zone: &PartZone) -> Option<usize> {
        match zone.extension_lookup {
            ExtensionLookup::Scan => Some(self.index.free_extension_slot()).filter(|slot| *slot < self.extension.len()),
            ExtensionLookup::ByAddress => {
                let areas = 0..=self.chained_blocks(zone) as usize;
                areas.flat_map(|area| zone.bucket(area, home)).find(|slot| self.extension[*slot].is_none())
            }
        }
    }

    /// Evicts the least recently used entry to the extension area (section 4.2). False if that has no room for it, or if
    /// all entries are being written home.
    pub fn spill(&mut self, zone: &PartZone, fault: ActiveFault, out: &mut Actions) -> bool {
        // An entry in flight to the home address stays where its acknowledgement will look for it.
        let Some(victim) = self.index.by_use().find(|n| self.at(EntryLocation::Queue(*n)).migration.is_none()) else {
            return false;
        };
        let Some(slot) = self.free_slot_for(self.at(EntryLocation::Queue(victim)).home, zone) else { return false };
        let (mapping, may_migrate) = self.take_from_queue(victim, zone);
        if !fault.skips(planted::SPILL_NOT_WRITTEN) {
            let at = zone.extension_slot(slot as u64);
            out.append(Origin::Controller, at, &mapping.record(zone, fault), Cause::Metadata, None);
        }
        if !fault.skips(planted::SPILL_LOSES_ENTRY) {
            self.put_into_extension(slot, mapping, may_migrate, zone);
        }
        true
    }

    /// A free slot of the extension area takes this entry.
    fn put_into_extension(&mut self, slot: usize, mapping: Mapping, may_migrate: bool, zone: &PartZone) {
        self.index.link(EntryLocation::Extension(slot), &mapping, zone, may_migrate);
        self.occupancy.add(slot, zone);
        self.extension[slot] = Some(mapping);
        self.extended += 1;
    }

    /// Takes the entry of a line out.
    pub fn take(&mut self, home: LineAddr, zone: &PartZone, out: &mut Actions) -> Option<Mapping> {
        let place = self.place_of(home, zone)?;
        let slot = match place {
            EntryLocation::Queue(n) => return Some(self.take_from_queue(n, zone).0),
            EntryLocation::Extension(slot) => slot,
        };
        let mapping = *self.at(place);
        self.index.unlink(place, &mapping, zone);
        self.occupancy.remove(slot, zone);
        self.extended -= 1;
        out.append(Origin::Controller, zone.extension_slot(slot as u64), &[0; 8], Cause::Metadata, None);
        self.extension[slot].take()
    }

    /// The entries of a transaction may migrate: it has committed.
    pub fn committed(&mut self, tx: TxId) {
        let places: Vec<EntryLocation> = self.index.of_tx(tx).collect();
        for place in places {
            if self.at(place).migration.is_none() {
                self.index.may_migrate(place);
            }
        }
    }

    /// Whether a record in the extension area names the entry of this line.
    pub fn is_in_extension(&self, home: LineAddr, zone: &PartZone) -> bool {
        matches!(self.place_of(home, zone), Some(EntryLocation::Extension(_)))
    }

    /// A migration takes the entry of this line, if it may migrate.
    pub fn start_migration_of(&mut self, home: LineAddr, zone: &PartZone, token: Token) -> Option<Mapping> {
        let place = self.place_of(home, zone).filter(|place| self.index.is_ready(*place))?;
        Some(self.migrate_from(place, zone, token))
    }

    /// A migration takes the first entry that may migrate, in the order in which the engine scans them.
    pub fn start_migration(&mut self, zone: &PartZone, token: Token) -> Option<Mapping> {
        let place = self.index.first_to_migrate()?;
        Some(self.migrate_from(place, zone, token))
    }

    fn migrate_from(&mut self, place: EntryLocation, zone: &PartZone, token: Token) -> Mapping {
        let before = *self.at(place);
        self.index.unlink(place, &before, zone);
        let mapping = self.at_mut(place);
        mapping.migration = Some(token);
        let mapping = *mapping;
        self.index.link(place, &mapping, zone, false);
        mapping
    }

    /// Entries in flight to the home address, in the order of the scan.
    pub fn migrating(&self) -> impl Iterator<Item = &Mapping> {
        self.index.migrating().map(|place| self.at(place))
    }

    /// The occupancy of the extension area.
    pub fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }
}

/// The result of a search.
pub(super) struct Search {
    /// The entry of the line, and whether it is in the eWPQ itself.
    pub found: Option<(Mapping, bool)>,
    pub cycles: Cycle,
    /// Whether the load from home has to wait for its end.
    pub serial: bool,
    /// Log entries that were looked up and are another line's.
    pub false_matches: u64,
    /// Lines of the extension area that were read.
    pub extension_lines: u64,
}

/// A miss searches eWPQ and extension area (section 4.2, Listing 3). Entries hold a part of the home address; the log entry
/// that they lead to holds all of it and rules out ambiguity. Entries that match in part are looked up one after the other
/// until one is the line's own. Only then TxID and TxState are compared: another line's transaction is no conflict.
///
/// A match stops the load from home, which is restarted after a false match; what it costs is not in the paper
/// [D:hercules-partial-match].
impl Ewpq {
    /// Searches for the entry of a line.
    pub fn search(&self, line: LineAddr, spec: &HerculesSpec, zone: &PartZone, fault: ActiveFault) -> Search {
        let (mut found, mut false_matches, mut cycles) = (None, 0, spec.ewpq_search_cycles);
        for (place, mapping) in self.partial_matches(line, zone).filter(|(p, m)| is_searched(*p, m, zone, fault)) {
            // The full home address is in the header of the log entry. That of the line's own is read with its data.
            if fault.assumes(planted::PARTIAL_MATCH_TRUSTED, mapping.home == line) {
                found = Some((place, *mapping));
                break;
            }
            false_matches += 1;
            cycles += spec.false_match_cycles + if mapping.indirect { spec.log_indirect_cycles } else { 0 };
        }
        // The extension area is searched only if the eWPQ does not have the line.
        let in_ewpq = matches!(found, Some((EntryLocation::Queue(_), _)));
        let mut extension_lines = 0;
        if !in_ewpq && self.extended() > 0 {
            let (first_cycles, line_cycles) = (spec.extension_search_first_cycles, spec.extension_search_line_cycles);
            let first_lines;
            (first_lines, extension_lines) = match (zone.extension_lookup, found) {
                // Each block is where the one before points to.
                (ExtensionLookup::Scan, _) => (self.occupancy().areas(), self.occupancy().lines()),
                // The lines to read are known in advance: blocks are consecutive.
                (ExtensionLookup::ByAddress, Some((EntryLocation::Extension(slot), _))) => {
                    (1, self.occupancy().areas_to(zone.area_of(slot as u64)))
                }
                (ExtensionLookup::ByAddress, _) => (1, self.occupancy().areas()),
            };
            cycles += first_lines * first_cycles + (extension_lines - first_lines) * line_cycles;
        }
        Search {
            found: found.map(|(_, mapping)| (mapping, in_ewpq)),
            cycles,
            serial: extension_lines > 0 || false_matches > 0,
            false_matches,
            extension_lines,
        }
    }
}

/// Whether a search reaches an entry that matches in part: it covers eWPQ, extension area and chained blocks.
#[inline]
fn is_searched(place: EntryLocation, mapping: &Mapping, zone: &PartZone, fault: ActiveFault) -> bool {
    let is_overlooked = match place {
        EntryLocation::Queue(_) => false,
        EntryLocation::Extension(slot) => {
            let is_chained = slot >= zone.extension_entries as usize;
            fault.skips(planted::EXTENSION_NOT_SEARCHED) || is_chained && fault.skips(planted::CHAIN_NOT_SEARCHED)
        }
    };
    !is_overlooked && fault.ignores(planted::FILL_IGNORES_LOG, mapping.is_valid(fault))
}
