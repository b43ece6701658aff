//! Hercules at one controller. Several controllers share the log zone in parts (section 4.1): each controller of persistent memory has an eWPQ, a LogHead, a LogTail and a part of the log zone, all of it at its own
//! lines, and keeps the log entries of the lines that are its own.

use super::CLEARED;
use super::ewpq::Ewpq;
use super::gc::Gc;
use super::log_extension::LogExtension;
use super::mapping::Mapping;
use super::migration::Migration;
use super::zone::PartZone;
use durasim_design::{Action, Actions};
use durasim_types::LineAddr;
use serde::{Deserialize, Serialize};

/// What a controller has.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The number of the controller.
    pub number: u64,
    /// Records in the extension area that are being cleared: LogTail stays until that is done.
    pub clearing: u64,
    /// Its part of the log zone.
    pub zone: PartZone,
    pub ewpq: Ewpq,
    pub migration: Migration,
    pub gc: Gc,
    pub extension: LogExtension,
}

/// What of it changes while it is at work.
#[derive(Serialize, Deserialize)]
pub(super) struct PartContents {
    pub ewpq: Ewpq,
    pub migration: Migration,
    pub gc: Gc,
    pub extension: LogExtension,
}

impl Part {
    pub fn new(zone: &PartZone, number: u64) -> Self {
        let contents = PartContents {
            ewpq: Ewpq::new(zone),
            migration: Migration::default(),
            gc: Gc::default(),
            extension: LogExtension::default(),
        };
        Part::with(contents, zone, number)
    }

    pub fn with(contents: PartContents, zone: &PartZone, number: u64) -> Self {
        let PartContents { ewpq, migration, gc, extension } = contents;
        Part { number, clearing: 0, zone: zone.clone(), ewpq, migration, gc, extension }
    }

    /// For snapshots.
    pub fn contents(&self) -> PartContents {
        PartContents {
            ewpq: self.ewpq.clone(),
            migration: self.migration.clone(),
            gc: self.gc.clone(),
            extension: self.extension.clone(),
        }
    }

    /// Takes the entry of a line out. LogTail may move, unless garbage collection moves it at the end of its chunk. If a
    /// record in the extension area named the entry, that is cleared first: no record may name an entry behind LogTail.
    pub fn take(&mut self, home: LineAddr, out: &mut Actions) -> Option<Mapping> {
        let cleared = self.ewpq.is_in_extension(home, &self.zone);
        let taken = self.ewpq.take(home, &self.zone, out);
        if cleared {
            self.clearing += 1;
            out.push(Action::Resume { id: CLEARED | self.number });
        }
        if let Some(mapping) = taken.filter(|mapping| mapping.indirect) {
            self.extension.release(mapping.log);
        }
        self.slide();
        taken
    }

    /// A record in the extension area is cleared.
    pub fn cleared(&mut self) {
        self.clearing -= 1;
        self.slide();
    }

    /// LogTail slides to the oldest entry in use, if nothing keeps it.
    pub fn slide(&mut self) {
        if self.clearing == 0 && !self.gc.is_at_work() {
            self.ewpq.slide();
        }
    }
}
