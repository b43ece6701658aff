//! The step that a program lacks between a store and what relies on it.

use crate::store_log::{Step, StoreLog};
use durasim_machine::Insertion;
use durasim_types::{CoreId, LineAddr};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Cleans of other lines after a store that are looked at.
const CLEANS_MAX: usize = 64;

/// The step that is missing before what relies on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// The line of the store is not cleaned after it.
    NoClean,
    /// Its line is cleaned just before it, and not after it.
    CleanBeforeStore,
    /// Another line is cleaned after it, which has nothing to write back.
    CleanOfAnotherLine,
    /// Its line is cleaned, and no fence waits for that.
    NoFence,
    /// Its line is cleaned, and the fence after that has no W in its predecessor set.
    OtherFence,
    /// The step that relies on it becomes durable first: its line is cleaned later, or it is made later.
    Order,
    /// Nothing that a program could do: its line is cleaned and a fence has waited for that, or every store survives.
    Nothing,
    /// The store is durable, though its transaction has not committed, or though it should not be yet.
    Undo,
}

/// A store that an image lacks, in its log, and what relies on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The store.
    pub store: usize,
    /// The step before which it had to be durable, if that is known.
    pub before: Option<usize>,
    /// Steps up to the power failure.
    pub made: usize,
}

impl Gap {
    /// The missing step, and the operation that the machine may insert in its place, with the instruction before it.
    pub fn missing(&self, log: &StoreLog, stores_survive: bool) -> (Missing, Option<(u64, Insertion)>) {
        let Some((_, write)) = log.store(self.store) else { return (Missing::Nothing, None) };
        let before = self.before.unwrap_or(self.made);
        if self.store >= before {
            return (Missing::Order, None);
        }
        if stores_survive {
            return (Missing::Nothing, None);
        }
        let (line, made) = (write.addr.line(), log.steps[self.store]);
        let after = self.store + 1..before;
        if let Some(clean) = first_clean(log, line, after.clone()) {
            let (core, pc) = (log.steps[clean].core, log.steps[clean].site.pc);
            let insertion = Some((pc, Insertion::Fence));
            return match fences(log, core, clean + 1..before) {
                (true, _) => (Missing::Nothing, None),
                (false, true) => (Missing::OtherFence, insertion),
                (false, false) => (Missing::NoFence, insertion),
            };
        }
        let (has_fence, _) = fences(log, made.core, after.clone());
        let insertion = Some((made.site.pc, if has_fence { Insertion::Clean } else { Insertion::CleanAndFence }));
        let missing = if is_cleaned_late(log, line, made.core, before) {
            Missing::Order
        } else if is_cleaned_early(log, line, made.core, self.store) {
            Missing::CleanBeforeStore
        } else if cleans_in_vain(log, made.core, line, after) {
            Missing::CleanOfAnotherLine
        } else {
            Missing::NoClean
        };
        (missing, insertion)
    }
}

/// The first step of a range that cleans a line.
pub(super) fn first_clean(log: &StoreLog, line: LineAddr, mut steps: Range<usize>) -> Option<usize> {
    steps.find(|&index| log.steps[index].step == Step::Clean(line))
}

/// Whether a core makes a fence that waits for cleans in a range of steps, and whether it makes another one.
fn fences(log: &StoreLog, core: CoreId, steps: Range<usize>) -> (bool, bool) {
    let mut found = (false, false);
    for logged in log.steps[steps].iter().filter(|logged| logged.core == core) {
        found.0 |= logged.step == Step::Fence;
        found.1 |= logged.step == Step::OtherFence;
    }
    found
}

/// Whether a line is cleaned after a step and before the next fence of a core: together with what relies on it, or after it.
fn is_cleaned_late(log: &StoreLog, line: LineAddr, core: CoreId, from: usize) -> bool {
    let is_fence = |index: &usize| log.steps[*index].core == core && log.steps[*index].step == Step::Fence;
    let steps = from..log.steps.len();
    // The fence of what relies on it comes first, then that of the store, if it has one of its own.
    let ends = steps.clone().filter(is_fence).nth(1).unwrap_or(log.steps.len());
    let stored_again = |index: usize| log.store(index).is_some_and(|(_, write)| write.addr.line() == line);
    let mut untouched = (from..ends).take_while(|&index| !stored_again(index));
    untouched.any(|index| log.steps[index].step == Step::Clean(line))
}

/// Whether a core has cleaned a line between its last fence and a store to the line.
fn is_cleaned_early(log: &StoreLog, line: LineAddr, core: CoreId, store: usize) -> bool {
    let own = log.steps[..store].iter().rev().filter(|logged| logged.core == core);
    own.take_while(|logged| logged.step != Step::Fence).any(|logged| logged.step == Step::Clean(line))
}

/// Whether a core cleans another line than `line` in a range of steps that has had no store since it was cleaned last.
fn cleans_in_vain(log: &StoreLog, core: CoreId, line: LineAddr, steps: Range<usize>) -> bool {
    let concerns = |index: usize, other: LineAddr| match log.steps[index].step {
        Step::Clean(cleaned) => (cleaned == other).then_some(false),
        Step::Store(_, write) => (write.addr.line() == other).then_some(true),
        _ => None,
    };
    let cleans = steps.filter(|&index| log.steps[index].core == core).filter_map(|index| match log.steps[index].step {
        Step::Clean(other) if other != line => Some((index, other)),
        _ => None,
    });
    cleans.take(CLEANS_MAX).any(|(index, other)| {
        let is_stored = (0..index).rev().find_map(|before| concerns(before, other));
        !is_stored.unwrap_or(false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_log::Logged;
    use durasim_types::{PhysAddr, Site, Write};

    const A: LineAddr = LineAddr(0x40);
    const B: LineAddr = LineAddr(0x80);
    const CORE: CoreId = CoreId(0);

    fn store(line: LineAddr) -> Step {
        Step::Store(None, Write { addr: PhysAddr(line.base().0 + 8), len: 8, data: 1 })
    }

    /// The missing step for the store with this number, on which the step `before` relies.
    fn found(steps: &[Step], index: usize, before: usize) -> (Missing, Option<(u64, Insertion)>) {
        let logged =
            |(pc, step): (u64, &Step)| Logged { core: CORE, site: Site { pc, ..Site::default() }, step: *step };
        let mut log = StoreLog::default();
        log.steps.extend((0..).zip(steps).map(logged));
        Gap { store: index, before: Some(before), made: steps.len() }.missing(&log, false)
    }

    #[test]
    fn each_kind_of_gap_has_its_name_and_its_repair() {
        use Step::{Clean, Fence, OtherFence};
        let clean = Some((0, Insertion::Clean));
        let both = Some((0, Insertion::CleanAndFence));
        let fence = Some((1, Insertion::Fence));
        assert_eq!(found(&[store(A), Fence, store(B), Clean(B), Fence], 0, 3), (Missing::NoClean, clean));
        assert_eq!(found(&[store(A), store(B), Clean(B), Fence], 0, 2), (Missing::NoClean, both));
        assert_eq!(found(&[store(A), Clean(A), store(B), Clean(B), Fence], 0, 3), (Missing::NoFence, fence));
        assert_eq!(
            found(&[store(A), Clean(A), OtherFence, store(B), Clean(B), Fence], 0, 4),
            (Missing::OtherFence, fence)
        );
        assert_eq!(
            found(&[Clean(A), store(A), Fence, store(B), Clean(B), Fence], 1, 4),
            (Missing::CleanBeforeStore, Some((1, Insertion::Clean)))
        );
        let another = LineAddr(0x41);
        assert_eq!(
            found(&[store(A), Clean(another), Fence, store(B), Clean(B), Fence], 0, 4),
            (Missing::CleanOfAnotherLine, clean)
        );
        assert_eq!(found(&[store(A), store(B), Clean(B), Clean(A), Fence], 0, 2), (Missing::Order, both));
        assert_eq!(found(&[store(B), Clean(B), Fence, store(A), Clean(A), Fence], 3, 1), (Missing::Order, None));
        assert_eq!(found(&[store(A), Clean(A), Fence, store(B), Clean(B)], 0, 4), (Missing::Nothing, None));
    }

    #[test]
    fn a_clean_for_a_later_store_is_none_for_this_one() {
        let steps = [store(A), store(B), Step::Clean(B), Step::Fence, store(A), Step::Clean(A), Step::Fence];
        assert_eq!(found(&steps, 0, 2).0, Missing::NoClean);
    }
}
