//! The extended write pending queue of the controller and its extension area in the log zone (sections 4.1 and 4.2):
//! where the log keeps the lines that were flushed prematurely.

use super::planted;
use super::spec::HerculesSpec;
use super::zone::LogZone;
use durasim_design::{Actions, Fault, Token};
use durasim_types::{Cause, Cycle, LineAddr, TxId};
use serde::{Deserialize, Serialize};

/// An entry of the eWPQ or of its extension. Its TxState is '1' as long as its transaction is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mapping {
    pub tx: TxId,
    pub hardware_id: u64,
    pub home: LineAddr,
    /// Number of the log entry, counted without wrap-around.
    pub log: u64,
    /// For LRU spilling.
    used: u64,
    /// The migration that is carrying it home.
    pub migration: Option<Token>,
}

/// The queue, the extension area and the two registers of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ewpq {
    entries: Vec<Mapping>,
    /// The extension area by slot; its contents are in persistent memory, this is what a search of it finds.
    extension: Vec<Option<Mapping>>,
    /// Slots of the extension area in use.
    extended: usize,
    /// LogHead, counted without wrap-around.
    log_head: u64,
    used: u64,
}

impl Ewpq {
    pub fn new(spec: &HerculesSpec, zone: &LogZone) -> Self {
        Ewpq {
            entries: Vec::with_capacity(spec.ewpq_entries as usize),
            extension: vec![None; zone.extension_entries as usize],
            extended: 0,
            log_head: 0,
            used: 0,
        }
    }

    /// What does not fit hardware of this size, if anything: for states that were read from outside.
    pub fn misfit(&self, spec: &HerculesSpec, zone: &LogZone) -> Option<&'static str> {
        let in_use = self.extension.iter().flatten().count();
        if self.entries.len() > spec.ewpq_entries as usize {
            Some("more eWPQ entries than there are")
        } else if self.extension.len() as u64 != zone.extension_entries {
            Some("an extension area of another size")
        } else if self.extended != in_use || self.mappings().any(|m| m.log >= self.log_head) {
            Some("an eWPQ that contradicts itself")
        } else {
            None
        }
    }

    /// All entries, those of the extension area last.
    pub fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        // The extension area is nearly always empty.
        let extension = if self.extended == 0 { &[][..] } else { &self.extension[..] };
        self.entries.iter().chain(extension.iter().flatten())
    }

    /// What the eWPQ itself holds, which a power failure saves.
    pub fn saved(&self, fault: Fault) -> impl Iterator<Item = &Mapping> {
        let free = move |m: &Mapping| m.migration.is_some() && fault.is(planted::MIGRATION_FREES_EARLY);
        let skipped = usize::from(fault.is(planted::FLUSH_DROPS_EWPQ_ENTRY));
        self.entries.iter().filter(move |m| !free(m)).skip(skipped)
    }

    /// Entries in the extension area.
    pub fn extended(&self) -> usize {
        self.extended
    }

    pub fn log_head(&self) -> u64 {
        self.log_head
    }

    /// LogTail: the oldest log entry still in use.
    pub fn log_tail(&self) -> u64 {
        self.mappings().map(|m| m.log).min().unwrap_or(self.log_head)
    }

    pub fn log_is_full(&self, zone: &LogZone) -> bool {
        self.log_head - self.log_tail() >= zone.log_entries
    }

    pub fn is_full(&self, spec: &HerculesSpec) -> bool {
        self.entries.len() >= spec.ewpq_entries as usize
    }

    /// Takes the next log entry for a line that leaves the LLC (Listing 2, "write victim to pmem"); its number.
    pub fn insert(&mut self, tx: TxId, hardware_id: u64, home: LineAddr) -> u64 {
        let log = self.log_head;
        self.log_head += 1;
        self.used += 1;
        self.entries.push(Mapping { tx, hardware_id, home, log, used: self.used, migration: None });
        log
    }

    /// Evicts the least recently used entry to the extension area (section 4.2). False if that is full.
    pub fn spill(&mut self, zone: &LogZone, fault: Fault, out: &mut Actions) -> bool {
        let Some(slot) = self.extension.iter().position(Option::is_none) else { return false };
        // An entry on its way home stays where its acknowledgement will look for it.
        let candidates = self.entries.iter().enumerate().filter(|(_, m)| m.migration.is_none());
        let Some((victim, _)) = candidates.min_by_key(|(_, m)| m.used) else { return false };
        let mapping = self.entries.swap_remove(victim);
        let record = zone.extension_record(mapping.hardware_id, mapping.log);
        if !fault.is(planted::SPILL_NOT_WRITTEN) {
            out.append(zone.extension_slot(slot as u64), &record, Cause::Metadata, None);
        }
        if fault.is(planted::SPILL_LOSES_ENTRY) {
            return true;
        }
        self.extension[slot] = Some(mapping);
        self.extended += 1;
        true
    }

    /// The entry of a line, and whether it is in the eWPQ itself.
    pub fn find(&self, home: LineAddr, fault: Fault) -> Option<(Mapping, bool)> {
        let found = self.mappings().enumerate().find(|(_, m)| m.home == home);
        let found = found.filter(|(index, m)| {
            !(fault.is(planted::FILL_IGNORES_LOG)
                || fault.is(planted::EXTENSION_NOT_SEARCHED) && *index >= self.entries.len()
                || fault.is(planted::MIGRATION_FREES_EARLY) && m.migration.is_some())
        });
        found.map(|(index, m)| (*m, index < self.entries.len()))
    }

    /// Takes the entry of a line out.
    pub fn take(&mut self, home: LineAddr, zone: &LogZone, out: &mut Actions) -> Option<Mapping> {
        if let Some(index) = self.entries.iter().position(|m| m.home == home) {
            return Some(self.entries.swap_remove(index));
        }
        if self.extended == 0 {
            return None;
        }
        let slot = self.extension.iter().position(|m| m.is_some_and(|m| m.home == home))?;
        self.extended -= 1;
        out.append(zone.extension_slot(slot as u64), &[0; 8], Cause::Metadata, None);
        self.extension[slot].take()
    }

    /// Entries that a migration may start on, in the order in which the engine scans them.
    pub fn scan(&mut self) -> impl Iterator<Item = &mut Mapping> {
        let extension = if self.extended == 0 { &mut [][..] } else { &mut self.extension[..] };
        let all = self.entries.iter_mut().chain(extension.iter_mut().flatten());
        all.filter(|m| m.migration.is_none())
    }

    /// Cycles of a search of the eWPQ and, if it holds anything, of the extension area in persistent memory; whether
    /// the latter is part of it.
    pub fn search_cycles(&self, spec: &HerculesSpec) -> (Cycle, bool) {
        if self.extended == 0 {
            return (spec.ewpq_search_cycles, false);
        }
        let lines = (self.extended as u64).div_ceil(8);
        let extension = spec.extension_search_first_cycles + (lines - 1) * spec.extension_search_line_cycles;
        (spec.ewpq_search_cycles + extension, true)
    }
}
