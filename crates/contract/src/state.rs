//! State and counters of a design at work: its digests, copies and snapshots, and the reset of its counters.

use crate::{AnyState, Durability, SpecError, snapshot};
use serde::{Serialize, de::DeserializeOwned};
use std::hash::Hasher;

/// A design at work whose state and counters are values of their own. All else in it follows from parameters and geometry.
/// [`kept!`](crate::kept) writes the types and both accessors.
pub trait Stateful: Durability + Clone + 'static {
    /// The state: all that changes in a run, except counters.
    type State: Serialize + DeserializeOwned;
    /// The counters.
    type Counters: Serialize + DeserializeOwned + Default;

    /// State and counters.
    fn kept(&self) -> (&Self::State, &Self::Counters);

    /// State and counters, to be changed.
    fn kept_mut(&mut self) -> (&mut Self::State, &mut Self::Counters);

    /// Whether a state of a snapshot may continue here, in a design that was just built.
    ///
    /// # Errors
    /// The difference, in a few words.
    #[expect(unused_variables, reason = "any state fits by default")]
    fn fits(&self, state: &Self::State) -> Result<(), &'static str> {
        Ok(())
    }

    /// Completes a state of a snapshot, which fits: what follows from it, such as an index, is in no snapshot.
    fn complete(&mut self) {}

    /// Resets counters that are part of the state.
    fn reset_counters_in(_state: &mut Self::State) {}

    /// Feeds the state into a digest.
    fn digest(&self, hasher: &mut dyn Hasher) {
        hasher.write(&snapshot::to_bytes(self.kept().0));
    }
}

impl<D: Stateful> AnyState for D {
    fn digest(&self, hasher: &mut dyn Hasher) {
        Stateful::digest(self, hasher);
    }

    fn reset_stats(&mut self) {
        let (state, counters) = self.kept_mut();
        *counters = D::Counters::default();
        D::reset_counters_in(state);
    }

    fn fork(&self) -> Box<dyn Durability> {
        Box::new(self.clone())
    }

    fn save(&self) -> Vec<u8> {
        snapshot::to_bytes(&self.kept())
    }
}

/// Puts what [`AnyState::save`] wrote into a design that was just built.
pub(crate) fn load<D: Stateful>(mut built: D, bytes: &[u8]) -> Result<D, SpecError> {
    let (state, counters) = snapshot::from_bytes(bytes)?;
    built.fits(&state).map_err(snapshot::refuse)?;
    let kept = built.kept_mut();
    (*kept.0, *kept.1) = (state, counters);
    built.complete();
    Ok(built)
}

/// Types and accessors of [`Stateful`](crate::Stateful), by the fields of the design: state and counters, only a state, or
/// neither.
#[macro_export]
macro_rules! kept {
    () => {
        $crate::kept!(@ [(); 0], [(); 0], self, [], []);
    };
    ($state:tt: $State:ty) => {
        $crate::kept!(@ $State, [(); 0], self, self.$state, []);
    };
    ($state:tt: $State:ty, $counters:tt: $Counters:ty) => {
        $crate::kept!(@ $State, $Counters, self, self.$state, self.$counters);
    };
    // A design without state or counters has an empty array for them: a reference to one needs no field.
    (@ $State:ty, $Counters:ty, $self:ident, $state:expr, $counters:expr) => {
        type State = $State;
        type Counters = $Counters;

        fn kept(&$self) -> (&Self::State, &Self::Counters) {
            (&$state, &$counters)
        }

        fn kept_mut(&mut $self) -> (&mut Self::State, &mut Self::Counters) {
            (&mut $state, &mut $counters)
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::{Digest, Stats};
    use serde::Deserialize;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Entries {
        lines: Vec<u64>,
        found: u64,
        #[serde(skip)]
        newest: Option<u64>,
    }

    /// A table with room for some lines.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Table {
        room: usize,
        entries: Entries,
        times_full: u64,
    }

    impl Stateful for Table {
        kept!(entries: Entries, times_full: u64);

        fn fits(&self, entries: &Entries) -> Result<(), &'static str> {
            if entries.lines.len() > self.room { Err("more lines than there is room for") } else { Ok(()) }
        }

        fn complete(&mut self) {
            self.entries.newest = self.entries.lines.last().copied();
        }

        fn reset_counters_in(entries: &mut Entries) {
            entries.found = 0;
        }
    }

    impl Durability for Table {
        fn stats(&self, _: &mut Stats) {}
    }

    fn with_room(room: usize) -> Table {
        Table { room, ..Table::default() }
    }

    fn two_lines() -> Table {
        let entries = Entries { lines: vec![7, 9], found: 5, newest: Some(9) };
        Table { entries, times_full: 3, ..with_room(4) }
    }

    fn digest(design: &dyn Durability) -> String {
        let mut digest = Digest::default();
        design.digest(&mut digest);
        digest.hex()
    }

    #[test]
    fn a_snapshot_is_state_then_counters_and_is_completed_when_it_is_loaded() {
        let bytes = two_lines().save();
        assert_eq!(bytes, [2, 7, 9, 5, 3]);
        assert_eq!(load(with_room(4), &bytes), Ok(two_lines()));
        assert_eq!(load(with_room(1), &bytes), Err(snapshot::refuse("more lines than there is room for")));
        assert_eq!(load(with_room(4), &bytes[..4]), Err(snapshot::from_bytes::<u8>(&[]).unwrap_err()));
    }

    #[test]
    fn a_reset_changes_all_counters_and_nothing_else() {
        let mut table = two_lines();
        table.reset_stats();
        let entries = Entries { found: 0, ..two_lines().entries };
        assert_eq!(table, Table { entries, times_full: 0, ..two_lines() });
    }

    #[test]
    fn a_copy_shares_nothing_and_a_digest_covers_no_counters() {
        let mut table = two_lines();
        let (copy, before) = (table.fork(), digest(&table));
        table.times_full += 1;
        assert_eq!(digest(&table), before);
        table.entries.lines.push(11);
        assert_ne!(digest(&table), before);
        assert_eq!(digest(&*copy), before);
    }
}
