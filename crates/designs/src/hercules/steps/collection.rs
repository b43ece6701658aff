//! Steps of garbage collection (section 4.4, Figure 4).

use crate::hercules::controller::Part;
use crate::hercules::gc::Moving;
use crate::hercules::mapping::Mapping;
use crate::hercules::planted;
use crate::hercules::record::entry_header;
use crate::hercules::state::State;
use crate::hercules::zone::PartZone;
use durasim_design::{Action, Actions, ActiveFault, CopyRequest, Origin};
use durasim_types::Cause;

impl Part {
    /// A valid uncommitted entry is appended at LogHead, header and data.
    pub fn append_at_log_head(&mut self, entry: &Mapping, moving: &Moving, fault: ActiveFault, out: &mut Actions) {
        if !fault.is(planted::GC_COPIES_NO_HEADER) {
            let header = entry_header(entry.home, entry.hardware_id);
            out.append(Origin::Controller, self.zone.entry_header_at(moving.to), &header, Cause::Metadata, None);
        }
        if fault.is(planted::GC_NAMES_FIRST) {
            self.ewpq.relocate(entry.home, moving.to, &self.zone, fault, out);
        }
        let (from, to) = (self.zone.entry_data(moving.from), self.zone.entry_data(moving.to));
        out.push(Action::Copy(CopyRequest {
            by: Origin::Controller,
            from,
            to,
            len: 64,
            below_held: false,
            cause: Cause::Log,
            token: Some(moving.token),
        }));
    }

    /// The copy is at LogHead: the eWPQ entry names the new place.
    pub fn name_new_place(&mut self, moving: &Moving, fault: ActiveFault, out: &mut Actions) {
        if fault.is(planted::GC_NAMES_FIRST) {
            return;
        }
        self.ewpq.relocate(moving.home, moving.to, &self.zone, fault, out);
    }

    /// The eWPQ entry names the new place: LogHead moves by one.
    pub fn move_log_head(&mut self, fault: ActiveFault) {
        if fault.is(planted::GC_KEEPS_LOG_HEAD) {
            return;
        }
        self.ewpq.move_log_head();
    }

    /// A chunk is at its end: LogTail slides to the next valid entry, which may be one of the chunk that is not home yet.
    pub fn slide_behind_chunk(&mut self, next: u64, fault: ActiveFault) {
        if fault.is(planted::GC_SLIDES_OVER_COMMITTED) {
            self.ewpq.slide_to(next);
        }
        self.slide();
    }
}

impl State {
    /// Whether an entry that has been copied to LogHead is to be named there. One that was loaded, discarded or committed
    /// in the meantime stays what and where it is.
    pub fn is_still_valid_and_open(&self, part: &Part, moving: &Moving) -> bool {
        if self.fault.is(planted::GC_NAMES_FIRST) {
            return true;
        }
        let entry = part
            .ewpq
            .entry(moving.home, &part.zone)
            .filter(|m| (m.log, m.indirect) == (moving.from, false) && m.migration.is_none());
        entry.is_some_and(|entry| self.is_running(entry.tx))
    }
}

impl Mapping {
    /// The record of an entry in the extension area names the new log entry, too.
    pub fn rewrite_in_extension(&self, slot: usize, zone: &PartZone, fault: ActiveFault, out: &mut Actions) {
        if fault.is(planted::GC_FORGETS_EXTENSION) {
            return;
        }
        out.append(
            Origin::Controller,
            zone.extension_slot(slot as u64),
            &self.record(zone, fault),
            Cause::Metadata,
            None,
        );
    }
}
