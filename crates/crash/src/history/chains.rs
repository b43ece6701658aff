//! From reports to version orders: who wrote which version of an object, who read it, and whether one order of all
//! transactions explains that (K. Kingsbury, P. Alvaro: Elle: Inferring Isolation Anomalies from Experimental
//! Observations, VLDB 2020).
//!
//! Old and new version of each change give the version order of an object. Transactions that write the same object do so
//! in the order in which their commits start; a commit starts before others may see what it brings. From the version
//! orders follow the edges: who wrote a version comes before who read or overwrote it, and who read a version before who
//! overwrote it. Transactions of a thread come in program order, and who was acknowledged before another's operation began
//! comes before it. A cycle means that no order explains what the transactions saw.

use super::log::{NEVER, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// A version of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    /// The writer: an index in the order of commits.
    pub unit: usize,
    pub version: u64,
}

/// The versions of an object. Level 0 is the initial version, level n the one of the n-th write.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    pub object: u64,
    pub initial: u64,
    pub writes: Vec<Write>,
}

impl Chain {
    pub fn version(&self, level: usize) -> u64 {
        if level == 0 { self.initial } else { self.writes[level - 1].version }
    }
}

/// A transaction that started to commit.
#[derive(Clone, Debug)]
pub(super) struct Committed {
    pub unit: Unit,
    /// The versions that it wrote: chain and level.
    pub wrote: Vec<(usize, usize)>,
    /// The writers of the versions that it read.
    pub read_from: Vec<usize>,
}

/// All version orders of a history.
#[derive(Clone, Debug)]
pub(super) struct Chains {
    /// In the order of the objects.
    pub chains: Vec<Chain>,
    /// In the order in which commits started.
    pub committed: Vec<Committed>,
    /// The first thing that no order explains, with the step from which on it holds.
    pub flaw: Option<(u64, String)>,
}

impl Chains {
    /// `units` started to commit, and come in that order; `others` did not.
    pub fn new(units: Vec<Unit>, others: &[Unit], initial: &[(u64, u64)]) -> Self {
        let mut versions: BTreeMap<u64, u64> = initial.iter().copied().collect();
        for touch in units.iter().chain(others).flat_map(|unit| &unit.touched) {
            versions.entry(touch.object).or_default();
        }
        let chains: Vec<Chain> =
            versions.into_iter().map(|(object, initial)| Chain { object, initial, writes: Vec::new() }).collect();
        let mut builder = Builder {
            readers: vec![BTreeMap::new(); chains.len()],
            chains,
            before: Vec::new(),
            last_of_thread: BTreeMap::new(),
            committed: Vec::new(),
            flaw: None,
        };
        units.into_iter().for_each(|unit| builder.add(unit));
        Chains { chains: builder.chains, committed: builder.committed, flaw: builder.flaw }
    }
}

struct Builder {
    chains: Vec<Chain>,
    /// Of each chain, who read which level.
    readers: Vec<BTreeMap<usize, Vec<usize>>>,
    /// The predecessors of each transaction, without those that follow from the order of acknowledgements.
    before: Vec<Vec<usize>>,
    last_of_thread: BTreeMap<u32, usize>,
    committed: Vec<Committed>,
    flaw: Option<(u64, String)>,
}

impl Builder {
    /// Notes what no order explains, if it is the first thing.
    fn refuse(&mut self, from: u64, what: impl FnOnce() -> String) {
        self.flaw.get_or_insert_with(|| (from, what()));
    }

    fn unit(&self, index: usize) -> &Unit {
        &self.committed[index].unit
    }

    /// The newest level of a chain whose writer has not aborted.
    fn top(&self, chain: usize) -> usize {
        let live = |write: &Write| self.unit(write.unit).aborted == NEVER;
        self.chains[chain].writes.iter().rposition(live).map_or(0, |index| index + 1)
    }

    fn writer(&self, chain: usize, level: usize) -> Option<usize> {
        level.checked_sub(1).map(|index| self.chains[chain].writes[index].unit)
    }

    fn add(&mut self, unit: Unit) {
        let index = self.committed.len();
        let changes = self.net_changes(&unit);
        let live = unit.aborted == NEVER;
        let thread = unit.thread;
        let mut stale = Vec::new();
        self.committed.push(Committed { unit, wrote: Vec::new(), read_from: Vec::new() });
        self.before.push(Vec::new());
        for (object, (old, new)) in changes {
            let chain = self.chains.binary_search_by_key(&object, |chain| chain.object).expect("every object has one");
            if old != new {
                if live {
                    self.overwrite(index, chain, old);
                }
                self.chains[chain].writes.push(Write { unit: index, version: new });
                let level = self.chains[chain].writes.len();
                self.committed[index].wrote.push((chain, level));
            } else if live {
                stale.extend(self.read(index, chain, old).map(|next| (next, object, old)));
            }
        }
        if live && let Some(previous) = self.last_of_thread.insert(thread, index) {
            self.before[index].push(previous);
        }
        for (next, object, version) in stale {
            self.follow(index, next, object, version);
        }
    }

    /// The net change of each object by a transaction.
    fn net_changes(&mut self, unit: &Unit) -> BTreeMap<u64, (u64, u64)> {
        let mut changes: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for touch in &unit.touched {
            let change = changes.entry(touch.object).or_insert((touch.old, touch.old));
            if change.1 != touch.old && unit.aborted == NEVER {
                let left = change.1;
                self.refuse(unit.committing, || {
                    format!(
                        "{} left version {left:#x} of object {:#x} and then found version {:#x}",
                        unit.name(),
                        touch.object,
                        touch.old
                    )
                });
            }
            change.1 = touch.new;
        }
        changes
    }

    /// A transaction writes the next version of an object.
    fn overwrite(&mut self, index: usize, chain: usize, old: u64) {
        let top = self.top(chain);
        let (object, newest) = (self.chains[chain].object, self.chains[chain].version(top));
        if newest != old {
            let what = format!(
                "{} overwrote version {old:#x} of object {object:#x}, but {newest:#x} was committed before it",
                self.unit(index).name()
            );
            self.refuse(self.unit(index).committing, || what);
        }
        let writer = self.writer(chain, top);
        self.before[index].extend(writer);
        if let Some(readers) = self.readers[chain].get(&top) {
            self.before[index].extend(readers.iter().copied().filter(|reader| *reader != index));
        }
    }

    /// A transaction reads a version of an object. If that has been overwritten: by whom.
    fn read(&mut self, index: usize, chain: usize, version: u64) -> Option<usize> {
        let top = self.top(chain);
        let is_live = |level: usize| self.writer(chain, level).is_none_or(|w| self.unit(w).aborted == NEVER);
        let found = (0..=top).rev().find(|&level| self.chains[chain].version(level) == version && is_live(level));
        let next = found.and_then(|found| (found + 1..=top).find(|&level| is_live(level)));
        let Some(level) = found else {
            let (unit, object) = (self.unit(index), self.chains[chain].object);
            let what = format!(
                "{} read version {version:#x} of object {object:#x}, which no transaction had committed",
                unit.name()
            );
            self.refuse(unit.committing, || what);
            return None;
        };
        if let Some(writer) = self.writer(chain, level) {
            self.before[index].push(writer);
            self.committed[index].read_from.push(writer);
        }
        self.readers[chain].entry(level).or_default().push(index);
        next.and_then(|next| self.writer(chain, next))
    }

    /// A transaction read a version that `next` has overwritten, which started to commit earlier. It comes before `next`,
    /// and that is possible unless `next` also comes before it.
    fn follow(&mut self, index: usize, next: usize, object: u64, version: u64) {
        self.before[next].push(index);
        if self.comes_before(next, index) {
            let (unit, newer) = (self.unit(index), self.unit(next));
            let how = if newer.acknowledged < unit.begun {
                "which was acknowledged before it began"
            } else {
                "which comes before it"
            };
            let what = format!(
                "{} read the stale version {version:#x} of object {object:#x}; {}, {how}, had overwritten it",
                unit.name(),
                newer.name()
            );
            self.refuse(unit.committing, || what);
        }
    }

    /// Whether `first` has to come before `last`.
    fn comes_before(&self, first: usize, last: usize) -> bool {
        let mut acknowledged: Vec<(u64, usize)> = self
            .committed
            .iter()
            .enumerate()
            .filter(|(_, c)| c.unit.acknowledged != NEVER)
            .map(|(index, c)| (c.unit.acknowledged, index))
            .collect();
        acknowledged.sort_unstable();
        let mut acknowledged = acknowledged.into_iter().peekable();
        let mut seen = BTreeSet::from([last]);
        let mut todo = vec![last];
        while let Some(index) = todo.pop() {
            let mut earlier = self.before[index].clone();
            let begun = self.unit(index).begun;
            while let Some((_, index)) = acknowledged.next_if(|(step, _)| *step < begun) {
                earlier.push(index);
            }
            for index in earlier {
                if index == first {
                    return true;
                }
                if seen.insert(index) {
                    todo.push(index);
                }
            }
        }
        false
    }
}
