//! Numbers of cache-block operations, and of those with nothing to write.

use durasim_isa::CacheBlockOp;
use durasim_types::Stats;
use serde::{Deserialize, Serialize};

/// State of the line that a cache-block operation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Bytes that have not left the caches.
    Dirty,
    /// All bytes have left the caches, and some are in flight to the persistence domain.
    InFlight,
    /// Nothing that is not where it has to be.
    Clean,
}

/// Counters of cache-block operations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BlockCounts {
    cleans: u64,
    flushes: u64,
    invals: u64,
    clean_lines: u64,
    lines_in_flight: u64,
    ignored: u64,
}

impl BlockCounts {
    pub fn count(&mut self, op: CacheBlockOp, found: Found) {
        *match op {
            CacheBlockOp::Clean => &mut self.cleans,
            CacheBlockOp::Flush => &mut self.flushes,
            CacheBlockOp::Inval => &mut self.invals,
        } += 1;
        match found {
            Found::Dirty => {}
            Found::InFlight => self.lines_in_flight += 1,
            Found::Clean => self.clean_lines += 1,
        }
    }

    /// The design takes the line to memory itself.
    pub fn ignored(&mut self) {
        self.ignored += 1;
    }

    pub fn reset(&mut self) {
        *self = BlockCounts::default();
    }

    pub fn stats(&self, stats: &mut Stats) {
        stats.count("cbo.cleans", self.cleans, "Operations cbo.clean");
        stats.count("cbo.flushes", self.flushes, "Operations cbo.flush");
        stats.count("cbo.invals", self.invals, "Operations cbo.inval");
        let clean = "Cache-block operations on lines that were clean: they had nothing to write";
        stats.count("cbo.clean_lines", self.clean_lines, clean);
        let in_flight = "Cache-block operations on lines in flight to the persistence domain and not changed since: they had \
                         nothing to write";
        stats.count("cbo.lines_in_flight", self.lines_in_flight, in_flight);
        stats.count("cbo.ignored", self.ignored, "Cache-block operations that the design let write nothing");
    }
}
