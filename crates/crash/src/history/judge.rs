//! The judgement of a dump at a moment of the history.

use super::chains::{Chain, Chains, Committed};
use super::dump::Dump;
use super::log::{HistoryRecorder, NEVER, Position, Unit};
use crate::byte_oracle::Verdict;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Steps of the search after which the oracle gives up. Where versions are unique it needs none.
const SEARCH_STEPS_MAX: u32 = 1 << 20;

/// A recorded history, ready to judge. Copies share it.
#[derive(Clone, Debug)]
pub struct HistoryOracle(Arc<Judge>);

#[derive(Debug)]
struct Judge {
    chains: Vec<Chain>,
    /// In the order in which commits started.
    committed: Vec<Committed>,
    /// From which step on each of them has to be there.
    due: Vec<u64>,
    /// The first of those before each that was neither due nor aborted when its commit started.
    oldest: Vec<usize>,
    /// Transactions that never started to commit.
    others: Vec<Unit>,
    after: Vec<u64>,
    flaw: Option<(u64, String)>,
}

impl HistoryOracle {
    /// Makes an oracle of what has been recorded. `initial` is the pool before the run; `epochs` says how many further
    /// epochs it may take until an acknowledged transaction survives, nothing that it survives at once.
    pub fn new(recorder: &HistoryRecorder, initial: &Dump, epochs: Option<u32>) -> Self {
        let log = recorder.with(|log| log.clone());
        let (mut committed, others): (Vec<Unit>, Vec<Unit>) =
            log.units.into_iter().filter(|unit| !unit.touched.is_empty()).partition(|unit| unit.committing != NEVER);
        committed.sort_by_key(|unit| unit.committing);
        let due = |unit: &Unit| match epochs {
            _ if unit.acknowledged == NEVER => NEVER,
            None => unit.acknowledged,
            Some(further) => {
                let ended = log.epoch_ends.partition_point(|end| *end < unit.acknowledged);
                log.epoch_ends.get(ended + further as usize).copied().unwrap_or(NEVER)
            }
        };
        let due: Vec<u64> = committed.iter().map(due).collect();
        let mut oldest = Vec::with_capacity(due.len());
        let mut first = 0;
        for (index, unit) in committed.iter().enumerate() {
            while first < index && due[first].min(committed[first].aborted) <= unit.committing {
                first += 1;
            }
            oldest.push(first);
        }
        let Chains { chains, committed, flaw } = Chains::new(committed, &others, initial.pairs());
        let flaw = [flaw, log.nonsense].into_iter().flatten().min();
        HistoryOracle(Arc::new(Judge { chains, committed, due, oldest, others, after: log.after, flaw }))
    }

    /// The moment at which the image of persist event `event` is judged: just before the next event.
    pub fn position_after(&self, event: u64) -> Position {
        Position(self.0.after.partition_point(|after| *after <= event) as u64)
    }

    /// The moment of persist event `event` itself: nothing has happened since.
    pub fn position_at(&self, event: u64) -> Position {
        Position(self.0.after.partition_point(|after| *after < event) as u64)
    }

    /// Transactions with reports that started to commit.
    pub fn transactions(&self) -> usize {
        self.0.committed.len()
    }

    /// Objects that are known.
    pub fn objects(&self) -> usize {
        self.0.chains.len()
    }

    /// Judges what a pool holds that was recovered from a crash at `at`. The history itself is judged up to there, too.
    pub fn judge(&self, at: Position, dump: &Dump) -> Verdict {
        if let Some((step, what)) = &self.0.flaw
            && *step < at.0
        {
            return Verdict::Wrong(format!("without any crash: {what}"));
        }
        match (HistoryPrefix { judge: &self.0, at: at.0 }).explain(dump) {
            Ok(()) => Verdict::Right,
            Err(what) => Verdict::Wrong(what),
        }
    }
}

/// A history up to a step.
struct HistoryPrefix<'a> {
    judge: &'a Judge,
    at: u64,
}

/// The levels that an object may have.
struct Domain {
    chain: usize,
    /// The least level, and the one after the last.
    floor: usize,
    end: usize,
    /// Those of them that the dump allows.
    levels: Vec<usize>,
}

/// The progress of the search with an object.
#[derive(Default)]
struct Tried {
    /// The number of its levels that have been tried.
    levels: usize,
    /// The transactions whose presence the last of these has decided.
    decided: Vec<usize>,
}

/// The transactions in progress that are known to have survived, or not.
type Presence = BTreeMap<usize, bool>;

impl HistoryPrefix<'_> {
    fn has_come(&self, step: u64) -> bool {
        step < self.at
    }

    fn unit(&self, index: usize) -> &Unit {
        &self.judge.committed[index].unit
    }

    fn is_due(&self, index: usize) -> bool {
        self.has_come(self.judge.due[index])
    }

    fn is_aborted(&self, index: usize) -> bool {
        self.has_come(self.unit(index).aborted)
    }

    /// The lowest possible level of an object, and the one after the highest.
    fn bounds(&self, chain: &Chain, commits: usize) -> (usize, usize) {
        let end = chain.writes.partition_point(|write| write.unit < commits) + 1;
        let due = chain.writes[..end - 1].iter().rposition(|write| self.is_due(write.unit));
        (due.map_or(0, |index| index + 1), end)
    }

    /// Finds a set of transactions that gives the dump, or says why there is none.
    fn explain(&self, dump: &Dump) -> Result<(), String> {
        let commits = self.judge.committed.partition_point(|c| self.has_come(c.unit.committing));
        let mut domains = Vec::new();
        let mut pairs = dump.pairs().iter().copied().peekable();
        let nowhere =
            |(object, version)| Err(format!("no transaction wrote version {version:#x} of object {object:#x}"));
        for (number, chain) in self.judge.chains.iter().enumerate() {
            if let Some(unknown) = pairs.next_if(|(object, _)| *object < chain.object) {
                return nowhere(unknown);
            }
            let found = pairs.next_if(|(object, _)| *object == chain.object).map_or(0, |(_, version)| version);
            let (floor, end) = self.bounds(chain, commits);
            let may_have = |level: usize| level == floor || !self.is_aborted(chain.writes[level - 1].unit);
            let levels: Vec<usize> =
                (floor..end).filter(|&level| chain.version(level) == found && may_have(level)).collect();
            if levels.is_empty() {
                return Err(self.describe(chain, found, floor));
            }
            if end - floor > 1 {
                domains.push(Domain { chain: number, floor, end, levels });
            }
        }
        if let Some(unknown) = pairs.next() {
            return nowhere(unknown);
        }
        let recent = self.recent(commits);
        // A transaction is due if a due transaction has overwritten its data. One that aborts later was not
        // overwritten.
        let mut presence = Presence::new();
        for &index in recent.iter().filter(|index| !self.is_due(**index)) {
            let kept = |(chain, level): &(usize, usize)| *level <= self.bounds(&self.judge.chains[*chain], commits).0;
            if self.judge.committed[index].wrote.iter().any(kept) {
                presence.insert(index, self.unit(index).aborted == NEVER);
            }
        }
        domains.sort_by_key(|domain| domain.levels.len());
        self.search(&domains, presence, &recent)
    }

    /// The transactions from the first on that is in progress: inside commit, or acknowledged and not due.
    fn recent(&self, commits: usize) -> Vec<usize> {
        let first = commits.checked_sub(1).map_or(0, |last| self.judge.oldest[last]);
        (first..commits).filter(|&index| !self.is_aborted(index)).collect()
    }

    /// Chooses a level for every object, so that the transactions that are there then may be there without the others; else
    /// says why the first choice was wrong. It goes as deep as there are objects in question, so it keeps its own stack.
    fn search(&self, domains: &[Domain], mut presence: Presence, recent: &[usize]) -> Result<(), String> {
        let mut tried = vec![Tried::default()];
        let (mut steps, mut first) = (0, None);
        while let Some(depth) = tried.len().checked_sub(1) {
            let Some(domain) = domains.get(depth) else {
                match self.is_allowed(&presence, recent) {
                    Ok(()) => return Ok(()),
                    Err(what) => first = first.or(Some(what)),
                }
                tried.pop();
                continue;
            };
            let here = &mut tried[depth];
            for index in here.decided.drain(..) {
                presence.remove(&index);
            }
            let Some(&level) = domain.levels.get(here.levels) else {
                tried.pop();
                continue;
            };
            here.levels += 1;
            steps += 1;
            if steps > SEARCH_STEPS_MAX {
                return Err("too many versions are equal to decide which transactions survived".into());
            }
            match self.choose(domain, level, &mut presence, &mut here.decided) {
                Ok(()) => tried.push(Tried::default()),
                Err(what) => first = first.or(Some(what)),
            }
        }
        Err(first.expect("a domain has a level"))
    }

    /// An object has this level: decides the presence of transactions, if that agrees with the others. Those that were
    /// undecided before are added to `decided`.
    fn choose(
        &self,
        domain: &Domain,
        level: usize,
        presence: &mut Presence,
        decided: &mut Vec<usize>,
    ) -> Result<(), String> {
        let chain = &self.judge.chains[domain.chain];
        for at in domain.floor + 1..domain.end {
            let index = chain.writes[at - 1].unit;
            if self.is_aborted(index) {
                continue;
            }
            // No transaction overwrote the version of one that was aborted later.
            let there = if self.unit(index).aborted == NEVER { at <= level } else { at == level };
            match presence.get(&index) {
                Some(known) if *known != there => {
                    return Err(format!(
                        "{} survived in part: object {:#x} {} it",
                        self.unit(index).name(),
                        chain.object,
                        if there { "shows" } else { "does not show" }
                    ));
                }
                Some(_) => {}
                None => {
                    presence.insert(index, there);
                    decided.push(index);
                }
            }
        }
        Ok(())
    }

    /// Whether a set of transactions in progress may be there without the others. Who only read leaves no trace of its own,
    /// but is there if a later one needs it, and then needs others in turn.
    fn is_allowed(&self, presence: &Presence, recent: &[usize]) -> Result<(), String> {
        let is_missing = |index: usize| presence.get(&index) == Some(&false);
        let is_there = |index: usize| self.is_due(index) || presence.get(&index) == Some(&true);
        let mut needed: Vec<usize> = recent.iter().copied().filter(|index| is_there(*index)).collect();
        let mut known: BTreeSet<usize> = needed.iter().copied().collect();
        while let Some(index) = needed.pop() {
            let unit = self.unit(index);
            let read = &self.judge.committed[index].read_from;
            for &earlier in recent.iter().filter(|earlier| **earlier != index) {
                let other = self.unit(earlier);
                let why = if read.contains(&earlier) {
                    "whose version it read"
                } else if other.acknowledged < unit.begun {
                    "acknowledged before it began"
                } else if other.thread == unit.thread && earlier < index {
                    "which its thread committed before"
                } else {
                    continue;
                };
                if is_missing(earlier) {
                    return Err(format!("{} survived, but not {}, {why}", unit.name(), other.name()));
                }
                if known.insert(earlier) {
                    needed.push(earlier);
                }
            }
        }
        Ok(())
    }

    /// Says why an object may not have a version.
    fn describe(&self, chain: &Chain, found: u64, floor: usize) -> String {
        let object = chain.object;
        let shown = if found == 0 { "is not there".to_owned() } else { format!("has version {found:#x}") };
        let brought =
            |unit: &&Unit| unit.touched.iter().any(|t| t.object == object && t.new == found && t.old != t.new);
        let lost = (0..floor).rev().find(|level| chain.version(*level) == found).map(|level| {
            let next = (level + 1..=floor).find(|level| self.is_due(chain.writes[level - 1].unit));
            let unit = self.unit(chain.writes[next.expect("the floor is due") - 1].unit);
            format!("object {object:#x} {shown}: {} is lost, although it had to survive", unit.name())
        });
        lost.unwrap_or_else(|| {
            let committed = self.judge.committed.iter().map(|c| &c.unit);
            let open = committed.chain(&self.judge.others).filter(brought).max_by_key(|unit| unit.begun);
            match open {
                Some(unit) if self.has_come(unit.aborted) => {
                    format!("object {object:#x} {shown}, of {}, which aborted", unit.name())
                }
                Some(unit) => {
                    format!("object {object:#x} {shown}, of {}, whose commit had not started", unit.name())
                }
                None => format!("object {object:#x} {shown}, which no transaction wrote"),
            }
        })
    }
}
