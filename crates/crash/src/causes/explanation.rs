//! The explanation of one image that fails.

use super::contents::{Contents, Words};
use super::missing_step::{Gap, first_clean};
use super::needed::{last_wrong, needed};
use super::retaken::Case;
use crate::judge::Judge;
use crate::outcome::Oracle;
use crate::store_log::{Step, StoreLog};
use crate::trial::{NextFailure, PowerFault, Trial};
use durasim_types::{LineAddr, Pages, TxId};
use std::collections::{BTreeMap, BTreeSet};

/// Instructions whose stores one image needs, and lines that they are to.
const NEEDED_MAX: usize = 12;
/// Later moments of the run whose contents are tried.
const MOMENTS_MAX: usize = 24;

/// The kind of an error in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Stores before the power failure are not there.
    Lost,
    /// Stores are needed that come after what relied on them was durable.
    Later,
    /// A store is there that should not be.
    Early,
}

impl Found {
    /// Its name in documents; the last power failure of the trial may have torn a line.
    pub fn name(self, trial: &Trial) -> &'static str {
        let last = match trial.then.last() {
            Some(NextFailure::GuestRecovery(_, fault) | NextFailure::Work(_, fault)) => *fault,
            Some(NextFailure::Recovery(_)) | None => trial.fault,
        };
        match self {
            Found::Lost if matches!(last, PowerFault::Torn(_)) => "torn",
            Found::Lost => "lost",
            Found::Later => "later",
            Found::Early => "early",
        }
    }
}

/// The stores that explain why an image fails.
#[derive(Clone, Debug)]
pub(super) struct Explanation {
    pub what: Found,
    /// The instructions of the stores.
    pub pcs: BTreeSet<u64>,
    /// The stores, in their order.
    stores: Vec<usize>,
    /// The step that relied on them.
    pub relied: Option<usize>,
    /// The step before which they had to be durable.
    before: Option<usize>,
    /// Steps before the power failure.
    pub made: usize,
}

impl Explanation {
    /// The first store of each of these instructions, in the order of the run.
    pub fn stores_at(&self, log: &StoreLog, pcs: &BTreeSet<u64>) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let is_first = |store: &&usize| {
            let pc = log.steps[**store].site.pc;
            pcs.contains(&pc) && seen.insert(pc)
        };
        self.stores.iter().filter(is_first).copied().collect()
    }

    /// The gap between one of the stores and what relied on it.
    pub fn gap(&self, store: usize) -> Gap {
        Gap { store, before: self.before, made: self.made }
    }
}

/// An image that fails, and the questions that can be asked about it.
pub(super) struct Failing<'f, 'j> {
    log: &'f StoreLog,
    case: &'f Case,
    contents: Contents<'f>,
    judge: &'f mut Judge<'j>,
    checks_left: &'f mut u64,
}

impl<'f, 'j> Failing<'f, 'j> {
    pub fn new(
        log: &'f StoreLog,
        words: &'f Words,
        case: &'f Case,
        judge: &'f mut Judge<'j>,
        checks_left: &'f mut u64,
    ) -> Self {
        let contents = Contents::of(&case.image.pmem, words, &log.initial, case.made);
        Failing { log, case, contents, judge, checks_left }
    }

    fn passes(&mut self, pmem: Pages) -> bool {
        if *self.checks_left == 0 {
            return false;
        }
        *self.checks_left -= 1;
        let mut image = self.case.image.clone();
        image.pmem = pmem;
        self.judge.conclude(image, &self.case.report, &self.case.allowed).objections.is_empty()
    }

    fn passes_with_stores(&mut self, stores: impl IntoIterator<Item = usize>) -> bool {
        let pages = self.contents.with(&stores.into_iter().collect());
        self.passes(pages)
    }

    /// Whether it passes once it has the stores of these instructions that it lacks.
    pub fn passes_with(&mut self, pcs: &BTreeSet<u64>) -> bool {
        let missing = self.contents.missing(self.case.made);
        let chosen: Vec<usize> =
            missing.into_iter().filter(|&store| pcs.contains(&self.log.steps[store].site.pc)).collect();
        !chosen.is_empty() && self.passes_with_stores(chosen)
    }

    /// The stores that explain it; `None` if none are found.
    pub fn explain(&mut self) -> Option<Explanation> {
        let Some(missing) = self.missing_that_suffice() else { return self.explain_early() };
        let (log, made) = (self.log, self.case.made);
        let by_pc = grouped(&missing, |store| log.steps[store].site.pc);
        let groups = needed(&by_pc, NEEDED_MAX, |some| self.passes_with_stores(all_of(some)))?;
        let pcs: BTreeSet<u64> = groups.iter().map(|(pc, _)| *pc).collect();
        let line_of = |store: usize| log.store(store).map_or(LineAddr(0), |(_, write)| write.addr.line());
        let chosen: Vec<usize> = missing.into_iter().filter(|&store| pcs.contains(&log.steps[store].site.pc)).collect();
        let by_line = grouped(&chosen, line_of);
        let lines = match by_line.len() {
            1 => by_line,
            // Too many lines: all of them.
            _ => needed(&by_line, NEEDED_MAX, |some| self.passes_with_stores(all_of(some))).unwrap_or(by_line),
        };
        let stores: Vec<usize> = all_of(&lines).into_iter().collect::<BTreeSet<usize>>().into_iter().collect();
        let relied = self.relied(&stores);
        let before = relied.map(|relied| self.durable_from(relied));
        let is_late = stores.first().is_some_and(|store| *store >= before.unwrap_or(made));
        let what = if is_late { Found::Later } else { Found::Lost };
        let pcs = stores.iter().map(|&store| log.steps[store].site.pc).collect();
        Some(Explanation { what, pcs, stores, relied, before, made })
    }

    /// Stores that the image lacks and that make it pass: all up to the power failure, those of acknowledged transactions and
    /// outside of any, or all up to a fence or an acknowledgement that comes later.
    fn missing_that_suffice(&mut self) -> Option<Vec<usize>> {
        let (log, made) = (self.log, self.case.made);
        let missing = self.contents.missing(made);
        if !missing.is_empty() && self.passes_with_stores(missing.iter().copied()) {
            return Some(missing);
        }
        let acknowledged: BTreeSet<TxId> = acknowledged(log, made).into_keys().collect();
        let is_promised =
            |store: &usize| log.store(*store).is_some_and(|(tx, _)| tx.is_none_or(|tx| acknowledged.contains(&tx)));
        let promised: Vec<usize> = missing.iter().copied().filter(is_promised).collect();
        if !promised.is_empty() && promised.len() < missing.len() && self.passes_with_stores(promised.iter().copied()) {
            return Some(promised);
        }
        let is_moment = |index: &usize| matches!(log.steps[*index].step, Step::Fence | Step::Acknowledged(_));
        let moments: Vec<usize> =
            (made..log.steps.len()).filter(is_moment).chain([log.steps.len()]).take(MOMENTS_MAX).collect();
        let later = moments.into_iter().map(|moment| self.contents.missing(moment));
        let later: Vec<Vec<usize>> = later.filter(|later| later.len() > missing.len()).collect();
        later.into_iter().find(|later| self.passes_with_stores(later.iter().copied()))
    }

    /// The step that relied on lost stores: the acknowledgement of their transaction, the fence that promised them, or a
    /// durable store with which the image begins to fail.
    fn relied(&mut self, stores: &[usize]) -> Option<usize> {
        let (log, made) = (self.log, self.case.made);
        let first = *stores.first()?;
        let (tx, write) = log.store(first)?;
        if let Some(tx) = tx
            && let Some(&index) = acknowledged(log, made).get(&tx)
        {
            return Some(index);
        }
        if self.case.objecting.contains(&Oracle::Bytes)
            && let Some(clean) = first_clean(log, write.addr.line(), first + 1..made.max(first + 1))
        {
            let core = log.steps[clean].core;
            let is_fence = |index: &usize| log.steps[*index].core == core && log.steps[*index].step == Step::Fence;
            return (clean..made).find(is_fence);
        }
        self.durable_wrong()
    }

    fn durable_wrong(&mut self) -> Option<usize> {
        let durable = self.contents.durable();
        last_wrong(&durable, |some| {
            let next = durable.get(some.len()).copied().unwrap_or(usize::MAX);
            let pages = self.contents.without_from(next);
            self.passes(pages)
        })
        .copied()
    }

    /// The step with which something relied on is durable: a store with the clean of its line, if that comes before the power
    /// failure.
    fn durable_from(&self, relied: usize) -> usize {
        let (log, made) = (self.log, self.case.made);
        let clean = log
            .store(relied)
            .and_then(|(_, write)| first_clean(log, write.addr.line(), relied + 1..made.max(relied + 1)));
        clean.unwrap_or(relied)
    }

    /// No store that it lacks would help: one that it has should not be there.
    fn explain_early(&mut self) -> Option<Explanation> {
        let store = self.durable_wrong()?;
        Some(Explanation {
            what: Found::Early,
            pcs: BTreeSet::from([self.log.steps[store].site.pc]),
            stores: vec![store],
            relied: None,
            before: None,
            made: self.case.made,
        })
    }
}

/// The acknowledgements among the first `made` steps, by transaction.
fn acknowledged(log: &StoreLog, made: usize) -> BTreeMap<TxId, usize> {
    let steps = log.steps[..made.min(log.steps.len())].iter().enumerate();
    steps
        .filter_map(|(index, logged)| if let Step::Acknowledged(tx) = logged.step { Some((tx, index)) } else { None })
        .collect()
}

/// Stores by a property, in the order of the first one of each group.
fn grouped<K: PartialEq + Ord + Copy>(stores: &[usize], of: impl Fn(usize) -> K) -> Vec<(K, Vec<usize>)> {
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for &store in stores {
        let key = of(store);
        let place = *places.entry(key).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, group)) => group.push(store),
            None => groups.push((key, vec![store])),
        }
    }
    groups
}

fn all_of<K>(groups: &[(K, Vec<usize>)]) -> Vec<usize> {
    groups.iter().flat_map(|(_, stores)| stores).copied().collect()
}
