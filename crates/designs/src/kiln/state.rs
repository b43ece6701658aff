//! Kiln's state: what is volatile and what the nonvolatile registers hold.

use super::area::{Area, Slots};
use super::banks::Banks;
use super::spec::KilnSpec;
use super::transaction::{Fifo, Phase, Transaction};
use durasim_contract::{ActiveFault, Geometry, LineTag, SpecError, Stateful, Token, kept, snapshot};
use durasim_types::{CoreId, Cycle, Domain, LineAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hasher;

/// The purpose of a write that is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// Lines of a commit are in the last level.
    Flush(TxId),
    /// An old line is in the copy area.
    Copy(TxId, LineAddr),
    /// So is its record.
    Record(TxId, LineAddr),
    /// Old lines are home again, or the records of an abort are cleared.
    Undo,
    /// Records of a commit are cleared; the register of this core is free then.
    Release(CoreId),
    /// Records of a commit of all banks are cleared; nothing names it then.
    Forget(TxId),
}

/// An event that is waited for, and the number of acknowledgements that are outstanding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingAcks {
    pub purpose: Purpose,
    pub left: u64,
    /// Slots of the copy area that are free once it has arrived.
    pub slots: Vec<u64>,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    pub tracked_lines: u64,
    pub flushed_lines: u64,
    pub flush_cycles: Cycle,
    pub blocked_requests: u64,
    pub fifo_full_stalls: u64,
    pub fifo_overflows: u64,
    pub llc_overflows: u64,
    pub committed_pushed_home: u64,
    pub committed_kept: u64,
    pub register_waits: u64,
    pub shared_stores: u64,
    pub undone_lines: u64,
    pub commits: u64,
}

/// The state that changes in a run, in the order of snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contents {
    pub(super) open: BTreeMap<TxId, Transaction>,
    /// The FIFOs of each core.
    pub(super) fifos: Vec<Fifo>,
    /// The nonvolatile committing register of each core.
    pub(super) registers: Vec<Option<TxId>>,
    pub(super) awaited: BTreeMap<Token, PendingAcks>,
    pub(super) slots: Slots,
    pub(super) tokens: u64,
    pub(super) counters: Counters,
    /// The banks of the last level, if commits are distributed over them, as LAD-LLC has it; Kiln has none.
    pub(super) banks: Option<Banks>,
}

#[derive(Clone)]
pub(crate) struct State {
    pub(super) spec: KilnSpec,
    pub(super) area: Area,
    /// Entries of the FIFOs of a core together.
    pub(super) fifo_capacity: usize,
    /// The number of lines whose share in percent starts the fall-back path.
    pub(super) overflow_capacity: usize,
    /// Whether the caches above the last level survive too: commits flush nothing, and there are no FIFOs.
    pub(super) upper_levels_survive: bool,
    /// Whether write queues are lost: what a commit rests on has to be on the media.
    pub(super) queues_are_lost: bool,
    pub(super) contents: Contents,
    pub(super) fault: ActiveFault,
}

impl Stateful for State {
    kept!(contents: Contents);

    fn fits(&self, contents: &Contents) -> Result<(), &'static str> {
        let cores = self.contents.fifos.len();
        if contents.fifos.len() != cores || contents.registers.len() != cores {
            return Err("another number of cores");
        }
        let banks_fit = match (&contents.banks, &self.contents.banks) {
            (Some(banks), Some(fresh)) => banks.fits(fresh),
            (banks, fresh) => banks.is_none() && fresh.is_none(),
        };
        if !banks_fit {
            return Err("other banks of the last level");
        }
        if contents.fifos.iter().any(|fifo| fifo.len() > self.fifo_capacity) {
            return Err("more entries than the FIFOs have");
        }
        let is_missing = |core: CoreId| usize::from(core.0) >= cores;
        if contents.open.values().any(|tx| is_missing(tx.home))
            || contents.awaited.values().any(|a| matches!(a.purpose, Purpose::Release(core) if is_missing(core)))
        {
            return Err("a core that the machine does not have");
        }
        let mut taken = contents.open.values().flat_map(|tx| &tx.copies);
        if !contents.slots.fit(self.area.lines) || taken.any(|(_, old)| !contents.slots.may_be_taken(old.slot)) {
            return Err("places outside of the copy area");
        }
        Ok(())
    }

    fn reset_counters_in(contents: &mut Contents) {
        contents.counters = Counters::default();
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        let Contents { open, fifos, registers, awaited, slots, tokens, counters: _, banks } = &self.contents;
        hasher.write(&snapshot::to_bytes(&(open, fifos, registers, awaited, slots, tokens)));
        if let Some(banks) = banks {
            hasher.write(&snapshot::to_bytes(banks));
        }
    }
}

impl State {
    pub(crate) fn new(spec: &KilnSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        spec.check()?;
        let sets = geometry.llc.sets;
        if sets > 1 << 20 {
            let problem = format!("it makes {sets} sets of the last level, which has 2^20 at most");
            return Err(SpecError::new("llc_size_factor", problem));
        }
        let cores = usize::from(geometry.cores);
        let contents =
            Contents { fifos: vec![Fifo::new(); cores], registers: vec![None; cores], ..Contents::default() };
        Ok(State {
            area: Area::new(spec, geometry),
            fifo_capacity: spec.fifo_capacity(geometry),
            overflow_capacity: spec.overflow_capacity(geometry),
            upper_levels_survive: geometry.domain == Domain::Eadr,
            queues_are_lost: !geometry.domain.queue_is_durable(),
            contents,
            fault: geometry.planted,
            spec: spec.clone(),
        })
    }

    /// Commits are distributed over these banks.
    pub(crate) fn distributed(mut self, banks: Banks) -> Self {
        self.contents.banks = Some(banks);
        self
    }

    /// A new token for this many acknowledgements.
    pub(super) fn expect(&mut self, purpose: Purpose, left: u64, slots: Vec<u64>) -> Token {
        self.contents.tokens += 1;
        let token = Token(self.contents.tokens);
        self.contents.awaited.insert(token, PendingAcks { purpose, left, slots });
        token
    }

    /// The tag of a line of a transaction.
    pub(super) fn tag(&self, tx: TxId, line: LineAddr) -> LineTag {
        self.contents.banks.as_ref().map_or(LineTag(tx.0), |banks| banks.tag(tx, line))
    }

    /// Whether the bank of a line with this tag has committed its transaction.
    pub(super) fn has_flipped_in_bank(&self, tag: LineTag) -> bool {
        self.contents.banks.as_ref().is_some_and(|banks| banks.has_flipped(tag))
    }

    /// The number by which what survives a power failure names a transaction.
    pub(super) fn number(&self, tx: TxId) -> TxId {
        self.contents.banks.as_ref().map_or(tx, |banks| banks.number(tx))
    }

    /// Whether something is still waited for.
    pub(super) fn awaits(&self, token: Token) -> bool {
        self.contents.awaited.contains_key(&token)
    }

    /// Transactions whose lines are being flushed, since when, and what the end of that is.
    pub(super) fn flushes(&self) -> impl Iterator<Item = (&Transaction, Cycle, Token)> {
        self.contents.open.values().filter_map(|tx| match tx.phase {
            Phase::Flushing { since, token, .. } if self.awaits(token) => Some((tx, since, token)),
            _ => None,
        })
    }
}
