//! A miss searches eWPQ and extension area (section 4.2, Listing 3). Entries hold a part of the home address; the log entry
//! that they lead to holds all of it and rules out ambiguity. Entries that match in part are looked up one after the other
//! until one is the line's own. Only then TxID and TxState are compared: another line's transaction is no conflict.
//!
//! A match stops the load from home, which is restarted after a false match; what it costs is not in the paper
//! [D:hercules-partial-match].

use super::ewpq::Ewpq;
use super::ewpq_index::EntryLocation;
use super::mapping::Mapping;
use super::spec::{ExtensionLookup, HerculesSpec};
use super::steps::log::{is_own, is_searched};
use super::zone::PartZone;
use durasim_design::ActiveFault;
use durasim_types::{Cycle, LineAddr};

/// What a search comes to.
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

impl Ewpq {
    /// Searches for the entry of a line.
    pub fn search(&self, line: LineAddr, spec: &HerculesSpec, zone: &PartZone, fault: ActiveFault) -> Search {
        let (mut found, mut false_matches, mut cycles) = (None, 0, spec.ewpq_search_cycles);
        for (place, mapping) in self.partial_matches(line, zone).filter(|(p, m)| is_searched(*p, m, zone, fault)) {
            // The full home address is in the header of the log entry. That of the line's own is read with its data.
            if is_own(mapping, line, fault) {
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
                // Which lines to read is known beforehand: blocks lie one after the other.
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
