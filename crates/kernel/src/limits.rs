//! Limits of resources and other settings that a program may change. Of the limits only that of descriptors has an effect.

use crate::files::FILES_MAX;
use crate::stack::STACK_BYTES;
use serde::{Deserialize, Serialize};

/// Resources are numbered from 0 to below this.
pub(crate) const RESOURCES: usize = 16;
const STACK: usize = 3;
const CORE: usize = 4;
/// RLIMIT_NOFILE.
pub(crate) const DESCRIPTORS: usize = 7;

/// Soft and hard limit of each resource.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Limits(pub(crate) [[u64; 2]; RESOURCES]);

impl Default for Limits {
    fn default() -> Self {
        let mut limits = [[u64::MAX; 2]; RESOURCES];
        limits[STACK] = [STACK_BYTES, u64::MAX];
        limits[CORE] = [0, 0];
        limits[DESCRIPTORS] = [FILES_MAX as u64; 2];
        Limits(limits)
    }
}

/// Settings of `prctl` that are kept and given back.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Controls {
    /// The signal at the end of the parent, which never ends.
    pub(crate) parent_death_signal: u32,
    pub(crate) is_dumpable: bool,
    pub(crate) keeps_capabilities: bool,
    pub(crate) timer_slack_ns: u64,
    pub(crate) is_subreaper: bool,
    pub(crate) has_no_new_privileges: bool,
    pub(crate) has_no_huge_pages: bool,
}

/// The slack that Linux gives.
pub(crate) const TIMER_SLACK_NS: u64 = 50_000;

impl Default for Controls {
    fn default() -> Self {
        Controls {
            parent_death_signal: 0,
            is_dumpable: true,
            keeps_capabilities: false,
            timer_slack_ns: TIMER_SLACK_NS,
            is_subreaper: false,
            has_no_new_privileges: false,
            has_no_huge_pages: false,
        }
    }
}
