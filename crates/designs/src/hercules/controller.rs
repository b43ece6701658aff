//! Hercules at one controller. "The log zone can be partitioned to be managed by distributed MCs" (section 4.1): each
//! controller of persistent memory has an eWPQ, a LogHead, a LogTail and a part of the log zone, all of it at its own
//! lines, and keeps the log entries of the lines that are its own.

use super::ewpq::{Ewpq, Mapping};
use super::gc::Gc;
use super::log_extension::LogExtension;
use super::migration::Migration;
use super::spec::HerculesSpec;
use super::zone::PartZone;
use durasim_design::Actions;
use durasim_types::LineAddr;
use serde::{Deserialize, Serialize};

/// What a controller has.
#[derive(Clone, Debug)]
pub(super) struct Part {
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
    pub fn new(spec: &HerculesSpec, zone: &PartZone) -> Self {
        let (ewpq, migration, gc) = (Ewpq::new(spec, zone), Migration::default(), Gc::default());
        Part { zone: zone.clone(), ewpq, migration, gc, extension: LogExtension::default() }
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

    /// Takes the entry of a line out. LogTail may move, unless garbage collection moves it at the end of its chunk.
    pub fn take(&mut self, home: LineAddr, out: &mut Actions) -> Option<Mapping> {
        let taken = self.ewpq.take(home, &self.zone, out);
        if let Some(mapping) = taken.filter(|mapping| mapping.indirect) {
            self.extension.release(mapping.log);
        }
        self.slide();
        taken
    }

    /// A slot of the extension area has been cleared, for which LogTail has waited.
    pub fn slot_cleared(&mut self) {
        self.ewpq.cleared();
        self.slide();
    }

    fn slide(&mut self) {
        if !self.gc.is_at_work() {
            self.ewpq.slide();
        }
    }
}
