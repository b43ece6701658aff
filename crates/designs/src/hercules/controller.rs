//! Hercules at one controller. "The log zone can be partitioned to be managed by distributed MCs" (section 4.1): each
//! controller of persistent memory has an eWPQ, a LogHead, a LogTail and a part of the log zone, all of it at its own
//! lines, and keeps the log entries of the lines that are its own.

use super::ewpq::Ewpq;
use super::migration::Migration;
use super::spec::HerculesSpec;
use super::zone::PartZone;
use serde::{Deserialize, Serialize};

/// What a controller has.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Its part of the log zone.
    pub zone: PartZone,
    pub ewpq: Ewpq,
    pub migration: Migration,
}

/// What of it changes while it is at work.
#[derive(Serialize, Deserialize)]
pub(super) struct PartContents {
    pub ewpq: Ewpq,
    pub migration: Migration,
}

impl Part {
    pub fn new(spec: &HerculesSpec, zone: &PartZone) -> Self {
        Part { zone: zone.clone(), ewpq: Ewpq::new(spec, zone), migration: Migration::default() }
    }

    /// For snapshots.
    pub fn contents(&self) -> PartContents {
        PartContents { ewpq: self.ewpq.clone(), migration: self.migration.clone() }
    }
}
