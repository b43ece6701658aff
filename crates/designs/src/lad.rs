//! LAD: Gupta, Daglis and Falsafi, "Distributed Logless Atomic Durability with Persistent Memory", MICRO 2019.
//!
//! Not registered: this file shows that the contract carries LAD's protocol, that is messages between L1 controllers
//! and memory controllers and speculative entries that are held in the persistent queues until their transaction
//! commits. Its undo-log overflow path, its purgatory and its recovery are not here, which is why it has no row.

use durasim_design::{
    AbortCause, Accept, Action, Actions, CrashImage, Ctx, Cut, Design, Durability, Evict, Gate, Geometry, HardwareCost,
    Hooks, LineTag, Message, Node, RecoveryReport, RegionRequest, Signal, SpecError, Store, Token, Wait, snapshot,
};
use durasim_types::{Cause, CoreId, Line, LineAddr, PhysAddr, Stats, TxId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// No parameters yet.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LadSpec {}

/// The design.
pub struct Lad;

impl Design for Lad {
    const NAME: &'static str = "lad";
    const HOOKS: Hooks = Hooks::TX.with(Hooks::STORE).with(Hooks::EVICT).with(Hooks::ACCEPT);
    type Spec = LadSpec;

    fn reserve(_: &LadSpec, _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }

    fn build(_: &LadSpec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(Protocol::new(geometry)))
    }

    fn load(_: &LadSpec, geometry: &Geometry, bytes: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        let cores: Vec<Controller> = snapshot::from_bytes(bytes)?;
        let fresh = Protocol::new(geometry);
        if cores.len() != fresh.cores.len() {
            return Err(snapshot::refuse("another number of cores"));
        }
        Ok(Box::new(Protocol { cores, ..fresh }))
    }

    fn recover(_: &LadSpec, _: &Geometry, _: &mut CrashImage) -> Result<RecoveryReport, Cut> {
        let losses = vec!["LAD has no recovery yet: held entries of the queues are lost".to_owned()];
        Ok(RecoveryReport { losses, ..RecoveryReport::default() })
    }

    fn cost(_: &LadSpec, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        // Section 5: 70 B for each of eight register sets of an L1 controller, 392 B for each memory controller.
        cost.add("L1 controller register sets", 8 * 70 * 8, u64::from(g.cores));
        cost.add("memory controller", 392 * 8, u64::from(g.controllers));
        cost
    }
}

/// Message kinds of the two-phase commit.
const COMMIT: u16 = 1;
const COMMIT_ACK: u16 = 2;

/// State of one L1 controller (section 4.1).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Controller {
    tx: Option<TxId>,
    /// Lines marked in the bit vector: to be flushed.
    marked: Vec<LineAddr>,
    /// The flushes of the prepare phase are handed over; the commit messages are next.
    prepared: bool,
}

/// LAD's protocol on the contract.
#[derive(Clone, Debug)]
pub struct Protocol {
    cores: Vec<Controller>,
    controllers: u16,
}

impl Protocol {
    /// The protocol on a machine of this shape.
    pub fn new(geometry: &Geometry) -> Self {
        let cores = vec![Controller::default(); usize::from(geometry.cores)];
        Protocol { cores, controllers: geometry.controllers }
    }
}

impl Durability for Protocol {
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, _: &mut Actions) -> Gate {
        self.cores[cx.core.0 as usize] = Controller { tx: Some(tx), ..Controller::default() };
        Gate::Done
    }

    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        if let Some(tx) = store.tx
            && tag.0 != tx.0
        {
            // An abort finds at home what was there before the transaction.
            out.push(Action::CleanTo { line: store.line(), to: None, token: None });
            *tag = LineTag(tx.0);
            self.cores[cx.core.0 as usize].marked.push(store.line());
        }
        Gate::Done
    }

    /// Prepare: every marked line is flushed to its controller, where it is held. Commit: when all are acknowledged,
    /// each controller is told; the first acknowledgement completes the transaction.
    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let core = &mut self.cores[cx.core.0 as usize];
        if !core.prepared {
            core.prepared = true;
            for line in core.marked.drain(..) {
                out.push(Action::CleanTo { line, to: None, token: Some(Token(tx.0)) });
            }
            return Gate::Retry(Wait::Acked(Token(tx.0)));
        }
        for controller in 0..self.controllers {
            let message = Message { kind: COMMIT, a: tx.0, b: u64::from(cx.core.0) };
            out.push(Action::Send { to: Node::Controller(controller), message });
        }
        core.tx = None;
        Gate::After(Wait::Signal(Signal(tx.0)))
    }

    /// What the controllers hold is given up, what the caches hold is invalidated.
    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        for controller in 0..self.controllers {
            out.push(Action::DiscardHeld { controller, group: tx.0 });
        }
        out.push(Action::InvalidateTagged(tx));
        self.cores[cx.core.0 as usize] = Controller::default();
        Gate::Done
    }

    /// A line that a commit has flushed may keep its tag: it is an ordinary line from then on.
    fn live(&self, tag: LineTag) -> bool {
        self.cores.iter().any(|core| core.tx == Some(TxId(tag.0)))
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tag.0 == tx.0
    }

    fn evict(&mut self, _: &Ctx, line: LineAddr, tag: LineTag, _: &Line, _: &mut Actions) -> Evict {
        if tag.is_some() {
            Evict::To { at: line.base(), cause: Cause::Data, token: Some(Token(tag.0)) }
        } else {
            Evict::Proceed
        }
    }

    fn accept(&mut self, _: &Ctx, _: u16, _: PhysAddr, token: Option<Token>) -> Accept {
        Accept::Queue { held: token.map(|token| token.0) }
    }

    fn message(&mut self, _: &Ctx, at: Node, message: Message, out: &mut Actions) {
        match (at, message.kind) {
            (Node::Controller(controller), COMMIT) => {
                out.push(Action::ReleaseHeld { controller, group: message.a });
                let to = Node::Core(CoreId(message.b as u16));
                let answer = Message { kind: COMMIT_ACK, ..message };
                out.push(Action::Send { to, message: answer });
            }
            (Node::Core(_), COMMIT_ACK) => out.push(Action::Raise(Signal(message.a))),
            _ => unreachable!("LAD sends no such message"),
        }
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        for core in &self.cores {
            hasher.write_u64(core.tx.map_or(0, |tx| tx.0));
            core.marked.iter().for_each(|line| hasher.write_u64(line.0));
        }
    }

    fn stats(&self, _: &mut Stats) {}

    fn reset_stats(&mut self) {}

    fn fork(&self) -> Box<dyn Durability> {
        Box::new(self.clone())
    }

    fn save(&self) -> Vec<u8> {
        snapshot::to_bytes(&self.cores)
    }
}
