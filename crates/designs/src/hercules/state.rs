//! The state of Hercules while the machine runs, and its snapshots.

use super::controller::{Part, PartContents};
use super::observe::Counters;
use super::registers::{Phase, Registers};
use super::spec::{HerculesSpec, TxLenStore};
use super::steps::migration::may_migrate;
use super::zone::LogZone;
use durasim_design::{
    AbortCause, Action, Actions, ActiveFault, Evict, Geometry, Inclusion, Interleave, Origin, Payload, SpecError,
    Token, Wait, snapshot,
};
use durasim_types::{Cause, Cycle, EventKind, LineAddr, TxId};

#[derive(Clone)]
pub(super) struct State {
    pub spec: HerculesSpec,
    pub zone: LogZone,
    pub cores: u16,
    interleave: Interleave,
    pub pmem_bytes: u64,
    pub extra_cycles: [Cycle; 3],
    pub limits: [u32; 3],
    pub registers: Registers,
    /// What each controller has.
    pub parts: Vec<Part>,
    pub tokens: u64,
    /// Whether the log zone is marked as in use.
    pub running: bool,
    pub counters: Counters,
    pub fault: ActiveFault,
}

/// What of the state changes while it is at work, in the order of snapshots.
type Contents<R, P, C> = (R, P, u64, bool, C);

impl State {
    pub fn new(spec: &HerculesSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        spec.check()?;
        if geometry.inclusion == Inclusion::Exclusive {
            let problem = "interconnect.inclusion is exclusive, but the older version of a line that a transaction writes has \
                           to stay below the new one (section 4.5.1), in an inclusive or non-inclusive hierarchy";
            return Err(SpecError::new("", problem));
        }
        let l1d = &geometry.l1d;
        if (0..l1d.sets).any(|set| l1d.ways_of(set) == 0) {
            let problem = "a set of an L1D of one way has none to give up for TransTags; 0 leaves all of them there";
            return Err(SpecError::new("l1d_missing_way_period", problem));
        }
        let zone = LogZone::new(spec, geometry)?;
        Ok(State {
            cores: geometry.cores,
            interleave: geometry.interleave(),
            pmem_bytes: geometry.pmem_bytes,
            extra_cycles: geometry.by_level(|_, shape| spec.tag_cycles(shape.latency_cycles)),
            limits: geometry.by_level(|level, shape| spec.trans_tags_of_set(level, shape)),
            registers: Registers::new(),
            parts: zone.parts.iter().zip(0..).map(|(part, number)| Part::new(part, number)).collect(),
            tokens: 0,
            running: false,
            counters: Counters::default(),
            fault: geometry.planted,
            spec: spec.clone(),
            zone,
        })
    }

    pub fn load(spec: &HerculesSpec, geometry: &Geometry, bytes: &[u8]) -> Result<Self, SpecError> {
        let fresh = State::new(spec, geometry)?;
        let contents: Contents<Registers, Vec<PartContents>, Counters> = snapshot::from_bytes(bytes)?;
        let (registers, contents, tokens, running, counters) = contents;
        if contents.len() != fresh.parts.len() {
            return Err(snapshot::refuse("another number of controllers"));
        }
        let mut parts = Vec::new();
        for (number, (contents, zone)) in (0..).zip(contents.into_iter().zip(&fresh.zone.parts)) {
            let PartContents { mut ewpq, migration, gc, extension } = contents;
            if let Some(inconsistency) = ewpq.inconsistency(spec, zone) {
                return Err(snapshot::refuse(inconsistency));
            }
            if gc.contradicts(ewpq.log_head()) {
                return Err(snapshot::refuse("a collection beyond LogHead"));
            }
            if extension.contradicts(zone, ewpq.mappings().filter(|m| m.indirect).map(|m| m.log)) {
                return Err(snapshot::refuse("a log extension that contradicts the eWPQ"));
            }
            ewpq.reindex(zone, |tx| may_migrate(&registers, tx, fresh.fault));
            parts.push(Part::with(PartContents { ewpq, migration, gc, extension }, zone, number));
        }
        Ok(State { registers, parts, tokens, running, counters, ..fresh })
    }

    /// The bytes of a snapshot.
    pub fn saved(&self) -> Vec<u8> {
        let parts: Vec<PartContents> = self.parts.iter().map(Part::contents).collect();
        let contents: Contents<&Registers, Vec<PartContents>, &Counters> =
            (&self.registers, parts, self.tokens, self.running, &self.counters);
        snapshot::to_bytes(&contents)
    }

    /// The number of the controller that a line belongs to.
    pub fn controller_of(&self, line: LineAddr) -> usize {
        usize::from(self.interleave.controller_of(line))
    }

    /// What the controller of a line has.
    pub fn part(&self, line: LineAddr) -> &Part {
        &self.parts[self.controller_of(line)]
    }

    pub fn part_mut(&mut self, line: LineAddr) -> &mut Part {
        let controller = self.controller_of(line);
        &mut self.parts[controller]
    }

    pub fn is_open(&self, tx: TxId) -> bool {
        self.registers.is_open(tx)
    }

    /// Stores a TxLen in the transaction profile (section 4.1): a cached store, or straight to the controller. Sixteen
    /// TxLens share a line, which cores take from each other like any other line: it carries no tag.
    pub fn store_tx_len(&mut self, hardware_id: u64, len: u32, out: &mut Actions) -> Option<Token> {
        let addr = self.zone.tx_len(hardware_id);
        let payload = Payload::new(&len.to_le_bytes());
        match self.spec.tx_len_store {
            TxLenStore::Cached => {
                out.push(Action::PutCached { addr, payload });
                None
            }
            TxLenStore::Controller => {
                self.tokens += 1;
                let token = Token(self.tokens);
                out.push(Action::Append {
                    from: Origin::Controller,
                    at: addr,
                    payload,
                    cause: Cause::Metadata,
                    token: Some(token),
                });
                Some(token)
            }
        }
    }

    /// Listing 1, the end of tx_commit: TxStates become '0'. From now on the lines are visible to all.
    pub fn count_commit(&mut self, tx: TxId, hardware_id: u64, out: &mut Actions) {
        if self.parts.iter().any(|part| part.ewpq.holds(tx)) {
            self.counters.off_chip_commits += 1;
        } else {
            self.counters.on_chip_commits += 1;
        }
        self.parts.iter_mut().for_each(|part| part.ewpq.committed(tx));
        out.event(EventKind::Commit, self.zone.tx_len(hardware_id));
    }

    /// A line finds no place in the log. Its transaction aborts, unless it is committing: that is decided elsewhere.
    pub fn no_place_in_the_log(&mut self, controller: usize, tx: TxId, why: AbortCause, out: &mut Actions) -> Evict {
        if let Some(token) = self.migrate_next_early(controller, out) {
            return Evict::After(Wait::Acked(token));
        }
        match self.registers.get(tx).map(|open| open.phase) {
            Some(Phase::StoringLen(token)) => Evict::After(Wait::Acked(token)),
            _ => Evict::Abort(tx, why),
        }
    }
}
