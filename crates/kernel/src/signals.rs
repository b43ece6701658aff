//! Signals: what the program asked for on each, and those that were sent and have had no effect yet.

use serde::{Deserialize, Serialize};

/// Signals are numbered from 1 to this.
pub(crate) const SIGNALS: u64 = 64;
/// The first signal that is queued as often as it is sent.
const FIRST_REAL_TIME: u8 = 32;
/// The most signals that wait at one place.
const QUEUED_MAX: usize = 1024;

/// The code of a signal from `kill`.
pub(crate) const SI_USER: i32 = 0;
/// The code of a signal from `tgkill`.
pub(crate) const SI_TKILL: i32 = -6;

/// The bit of a signal in a set.
pub(crate) const fn bit(signal: u8) -> u64 {
    1 << (signal - 1)
}

/// A signal that was sent, as `siginfo_t` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignalInfo {
    /// 1 to [`SIGNALS`].
    pub(crate) signal: u8,
    /// The kind of its origin.
    pub(crate) code: i32,
    /// Process and user of a sender, or the address of a fault.
    pub(crate) origin: u64,
    /// The value that the sender added.
    pub(crate) value: u64,
}

/// Signals that wait, in the order in which they were sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pending(Vec<SignalInfo>);

impl Pending {
    /// The numbers of the signals, a bit for each.
    pub(crate) fn set(&self) -> u64 {
        self.0.iter().fold(0, |set, info| set | bit(info.signal))
    }

    /// Adds a signal; one that is not of real time waits only once. False if there is no room.
    pub(crate) fn add(&mut self, info: SignalInfo) -> bool {
        let is_there = self.set() & bit(info.signal) != 0;
        if info.signal < FIRST_REAL_TIME && is_there {
            return true;
        }
        let has_room = self.0.len() < QUEUED_MAX;
        if has_room {
            self.0.push(info);
        }
        has_room
    }

    /// Forgets the signals of a set.
    pub(crate) fn forget(&mut self, signals: u64) {
        self.0.retain(|info| bit(info.signal) & signals == 0);
    }

    /// Takes the lowest signal of `wanted`, of several the one that was sent first.
    pub(crate) fn take(&mut self, wanted: u64) -> Option<SignalInfo> {
        let found = self.set() & wanted;
        if found == 0 {
            return None;
        }
        let lowest = found.trailing_zeros() as u8 + 1;
        let place = self.0.iter().position(|info| info.signal == lowest)?;
        Some(self.0.remove(place))
    }
}

/// The actions that the program asked for on each signal, and the signals to the process that wait for a thread that lets
/// them through.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Signals {
    /// Handler, flags and mask of `struct sigaction`.
    #[serde(with = "actions")]
    pub(crate) actions: [[u64; 3]; SIGNALS as usize],
    pub(crate) pending: Pending,
    /// The number of signals sent so far.
    pub(crate) sent: u64,
}

impl Signals {
    /// The signals that have a handler, a bit for each.
    pub(crate) fn handled(&self) -> u64 {
        const IGNORE: u64 = 1;
        let handlers = (1..).zip(&self.actions).filter(|(_, action)| action[0] > IGNORE);
        handlers.fold(0, |set, (signal, _)| set | bit(signal))
    }
}

impl Default for Signals {
    fn default() -> Self {
        Signals { actions: [[0; 3]; SIGNALS as usize], pending: Pending::default(), sent: 0 }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_wait_once_or_as_often_as_they_are_sent() {
        let mut pending = Pending::default();
        let info = |signal, value| SignalInfo { signal, code: SI_USER, origin: 0, value };
        for (signal, value) in [(40, 1), (10, 2), (10, 3), (40, 4)] {
            assert!(pending.add(info(signal, value)));
        }
        assert_eq!(pending.set(), bit(40) | bit(10));
        assert_eq!(pending.take(bit(12)), None);
        let taken: Vec<u64> = std::iter::from_fn(|| pending.take(u64::MAX)).map(|info| info.value).collect();
        assert_eq!(taken, [2, 1, 4], "the lowest first, equal ones in order");
        assert!((0..QUEUED_MAX).all(|_| pending.add(info(40, 0))) && !pending.add(info(40, 0)));
    }
}
