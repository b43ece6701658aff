//! The collector's state: what it is about, and what it has read of the slices of transactions.

use super::region::Region;
use super::slice::{END, Patch};
use durasim_types::{Line, LineAddr};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A line of a slice that has been read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Read(#[serde(with = "serde_bytes")] pub Line);

/// The slices of one transaction, from the first on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SliceChain {
    /// The slice that is read, or [`END`].
    pub at: u32,
    pub data: Option<Read>,
    pub metadata: Option<Read>,
    pub found: BTreeMap<LineAddr, Patch>,
}

/// What the collector is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    #[default]
    Idle,
    Reading,
    Writing,
    /// The mark is in flight.
    Sealing,
}

/// The collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Collector {
    pub phase: Phase,
    /// Collections begun.
    pub number: u64,
    /// The newest commit that this one collects.
    pub upto: u64,
    /// The newest commit that is collected and marked so.
    pub collected: u64,
    /// First slices of transactions that are not read yet, oldest first.
    pub waiting: VecDeque<u32>,
    /// Those that are read, newest first.
    pub walks: VecDeque<SliceChain>,
    /// What was found and is not in flight to the home address.
    pub found: BTreeMap<LineAddr, Patch>,
    /// Reads and writes that are not done.
    pub in_flight: u32,
    /// More lines go home in the next cycle.
    pub resting: bool,
    /// The period has passed since it began, or it began with that.
    pub of_period: bool,
}

impl Collector {
    /// Whether a snapshot can hold it: it reads slices that are there.
    pub fn fits(&self, region: &Region) -> bool {
        let known = |slice: u32| slice < region.slices() || slice == END;
        self.waiting.iter().all(|&slice| known(slice)) && self.walks.iter().all(|walk| known(walk.at))
    }
}
