//! Signals as the process as a whole has them. What belongs to one thread stands with the thread.

use serde::{Deserialize, Serialize};

/// Signals are numbered from 1 to this.
pub(crate) const SIGNALS: u64 = 64;

/// The actions that the program asked for on each signal, and the signals that wait for a thread that lets them
/// through.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Signals {
    /// Handler, flags and mask of `struct sigaction`.
    #[serde(with = "actions")]
    pub(crate) actions: [[u64; 3]; SIGNALS as usize],
    pub(crate) pending: u64,
}

impl Default for Signals {
    fn default() -> Self {
        Signals { actions: [[0; 3]; SIGNALS as usize], pending: 0 }
    }
}

/// Arrays of this length have no form of their own in serde.
mod actions {
    use super::SIGNALS;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    type Actions = [[u64; 3]; SIGNALS as usize];

    pub(super) fn serialize<S: Serializer>(actions: &Actions, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(actions)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Actions, D::Error> {
        let actions = Vec::<[u64; 3]>::deserialize(deserializer)?;
        let count = actions.len();
        actions.try_into().map_err(|_| D::Error::custom(format!("actions for {count} signals, not {SIGNALS}")))
    }
}
