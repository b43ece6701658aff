//! The kinds of failures that a campaign tries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ways in which the power can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The contents of the persistence domain survive, completely, and nothing else does.
    Clean,
    /// Lines in flight to the media are torn at words of eight bytes, where no queue keeps them.
    Torn,
    /// Any part of the cache-block operations that no fence has waited for was accepted.
    Reorder,
    /// Dirty lines have left the caches early, as the hardware may evict them at any time.
    Evict,
    /// The energy ends inside the crash flush: what is lost has to be reported.
    Energy,
    /// Recovery fails too, up to three times in a row.
    Nested,
    /// More crash points inside background work.
    Background,
    /// The program works on after recovery, and the power fails again.
    Recrash,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [FailureKind; 8] = [
        FailureKind::Clean,
        FailureKind::Torn,
        FailureKind::Reorder,
        FailureKind::Evict,
        FailureKind::Energy,
        FailureKind::Nested,
        FailureKind::Background,
        FailureKind::Recrash,
    ];

    /// Those that are tried on a workload if nothing else is asked for.
    pub const OF_WORKLOADS: [FailureKind; 2] = [FailureKind::Clean, FailureKind::Nested];

    /// Those that have a meaning under a persistency model. Its images are in the place of clean failures.
    pub const UNDER_MODELS: [FailureKind; 3] = [FailureKind::Clean, FailureKind::Nested, FailureKind::Recrash];

    /// The name in options and results.
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::Clean => "clean",
            FailureKind::Torn => "torn",
            FailureKind::Reorder => "reorder",
            FailureKind::Evict => "evict",
            FailureKind::Energy => "energy",
            FailureKind::Nested => "nested",
            FailureKind::Background => "background",
            FailureKind::Recrash => "recrash",
        }
    }
}
